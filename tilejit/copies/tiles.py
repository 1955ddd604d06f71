"""gather_tiles and scatter_tiles: copy some tiles of a tiled array, in any order, without the rest."""

from __future__ import annotations

from collections.abc import Iterator
from math import prod
from operator import index
from typing import Any, Literal, get_args, overload

import numpy as np
from numpy.typing import ArrayLike

from codegen import CopyProgram, LayoutError, dataclass, thread_count
from tilejit.arrays.memory import Array, empty
from tilejit.arrays.values import broadcast, elements, extend_sign, widens_to
from tilejit.copies.convert import pack, unpack
from tilejit.copies.packed_tiles import copy_of_one, side_of
from tilejit.copies.relayouts import relayout
from tilejit.copies.tile_plans import quick_indices, run_known, tile_plan
from tilejit.layout.from_parts import make_shape
from tilejit.layout.indexing import shape_name
from tilejit.programs.compiled import buffer_element, compiled
from tilejit.programs.tuning import AUTO, DEFAULT, STRUCTURE, Tuning, VectorSize, read_tuning
from tilejit.tiled.buffers import writable_layout
from tilejit.tiled.outputs import check_alike, check_target, checked_out
from tilejit.tiled.plan_elements import extends_sign
from tilejit.tiled.tile_grid import Grid, Table, grid_of, integers
from tilejit.tiled.tiled_array import TiledArray, address_of

BETWEEN_BYTES = 16 << 20
"""Bytes of packed elements that share a buffer, which stays in cache; each plan takes 0.5 ms."""


Duplicates = Literal["error", "last"]
"""How `scatter_tiles` treats a tile that is named twice."""

_DUPLICATES = get_args(Duplicates)


@dataclass(frozen=True, slots=True)
class _Chosen:
    """The tiles that a call names, all in the grid.

    Attributes:
        numbers: their flat numbers.
        indices: the same in the form that a plan reads: flat numbers, or positions in the grid.
    """

    numbers: Table
    indices: Table


def _chosen(grid: Grid, ids: Any) -> _Chosen:
    numbers = grid.numbers(ids)
    indices = quick_indices(ids)
    return _Chosen(numbers, numbers if indices is None else indices)


@overload
def gather_tiles(
    t: TiledArray,
    ids: ArrayLike,
    out: Array | None = None,
    *,
    threads: int | None = None,
    virtual_vector_size: VectorSize = AUTO,
) -> Array: ...


@overload
def gather_tiles(
    t: TiledArray,
    ids: ArrayLike,
    out: TiledArray,
    *,
    threads: int | None = None,
    virtual_vector_size: VectorSize = AUTO,
) -> TiledArray: ...


def gather_tiles(
    t: TiledArray,
    ids: ArrayLike,
    out: Array | TiledArray | None = None,
    *,
    threads: int | None = None,
    virtual_vector_size: VectorSize = AUTO,
) -> Array | TiledArray:
    """Copy some tiles of a tiled array to an array [n, *tile].

    >>> x = np.arange(300_000, dtype=np.float32).reshape(1000, 300)
    >>> t = tilejit.pack(x, "{1,0:T(8,128)}")  # 125 x 3 tiles of 8 x 128
    >>> tiles = tilejit.gather_tiles(t, [4, 0, 4])  # tiles (1, 1), (0, 0) and (1, 1) again
    >>> tiles.shape
    (3, 8, 128)
    >>> np.array_equal(tiles[0], x[8:16, 128:256])
    True
    >>> np.array_equal(tiles[:2], tilejit.gather_tiles(t, [[1, 1], [0, 0]]))
    True

    This gathers the blocks of a paged KV cache by a block table, if each block is a tile:

    >>> cache = tilejit.pack(np.zeros((512 * 16, 128), np.float16), "{1,0:T(16,128)}")  # 16 tokens each
    >>> block_table = np.array([[7, 3, 500], [2, 9, 11]])
    >>> tilejit.gather_tiles(cache, block_table[0]).shape  # [blocks, 16, 128]
    (3, 16, 128)

    The tiles are those of the first level, with elements in logical order and padding as stored. Dimensions
    that this level leaves untiled belong to the grid. Axes are in physical order, the most major
    first.

    Args:
        t: the tiled array.
        ids: flat tile numbers, row-major in the grid, or an array [n, grid rank] of grid positions, of any
            integer dtype. Tiles may repeat.
        out: an array [n, *tile] with the dtype of `t` and any strides, or a TiledArray of that shape, whose
            padding stays unchanged. It must not overlap `t`. For u4, s4 and narrower integers it may be of
            bytes: uint8 or int8. None allocates an array.
        threads: the number of threads; None chooses it from the size.
        virtual_vector_size: elements that move at a time, one number or two; see `copyto`.

    Returns:
        `out`, or a new array [n, *tile].

    Raises:
        LayoutIndexError: an id is outside the grid; nothing has been written.
        LayoutError: the layout has no tiles, `ids` has another shape, `out` does not fit, or
            `virtual_vector_size` is invalid.
        KernelValueError: `threads` is less than one.
        TypeError: an argument has the wrong type.
    """
    given = integers(ids) if isinstance(ids, list) else ids
    tuning = _tuning(virtual_vector_size)
    done: Array | TiledArray | None = run_known(t, given, out, threads, tuning, into=False)
    if done is not None:
        return done
    grid = _grid_of(t)
    chosen = _chosen(grid, given)
    result = _output(out, (len(chosen.numbers), *grid.tile), t)
    _copy_tiles(t, grid, chosen, result, threads, virtual_vector_size, tuning, fresh=out is None)
    if not isinstance(out, np.ndarray):
        return result
    if extends_sign(t.layout, out.dtype):
        extend_sign(out, t.layout.element.bits)
    return out


