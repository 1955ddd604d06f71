"""Check the blocks, the stage and the streams of a transpose."""

from __future__ import annotations

from codegen.ir.blocks import block_shape, transposed_shapes
from codegen.ir.instructions import takes_block
from codegen.ir.lines import LINE_BYTES
from codegen.ir.streams import Stream
from codegen.schedule.check_directives import first
from codegen.schedule.copy_nest import CopyNest
from codegen.schedule.directives import Diagonal, Reorder, Stage, Tail, Vectorize
from codegen.schedule.loops import int_size
from codegen.schedule.read_directives import refuse

MOST_SCRATCH_BYTES = 1 << 24
"""The largest block in scratch: each thread holds one."""


def check_transpose(nest: CopyNest) -> None:
    """Check the directives of a transpose.

    Raises:
        ScheduleError: passes cannot obey them.
    """
    _check_blocks(nest)
    _check_stage(nest)
    check_scratch(nest)
    _check_streamed_tiles(nest)


def layers(nest: CopyNest) -> list[str]:
    """The loops of a transpose over several tiles of a stage."""
    return [x.axis for x in nest.others if x not in nest.around]


def _check_blocks(nest: CopyNest) -> None:
    """Registers transpose blocks of the lanes, which fit in the box."""
    row, column, width = nest.axis("row"), nest.axis("column"), nest.target.bits // 8
    lanes = first(nest, Vectorize)
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
        refuse("Diagonal needs column and row as the last loops, and no Stage", first(nest, Diagonal))


def _check_stage(nest: CopyNest) -> None:
    """Tiles go through scratch with lines of result rows, and follow each other, or with complete rows."""
    stage, over_layers = first(nest, Stage), layers(nest)
    if not nest.tiles("row") and not nest.staged:
        refuse('expected tiles of rows, such as Tile("row", 64)')
    for axis in over_layers:
        if not nest.stages_rows or len(nest.tiles(axis)) != 1:
            refuse(f'expected Stage without tiles of rows, and tiles such as Tile("{axis}", 2)', stage)
    if stage is None:
        return
    forms = [x.form for x in nest.obeying(Stream)]
    if forms not in (["headed"], ["aligned"]) or (forms == ["aligned"] and not nest.stages_rows):
        refuse('Stage needs Stream("headed")', first(nest, Stream) or stage)
    if not nest.tiles("column") and not (nest.tiles("row") and nest.short):
        refuse('Stage needs tiles of columns, such as Tile("column", 256)', stage)
    if nest.stages_rows:
        (tile, *_), column = nest.tiles("column"), nest.axis("column")
        if int_size(tile.size) < int_size(column.extent) and (over_layers or column.dst_table):
            refuse(f"expected tiles of all {column.extent} columns, got {tile}", tile)
        return
    check_parts(nest, stage)


def check_parts(nest: CopyNest, stage: Stage) -> None:
    """Parts of result rows in scratch are full lines, and follow each other: see `row_buffers.drained`.

    Raises:
        ScheduleError: they are not, or do not.
    """
    row, order, width = nest.loops[-2], first(nest, Reorder), nest.target.bits // 8
    tile = nest.tiles(row.axis)[0]
    if stage.separate:
        refuse(f"expected Stage() for tiles of rows, got {stage}", stage)
    if int_size(row.extent) * width < LINE_BYTES:
        refuse(f"expected Stage without tiles of result rows that are shorter than a line, got {tile}", tile)
    if any(x.index in nest.in_block for x in nest.outer_tiles):
        refuse(f"Stage needs {tile.index} as the last of the loops over tiles, got {order}", order)
    if nest.lanes[row.axis] * width > LINE_BYTES:
        refuse(f"Stage needs lanes of at most {LINE_BYTES // width} rows", first(nest, Vectorize))
    if int_size(tile.size) * width % LINE_BYTES:
        refuse(f"Stage needs tiles of full lines of {LINE_BYTES} bytes, got {tile}", tile)


def check_scratch(nest: CopyNest) -> None:
    """Blocks stay small."""
    if int_size(nest.scratch_bytes) > MOST_SCRATCH_BYTES:
        most = f"tiles of at most {MOST_SCRATCH_BYTES} bytes in scratch"
        refuse(f"expected {most}, got {nest.scratch_bytes}; use smaller tiles", first(nest, Stage))


def _check_streamed_tiles(nest: CopyNest) -> None:
    """Blocks that are streamed begin where lines of the destination do, or find those lines."""
    (stream, *others) = (*nest.obeying(Stream), None)
    if nest.staged or stream is None:
        return
    if nest.carried:
        _check_carried(nest, stream)
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


def _check_carried(nest: CopyNest, stream: Stream) -> None:
    """Blocks that complete lines have a line of each row; the blocks of a result row follow each other."""
    block, rows = nest.lanes["row"] * nest.target.bits // 8, nest.tiles("row")
    if nest.obeying(Stream) != (stream,) or block != LINE_BYTES or nest.convert:
        refuse(
            f"{stream} needs blocks of {8 * LINE_BYTES // nest.target.bits} rows, which do not convert",
            stream,
        )
    if nest.axis("row").src_table or nest.axis("column").dst_table:
        refuse(f"{stream} needs rows and columns of one digit each", stream)
    if len(rows) != 1 or len(nest.tiles("column")) != 1 or nest.obeying(Diagonal):
        refuse(f"{stream} needs one level of tiles of rows and columns, and no Diagonal", stream)
    if nest.outer[-1] != rows[0].index or nest.order[-2:] != ("column", "row"):
        refuse(f"{stream} needs {rows[0].index} as the last outer loop, then column and row", stream)
