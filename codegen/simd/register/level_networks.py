"""Networks of shuffles of which each CPU level keeps one.

Numba's IR is the same for every level. In it, a constant chooses between both networks; `library` defines the
constant, and LLVM drops the other network.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

from llvmlite import ir

from codegen.support.cpu import CpuLevel

IN_LANES = "tilejit.shuffles_in_lanes"
"""The constant: whether unpacks within lanes cost less than permutes of two registers."""

_IN_LANES_AT = ("avx2", "sse2")
"""The levels without permutes of two registers."""

_FLAG = ir.IntType(1)


def by_level(builder: Any, in_lanes: Callable[[], list[Any]], across: Callable[[], list[Any]]) -> list[Any]:
    """The lines that one of two networks makes, with their types."""
    known = builder.module.globals.get(IN_LANES)
    if known is None:
        known = ir.GlobalVariable(builder.module, _FLAG, IN_LANES)
        known.global_constant = True
    ends = []
    with builder.if_else(builder.load(known)) as branches:
        for branch, network in zip(branches, (in_lanes, across), strict=True):
            with branch:
                ends.append((network(), builder.block))
    lines = []
    for both in zip(*(made for made, _ in ends), strict=True):
        line = builder.phi(both[0].type)
        for value, (_, block) in zip(both, ends, strict=True):
            line.add_incoming(value, block)
        lines.append(line)
    return lines


def library(names: Iterable[str], level: CpuLevel) -> str:
    """LLVM IR that defines the constant, or "" if no name is its."""
    if IN_LANES not in names:
        return ""
    return f"@{IN_LANES} = constant i1 {int(level.name in _IN_LANES_AT)}\n"