def scatter_tiles(
    t: TiledArray,
    ids: ArrayLike,
    values: ArrayLike,
    *,
    duplicates: Duplicates = "error",
    threads: int | None = None,
    virtual_vector_size: VectorSize = AUTO,
) -> None:
    """Write tiles back to their positions in a tiled array: the reverse of `gather_tiles`.

    >>> t = tilejit.pack(np.zeros((1000, 300), np.float32), "{1,0:T(8,128)}")  # 125 x 3 tiles of 8 x 128
    >>> tiles = np.full((2, 8, 128), 1, np.float32)
    >>> tilejit.scatter_tiles(t, [4, 0], tiles)  # to the positions (1, 1) and (0, 0)
    >>> int(np.asarray(t).sum())
    2048
    >>> tilejit.scatter_tiles(t, [[1, 1], [1, 1]], [[[2]], [[3]]], duplicates="last")
    >>> float(t[8, 128])
    3.0

    Padding elements are also written from `values`.

    Args:
        t: the array whose tiles are written.
        ids: flat tile numbers, or an array [n, grid rank] of grid positions, as in `gather_tiles`.
        values: a TiledArray or an array [n, *tile], or anything that broadcasts to that shape and converts
            as in NumPy assignment.
        duplicates: "error" raises for a tile that is named twice. "last" writes the last of its values.
        threads: the number of threads; None chooses it from the size.
        virtual_vector_size: elements that move at a time, one number or two; see `copyto`.

    Raises:
        LayoutIndexError: an id is outside the grid; nothing has been written.
        LayoutError: an id occurs twice, the layout has no tiles, the values do not fit, the buffer is
            read-only, or a keyword is invalid; nothing has been written.
        KernelValueError: `threads` is less than one.
        TypeError: an argument has the wrong type.
    """
    given = integers(ids) if isinstance(ids, list) else ids
    tuning = _tuning(virtual_vector_size)
    known = values is not None and type(duplicates) is str and duplicates in _DUPLICATES
    if known and run_known(t, given, values, threads, tuning, into=True) is not None:
        return
    grid, chosen, kept = _scattered(t, given, values, duplicates)
    _copy_tiles(t, grid, chosen, kept, threads, virtual_vector_size, tuning, into=True)


def gather_program(t: TiledArray, ids: Any, out: Any, threads: int, size: Any) -> CopyProgram:
    """The program of `gather_tiles` with a `virtual_vector_size`; None for `out` is a new array.

    Raises:
        as `gather_tiles`; LayoutError: the call needs several copies.
    """
    grid = _grid_of(t)
    numbers = _chosen(grid, ids).numbers
    held = _output(out, (len(numbers), *grid.tile), t)
    return _program(t, grid, numbers, held, threads, size, into=False)


def scatter_program(
    t: TiledArray, ids: Any, values: Any, duplicates: Any, threads: int, size: Any
) -> CopyProgram:
    """The program of `scatter_tiles` with a `virtual_vector_size`.

    Raises:
        as `scatter_tiles`; LayoutError: the call needs several copies.
    """
    grid, chosen, kept = _scattered(t, ids, values, duplicates)
    return _program(t, grid, chosen.numbers, kept, threads, size, into=True)


