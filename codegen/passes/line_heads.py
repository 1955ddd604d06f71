"""The iterations of a loop before the first full line of a store that bypasses the cache."""

from __future__ import annotations

from codegen.analysis.strides import ELEMENT_BYTES
from codegen.ir.building import least, plus, times
from codegen.ir.index import Index, index_symbol, substitute_index
from codegen.ir.nodes import For, Let, Statement, Store
from codegen.ir.values import Const, IndexValue, Op
from codegen.passes.loop_bounds import trips
from codegen.passes.new_names import NewNames


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
