"""Size the tiles of a transposed copy: for the caches, for threads, and for the caller's super-vectors."""

from __future__ import annotations

from dataclasses import replace

from codegen.ir.strided_box import Axis, StridedBox
from codegen.schedule.conditions import LOOPS_END, Conditions
from codegen.schedule.directives import Tile
from codegen.schedule.schedule import Schedule, VectorSize
from codegen.schedule.transpose_blocks import STAGED_BYTES, STAGED_COLUMNS, size_of

MOST_STAGED_LINES = 16
"""Maximum lines of each result row in a staged tile of the caller's size, which the second cache holds."""

STAGED_ENDS = "a tile in cache has no more"
"""Why super-vectors of a transpose are smaller than requested."""

TILES_PER_THREAD = 4
"""Tiles for each thread, so that shares are about even."""

MOST_EVEN = 4
"""The most tiles in a direction that are made even; a narrow last one matters little among more."""


def tiles_of_rows(box: StridedBox, cut: Schedule, others: list[Axis], when: Conditions) -> tuple[Tile, ...]:
    """Tiles of complete result rows, which are sized by their columns, or by joined digits and layers.

    Super-vectors have all rows; those of complete source rows, which are shorter than a lane, are a tile.
    The arguments are those of `tiles_of_lines`.
    """
    (rows, columns), (_, wide), together = cut.counts(box.extents), cut.tile(box.extents), cut.together
    if when.threads > 1:
        tiles, wanted = size_of(others), TILES_PER_THREAD * when.threads
        if cut.layers:
            together = max(1, min(together, tiles * box.axis(*cut.layers).extent // wanted))
        elif len(cut.columns) == 1 and tiles * -(-columns // wide) < wanted:
            wide = max(_rounded(-(-columns * tiles // wanted), box.per_line), box.per_line)
    if when.tile is None:
        wide = min(_rounded(-(-columns // -(-columns // wide)), box.per_line), columns)
    strips: tuple[Tile, ...] = ()
    if when.size is not None and not cut.short:
        unit = cut.lanes["column"]
        strip = _rounded(_pair(when.size)[1], unit)
        if len(cut.columns) == 1 and not cut.layers:
            most = max(STAGED_BYTES // (rows * box.width) // unit * unit, unit)
            strip = min(strip, most)
            wide = min(_rounded(wide, strip), most // strip * strip)
        strips = (Tile("column", strip, "strip"),) if strip < wide else ()
    layers = (replace(x, size=together) for x in cut.tiles("layer"))
    return Tile("column", wide), *strips, *layers


def tiles_of_lines(box: StridedBox, cut: Schedule, others: list[Axis], when: Conditions) -> tuple[Tile, ...]:
    """Tiles that are stored in place, or are staged with parts of result rows, rounded up to full lines.

    They are literals of the kernel. They are not made even if the caller gives their size or that of
    super-vectors. They contain super-vectors that fit in them; larger super-vectors contain tiles. There are
    enough tiles for all threads.

    others  the axes that are neither rows nor columns nor layers
    """
    side, (all_rows, all_columns) = box.per_line, cut.counts(box.extents)
    rows, columns = cut.tile(box.extents)
    if when.threads > 1:
        tiles = size_of(others) * (1 if cut.staged or cut.carried else -(-all_rows // rows))
        while columns >= 2 * side and tiles * -(-all_columns // columns) < TILES_PER_THREAD * when.threads:
            columns = columns // 2 // side * side
    if when.size is None and when.tile is None and cut.stream and not cut.staged and not cut.short:
        rows, columns = _even(all_rows, rows), _even(all_columns, columns)
    tile = _rounded(rows, side), cut.lanes["column"] if cut.short else _rounded(columns, side)
    strips = None
    if when.size is not None:
        strips, tile = _super_vectors(box, cut, tile, _pair(when.size))
    larger = strips is not None and any(strip > count for strip, count in zip(strips, tile, strict=True))
    axes = ("row",) if cut.short and (others or not cut.staged) else ("row", "column")
    around, *inside = (
        [Tile(axis, each[axis == "column"], "strip" if each == strips else "tile") for axis in axes]
        for each in dict.fromkeys((strips, tile) if larger else (tile, strips))
        if each
    )
    smaller = (x for tiles in inside for x, outer in zip(tiles, around, strict=True) if x.size != outer.size)
    return *around, *smaller


def _super_vectors(
    box: StridedBox, cut: Schedule, tile: tuple[int, int], size: tuple[int, int]
) -> tuple[tuple[int, int], tuple[int, int]]:
    """Super-vectors of a size, rounded up to full blocks, and the tiles that contain them or are in them."""
    lanes, most = cut.lanes, (MOST_STAGED_LINES * box.per_line, STAGED_COLUMNS)
    rows, columns = _rounded(size[0], box.per_line if cut.staged else lanes["row"]), lanes["column"]
    rows = min(rows, most[0]) if cut.staged else rows
    if cut.short:
        return (rows, columns), (rows, columns)
    columns = _rounded(size[1], columns)
    if cut.staged:
        columns = min(columns, most[1])
        tall, wide = most[0] // rows * rows, most[1] // columns * columns
        return (rows, columns), (min(_rounded(tile[0], rows), tall), min(_rounded(tile[1], columns), wide))
    if rows <= tile[0] and columns <= tile[1]:
        return (rows, columns), (_rounded(tile[0], rows), _rounded(tile[1], columns))
    return (rows, columns), (min(rows, tile[0]), min(columns, tile[1]))


def given_size(box: StridedBox, cut: Schedule, when: Conditions) -> str:
    """What became of the caller's size; "" without one."""
    if when.size is None:
        return ""
    counts, strips = cut.counts(box.extents), cut.tile(box.extents, strips=True)
    became = min(strips[0], counts[0]), min(strips[1], counts[1])
    sides = tuple(zip(became, counts, _pair(when.size), strict=True))
    limit = LOOPS_END if any(count < each for _, count, each in sides) else ""
    if any(strip < min(count, each) for strip, count, each in sides):
        limit = STAGED_ENDS
    return when.became(became, limit)


def _pair(size: VectorSize) -> tuple[int, int]:
    """Rows and columns of super-vectors of that size."""
    return size if isinstance(size, tuple) else (size, size)


def _even(count: int, tile: int) -> int:
    """The size of even tiles, if there are few: a tile requests as many columns of the next as it has itself.

    64, 48 -> 32    300, 96 -> 75    1000, 96 -> 96    10, 96 -> 96
    """
    tiles = -(-count // tile)
    return -(-count // tiles) if 1 < tiles <= MOST_EVEN else tile


def _rounded(count: int, unit: int) -> int:
    """The smallest multiple of a unit that is at least the count."""
    return -(-count // unit) * unit