def _program(
    t: TiledArray, grid: Grid, numbers: Table, held: Any, threads: int, size: Any, *, into: bool
) -> CopyProgram:
    """The copy of these tiles; for packed elements, the copy of one tile, which runs for each."""
    tuning = _tuning(size)
    if not t.layout.packed or grid.tile_bytes is None or 0 in held.shape:
        return _compiled(t, grid, numbers, held, threads, tuning, into=into)
    if tuning is not DEFAULT:
        raise LayoutError("packed elements of tiles go through a buffer\n  omit virtual_vector_size")
    one = copy_of_one(t.layout, grid, held, into=into)
    if one is None:
        raise LayoutError(
            f"tiles of {shape_name(t.layout)} go to and from {shape_name(held.layout)} in two copies\n"
            "  explain each one, with an array in between"
        )
    return one.program


def _tuning(size: Any) -> Tuning:
    """How copies of tiles are compiled with such a `virtual_vector_size`.

    Raises:
        LayoutError, TypeError: it is invalid.
    """
    return DEFAULT if size is AUTO else read_tuning(size, STRUCTURE, tune=False)


def _compiled(
    t: TiledArray, grid: Grid, numbers: Table, held: Any, threads: int, tuning: Tuning, *, into: bool
) -> CopyProgram:
    held_map, _, element = side_of(held)
    sides = (held_map, element), (grid.tiles(numbers), buffer_element(t.layout))
    (src, source), (dst, target) = sides if into else sides[::-1]
    return compiled(src, dst, source, target, threads=threads, tuning=tuning)


def _scattered(t: Any, ids: Any, values: Any, duplicates: Any) -> tuple[Grid, _Chosen, Any]:
    """The grid, the tiles to write, each once, and their values."""
    grid = _grid_of(t)
    if not isinstance(duplicates, str):
        raise TypeError(f'duplicates: expected "error" or "last", got {type(duplicates).__name__}')
    if duplicates not in _DUPLICATES:
        raise LayoutError(f'duplicates: expected "error" or "last", got {duplicates[:40]!r}')
    chosen = _chosen(grid, ids)
    numbers = chosen.numbers
    t.writable_buffer()
    last = grid.last_of_each(numbers)
    if duplicates == "error" and len(last) < len(numbers):
        raise LayoutError(_duplicate_message(numbers))
    kept = _checked_values(values, t, (len(numbers), *grid.tile))
    if len(last) < len(numbers):
        kept = (kept.unpack() if isinstance(kept, TiledArray) else kept)[last]
        chosen = _Chosen(numbers[last], chosen.indices[last])
    return grid, chosen, kept


def _output(out: Any, shape: tuple[int, ...], t: TiledArray) -> Array | TiledArray:
    """`out` if it may take tiles of `t`, or a new array."""
    if out is None:
        return empty(shape, t.dtype)
    if not isinstance(out, TiledArray):
        if not isinstance(out, np.ndarray):
            raise TypeError(f"out: expected an array or a TiledArray, got {type(out).__name__}")
        is_wider = out.dtype != t.dtype and widens_to(t.layout.element, out.dtype)
        return checked_out(out.view(t.dtype) if is_wider else out, shape, t.dtype, t.buffer)
    check_alike(out, shape, t.dtype)
    writable_layout(out.layout)
    check_target(out.buffer, t.buffer)
    return out


def _grid_of(t: Any) -> Grid:
    if not isinstance(t, TiledArray):
        raise TypeError(f"expected a TiledArray, got {type(t).__name__}")
    return grid_of(t.layout)


