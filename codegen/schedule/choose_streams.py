"""Choose the store of a loop over super-vectors that bypasses the cache."""

from __future__ import annotations

from codegen.analysis.bodies import flat, read, strip_around
from codegen.analysis.strides import ELEMENT_BYTES, lane_stride_bytes
from codegen.ir.index import index_symbols
from codegen.ir.lines import LANE_BYTES
from codegen.ir.nodes import For, Function, Let, Statement, Store

LEAST_STRIP_BYTES = 1024
"""Shorter strips have too many lines that two strips share, which are stored in two parts."""


def streamed_array(function: Function, loop: For, around: tuple[str, ...], lanes: int) -> str:
    """The array whose lines bypass the cache, or "": each element is written once and never read.

    for i: for j: C[i, j] = A[i, j]          C
    for i: for j: C[j] = A[i, j]             none: C is written repeatedly
    for j: C[j] = C[j] + A[j]                none: its lines are in the cache
    for j: if A[j] > 0: C[j] = A[j]          none: unchanged elements would have to be read

    around: the indices of the loops around this one; lanes: its lanes per register
    """
    if any(c.start.shape for c in loop.carried):
        return ""
    if not all(isinstance(statement, Let | Store) for statement in loop.body):
        return ""
    kept, stores = read(function.body), [s for s in flat(function.body) if isinstance(s, Store)]
    strip = strip_around(loop)
    strips = _counts(function.body, {*around})
    for store in loop.body:
        if not isinstance(store, Store) or store.accumulate or store.where is not None:
            continue
        if store.along or store.array in kept:
            continue
        used = frozenset[str]().union(*map(index_symbols, store.subscripts)) | strips
        if not {*around, loop.index} <= used or [s.array for s in stores].count(store.array) > 1:
            continue
        array = function.array(store.array)
        size, step = ELEMENT_BYTES[array.dtype], loop.step // loop.size
        stride = lane_stride_bytes(array, store.subscripts, loop.index, step)
        long = strip is None or strip[1] * size >= LEAST_STRIP_BYTES
        if stride == size and size * lanes >= LANE_BYTES and long:
            return store.array
    return ""


def _counts(body: tuple[Statement, ...], indices: set[str]) -> set[str]:
    """Those of the indices that count strips: the loop over a strip visits each of its iterations once."""
    loops = (statement for statement in flat(body) if isinstance(statement, For))
    return {found[0] for loop in loops if (found := strip_around(loop)) and found[0] in indices}
