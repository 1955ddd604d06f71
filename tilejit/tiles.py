"""gather_tiles and scatter_tiles: some tiles of a tiled array, in any order, without the rest."""

from __future__ import annotations

from collections.abc import Iterator
from math import prod
from typing import Any

import numpy as np

from codegen.errors import LayoutError
from codegen.threads import thread_count
from tilejit.convert import pack, unpack
from tilejit.layout.shape import make_shape
from tilejit.memory import Array, empty
from tilejit.packed_tiles import one_by_one, side_of
from tilejit.programs import buffer_element, compiled
from tilejit.relayouts import relayout
from tilejit.strided import overlaps_itself
from tilejit.tile_grid import Grid, Table, grid_of
from tilejit.tiled_array import TiledArray, address_of
from tilejit.values import broadcast, elements

BETWEEN_BYTES = 16 << 20
"""Packed elements that go through one buffer, which stays in the last cache; planning takes 0.5 ms each."""


def gather_tiles(t: TiledArray, ids: Any, out: Any = None, *, threads: int | None = None) -> Any:
    """Some tiles of a tiled array, as an array [n, *tile] or in the TiledArray given as `out`.

    >>> t = tilejit.pack(x, "{1,0:T(8,128)(2,1)}")     # [1000, 300]: 125 x 3 tiles of 8 x 128
    >>> tilejit.gather_tiles(t, [4, 0, 4]).shape       # tiles (1, 1), (0, 0) and (1, 1) again
    (3, 8, 128)
    >>> tilejit.gather_tiles(t, [[1, 1], [0, 0]])      # the same by their places in the grid of tiles

    The blocks of a paged KV cache, one a tile, by a block table:

    >>> cache = tilejit.pack(np.zeros((512 * 16, 128), np.float16), "{1,0:T(16,128)}")   # 16 tokens a block
    >>> keys = tilejit.gather_tiles(cache, block_table[sequence])                        # [blocks, 16, 128]

    A tile is one of the first tile step, its elements at their logical places, its padding as stored; axes
    that this step leaves alone belong to the grid. Axes are in physical order, the most major first. ids:
    flat numbers of tiles (row-major in the grid), or an array [n, grid rank] of places; any integers, repeats
    allowed. out: an array [n, *tile] of the dtype, whatever its strides, or a TiledArray of that shape, whose
    own padding stays as it is; apart from t. threads: a number, or None to let the size decide.

    Raises:
        LayoutIndexError: an id lies outside the grid; nothing has been written.
        LayoutError: the layout has no tiles, ids have another shape, or `out` does not fit.
        TypeError: an argument is of a wrong type.
    """
    grid = _grid_of(t)
    numbers = grid.numbers(ids)
    shape = len(numbers), *grid.tile
    result = empty(shape, t.dtype) if out is None else _checked_out(out, t, shape)
    if t.spec.packed and grid.tile_bytes and 0 not in shape:
        if one_by_one(t, grid, numbers, result, threads):
            return result
        for some, room in _pieces(grid, len(numbers), result):
            part = result if isinstance(result, TiledArray) else result[some]
            _gather_packed(t, grid, numbers[some], part, room, threads)
        return result
    target, held, element = side_of(result)
    count = thread_count(threads, 2 * prod(shape) * t.spec.bits // 8)
    program = compiled(grid.tiles(numbers), target, buffer_element(t.spec), element, threads=count)
    program.run(address_of(t), held, count, alive=(t, result))
    return result


def scatter_tiles(
    t: TiledArray, ids: Any, values: Any, *, last: str | None = None, threads: int | None = None
) -> None:
    """Write tiles back to their places in a tiled array: the reverse of `gather_tiles`.

    >>> tilejit.scatter_tiles(t, [4, 0], tiles)                    # tiles[0] to (1, 1), tiles[1] to (0, 0)
    >>> tilejit.scatter_tiles(t, [4, 0, 4], tiles, last="wins")    # tiles[2] to (1, 1)

    Padding is written as it stands in `values`. ids: as in `gather_tiles`. values: a TiledArray or an array
    [n, *tile], or what broadcasts to it and converts as NumPy assigns. last: None refuses an id that comes
    twice; "wins" writes the last of those.

    Raises:
        LayoutIndexError: an id lies outside the grid; nothing has been written.
        LayoutError: an id comes twice, the layout has no tiles, values do not fit, the buffer is read-only.
        TypeError: an argument is of a wrong type.
    """
    grid = _grid_of(t)
    if last is not None and not isinstance(last, str):
        raise TypeError(f'last is None or "wins", not {type(last).__name__}')
    if last not in (None, "wins"):
        raise LayoutError(f'last={last[:40]!r}: write "wins", or leave it out')
    numbers = grid.numbers(ids)
    if not t.buffer.flags.writeable:
        raise LayoutError("the buffer of this tiled array is read-only\n  copy it first")
    chosen = grid.last_of_each(numbers)
    if last is None and len(chosen) < len(numbers):
        raise LayoutError(
            f'{_named_twice(numbers)}\n  give each tile once, or last="wins" to write the last of them'
        )
    shape = len(numbers), *grid.tile
    kept = _checked_values(values, t, shape)
    if len(chosen) < len(numbers):
        kept, numbers = (kept.numpy() if isinstance(kept, TiledArray) else kept)[chosen], numbers[chosen]
        shape = len(numbers), *grid.tile
    if t.spec.packed and grid.tile_bytes and 0 not in shape:
        if one_by_one(t, grid, numbers, kept, threads, into=True):
            return
        for some, room in _pieces(grid, len(numbers), kept):
            part = kept if isinstance(kept, TiledArray) else kept[some]
            _scatter_packed(t, grid, numbers[some], part, room, threads)
        return
    source, held, element = side_of(kept)
    count = thread_count(threads, 2 * prod(shape) * t.spec.bits // 8)
    program = compiled(source, grid.tiles(numbers), element, buffer_element(t.spec), threads=count)
    program.run(held, address_of(t), count, alive=(t, kept))


def _grid_of(t: Any) -> Grid:
    if not isinstance(t, TiledArray):
        raise TypeError(f"tiles are taken from a TiledArray, not from {type(t).__name__}")
    return grid_of(t.spec)


def _pieces(grid: Grid, count: int, held: Any) -> Iterator[tuple[slice, Array]]:
    """Tiles that go through one buffer together, and their rows of it: all, if they come from or go to
    another tiled array.
    """
    tile_bytes = grid.tile_bytes or 1
    each = count if isinstance(held, TiledArray) else min(max(BETWEEN_BYTES // tile_bytes, 1), count)
    room = empty((each, tile_bytes), np.uint8)
    for k in range(0, count, each):
        yield slice(k, min(k + each, count)), room[: count - k]


def _gather_packed(
    t: TiledArray, grid: Grid, numbers: Table, result: Any, room: Array, threads: int | None
) -> None:
    """Whole tiles as bytes first, then their elements."""
    gather_tiles(_bytes_of(t, grid), numbers, out=room, threads=threads)
    between = TiledArray(room.reshape(-1), grid.stored(len(numbers)))
    if isinstance(result, TiledArray):
        relayout(between, result.spec, out=result, padding="keep", threads=threads)
    else:
        unpack(between, out=result, threads=threads)


def _scatter_packed(
    t: TiledArray, grid: Grid, numbers: Table, kept: Any, room: Array, threads: int | None
) -> None:
    """The reverse."""
    inner = grid.stored(len(numbers))
    between = TiledArray(room.reshape(-1), inner)
    if isinstance(kept, TiledArray):
        relayout(kept, inner, out=between, threads=threads)
    else:
        pack(kept, inner, out=between, threads=threads)
    scatter_tiles(_bytes_of(t, grid), numbers, room, threads=threads)


def _bytes_of(t: TiledArray, grid: Grid) -> TiledArray:
    """The same buffer as bytes in tiles of so many; packed elements move whole bytes at a time this way."""
    tile_bytes = grid.tile_bytes or 1
    count = t.nbytes // tile_bytes * tile_bytes
    return TiledArray(t.buffer[:count], make_shape("u8", (count,), tiles=((tile_bytes,),)))


def _checked_out(out: Any, t: TiledArray, shape: tuple[int, ...]) -> Any:
    """`out`, if tiles of that shape can be written to it."""
    if not isinstance(out, np.ndarray | TiledArray):
        raise TypeError(f"out is an array or a TiledArray, not {type(out).__name__}")
    _check_tiles(out, t, shape, "out")
    memory = out.buffer if isinstance(out, TiledArray) else out
    if not memory.flags.writeable:
        raise LayoutError("out is read-only")
    if not isinstance(out, TiledArray) and overlaps_itself(out.shape, out.strides, out.itemsize):
        raise LayoutError(f"out has elements that share memory: strides {out.strides} for shape {out.shape}")
    if np.may_share_memory(memory, t.buffer):
        raise LayoutError("out overlaps the buffer that tiles are taken from\n  give out= memory of its own")
    return out


def _checked_values(values: Any, t: TiledArray, shape: tuple[int, ...]) -> Any:
    """The values as a TiledArray or an array of that shape, apart from the buffer."""
    if isinstance(values, TiledArray):
        _check_tiles(values, t, shape, "values")
        if np.may_share_memory(values.buffer, t.buffer):
            return TiledArray(values.buffer.copy(), values.spec)
        return values
    own = elements(values, t.spec.element)
    return broadcast(own.copy() if np.may_share_memory(own, t.buffer) else own, shape)


def _check_tiles(held: Any, t: TiledArray, shape: tuple[int, ...], what: str) -> None:
    if tuple(held.shape) != shape or held.dtype != t.dtype:
        raise LayoutError(
            f"{what} is {held.dtype}{list(held.shape)}, but the tiles are {t.dtype}{list(shape)}"
        )


def _named_twice(numbers: Table) -> str:
    order = np.argsort(numbers, kind="stable")
    k = int(np.flatnonzero(np.diff(numbers[order]) == 0)[0])
    return (
        f"ids names tile {int(numbers[order[k]])} twice, as numbers {int(order[k])} and {int(order[k + 1])}"
    )
