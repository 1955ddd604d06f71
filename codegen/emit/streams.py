"""The store of a loop over super-vectors that bypasses the cache, and where its full lines begin."""

from __future__ import annotations

from dataclasses import replace

from codegen.emit.facts import flat, read
from codegen.emit.scope import ELEMENT_BYTES, Lanes, Scope, element_address, lane_stride
from codegen.ir.index import Affine, Index, index_symbols
from codegen.ir.lines import LANE_BYTES
from codegen.ir.nodes import For, Function, Let, Store


def streamed_store(function: Function, loop: For, scope: Scope, lanes: Lanes) -> Store | None:
    """The store whose lines bypass the cache: each element is written once and never read.

    for i: for j: C[i, j] = A[i, j]          C[i, j]
    for i: for j: C[j] = A[i, j]             none: C is written repeatedly
    for j: C[j] = C[j] + A[j]                none: its lines are in the cache
    for j: if A[j] > 0: C[j] = A[j]          none: unchanged elements would have to be read
    """
    if loop.carried or not all(isinstance(statement, Let | Store) for statement in loop.body):
        return None
    around = {*scope.indices, loop.index}
    kept, stores = read(function.body), [s for s in flat(function.body) if isinstance(s, Store)]
    inside = Scope(function, scope.table, lanes=lanes)
    for store in loop.body:
        if not isinstance(store, Store) or store.accumulate or store.where is not None or store.array in kept:
            continue
        used = frozenset[str]().union(*map(index_symbols, store.subscripts))
        if not around <= used or [s.array for s in stores].count(store.array) > 1:
            continue
        size = ELEMENT_BYTES[function.array(store.array).dtype]
        if lane_stride(store, inside) == size and size * lanes.count >= LANE_BYTES:
            return store
    return None


def line_start(store: Store, scope: Scope, loop: For, first: str) -> str:
    """The number of elements that a loop stores before its first full line."""
    size = ELEMENT_BYTES[scope.function.array(store.array).dtype]
    if first.isdigit():
        fixed = tuple(_substituted(s, loop.index, int(first)) for s in store.subscripts)
        store = replace(store, subscripts=fixed)
    base, offset = element_address(store, replace(scope, indices={**scope.indices, loop.index: first}))
    return f"elements_to_line({base if offset == '0' else f'{base} + {offset}'}, {size})"


def _substituted(subscript: Index, index: str, number: int) -> Index:
    """The subscript with a number in place of a loop's index."""
    if not isinstance(subscript, Affine):
        return subscript
    factor = subscript.coefficient(index)
    return subscript + Affine(factor * number, ((index, -factor),) if factor else ())