def _copy_tiles(
    t: TiledArray,
    grid: Grid,
    chosen: _Chosen,
    held: Any,
    threads: int | None,
    size: Any,
    tuning: Tuning,
    *,
    into: bool = False,
    fresh: bool = False,
) -> None:
    """Copy tiles to `held` or from it.

    Args:
        t: the TiledArray.
        grid: its grid.
        chosen: the tiles to copy.
        held: an array [n, *tile], or a TiledArray of that shape.
        threads: the number of threads, or None.
        size: that of super-vectors.
        tuning: the same, read.
        into: whether tiles are copied from `held` into the buffer of `t`.
        fresh: whether calls like this one allocate a new array like `held`.
    """
    numbers, held = chosen.numbers, held if isinstance(held, TiledArray) else np.asarray(held)
    count = thread_count(threads, 2 * prod(held.shape) * t.layout.bits // 8)
    threads = None if threads is None else index(threads)
    _, held_at, _ = side_of(held)

    def copied(tiles: Table) -> CopyProgram:
        """The copy of these tiles."""
        return _compiled(t, grid, tiles, held, count, tuning, into=into)

    plan = tile_plan(t, grid, chosen.indices, held, threads, tuning, copied, into=into, fresh=fresh)
    if plan is not None and plan(t, chosen.indices, held) is not None:
        return
    tile_bytes = grid.tile_bytes if t.layout.packed else None
    if tile_bytes and 0 not in held.shape:
        copy = _scatter_packed if into else _gather_packed
        whole = _as_bytes(t, tile_bytes)
        for some, room in _pieces(tile_bytes, len(numbers), held):
            part = held if isinstance(held, TiledArray) else held[some]
            between = TiledArray(room.reshape(-1), grid.stored(len(room)))
            copy(whole, numbers[some], part, between, threads, size)
        return
    src_at, dst_at = (held_at, address_of(t)) if into else (address_of(t), held_at)
    copied(numbers).run(src_at, dst_at, count, alive=(t, held))


def _as_bytes(t: TiledArray, tile_bytes: int) -> TiledArray:
    """The same buffer as bytes in tiles of that many bytes, so that packed elements move as whole bytes."""
    count = t.nbytes // tile_bytes * tile_bytes
    return TiledArray(t.buffer[:count], make_shape("uint8", (count,), tiles=((tile_bytes,),)))


def _pieces(tile_bytes: int, count: int, held: Any) -> Iterator[tuple[slice, Array]]:
    """Tiles that go through one buffer together, and their rows of it.

    These are all tiles if the other side is a tiled array.
    """
    each = count if isinstance(held, TiledArray) else min(max(BETWEEN_BYTES // tile_bytes, 1), count)
    room = empty((each, tile_bytes), np.uint8)
    for k in range(0, count, each):
        yield slice(k, min(k + each, count)), room[: count - k]


def _gather_packed(
    whole: TiledArray, numbers: Table, result: Any, between: TiledArray, threads: int | None, size: Any
) -> None:
    """Gather whole tiles of the buffer as bytes into `between`, then unpack elements from there."""
    gather_tiles(whole, numbers, out=_rows(between), threads=threads)
    if isinstance(result, TiledArray):
        layout = result.layout
        relayout(between, layout, out=result, padding="keep", threads=threads, virtual_vector_size=size)
    else:
        unpack(between, out=result, threads=threads, virtual_vector_size=size)


def _scatter_packed(
    whole: TiledArray, numbers: Table, kept: Any, between: TiledArray, threads: int | None, size: Any
) -> None:
    """Pack elements into `between`, then scatter whole tiles of bytes from there."""
    if isinstance(kept, TiledArray):
        relayout(kept, between.layout, out=between, threads=threads, virtual_vector_size=size)
    else:
        pack(kept, between.layout, out=between, threads=threads, virtual_vector_size=size)
    scatter_tiles(whole, numbers, _rows(between), threads=threads)


def _rows(between: TiledArray) -> Array:
    """The bytes of tiles one after the other, one row for each tile."""
    return between.buffer.reshape(between.shape[0], -1)


def _checked_values(values: Any, t: TiledArray, shape: tuple[int, ...]) -> Any:
    """The values as a TiledArray or an array of that shape that does not overlap the buffer."""
    if isinstance(values, TiledArray):
        if values.shape != shape or values.dtype != t.dtype:
            raise LayoutError(
                f"values is {values.dtype}{list(values.shape)}, but the tiles are {t.dtype}{list(shape)}\n"
                "  pass a TiledArray like the tiles, or an array, which broadcasts and converts"
            )
        if np.may_share_memory(values.buffer, t.buffer):
            return TiledArray(values.buffer.copy(), values.layout)
        return values
    own = elements(values, t.layout.element)
    return broadcast(own.copy() if np.may_share_memory(own, t.buffer) else own, shape)


def _duplicate_message(numbers: Table) -> str:
    order = np.argsort(numbers, kind="stable")
    k = int(np.flatnonzero(np.diff(numbers[order]) == 0)[0])
    first, second = int(order[k]), int(order[k + 1])
    return (
        f"ids names tile {int(numbers[first])} twice, at positions {first} and {second}\n"
        '  pass each tile once, or duplicates="last" to keep the last values'
    )
