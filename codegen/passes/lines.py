"""Runs of bytes: a line of them, and fewer than a line."""

from __future__ import annotations

from codegen.ir.building import Term, index_of
from codegen.ir.lines import LINE_BYTES
from codegen.ir.nodes import Call, Statement, Store, View
from codegen.ir.values import Load


def line(dst: str, src: str, at: Term, count: int = LINE_BYTES) -> Store:
    """dst[at] = src[at], bytes of a line."""
    value = Load(src, (index_of(at),), "bits8", (count,), (0,), (1,))
    return Store(dst, (index_of(at),), value, (0,), (1,))


def part(dst: str, src: str, at: Term, count: Term) -> tuple[Statement, ...]:
    """Fewer bytes than a line, from `at` on."""
    if at == 0:
        return (Call("copy_part", (dst, src, index_of(count))),)
    ends = View(f"{dst}_at", dst, index_of(at)), View(f"{src}_at", src, index_of(at))
    return (*ends, Call("copy_part", (ends[0].name, ends[1].name, index_of(count))))
