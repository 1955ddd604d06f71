"""Choose the directives of transposes: tiles, the order of loops, register blocks, and panels in cache."""

from __future__ import annotations

from dataclasses import replace
from math import prod
from typing import TypeAlias

from codegen.ir.blocks import block_shape
from codegen.ir.streams import Stream
from codegen.ir.strided_box import Digit, Side, StridedBox
from codegen.schedule.copy_nest import CopyNest
from codegen.schedule.directives import (
    Ahead,
    Diagonal,
    Directive,
    LanesBeyond,
    PrefetchTile,
    Reorder,
    Stage,
    Tail,
    Tile,
    Vectorize,
)
from codegen.schedule.lane_reads import lane_reads
from codegen.schedule.loops import Loop, int_size
from codegen.schedule.offset_tables import OffsetTable
from codegen.schedule.panels import Panel, dense_panel
from codegen.schedule.schedule import TransposeSchedule

Levels: TypeAlias = tuple[list[Tile], tuple[str, ...]]
"""The tiles of a transpose, and the order of all loops."""


def transposed_nest(box: StridedBox, cut: TransposeSchedule) -> CopyNest:
    """A transpose in tiles and register blocks: one side has contiguous rows, the other contiguous columns.

    A side that is joined of several digits gets a table of offsets. So do the rows of a panel of short result
    rows, so that few kernels serve all shapes; blocks may have more rows than the box.
    """
    rows, columns = box.digits(cut.rows), box.digits(cut.columns)
    counts = row_count, column_count = size_of(rows), size_of(columns)
    is_short, block = cut.block == "short", _block(box, cut, counts)
    around = tuple(Loop(name, *box.digits((name,))[0]) for name in cut.loops if name in box.extents)
    layers = tuple(Loop("layer", *box.digits((cut.layers,))[0]) for _ in cut.layers[:1])
    panel = None
    if cut.stage == "dense":
        panel = _panel(box, cut, counts, in_order=row_count < block[0])
        levels, order = _panels(cut, column_count, layers)
        more = block[0]
    else:
        levels, order = _tiles(replace(cut, tile=(cut.tile[0], block[1])) if is_short else cut)
        more = 2 * (max(cut.tile[0], min(cut.strips[0], row_count)) if cut.strips else cut.tile[0])
    loops = (
        *layers,
        _side("row", row_count, [(n, s) for n, s, _ in rows], "src", box.width, more, table=bool(panel)),
        _side("column", column_count, [(n, d) for n, _, d in columns], "dst", box.source_width),
    )
    how: list[Directive] = [*levels, Reorder(order)]
    how += [Diagonal()] * (cut.order == "diagonals" and not is_short and not panel)
    how += [Stage(panel)] * bool(cut.stage)
    how += [Stream("headed" if cut.finds_lines or cut.stage else "given")] * cut.stream
    how += [Stream("aligned")] * (panel is not None and not cut.stream)
    how += [Vectorize((("row", block[0]), ("column", block[1]))), Tail("row", "clamp")]
    if is_short:
        others = tuple((int_size(x.extent), int_size(x.src), 0) for x in (*around, *layers))
        how.append(LanesBeyond(lane_reads(rows, column_count, others, box.width, block[0])))
    else:
        how.append(Tail("column", "clamp"))
    how += [PrefetchTile(cut.requests)] if panel else [PrefetchTile()] * (cut.stream and not is_short)
    how += [Ahead(cut.prefetch_bytes)] * bool(cut.prefetch_bytes)
    return CopyNest(loops, box.target, box.source, box.conversion, tuple(how), around)


def size_of(digits: tuple[Digit, ...]) -> int:
    """The number of elements of all digits together."""
    return prod(n for n, _, _ in digits)


