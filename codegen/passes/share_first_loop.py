"""Let the caller choose the range of the first loop."""

from __future__ import annotations

from dataclasses import replace

from codegen.analysis.bodies import shared_loop
from codegen.ir.index import index_symbol
from codegen.ir.names import BEGIN, END
from codegen.ir.nodes import Function
from codegen.schedule.registers import RegisterSchedule


def share_first_loop(function: Function, _: RegisterSchedule) -> Function:
    """Run the only loop of a function over [begin, end), so that calls can split it.

    before:  for i in 0..n: C[i] = A[i]
    after:   for i in begin..end: C[i] = A[i]
    """
    loop = shared_loop(function)
    if loop is None:
        return function
    shared = replace(loop, lower=(index_symbol(BEGIN),), upper=(index_symbol(END),))
    return replace(function, body=(shared,))
