"""Check that passes can obey the directives of a copy, whoever chose them.

The compiler's own schedules must pass, too: tests check every one.
"""

from __future__ import annotations

from collections import Counter
from itertools import pairwise
from math import prod
from typing import NoReturn

from codegen.ir.blocks import block_shape
from codegen.ir.instructions import instruction, takes_block
from codegen.ir.lines import LINE_BYTES
from codegen.ir.streams import Stream
from codegen.schedule.copy_nest import CopyNest
from codegen.schedule.directives import (
    REST,
    Ahead,
    Assemble,
    CopyBlock,
    Diagonal,
    Gather,
    Groups,
    LanesBeyond,
    Prefetch,
    PrefetchTile,
    Reorder,
    Request,
    Stage,
    Table,
    Tail,
    Tile,
    Vectorize,
)
from codegen.schedule.loops import Loop, int_size
from codegen.support.errors import ScheduleError

MOST_SCRATCH_BYTES = 1 << 24
"""The largest panel: each thread holds one."""

MOST_DISTANCE = 1 << 30
"""The largest distance, length or tile of a directive."""

MOST_LINES = 64
"""The most lines of the next tile that are requested for each line stored."""

REPEATED = (Tile, Tail, Stream)
"""Directives that a schedule may have several of."""


def check_directives(nest: CopyNest) -> None:
    """Check the directives of a nest whose sizes are numbers.

    Raises:
        ScheduleError: passes cannot obey them.
    """
    kinds = Counter(type(x) for x in nest.directives)
    for kind, count in kinds.items():
        if count > 1 and kind not in REPEATED:
            _refuse(f"expected one {kind.__name__}, got {count}")
    _check_axes(nest)
    for each in nest.directives if nest.order else ():
        if isinstance(each, CopyBlock | Prefetch | Table | Groups | Assemble | Gather | Request):
            _refuse(f"a transpose does not take {each}")
    if nest.order:
        _check_order(nest)
        _check_blocks(nest)
        _check_panel(nest)
        _check_streamed_tiles(nest)
        return
    for kind in (Stage, PrefetchTile, Diagonal, LanesBeyond):
        if nest.obeying(kind):
            _refuse(f"{kind.__name__} needs Reorder")
    _check_lanes(nest)


def _refuse(problem: str) -> NoReturn:
    raise ScheduleError(f"schedule: {problem}")


def _check_axes(nest: CopyNest) -> None:
    """Directives name existing loops, in blocks of whole super-vectors."""
    axes = [x.axis for x in nest.loops]
    named = [*(x.axis for x in nest.obeying(Tile)), *(x.axis for x in nest.obeying(Tail)), *nest.lanes]
    for name in named:
        if name not in axes:
            _refuse(f"expected a loop over {', '.join(axes)}, got {name[:40]}")
    for x in nest.obeying(Tile):
        if not isinstance(x.size, int) or not 1 <= x.size <= MOST_DISTANCE:
            _refuse(f"expected tiles of 1 to {MOST_DISTANCE} iterations, got {str(x)[:80]}")
        if x.level != "panel" and x.count != 0:
            _refuse(f"{x.axis} has as many tiles as its size gives; omit count")
    distances = [x.distance_bytes for x in nest.obeying(Ahead)]
    for stream in nest.obeying(Stream):
        distances += [stream.least, stream.prefetch_bytes, stream.entries_ahead]
    distances += [x.least for x in nest.obeying(CopyBlock)]
    if any(not -MOST_DISTANCE <= each <= MOST_DISTANCE for each in distances):
        _refuse(f"expected distances of at most {MOST_DISTANCE}, got {distances}")
    if any(x.entries_ahead < 0 for x in nest.obeying(Stream)):
        _refuse("expected entries_ahead of 0 or more")
    for x in nest.obeying(Tile) if nest.order else ():
        if x.level != "panel" and int_size(x.size) % nest.lanes.get(x.axis, 1):
            _refuse(f"{x} is not a multiple of {nest.lanes[x.axis]} iterations")
    for tail in nest.obeying(Tail):
        if tail.axis not in nest.lanes:
            _refuse(f"{tail} needs lanes of {tail.axis}")


