"""Full lines of the destination: where they begin, and stores of them or of parts."""

from __future__ import annotations

from dataclasses import replace

from codegen.analysis.strides import ELEMENT_BYTES
from codegen.ir.building import Term, index_of, least, let, minus, multiple, plus, rest, times
from codegen.ir.index import Index, index_symbol, substitute_index
from codegen.ir.lines import LINE_BYTES
from codegen.ir.nodes import For, Let, Statement, Store
from codegen.ir.rewriting import Body, rewrite_body
from codegen.ir.values import Const, IndexValue, Load, Op
from codegen.passes.loop_bounds import trips
from codegen.passes.new_names import NewNames


def to_line(buffer: Term) -> Index:
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


def line_head(
    names: NewNames, loop: For, array: str, ends: tuple[Index, Index]
) -> tuple[list[Statement], Index]:
    """The statements that find the first full line of the only store to an array, and the index there.

    after:   j_gap = elements_to_line(C + 4*first, 4)
             j_head = first + min(j_gap, last - first)
    """
    first, last = ends
    step = loop.step // loop.size
    store = next(s for s in loop.body if isinstance(s, Store) and s.array == array)
    size = ELEMENT_BYTES[store.value.dtype]
    address = plus(array, *(substitute_index(s, loop.index, first) for s in store.subscripts))
    gap = Op("elements_to_line", (IndexValue(address), Const(size, "i64")), "i64")
    gap_name, head_name = names.name(f"{loop.index}_gap"), names.name(f"{loop.index}_head")
    head = plus(first, times(least(gap_name, trips(first, last, step)), step))
    return [Let(gap_name, gap), Let(head_name, IndexValue(head))], index_symbol(head_name)
