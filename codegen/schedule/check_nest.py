"""Check that passes can obey the directives of a copy, whoever chose them, and read those of a user.

The compiler's own schedules must also pass; tests check all of them.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from itertools import pairwise
from math import prod
from typing import TypeVar

from codegen.ir.blocks import block_shape, transposed_shapes
from codegen.ir.instructions import takes_block
from codegen.ir.lines import LANE_BYTES, LINE_BYTES
from codegen.ir.streams import Stream
from codegen.schedule.check_directives import check_directives, check_names, check_order, check_tiles
from codegen.schedule.check_prefetches import check_prefetches
from codegen.schedule.copy_nest import CopyNest, shared_among_threads
from codegen.schedule.directives import (
    REST,
    Assemble,
    CopyBlock,
    Diagonal,
    Directive,
    Gather,
    Groups,
    LanesBeyond,
    Parallel,
    Prefetch,
    Registers,
    Relax,
    Reorder,
    Request,
    Stage,
    Table,
    Tail,
    Tile,
    Vectorize,
)
from codegen.schedule.loops import Loop, int_size
from codegen.schedule.offset_tables import PREFETCH_ARGUMENT
from codegen.schedule.read_directives import HELD, pointing, read_directives, refuse
from codegen.schedule.transposed_nest import with_tables

D = TypeVar("D", bound=Directive)

MOST_SCRATCH_BYTES = 1 << 24
"""The largest block in scratch: each thread holds one."""

MOST_LANES = 1024
"""The most lanes of a super-vector that a text gives a copy without blocks: LLVM is slow with more."""


def check_nest(nest: CopyNest) -> None:
    """Check the directives of a nest whose sizes are numbers.

    Raises:
        ScheduleError: passes cannot obey them.
    """
    check_directives(nest.directives)
    _refuse_any(nest, (Registers, Relax), "a copy does not take {}, which kernels have")
    check_names(nest.directives, [x.axis for x in (*nest.around, *nest.loops)])
    check_tiles(_filled(nest), {x.axis: int_size(x.extent) for x in (*nest.around, *nest.loops)})
    for x in nest.obeying(Parallel):
        if x.loop not in nest.shareable:
            listed = ", ".join(nest.shareable) or "no loop"
            refuse(f"expected threads to share {listed}, got {x}", x)
    _check_tiled_loops(nest)
    _check_order(nest)
    if nest.transposes:
        others = CopyBlock, Table, Groups, Assemble, Gather, Request
        _refuse_any(nest, others, "a transpose does not take {}")
        _check_blocks(nest)
        _check_stage(nest)
        _check_scratch(nest)
        _check_streamed_tiles(nest)
    else:
        _refuse_any(nest, (Diagonal,), "{} needs blocks of rows and columns")
        _check_staged_rows(nest)
        _check_lanes(nest)
        _check_streamed_lanes(nest)
    check_prefetches(nest)


def _refuse_any(nest: CopyNest, kinds: tuple[type, ...], problem: str) -> None:
    """Refuse directives of some kinds."""
    for x in nest.directives:
        if isinstance(x, kinds):
            refuse(problem.format(x), x)


def _filled(nest: CopyNest) -> list[Directive]:
    """The directives without strips that may end with a part of a super-vector, which a tail runs.

    Strips of lines that a table lists have a super-vector or more, and full lines.
    """

    def has_tails(x: Directive) -> bool:
        if not isinstance(x, Tile) or x.level != "strip" or nest.transposes:
            return False
        tail, lanes, size = nest.tail(x.axis), nest.lanes.get(x.axis, 1), int_size(x.size)
        in_lines = size >= lanes and size * prod(nest.lanes.values()) % (lanes * lanes) == 0
        return tail is not None and (bool(tail.sizes) or in_lines)

    return [x for x in nest.directives if not has_tails(x)]


def _first(nest: CopyNest, kind: type[D]) -> D | None:
    """The first directive of a kind, if there is one."""
    return next(iter(nest.obeying(kind)), None)


def _layers(nest: CopyNest) -> list[str]:
    """The loops of a transpose over several tiles of a stage."""
    return [x.axis for x in nest.others if x not in nest.around]


def _check_tiled_loops(nest: CopyNest) -> None:
    """Only loops around one statement are tiled or reordered, and only those that a super-vector leaves."""
    for alone in (x for x in nest.directives if isinstance(x, (Gather, Groups))):
        _refuse_any(nest, (Tile, Reorder), f"a copy with {type(alone).__name__} does not take {{}}")
    for rows in nest.obeying(Assemble):
        for x in (x for x in nest.obeying(Tile) if x.axis in (loop.axis for loop in nest.loops)):
            if x.axis != rows.axis or int_size(x.size) % (rows.rows * int_size(rows.steps)):
                refuse(f"expected tiles of {rows.axis}, of {rows.rows} rows of {rows.steps}, got {x}", x)
    for x in nest.obeying(Tile):
        if nest.transposes and x.axis in (loop.axis for loop in nest.around):
            refuse(f"expected tiles of the loops of a block, got {x}", x)
        if not nest.transposes and x.axis in [*nest.lanes][1:]:
            refuse(f"expected all iterations of {x.axis} as lanes, got {x}", x)


def _check_order(nest: CopyNest) -> None:
    """All loops are ordered: super-vectors last, and outermost tiles of blocks first, before layers."""
    order = _first(nest, Reorder)
    if order is None:
        return
    for other in nest.obeying(Reorder)[1:]:
        refuse(f"expected one Reorder of all loops, got {other} as well", other)
    axes = _ordered_axes(nest)
    levels = [[*(x.index for x in nest.tiles(axis)), axis] for axis in axes]
    check_order(order, [*(x.index for x in nest.obeying(Tile)), *axes], levels)
    assembled = [x.axis for x in nest.loops if nest.obeying(Assemble)]
    inner = tuple(axis for axis in axes if axis in nest.lanes or axis in assembled)
    last = order.loops[len(order.loops) - len(inner) :]
    if last != inner and not (nest.transposes and {*last} == {*inner}):
        refuse(f"expected {' and '.join(inner)} last, got {order}", order)
    first = (*nest.outer, *_layers(nest))
    if nest.transposes and order.loops[: len(first)] != first:
        refuse(f"expected {' and '.join(['the outermost tiles', *_layers(nest)])} first, got {order}", order)


def _ordered_axes(nest: CopyNest) -> list[str]:
    """The axes that orders name: all but the columns of source rows shorter than a lane."""
    return [x.axis for x in (*nest.around, *nest.loops) if not (nest.short and x.axis == "column")]


def _check_blocks(nest: CopyNest) -> None:
    """Registers transpose blocks of the lanes, which fit in the box."""
    row, column, width = nest.axis("row"), nest.axis("column"), nest.target.bits // 8
    lanes = _first(nest, Vectorize)
    block, short = (nest.lanes["row"], nest.lanes["column"]), nest.short
    shapes = transposed_shapes(width)
    if block not in shapes or (nest.convert and not takes_block(*nest.convert, block)):
        listed = ", ".join(f"{rows}x{columns}" for rows, columns in sorted(shapes))
        refuse(f"expected {listed}, got blocks of {block[0]}x{block[1]} elements of {width} bytes", lanes)
    if int_size(column.extent) < block[1] and not short:
        refuse(f"expected at most {column.extent} lanes of column, got {lanes}", lanes)
    if int_size(row.extent) < block[0] and not nest.stages_rows:
        refuse(f"expected at most {row.extent} lanes of row, got {lanes}", lanes)
    sides = ("row",) if short else ("row", "column")
    for x in nest.obeying(Tail):
        if x not in [Tail(axis, "clamp") for axis in sides]:
            refuse(f'expected a tail of {" or ".join(sides)} by "clamp", got {x}', x)
    for axis in sides:
        if nest.tail(axis) is None:
            refuse(f'expected Tail("{axis}", "clamp"): the last block of a transpose begins earlier')
    for stream in nest.obeying(Stream):
        if stream != Stream(stream.form):
            refuse(f'expected Stream("{stream.form}") for a transpose, got {stream}', stream)
    if nest.obeying(Diagonal) and (nest.order[-2:] != ("column", "row") or nest.staged):
        refuse("Diagonal needs column and row as the last loops, and no Stage", _first(nest, Diagonal))


def _check_stage(nest: CopyNest) -> None:
    """Tiles go through scratch with lines of result rows, and follow each other, or with complete rows."""
    stage, layers = _first(nest, Stage), _layers(nest)
    if not nest.tiles("row") and not nest.staged:
        refuse('expected tiles of rows, such as Tile("row", 64)')
    for axis in layers:
        if not nest.stages_rows or len(nest.tiles(axis)) != 1:
            refuse(f'expected Stage without tiles of rows, and tiles such as Tile("{axis}", 2)', stage)
    if stage is None:
        return
    forms = [x.form for x in nest.obeying(Stream)]
    if forms not in (["headed"], ["aligned"]) or (forms == ["aligned"] and not nest.stages_rows):
        refuse('Stage needs Stream("headed")', _first(nest, Stream) or stage)
    if not nest.tiles("column") and not (nest.tiles("row") and nest.short):
        refuse('Stage needs tiles of columns, such as Tile("column", 256)', stage)
    if nest.stages_rows:
        (tile, *_), column = nest.tiles("column"), nest.axis("column")
        if int_size(tile.size) < int_size(column.extent) and (layers or column.dst_table):
            refuse(f"expected tiles of all {column.extent} columns, got {tile}", tile)
        return
    if stage.separate:
        refuse(f"expected Stage() for tiles of rows, got {stage}", stage)
    tile, order, width = nest.tiles("row")[0], _first(nest, Reorder), nest.target.bits // 8
    if int_size(nest.axis("row").extent) * width < LINE_BYTES:
        refuse(f"expected Stage without tiles of result rows that are shorter than a line, got {tile}", tile)
    if nest.outer[-1] != tile.index or len(nest.outer) == 1:
        refuse(f"Stage needs {tile.index} as the last of several outer loops, got {order}", order)
    if int_size(tile.size) * width % LINE_BYTES:
        refuse(f"Stage needs tiles of full lines of {LINE_BYTES} bytes, got {tile}", tile)


def _check_staged_rows(nest: CopyNest) -> None:
    """Rows that are packed together go through scratch in chunks, which have lanes of all rows."""
    for stage in nest.obeying(Stage):
        if len(nest.loops) != 2 or not nest.lanes or 8 * int_size(nest.loops[0].dst) != nest.target.bits:
            refuse(f"{stage} needs blocks of rows and columns", stage)
        if stage.separate:
            refuse(f"expected Stage() for packed rows, got {stage}", stage)
        if "headed" not in [x.form for x in nest.obeying(Stream)]:
            refuse('Stage needs Stream("headed")', stage)
        for x in nest.obeying(Tile):
            if x.axis in (loop.axis for loop in nest.loops):
                refuse(f"a copy that stages packed rows does not take {x}", x)


def _check_scratch(nest: CopyNest) -> None:
    """Blocks stay small."""
    if int_size(nest.scratch_bytes) > MOST_SCRATCH_BYTES:
        most = f"tiles of at most {MOST_SCRATCH_BYTES} bytes in scratch"
        refuse(f"expected {most}, got {nest.scratch_bytes}; use smaller tiles", _first(nest, Stage))


def _check_streamed_tiles(nest: CopyNest) -> None:
    """Blocks that are streamed begin where lines of the destination do, or find those lines."""
    (stream, *others) = (*nest.obeying(Stream), None)
    if nest.staged or stream is None:
        return
    width, block, row, column = (nest.target.bits // 8, nest.lanes["row"], *map(nest.axis, ("row", "column")))
    pitches = [x.dst for x in nest.others]
    pitches += [s for _, s in column.dst_table.digits] if column.dst_table else [column.dst]
    if any(int_size(pitch) % LINE_BYTES for pitch in pitches):
        rows = f"result rows at multiples of {LINE_BYTES} bytes"
        refuse(f"Stream without Stage needs {rows}, got {pitches}", stream)
    if stream.form == "given" and others == [None]:
        if int_size(row.extent) % block:
            refuse(f'Stream("given") needs a multiple of {block} rows, got {row.extent}', stream)
        return
    narrow = block_shape(width, "16x64") in transposed_shapes(width)
    tiled = nest.tiles("row") and nest.tiles("column")
    is_headed = stream.form == "headed" and others == [None]
    if not is_headed or not tiled or not narrow or nest.convert or row.src_table:
        refuse('a transpose of these elements streams by "given" or through Stage', stream)
    if block * width != LINE_BYTES or int_size(column.extent) < LINE_BYTES // width:
        size = LINE_BYTES // width
        refuse(f'Stream("headed") needs blocks of {size} rows, and as many columns', stream)


def _check_lanes(nest: CopyNest) -> None:
    """Instructions move the lanes of super-vectors, and of the narrower ones after them."""
    lanes = _first(nest, Vectorize)
    if lanes is None:
        _refuse_any(nest, (Tail, Stream, CopyBlock), "{} needs Vectorize")
        return
    long, *others = nest.loops
    is_flat = nest.copies and not others and (nest.target.bits, long.src, long.dst) == (8, 1, 1)
    if not is_flat or nest.tiles(long.axis) or _first(nest, Stream):
        _refuse_any(nest, (CopyBlock,), "{} needs a run of bytes without tiles and Stream")
    whole = prod(int_size(x.extent) for x in nest.loops[1:])
    for x in nest.obeying(Tail):
        if x.axis != long.axis:
            refuse(f"expected a tail of {long.axis}, got {x}", x)
    count = nest.lanes[long.axis]
    _check_tail(nest, long, count)
    if len(nest.lanes) > 1 and prod(nest.lanes.values()) != count * whole:
        refuse(f"expected all iterations of the loops inside {long.axis} as lanes, got {lanes}", lanes)


def _check_streamed_lanes(nest: CopyNest) -> None:
    """The limits of streams have a meaning in the nest."""
    lanes = _first(nest, Vectorize)
    for x in nest.obeying(Stream):
        if prod(nest.lanes.values()) * nest.target.bits // 8 < LANE_BYTES:
            refuse(f"{x} needs lanes of at least {LANE_BYTES} bytes, got {lanes}", lanes)
        if x.least < 0:
            refuse(f"expected least of 0 or more, got {x}", x)
        if x.least and x.form in ("given", "full", "begun"):
            refuse(f'Stream("{x.form}") takes no least, got {x}', x)


def _check_tail(nest: CopyNest, long: Loop, count: int) -> None:
    """The iterations that fill no super-vector have narrower ones, or a last one that begins earlier."""
    extent, tail = int_size(long.extent), nest.tail(long.axis)
    if tail is None:
        if extent % count and not nest.obeying(Request):
            refuse(f"{long.axis} has {extent} iterations, so lanes of {count} need a Tail")
        return
    if tail.how == "clamp" and not tail.sizes:
        if extent < count:
            refuse(f"{tail} needs {count} iterations or more, got {extent}", tail)
        return
    if tail.how not in ("shift", "clamp", "narrow"):
        refuse(f'expected "shift", "clamp" or "narrow" for the tail of a copy, got {tail}', tail)
    sizes = [count, *(0 if x == REST else x for x in tail.sizes)]
    if not tail.sizes or sizes[-1] > 1:
        refuse(f'expected a tail that ends with size 1 or "{REST}", got {tail}', tail)
    if any(inner >= max(outer, 2) for outer, inner in pairwise(sizes)) or min(sizes) < 0:
        refuse(f'expected sizes that decrease, "{REST}" last, got {tail}', tail)
    if tail.sizes[-1] == REST and sizes[-2] > LINE_BYTES:
        refuse(f'expected a size of at most {LINE_BYTES} before "{REST}", got {tail}', tail)


def given_nest(nest: CopyNest, text: str) -> CopyNest:
    """The same nest with the directives of a text.

    Tiles and the order of loops are free, and so are the blocks, stages, streams and prefetches of
    transposes. Other copies take any lanes that have instructions, and runs choose their streams. Directives
    that hold tables, such as Table("src"), belong to the copy: a text repeats them with the same lanes, which
    layers need as well.

    Without Reorder, loops over tiles have the order of the text. Without Tail, the last blocks of a transpose
    begin earlier.

    Raises:
        ScheduleError: it is not a list of directives, or passes cannot obey them.
    """
    own = {str(x): x for x in nest.directives if _belongs_to_copy(x)}
    directives = read_directives(text, own)
    made = replace(nest, directives=directives, staged_block=None)
    made = shared_among_threads(_with_defaults(made, nest))
    with pointing(text, directives, "`explain` prints the schedule of the copy"):
        for each in own.values():
            if each not in directives:
                refuse(f"this copy needs {each}", _first(made, type(each)))
        for x in directives:
            if _belongs_to_copy(x) and x not in own.values():
                refuse(f"this copy does not take {x}", x)
        lanes, fixed = _first(nest, Vectorize), bool(own or _layers(nest))
        if made.lanes.keys() != nest.lanes.keys() or (fixed and made.lanes != nest.lanes):
            such = "lanes such as " if lanes and not fixed else ""
            got = _first(made, Vectorize)
            refuse(f"this copy needs {such}{lanes or 'no Vectorize'}, got {got or 'none'}", got)
        _check_choices(made, nest)
        check_nest(made)
        made = with_tables(made) if made.transposes else made
        _check_scratch(made)
    return made


def _with_defaults(made: CopyNest, nest: CopyNest) -> CopyNest:
    """The nest with an order, if loops are in tiles, and with tails of the blocks of a transpose."""
    axes, layers, outermost = _ordered_axes(made), _layers(made), made.outer_tiles
    tails = (Tail(axis, "clamp") for axis in axes if axis in made.lanes and made.tail(axis) is None)
    added: list[Directive] = [*tails] if nest.transposes else []
    if not made.order and (nest.transposes or made.obeying(Tile)):
        outer = [x.axis for x in made.around if not made.tiles(x.axis)]
        tiles = (x.index for x in made.obeying(Tile) if x in outermost)
        inner = (x.index for x in made.obeying(Tile) if x not in outermost)
        inside = (axis for axis in axes if axis not in (*outer, *layers))
        added.insert(0, Reorder((*outer, *tiles, *layers, *inner, *inside)))
    return replace(made, directives=(*made.directives, *added))


def _belongs_to_copy(directive: Directive) -> bool:
    """Whether a text repeats a directive: it follows from the layouts of both sides."""
    if isinstance(directive, Prefetch):
        return directive.distance == PREFETCH_ARGUMENT
    return isinstance(directive, (*HELD, LanesBeyond, Request))


def _check_choices(made: CopyNest, nest: CopyNest) -> None:
    """Copies without blocks have lanes, tails and streams for which there are instructions."""
    is_run = nest.copies and len(nest.loops) == 1 and not nest.loops[0].src_table and not nest.entries
    for x in made.directives if not nest.transposes else ():
        own, taken = nest.obeying(type(x)), True
        match x:
            case Vectorize(pairs):
                taken = _has_powers(count for axis, count in pairs if count != nest.lanes[axis])
            case Tail(axis):
                taken = _replaces(x, nest.tail(axis))
            case Stream("headed") if nest.obeying(Stage):
                taken = x in own and bool(made.obeying(Stage))
            case Stream(form):
                taken = x in own or (is_run and form in ("full", "headed"))
        if not taken:
            refuse(f"this copy does not take {x}", x)


def _replaces(x: Tail, own: Tail | None) -> bool:
    """Whether a copy may have a tail instead of its own."""
    if own is None:
        return False
    others = ("shift", "narrow") if own.how in ("shift", "narrow") else (own.how,)
    return x.how in others and x.sizes[-1:] == own.sizes[-1:] and _has_powers({*x.sizes} - {*own.sizes})


def _has_powers(lanes: Iterable[int | str]) -> bool:
    """Whether all numbers of lanes are powers of two."""
    return all(isinstance(n, int) and 1 < n <= MOST_LANES and n & (n - 1) == 0 for n in lanes)
