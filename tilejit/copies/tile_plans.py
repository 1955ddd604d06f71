"""Repeated gathers and scatters of the same number of tiles: only the indices differ between calls."""

from __future__ import annotations

from collections.abc import Callable
from math import prod
from typing import TYPE_CHECKING, Any, NamedTuple, TypeAlias

import numpy as np
from numpy import ndarray

from codegen import (
    COPIES_HOLD_GIL_BYTES,
    LEND_BUFFER_BYTES,
    Cache,
    CopyProgram,
    Direct,
    Integers,
    Launch,
    OffsetCalls,
    PairTable,
    build_offset_calls,
    compiler_lock,
    thread_count,
    threads_by_size,
)
from tilejit.arrays.memory import HUGE_BYTES, address
from tilejit.arrays.strided import ArrayLayout
from tilejit.copies.packed_tiles import copy_of_one
from tilejit.layout.cute_shape import Spec
from tilejit.programs import direct_policy
from tilejit.programs.native_calls import lent_scratch
from tilejit.programs.tuning import DEFAULT, Tuning
from tilejit.tiled.outputs import check_target
from tilejit.tiled.sides import ArraySide, TiledSide
from tilejit.tiled.tile_grid import INDEX_DTYPE, Grid
from tilejit.tiled.tiled_array import TiledArray

if TYPE_CHECKING:
    from codegen import Entry

Compile: TypeAlias = Callable[[Integers], CopyProgram]
"""Creates the copy of the tiles with these numbers."""


class TilePlan(Direct):
    """A gather or scatter of a fixed number of tiles, which can run many times.

    >>> plan(t, indices, held)

    It answers calls whose arguments it can check quickly. For all others it returns None and writes nothing:
    an index may be outside the grid, a tile to write may be named twice, or arrays may overlap.
    """

    __slots__ = (
        "_call_count",
        "_calls",
        "_far",
        "_held",
        "_moved_bytes",
        "_near",
        "_shape",
        "_single",
        "_threads",
        "_tiled",
    )

    def __init__(
        self,
        layout: Spec,
        held: ArraySide | TiledSide,
        shape: tuple[int, ...],
        calls: OffsetCalls,
        threads: int | None,
        moved_bytes: int,
    ) -> None:
        self._tiled, self._held, self._shape, self._calls = TiledSide(TiledArray, layout), held, shape, calls
        own, other = self._tiled.layout, held.layout
        self._near, self._far = own.low - other.stop, own.stop - other.low
        self._threads, self._moved_bytes, self._call_count = threads, moved_bytes, 0
        self._single = threads_by_size(threads, moved_bytes) == 1

    def __call__(self, t: TiledArray, indices: Integers, held: Any = None) -> Any:
        """Copy tiles to `held`, or to a new array, and return it; or copy them into `t`, and return `t`.

        Raises:
            LayoutError: `held`, as the destination, is read-only or overlaps itself or `t`; or a buffer has
                been resized.
            TypeError: `held` has masked elements.
        """
        if indices.dtype is not INDEX_DTYPE or indices.shape != self._shape:
            return None
        if not indices.flags.c_contiguous:
            indices = np.ascontiguousarray(indices)
        calls, own = self._calls, self._tiled.memory(t, "t")
        if calls.into:
            if not own.flags.writeable:
                return None
            other = self._held.memory(held, "values")
            result: Any = t
        elif held is None:
            result, other = self._held.new()
        else:
            result, other = self._held.output(held, own)
        at, other_at = address(own), address(other)
        if self._near < other_at - at < self._far:
            if calls.into:
                return None
            check_target(other, own)
        if self._single:
            done = calls(at, other_at, address(indices))
        else:
            count = thread_count(self._threads, self._moved_bytes)
            done = calls(at, other_at, address(indices), count, alive=(t, indices, result, held))
        if not done:
            return None
        self._call_count += 1
        if self._native and direct_policy.is_repeated(self._call_count):
            self._answer_directly(self._entry(t, indices, held))
        return result

    _in_python = __call__

    def _entry(self, t: TiledArray, indices: Integers, held: Any) -> Entry | None:
        """The native entry for calls like this one, or None if they go through Python.

        Large copies release the GIL, so each has its own scratch.
        """
        calls, other, releases = self._calls, self._held.layout, self._moved_bytes > LEND_BUFFER_BYTES
        if not self._single or self._moved_bytes > HUGE_BYTES or not calls.is_direct(own=releases):
            return None
        with compiler_lock:  # most processes repeat few calls
            from codegen import ArrayArgument, Disjoint, Entry, FreshArray, own_scratch
        arguments = [
            self._tiled.argument(t, written=calls.into),
            ArrayArgument(indices.dtype, indices.shape, indices.strides, written=False),
        ]
        pairs: tuple[Disjoint, ...] = ()
        returns: FreshArray | int = FreshArray(other.dtype, other.shape)
        if held is not None:
            arguments.append(self._held.argument(held, written=not calls.into))
            pairs, returns = (Disjoint(0, 2, self._near, self._far),), 0 if calls.into else 2
        known = tuple(x for x in arguments if x is not None)
        if len(known) < len(arguments):
            return None
        buffer, scratch = lent_scratch(0 if releases else calls.direct_bytes)
        made = calls.direct(0, 2, 1, scratch, own_scratch(len(known)) if releases else None)
        return Entry(
            known,
            pairs,
            made,
            releases=releases,
            returns=returns,
            note=(calls, buffer),  # keeps code and tables alive, because an entry only has addresses
            refuses=len(made),
            scratch_bytes=calls.direct_bytes if releases else 0,
        )


