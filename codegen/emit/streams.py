"""Which store of a loop over super-vectors goes past the cache, and where its whole lines begin."""

from __future__ import annotations

from dataclasses import replace

from codegen.emit.facts import flat, read
from codegen.emit.scope import ELEMENT_BYTES, Lanes, Scope, element_address, lane_stride
from codegen.ir.copies.tiles import LANE_BYTES
from codegen.ir.index import Affine, Index, index_symbols
from codegen.ir.nodes import For, Function, Let, Store


def streamed_store(function: Function, loop: For, scope: Scope, lanes: Lanes) -> Store | None:
    """The store whose lines go past the cache: each element is written once, and nothing reads it.

    for i: for j: C[i, j] = A[i, j]          C[i, j]
    for i: for j: C[j] = A[i, j]             none: C is written again and again
    for j: C[j] = C[j] + A[j]                none: its lines are in the cache
    for j: if A[j] > 0: C[j] = A[j]          none: what stays would have to be read
    """
    if loop.carried or not all(isinstance(statement, Let | Store) for statement in loop.body):
        return None
    around = {*scope.indices, loop.index}
    kept, stores = read(function.body), [s for s in flat(function.body) if isinstance(s, Store)]
    inside = Scope(function, scope.table, lanes=lanes)
    for store in loop.body:
        if not isinstance(store, Store) or store.accumulate or store.where is not None or store.array in kept:
            continue
        walked = frozenset[str]().union(*map(index_symbols, store.subscripts))
        if not around <= walked or [s.array for s in stores].count(store.array) > 1:
            continue
        size = ELEMENT_BYTES[function.array(store.array).dtype]
        if lane_stride(store, inside) == size and size * lanes.count >= LANE_BYTES:
            return store
    return None


def line_start(store: Store, scope: Scope, loop: For, first: str) -> str:
    """How many elements a loop stores before it comes to a whole line."""
    size = ELEMENT_BYTES[scope.function.array(store.array).dtype]
    if first.isdigit():
        store = replace(store, subscripts=tuple(_where(s, loop.index, int(first)) for s in store.subscripts))
    base, offset = element_address(store, replace(scope, indices={**scope.indices, loop.index: first}))
    return f"elements_to_line({base if offset == '0' else f'{base} + {offset}'}, {size})"


def _where(subscript: Index, index: str, number: int) -> Index:
    """The subscript where a loop's index is a certain number."""
    if not isinstance(subscript, Affine):
        return subscript
    factor = subscript.coefficient(index)
    return subscript + Affine(factor * number, ((index, -factor),) if factor else ())
