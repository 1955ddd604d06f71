"""Keep the arguments that a function reads, in the order of their first use."""

from __future__ import annotations

from dataclasses import replace

from codegen.ir.names import names_of
from codegen.ir.nodes import Function


def order_arguments(function: Function) -> Function:
    """Drop arguments that no statement reads.

    before:  A.shape[0], n, m, A.stride[0]      for i in 0..n: A[4*i + m] = 1.0
    after:   n, m                               the same
    """
    known = {a.name: a for a in function.arguments}
    used = dict.fromkeys(name for name in names_of(function.body) if name in known)
    return replace(function, arguments=tuple(known[name] for name in used))
