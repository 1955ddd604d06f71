"""Keep the arguments that a function reads, in the order of their first use."""

from __future__ import annotations

from dataclasses import replace

from codegen.ir.names import RESULTS, names_of
from codegen.ir.nodes import Function, ScalarArg
from codegen.schedule.registers import RegisterSchedule


def order_arguments(function: Function, _: RegisterSchedule) -> Function:
    """Drop arguments that no statement reads; the address of an array is an argument, too.

    before:  A, n, A.shape[0], A.stride[0]      for i in 0..n: A[4*i] = 1.0
    after:   n, A                               the same
    """
    known = {a.name: a for a in function.arguments}
    known |= {b.name: ScalarArg(b.name, "i64") for b in function.buffers if b.name != RESULTS}
    used = dict.fromkeys(name for name in names_of(function.body) if name in known)
    return replace(function, arguments=tuple(known[name] for name in used))