def _check_order(nest: CopyNest) -> None:
    """All loops are ordered: outer ones, then inner tiles, then the loops of a block."""
    levels = [x.index for axis in nest.loops for x in nest.tiles(axis.axis)]
    blocks = ["row"] if nest.obeying(LanesBeyond) else ["row", "column"]
    expected = [*levels, *(x.axis for x in nest.others), *blocks]
    if len({*levels}) < len(levels):
        _refuse(f"expected tiles of different levels, got {', '.join(levels)}")
    if sorted(nest.order) != sorted(expected):
        _refuse(f"expected an order of {', '.join(sorted(expected))}, got {_order(nest)}")
    inner = [name for name in nest.order if name not in nest.outer]
    if (*nest.outer, *inner) != nest.order or {*inner[-len(blocks) :]} != {*blocks}:
        _refuse(f"expected the outermost tiles first and {' and '.join(blocks)} last, got {_order(nest)}")
    for axis in nest.loops:
        names = [x.index for x in nest.tiles(axis.axis)]
        if sorted(names, key=nest.order.index) != names:
            _refuse(f"expected {', '.join(names)} in this order, got {_order(nest)}")
    if not nest.tiles("row") and not nest.panel:
        _refuse('expected tiles of rows, such as Tile("row", 64)')


def _order(nest: CopyNest) -> str:
    (order,) = nest.obeying(Reorder)
    return str(order)


def _check_blocks(nest: CopyNest) -> None:
    """Registers transpose blocks of the lanes, which fit in the box."""
    row, column, width = nest.axis("row"), nest.axis("column"), nest.target.bits // 8
    if {*nest.lanes} != {"row", "column"}:
        _refuse("expected lanes of both sides, such as Vectorize(row=16, column=16)")
    block, short = (nest.lanes["row"], nest.lanes["column"]), bool(nest.obeying(LanesBeyond))
    shapes = instruction("transposed").shapes.get(8 * width, ())
    if block not in shapes or (nest.convert and not takes_block(*nest.convert, block)):
        listed = ", ".join(f"{rows}x{columns}" for rows, columns in sorted(shapes))
        _refuse(f"registers transpose {listed} elements of {width} bytes, not {block[0]}x{block[1]}")
    if int_size(column.extent) < block[1] and not short:
        _refuse(f"expected {block[1]} columns or more, got {column.extent}")
    if int_size(row.extent) < block[0] and not nest.panel:
        _refuse(f"expected {block[0]} rows or more, got {row.extent}")
    tails = {x.axis: x.how for x in nest.obeying(Tail)}
    for axis in ("row",) if short else ("row", "column"):
        if tails.pop(axis, "") != "clamp":
            _refuse(f'expected Tail("{axis}", "clamp"): the last block of a transpose begins earlier')
    if tails or len(nest.obeying(Tail)) > 2 - short or any(x.sizes for x in nest.obeying(Tail)):
        _refuse("a transpose has one tail for each side of its blocks, without sizes")
    for stream in nest.obeying(Stream):
        if stream != Stream(stream.form):
            _refuse(f'a transpose streams by Stream("{stream.form}") without more, got {stream}')
    if nest.obeying(Diagonal) and (nest.order[-2:] != ("column", "row") or nest.staged):
        _refuse("Diagonal needs column and row as the last loops, and no Stage")