_plans: Cache[tuple[Any, ...], tuple[Any, TilePlan | None]] = Cache()
"""Plans of earlier calls, each with the layouts whose ids are in its key."""


def quick_indices(ids: Any) -> Integers | None:
    """Indices in the form that a plan reads, for an array of integers; None for anything else.

    Unsigned integers beyond int64 become negative, which are outside every grid as well.
    """
    if type(ids) is not ndarray:
        return None
    if ids.dtype is INDEX_DTYPE:
        return ids
    if ids.dtype.kind not in "iu" or not ids.ndim:  # NumPy would give an array of rank 0 an axis
        return None
    return np.ascontiguousarray(ids, INDEX_DTYPE)


def run_known(t: Any, ids: Any, held: Any, threads: Any, tuning: Tuning, *, into: bool) -> Any:
    """Answer a call with the plan of an earlier call; None if there is no plan, or if it does not answer.

    Args:
        t: the TiledArray.
        ids: the numbers of the tiles.
        held: the destination or source of the tiles; None for a new array.
        threads: the number of threads, or None.
        tuning: how the copy is compiled.
        into: whether tiles are copied into `t`.
    """
    indices = quick_indices(ids)
    if indices is None:
        return None
    key = _key(t, indices, held, threads, tuning, into)
    found = _plans.get(key) if key else None
    if found is None or found[1] is None:
        return None
    return found[1](t, indices) if held is None else found[1](t, indices, held)


def tile_plan(
    t: TiledArray,
    grid: Grid,
    indices: Integers,
    held: Any,
    threads: int | None,
    tuning: Tuning,
    compiled: Compile,
    *,
    into: bool,
    fresh: bool,
) -> TilePlan | None:
    """The plan for this number of tiles; None if each call is compiled for its own tiles.

    Args:
        t: the TiledArray.
        grid: its grid.
        indices: the numbers of the tiles.
        held: the destination or source of the tiles.
        threads: the number of threads, or None.
        tuning: how the copy is compiled; copies of packed elements have no options, and no plan with them.
        compiled: compiles the copy.
        into: whether tiles are copied into `t`.
        fresh: whether calls allocate a new array like `held`.
    """
    key = _key(t, indices, None if fresh else held, threads, tuning, into)
    if key is None or (t.layout.packed and tuning is not DEFAULT):
        return None
    found = _plans.get(key)
    if found is None:
        layouts = t.layout, held.layout if isinstance(held, TiledArray) else None
        found = _plans.keep(key, (layouts, _new_plan(t.layout, grid, indices, held, threads, compiled, into)))
    return found[1]


