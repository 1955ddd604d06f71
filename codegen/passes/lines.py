"""Full lines of the destination: where they begin, and stores of them or of parts."""

from __future__ import annotations

from dataclasses import replace

from codegen.ir.building import Term, index_of, let, minus, multiple, plus, rest, times
from codegen.ir.index import Index
from codegen.ir.lines import LINE_BYTES
from codegen.ir.nodes import Call, Let, Statement, Store, View
from codegen.ir.rewriting import Body, rewrite_body
from codegen.ir.values import Load


def to_line(buffer: str) -> Index:
    """The bytes from an address to the first line that begins there or after it."""
    return rest(times(buffer, -1), LINE_BYTES)


def full_lines(head: Term, count: Term, block: int = LINE_BYTES) -> tuple[Let, Let]:
    """head and stop: where the full blocks among `count` begin, if the first line does at `head`, and end."""
    return let("head", head), let("stop", plus("head", multiple(minus(count, "head"), block)))


def streaming(body: Body, array: str = "") -> Body:
    """A body whose stores, or those to an array, bypass the cache."""

    def streamed(x: Statement) -> Body:
        return (replace(x, streamed=True),) if isinstance(x, Store) and array in ("", x.array) else (x,)

    return rewrite_body(body, streamed)


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
