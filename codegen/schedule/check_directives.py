"""Check that passes can obey the directives of a copy, whoever chose them.

A schedule of the compiler passes as well: tests check every one.
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
from codegen.schedule.directives import (
    REST,
    Ahead,
    CopyBlock,
    Diagonal,
    LanesBeyond,
    PrefetchTile,
    Reorder,
    Request,
    Stage,
    Tail,
    Tile,
    Vectorize,
)
from codegen.schedule.transfer_loops import Loop, int_size
from codegen.schedule.transfers import Moves
from codegen.support.errors import ScheduleError

MOST_SCRATCH_BYTES = 1 << 24
"""The largest panel: each thread holds one."""

MOST_DISTANCE = 1 << 30
"""The largest distance or length of a directive."""

REPEATED = (Tile, Tail, Stream)
"""Directives that a schedule may have several of."""


def check_directives(moves: Moves) -> None:
    """Check the directives of moves whose sizes are numbers.

    Raises:
        ScheduleError: passes cannot obey them.
    """
    kinds = Counter(type(x) for x in moves.directives)
    for kind, count in kinds.items():
        if count > 1 and kind not in REPEATED:
            _refuse(f"expected one {kind.__name__}, got {count}")
    _check_axes(moves)
    if moves.order:
        _check_order(moves)
        _check_blocks(moves)
        _check_panel(moves)
        _check_streamed_tiles(moves)
        return
    for kind in (Stage, PrefetchTile, Diagonal, LanesBeyond):
        if moves.obeying(kind):
            _refuse(f"{kind.__name__} needs Reorder")
    _check_lanes(moves)


def _refuse(problem: str) -> NoReturn:
    raise ScheduleError(f"schedule: {problem}")


def _check_axes(moves: Moves) -> None:
    """Directives name loops that there are, in blocks of whole super-vectors."""
    axes = [x.axis for x in moves.loops]
    named = [*(x.axis for x in moves.obeying(Tile)), *(x.axis for x in moves.obeying(Tail)), *moves.lanes]
    for name in named:
        if name not in axes:
            _refuse(f"expected a loop over {', '.join(axes)}, got {name[:40]}")
    for x in moves.obeying(Tile):
        if not isinstance(x.size, int) or x.size < 1:
            _refuse(f"expected tiles of 1 iteration or more, got {x}")
    distances = [x.distance_bytes for x in moves.obeying(Ahead)]
    for stream in moves.obeying(Stream):
        distances += [stream.least, stream.prefetch_bytes, stream.entries_ahead]
    distances += [x.least for x in moves.obeying(CopyBlock)]
    if any(not -MOST_DISTANCE <= each <= MOST_DISTANCE for each in distances):
        _refuse(f"expected distances of at most {MOST_DISTANCE}, got {distances}")
    if any(x.entries_ahead < 0 for x in moves.obeying(Stream)):
        _refuse("expected entries_ahead of 0 or more")
    for axis in axes:
        sizes = [int_size(x.size) for x in moves.tiles(axis)]
        if moves.panel is None and moves.order:
            sizes += [moves.lanes[axis]] if axis in moves.lanes else []
        for outer, inner in pairwise(sizes):
            if outer % inner:
                _refuse(f"tiles of {outer} iterations of {axis} do not hold blocks of {inner} as a whole")
    for tail in moves.obeying(Tail):
        if tail.axis not in moves.lanes:
            _refuse(f"{tail} needs lanes of {tail.axis}")


def _check_order(moves: Moves) -> None:
    """All loops are ordered: outer ones, then inner tiles, then the loops of a block."""
    levels = [x.index for axis in moves.loops for x in moves.tiles(axis.axis)]
    blocks = ["row"] if moves.obeying(LanesBeyond) else ["row", "column"]
    expected = {*levels, *(x.axis for x in moves.around), *blocks}
    if sorted(moves.order) != sorted(expected):
        _refuse(f"expected an order of {', '.join(sorted(expected))}, got {_order(moves)}")
    inner = [name for name in moves.order if name not in moves.outer]
    if (*moves.outer, *inner) != moves.order or {*inner[-len(blocks) :]} != {*blocks}:
        _refuse(f"expected the outermost tiles first and {' and '.join(blocks)} last, got {_order(moves)}")
    for axis in moves.loops:
        names = [x.index for x in moves.tiles(axis.axis)]
        if sorted(names, key=moves.order.index) != names:
            _refuse(f"expected {', '.join(names)} in this order, got {_order(moves)}")
    if not moves.tiles("row") and not moves.panel:
        _refuse('expected tiles of rows, such as Tile("row", 64)')


def _order(moves: Moves) -> str:
    (order,) = moves.obeying(Reorder)
    return str(order)


def _check_blocks(moves: Moves) -> None:
    """Registers transpose blocks of the lanes, which fit in the box."""
    row, column, width = moves.axis("row"), moves.axis("column"), moves.target.bits // 8
    if {*moves.lanes} != {"row", "column"}:
        _refuse("expected lanes of both sides, such as Vectorize(row=16, column=16)")
    block, short = (moves.lanes["row"], moves.lanes["column"]), bool(moves.obeying(LanesBeyond))
    shapes = instruction("transposed").shapes.get(8 * width, ())
    if block not in shapes or (moves.convert and not takes_block(*moves.convert, block)):
        listed = ", ".join(f"{rows}x{columns}" for rows, columns in sorted(shapes))
        _refuse(f"registers transpose {listed} elements of {width} bytes, not {block[0]}x{block[1]}")
    if int_size(column.extent) < block[1] and not short:
        _refuse(f"expected {block[1]} columns or more, got {column.extent}")
    if int_size(row.extent) < block[0] and not moves.panel:
        _refuse(f"expected {block[0]} rows or more, got {row.extent}")
    tails = {x.axis: x.how for x in moves.obeying(Tail)}
    for axis in ("row",) if short else ("row", "column"):
        if tails.get(axis) != "clamp":
            _refuse(f'expected Tail("{axis}", "clamp"): the last block of a transpose begins earlier')
    if moves.obeying(Diagonal) and (moves.order[-2:] != ("column", "row") or moves.staged):
        _refuse("Diagonal needs column and row as the last loops, and no Stage")


def _check_panel(moves: Moves) -> None:
    """A panel has lines of long result rows, whose tiles follow each other, or complete short ones."""
    if not moves.staged:
        return
    forms = [x.form for x in moves.obeying(Stream)]
    if forms not in (["headed"], ["aligned"]) or (forms == ["aligned"] and not moves.panel):
        _refuse('Stage needs Stream("headed")')
    if int_size(moves.panel_bytes) > MOST_SCRATCH_BYTES:
        _refuse(f"a panel of {moves.panel_bytes} bytes is more than {MOST_SCRATCH_BYTES}; use smaller tiles")
    if moves.panel:
        levels = [(x.axis, x.level) for x in moves.obeying(Tile)]
        if not {*levels} <= {("column", "panel"), ("layer", "panel"), ("column", "strip")}:
            _refuse("panels of short result rows have no other tiles than strips of columns")
        return
    tile = moves.tiles("row")[0]
    if moves.outer[-1] != tile.index or len(moves.outer) == 1:
        _refuse(f"Stage needs {tile.index} as the last of several outer loops, got {_order(moves)}")
    if int_size(tile.size) * (moves.target.bits // 8) % LINE_BYTES:
        _refuse(f"Stage needs tiles of full lines of {LINE_BYTES} bytes, got {tile}")
    if not moves.tiles("column") and not moves.obeying(LanesBeyond):
        _refuse('Stage needs tiles of columns, such as Tile("column", 256)')


def _check_streamed_tiles(moves: Moves) -> None:
    """Blocks that are streamed begin where lines of the destination do, or find those lines."""
    tiled = moves.tiles("row") and moves.tiles("column")
    if any((x.lines is None) != (moves.panel is None) for x in moves.obeying(PrefetchTile)):
        _refuse("PrefetchTile has lines if, and only if, short result rows go through a panel")
    if moves.obeying(PrefetchTile) and not moves.panel and not (tiled and moves.stream):
        _refuse("PrefetchTile needs tiles of rows and columns, and Stream")
    if moves.staged or not moves.obeying(Stream):
        return
    forms, width, block = [x.form for x in moves.obeying(Stream)], moves.target.bits // 8, moves.lanes["row"]
    row, column = moves.axis("row"), moves.axis("column")
    pitches = [x.dst for x in moves.around]
    pitches += [s for _, s in column.dst_table.digits] if column.dst_table else [column.dst]
    if any(int_size(pitch) % LINE_BYTES for pitch in pitches):
        _refuse(f"Stream without Stage needs result rows at multiples of {LINE_BYTES} bytes, got {pitches}")
    if forms == ["given"]:
        if int_size(row.extent) % block:
            _refuse(f'Stream("given") needs a multiple of {block} rows, got {row.extent}')
        return
    narrow = block_shape(width, "16x64") in instruction("transposed").shapes.get(8 * width, ())
    if forms != ["headed"] or not tiled or not narrow or moves.convert or row.src_table:
        _refuse('a transpose of these elements streams by "given" or through Stage')
    if block * width != LINE_BYTES or int_size(column.extent) < LINE_BYTES // width:
        _refuse(f'Stream("headed") needs blocks of {LINE_BYTES // width} rows, and as many columns')


def _check_lanes(moves: Moves) -> None:
    """Instructions move the lanes of super-vectors, and of the narrower ones after them."""
    if not moves.obeying(Vectorize):
        if any(isinstance(x, Tail | Stream) for x in moves.directives):
            _refuse("Tail and Stream need Vectorize")
        return
    if moves.obeying(Tile):
        _refuse("Tile and Vectorize need Reorder")
    long, *_ = moves.loops
    tails, whole = moves.obeying(Tail), prod(int_size(x.extent) for x in moves.loops[1:])
    if len(tails) > 1 or any(x.axis != long.axis for x in tails):
        _refuse(f"expected a tail of {long.axis}, got {', '.join(map(str, tails))}")
    if moves.lanes.keys() != {x.axis for x in moves.loops} and moves.lanes.keys() != {long.axis}:
        _refuse(f"expected lanes of {' and '.join(x.axis for x in moves.loops)}")
    count = moves.lanes[long.axis]
    _check_tail(moves, long, count)
    if len(moves.lanes) > 1 and prod(moves.lanes.values()) != count * whole:
        _refuse(f"expected all iterations of the loops inside {long.axis} as lanes")


def _check_tail(moves: Moves, long: Loop, count: int) -> None:
    """The iterations that fill no super-vector have narrower ones, or a last one that begins earlier."""
    extent = int_size(long.extent)
    for tail in moves.obeying(Tail):
        if tail.how == "clamp" and not tail.sizes:
            if extent < count:
                _refuse(f"{tail} needs {count} iterations or more, got {extent}")
            return
        sizes = [count, *(0 if x == REST else x for x in tail.sizes)]
        if tail.how not in ("shift", "clamp", "narrow") or not tail.sizes or sizes[-1] > 1:
            _refuse(f'expected a tail that ends with size 1 or "{REST}", got {tail}')
        if any(inner >= outer for outer, inner in pairwise(sizes)) or min(sizes) < 0:
            _refuse(f"expected sizes that decrease, got {tail}")
        if 0 in sizes[:-1]:
            _refuse(f'"{REST}" is the last size, got {tail}')
        return
    if extent % count and not moves.obeying(Request):
        _refuse(f"{long.axis} has {extent} iterations, so lanes of {count} need a Tail")