def _key(
    t: Any, indices: Integers, held: Any, threads: Any, tuning: Tuning, into: bool
) -> tuple[Any, ...] | None:
    """The key that calls share if one plan answers them; None for arguments of other types."""
    if not isinstance(t, TiledArray) or not (threads is None or type(threads) is int):
        return None
    if type(held) is ndarray:
        laid = held.shape, held.strides, held.dtype
        return id(t.layout), indices.shape, *laid, threads, tuning.virtual_vector_size, into
    if held is None:
        return id(t.layout), indices.shape, threads, tuning.virtual_vector_size, into
    if not isinstance(held, TiledArray):
        return None
    return id(t.layout), indices.shape, id(held.layout), threads, tuning.virtual_vector_size, into


def _new_plan(
    layout: Spec,
    grid: Grid,
    indices: Integers,
    held: Any,
    threads: int | None,
    compiled: Compile,
    into: bool,
) -> TilePlan | None:
    """The plan of the copy of that many tiles; None if tiles differ."""
    side, count = _side(held), len(indices)
    if not count:
        return None
    found = _packed_tiles(layout, grid, held, into) if layout.packed else _tiles(grid, count, compiled, into)
    if found is None:
        return None
    moved = side.size_bytes + count * prod(grid.tile) * layout.bits // 8
    calls = build_offset_calls(
        found.launches,
        found.offsets,
        grid.extents if indices.ndim > 1 else (prod(grid.extents),),
        found.step,
        into=into,
        unique=into,
        divisible=found.divisible,
        hold_gil=moved <= COPIES_HOLD_GIL_BYTES and threads_by_size(threads, moved) == 1,
        bounds=found.bounds,
    )
    return TilePlan(layout, side, indices.shape, calls, threads, moved) if calls else None


class _Tiles(NamedTuple):
    """Launches that copy tiles, the bytes from tile to tile in the grid, and offsets on the other side.

    Attributes:
        divisible: whether threads may share the tiles.
        bounds: the bounds of launches that copy one tile, as `build_offset_calls` takes them.
    """

    launches: tuple[Launch, ...]
    step: int
    offsets: Integers
    divisible: bool
    bounds: tuple[tuple[int, int], tuple[int, int]] | None


def _packed_tiles(layout: Spec, grid: Grid, held: Any, into: bool) -> _Tiles | None:
    """Tiles of packed elements, each copied by itself; None if tiles of the grid share bytes."""
    one = copy_of_one(layout, grid, held, into=into)
    if one is None or one.program.first or not grid.tile_bytes:
        return None
    divisible = into or one.program.fills_bytes
    return _Tiles(one.program.launches, grid.tile_bytes, one.offsets, divisible, one.bounds)


def _tiles(grid: Grid, count: int, compiled: Compile, into: bool) -> _Tiles | None:
    """Tiles of elements of whole bytes, copied together; None if others differ from the first ones."""
    step = grid.step
    if step is None or step < 0:
        return None
    chosen, index = np.arange(count) % prod(grid.extents), np.arange(count)
    program, step = compiled(chosen), step * grid.access.unit_bits // 8
    if program.first or any([x.extent for x in launch.tables] != [count] for launch in program.launches):
        return None
    tables = [launch.tables[0] for launch in program.launches]
    own, others = ([np.asarray(offsets(index)) for offsets in either] for either in _sides(tables, into))
    if (
        not others
        or any((x != chosen * step).any() for x in own)
        or any((x != others[0]).any() for x in others)
    ):
        return None
    return _Tiles(program.launches, step, np.ascontiguousarray(others[0], np.int64), True, None)


def _side(held: Any) -> ArraySide | TiledSide:
    """The side of an array [n, *tile], or of a tiled array of that shape."""
    if isinstance(held, TiledArray):
        return TiledSide(TiledArray, held.layout)
    return ArraySide(ArrayLayout(held.shape, held.strides, held.dtype))


def _sides(tables: list[PairTable], into: bool) -> tuple[list[Any], list[Any]]:
    """The functions of offsets on the side of the tiled array, and on the other side."""
    src, dst = [x.src for x in tables], [x.dst for x in tables]
    return (dst, src) if into else (src, dst)