def _check_panel(nest: CopyNest) -> None:
    """A panel has lines of long result rows, whose tiles follow each other, or complete short ones."""
    if not nest.staged:
        return
    forms = [x.form for x in nest.obeying(Stream)]
    if forms not in (["headed"], ["aligned"]) or (forms == ["aligned"] and not nest.panel):
        _refuse('Stage needs Stream("headed")')
    if int_size(nest.scratch_bytes) > MOST_SCRATCH_BYTES:
        _refuse(f"a panel of {nest.scratch_bytes} bytes is more than {MOST_SCRATCH_BYTES}; use smaller tiles")
    if nest.panel:
        levels = [(x.axis, x.level) for x in nest.obeying(Tile)]
        if not {*levels} <= {("column", "panel"), ("layer", "panel"), ("column", "strip")}:
            _refuse("panels of short result rows have no other tiles than strips of columns")
        return
    tile = nest.tiles("row")[0]
    if nest.outer[-1] != tile.index or len(nest.outer) == 1:
        _refuse(f"Stage needs {tile.index} as the last of several outer loops, got {_order(nest)}")
    if int_size(tile.size) * (nest.target.bits // 8) % LINE_BYTES:
        _refuse(f"Stage needs tiles of full lines of {LINE_BYTES} bytes, got {tile}")
    if not nest.tiles("column") and not nest.obeying(LanesBeyond):
        _refuse('Stage needs tiles of columns, such as Tile("column", 256)')


def _check_streamed_tiles(nest: CopyNest) -> None:
    """Blocks that are streamed begin where lines of the destination do, or find those lines."""
    tiled = nest.tiles("row") and nest.tiles("column")
    if any((x.lines is None) != (nest.panel is None) for x in nest.obeying(PrefetchTile)):
        _refuse("PrefetchTile has lines exactly when short result rows go through a panel")
    for lines in (x.lines for x in nest.obeying(PrefetchTile) if x.lines is not None):
        if not isinstance(lines, int) or not 0 <= lines <= MOST_LINES:
            _refuse(f"expected PrefetchTile of 0 to {MOST_LINES} lines, got {str(lines)[:40]}")
    if nest.obeying(PrefetchTile) and not nest.panel and any(nest.obeying(LanesBeyond)):
        _refuse("PrefetchTile needs source rows of a lane or more")
    if nest.obeying(PrefetchTile) and not nest.panel and not (tiled and nest.stream):
        _refuse("PrefetchTile needs tiles of rows and columns, and Stream")
    if nest.staged or not nest.obeying(Stream):
        return
    forms, width, block = [x.form for x in nest.obeying(Stream)], nest.target.bits // 8, nest.lanes["row"]
    row, column = nest.axis("row"), nest.axis("column")
    pitches = [x.dst for x in nest.others]
    pitches += [s for _, s in column.dst_table.digits] if column.dst_table else [column.dst]
    if any(int_size(pitch) % LINE_BYTES for pitch in pitches):
        _refuse(f"Stream without Stage needs result rows at multiples of {LINE_BYTES} bytes, got {pitches}")
    if forms == ["given"]:
        if int_size(row.extent) % block:
            _refuse(f'Stream("given") needs a multiple of {block} rows, got {row.extent}')
        return
    narrow = block_shape(width, "16x64") in instruction("transposed").shapes.get(8 * width, ())
    if forms != ["headed"] or not tiled or not narrow or nest.convert or row.src_table:
        _refuse('a transpose of these elements streams by "given" or through Stage')
    if block * width != LINE_BYTES or int_size(column.extent) < LINE_BYTES // width:
        _refuse(f'Stream("headed") needs blocks of {LINE_BYTES // width} rows, and as many columns')


def _check_lanes(nest: CopyNest) -> None:
    """Instructions move the lanes of super-vectors, and of the narrower ones after them."""
    if not nest.obeying(Vectorize):
        if any(isinstance(x, Tail | Stream) for x in nest.directives):
            _refuse("Tail and Stream need Vectorize")
        return
    if nest.obeying(Tile):
        _refuse("Tile and Vectorize need Reorder")
    long, *_ = nest.loops
    tails, whole = nest.obeying(Tail), prod(int_size(x.extent) for x in nest.loops[1:])
    if len(tails) > 1 or any(x.axis != long.axis for x in tails):
        _refuse(f"expected a tail of {long.axis}, got {', '.join(map(str, tails))}")
    if nest.lanes.keys() != {x.axis for x in nest.loops} and nest.lanes.keys() != {long.axis}:
        _refuse(f"expected lanes of {' and '.join(x.axis for x in nest.loops)}")
    count = nest.lanes[long.axis]
    _check_tail(nest, long, count)
    if len(nest.lanes) > 1 and prod(nest.lanes.values()) != count * whole:
        _refuse(f"expected all iterations of the loops inside {long.axis} as lanes")


def _check_tail(nest: CopyNest, long: Loop, count: int) -> None:
    """The iterations that fill no super-vector have narrower ones, or a last one that begins earlier."""
    extent = int_size(long.extent)
    for tail in nest.obeying(Tail):
        if tail.how == "clamp" and not tail.sizes:
            if extent < count:
                _refuse(f"{tail} needs {count} iterations or more, got {extent}")
            return
        if tail.how not in ("shift", "clamp", "narrow"):
            _refuse(f'expected "shift", "clamp" or "narrow" for the tail of a copy, got {tail}')
        sizes = [count, *(0 if x == REST else x for x in tail.sizes)]
        if not tail.sizes or sizes[-1] > 1:
            _refuse(f'expected a tail that ends with size 1 or "{REST}", got {tail}')
        if any(inner >= outer for outer, inner in pairwise(sizes)) or min(sizes) < 0:
            _refuse(f"expected sizes that decrease, got {tail}")
        if 0 in sizes[:-1]:
            _refuse(f'"{REST}" is the last size, got {tail}')
        return
    if extent % count and not nest.obeying(Request):
        _refuse(f"{long.axis} has {extent} iterations, so lanes of {count} need a Tail")