def _block(box: StridedBox, cut: TransposeSchedule, counts: tuple[int, int]) -> tuple[int, int]:
    """The rows and columns of a register block; those of source rows shorter than a lane have a lane of each.

    In panels of joined columns, or of a part of them, blocks are full.
    """
    (rows, columns), block, tile = counts, block_shape(box.width, cut.block), min(cut.tile[1], counts[1])
    fits = columns >= block[1] and (rows >= block[0] or (cut.stage == "dense" and cut.block != "short"))
    if cut.stage == "dense" and tile < columns:
        fits = fits and tile % block[1] == 0 and len(cut.columns) == 1
    if not fits:
        raise AssertionError(f"expected full blocks of {block}, got {counts} by {tile} columns")
    return block_shape(box.width, "64x16") if cut.block == "short" else block


def _panel(box: StridedBox, cut: TransposeSchedule, counts: tuple[int, int], *, in_order: bool) -> Panel:
    """A panel of all rows and of as many columns and layers as fit."""
    layers = (cut.together, box.axis(cut.layers).dst) if cut.layers else None
    columns, tile = box.digits(cut.columns), min(cut.tile[1], counts[1])
    digits = [(tile, columns[0][2])] if tile < counts[1] else [(n, d) for n, _, d in columns]
    row_bytes = counts[0] * box.width
    return dense_panel(row_bytes, digits, in_order=in_order, layers=layers, separate=cut.separate)


def _panels(cut: TransposeSchedule, columns: int, layers: tuple[Loop, ...]) -> Levels:
    """Panels of columns and of layers, and the caller's super-vectors inside."""
    found = [Tile("column", cut.tile[1], "panel", -(-columns // cut.tile[1]))]
    inner = ("row",) if cut.block == "short" else ("column", "row")
    if cut.strips and cut.block != "short" and cut.strips[1] < cut.tile[1]:
        found.append(Tile("column", cut.strips[1], "strip"))
        inner = ("column_strip", *inner)
    for layer in layers:
        found.append(Tile("layer", cut.together, "panel", -(-int_size(layer.extent) // cut.together)))
        inner = ("layer", *inner)
    names = {"columns": "column_panel", "layers": "layer_panel"}
    return found, (*(names.get(x, x) for x in cut.loops), *inner)


def _tiles(cut: TransposeSchedule) -> Levels:
    """Tiles and the caller's super-vectors, the larger ones outside.

    Loops over other axes are among those of the outer ones.
    """
    strips = cut.tile if cut.strips and cut.block == "short" else cut.strips
    cut = replace(cut, strips=strips)
    outer = cut.around(cut.tile)
    sizes = [outer]
    if strips is not None and strips != cut.tile:
        sizes.append(cut.tile if outer == strips else strips)
    axes = ("row",) if cut.block == "short" and "columns" not in cut.loops else ("row", "column")
    around, *inside = ([_tile(axis, size, strips) for axis in axes] for size in sizes)
    smaller = [x for tiles in inside for x, outer in zip(tiles, around, strict=True) if x.size != outer.size]
    names = {"rows": around[0].index, "columns": around[-1].index}
    down = ("row", "column") if cut.order == "rows" else ("column", "row")
    inner = sorted(smaller, key=lambda x: down.index(x.axis))
    blocks = ("row",) if cut.block == "short" else down
    found = [*around, *smaller]
    return found, (*(names.get(x, x) for x in cut.loops), *(x.index for x in inner), *blocks)


def _tile(axis: str, size: tuple[int, int], strips: tuple[int, int] | None) -> Tile:
    """The tile of an axis of rows and columns, or that of the caller's super-vectors."""
    return Tile(axis, size[axis == "column"], "strip" if size == strips else "tile")


def _side(
    axis: str,
    count: int,
    digits: list[tuple[int, int]],
    side: Side,
    width: int,
    more: int = 0,
    *,
    table: bool = False,
) -> Loop:
    """The loop over rows or columns: a stride on one side, a stride or a table on the other.

    digits  of the side where elements are apart, most minor first
    more    entries of a table after the last one
    table   whether one digit has a table, too
    """
    if len(digits) == 1 and not table:
        ((_, stride),) = digits
        return Loop(axis, count, stride, width) if side == "src" else Loop(axis, count, width, stride)
    offsets = OffsetTable(tuple(digits), more=more)
    if side == "src":
        return Loop(axis, count, 0, width, src_table=offsets)
    return Loop(axis, count, width, 0, dst_table=offsets)
