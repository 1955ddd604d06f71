"""A nest as text, as in `tilejit explain` and in golden files."""

from __future__ import annotations

from codegen.ir.copies.nodes import (
    Buffer,
    Convert,
    CopyChunks,
    CopyRun,
    Elementwise,
    Expr,
    Fill,
    FillRun,
    For,
    ForEach,
    Gather,
    Interleave,
    LaneReads,
    Load,
    LoopNest,
    PackBits,
    Ref,
    Reverse,
    Size,
    Stmt,
    Store,
    Transfer,
    Transpose,
    TransposeTiles,
    UnpackBits,
)
from codegen.ir.copies.segments import Segments
from codegen.ir.copies.tiles import PackedLines, RowGroups, TileGrid


def format_nest(nest: LoopNest) -> str:
    """The nest, one loop per line, offsets in the buffers' units.

    for d0 in 125:
        dst[4096*d0] = src[1200*d0]
    """
    lines = [_buffer(b) for b in nest.buffers]
    _statement(nest.body, 0, lines)
    return "\n".join(lines) + "\n"


def _buffer(buffer: Buffer) -> str:
    unit = "bytes" if buffer.unit_bits == 8 else "bits"
    return f"{buffer.name}: {buffer.element.name}, {buffer.element.bits} bits, counted in {unit}"


def _statement(stmt: Stmt, depth: int, lines: list[str]) -> None:
    indent = "    " * depth
    match stmt:
        case For(axis, extent, body):
            lines.append(f"{indent}for {axis} in {format_size(extent)}:")
            _statement(body, depth + 1, lines)
        case ForEach(axis, count, body):
            lines.append(f"{indent}for {axis} in table of {format_size(count)}:")
            _statement(body, depth + 1, lines)
        case _:
            lines.append(indent + format_transfer(stmt))


def format_transfer(stmt: Transfer) -> str:
    """One statement on one line."""
    match stmt:
        case Store(ref, value):
            return f"{format_ref(ref)} = {format_expr(value)}"
        case CopyRun(dst, src, count, stream):
            how = ", streamed" if stream else ""
            return f"{format_ref(dst)} <- {format_ref(src)}, {format_size(count)} bytes{how}"
        case CopyChunks(dst, src, width, count, places, stream):
            how = ", streamed" if stream else ""
            places_text = " x ".join(f"{n} at {stride}" for n, stride in places.digits) or "by a table"
            return (
                f"{format_ref(dst)} <- pieces of {format_ref(src)}, {format_size(count)} of {width} bytes, "
                f"{places_text}{how}"
            )
        case FillRun(dst, count):
            return f"{format_ref(dst)} <- padding, {format_size(count)} bytes"
        case Interleave(dst, src, width, rows, columns, row_step, column_step, side, stream, packed, groups):
            how = {"dst": "interleave", "src": "deinterleave", "": "transpose"}[side]
            how = f"streamed {how}" if stream else how
            return (
                f"{format_ref(dst)} <- {how} {format_ref(src)}, {format_size(rows)} rows of "
                f"{format_size(columns)} u{8 * width}, rows {format_size(row_step)} apart, "
                f"columns {format_size(column_step)} apart{_format_lines(packed)}{_format_groups(groups)}"
            )
        case Transpose(dst, src, width, grid, stage, stream, block, convert):
            how = f"{'streamed ' if stream else ''}{f'{stage} staged ' if stage else ''}transpose"
            what = f"{convert or f'u{8 * width}'} by {block}s{_format_grid(grid)}"
            return f"{format_ref(dst)} <- {how} {format_ref(src)}, {what}"
        case TransposeTiles(dst, src, _, width, rows, columns):
            how = f"{'streamed ' if stmt.stream else ''}{'staged ' if stmt.staged else ''}transpose"
            element = " to ".join(stmt.convert) if stmt.convert else f"u{8 * width}"
            shape = f"{format_size(rows)} x {format_size(columns)} {element}"
            return f"{format_ref(dst)} <- {how} {format_ref(src)}, {shape}, {_format_tiles(stmt)}"
        case Reverse(dst, src, width, length, count, stream):
            runs = "" if count == 1 else f"{format_size(count)} runs of "
            how = "streamed reversed" if stream else "reversed"
            what = f"{runs}{format_size(length)} elements of {width} bytes"
            return f"{format_ref(dst)} <- {how} {format_ref(src)}, {what}"
        case Gather(dst, src, segments):
            return f"{format_ref(dst)} <- pieces of {format_ref(src)}, streamed{_format_segments(segments)}"
        case Elementwise(dst, value, count, dst_step, src_step):
            return (
                f"{format_ref(dst)} <- {format_expr(value)}, {format_size(count)} elements, "
                f"steps {format_size(dst_step)} and {format_size(src_step)}{', prefetches' * stmt.prefetch}"
            )
        case PackBits(dst, src, bits, count, step, columns, stream):
            return (
                f"{format_ref(dst)} <- {_columns(columns)}{format_size(count)} bytes of {8 // bits} elements "
                f"each, packed from {format_ref(src)}, {format_size(step)} apart{', streamed' * stream}"
            )
        case UnpackBits(dst, src, bits, count, step, columns, stream):
            return (
                f"{format_ref(dst)} <- {_columns(columns)}{format_size(count)} bytes of {8 // bits} elements "
                f"each, unpacked from {format_ref(src)} to places {format_size(step)} apart"
                f"{', streamed' * stream}"
            )


def _format_lines(packed: PackedLines | None) -> str:
    """The offsets of packed lines, if they are not contiguous."""
    if packed is None:
        return ""
    places = " x ".join(f"{count} at {stride}" for count, stride in packed.digits)
    return f", packed lines {places or 'by a table'}"


def _format_segments(segments: Segments | None) -> str:
    """The parts of each segment, unless run-time tables hold them."""
    if segments is None:
        return ", segment by segment"
    text = f", {segments.stop} bytes in segments of {segments.length}, rows of {segments.filled}"
    text += f" every {segments.row}" if segments.filled < segments.row else ""
    for part in segments.parts:
        pieces = part.bytes_each // part.run
        what = "padding" if part.fills else f"from {part.src}"
        text += f"\n    {part.count} times {pieces} pieces of {part.run} at {part.place}, {what}"
    return text


def _format_groups(groups: RowGroups | None) -> str:
    """The groups of rows that are deinterleaved at the same time."""
    if groups is None:
        return ""
    places = " x ".join(f"{count} at {src} to {dst}" for count, src, dst in groups.digits)
    return f", groups {places or 'by a table'}"


def _format_grid(grid: TileGrid | None) -> str:
    """Rows, columns and tiles, unless run-time tables hold them."""
    if grid is None:
        return ", tile by tile"

    def digits(of: tuple[tuple[int, int, int], ...], side: int) -> str:
        return " x ".join(f"{digit[0]} at {digit[side]}" for digit in of)

    text = f", rows {digits(grid.rows, 1)}, columns {digits(grid.columns, 2)}"
    others = "".join(f", {n} times {src} and {dst}" for n, src, dst in grid.others)
    tiles = "1 tile" if grid.count == 1 else f"{grid.count} tiles"
    layers = ""
    if grid.layers:
        count, src, dst = grid.layers
        layers = f", {grid.together} of {count} layers {src} and {dst} apart together"
    return f"{text}{others}, {tiles} of {grid.tile[0]}x{grid.tile[1]}{layers}"


def _format_tiles(stmt: TransposeTiles) -> str:
    """The steps, the tiles, the blocks, and the loops around them."""

    def step(of: Size | PackedLines) -> str:
        if isinstance(of, PackedLines):
            return " x ".join(f"{n} at {stride}" for n, stride in of.digits) or "by a table"
        return f"{format_size(of)} apart"

    loops = " ".join(loop.axis for loop in stmt.loops)
    tile, block = ("x".join(map(str, shape)) for shape in (stmt.tile, stmt.block))
    steps = f"rows {step(stmt.row_step)}, columns {step(stmt.column_step)}"
    lanes = f", {_format_lanes(stmt.lanes)}" if stmt.lanes else ""
    return f"{steps}, tiles of {tile} in blocks of {block} by {stmt.order}, loops {loops}{lanes}"


def _format_lanes(reads: LaneReads) -> str:
    """The blocks that may not read full lanes."""
    start, stop = format_size(reads.closed_start), format_size(reads.closed_stop)
    return f"no lanes from row {start} to {stop} at offset {format_size(reads.open_offset)} and after"


def _columns(columns: Size) -> str:
    return "" if columns == 1 else f"{format_size(columns)} columns of "


def format_expr(value: Expr) -> str:
    """An expression on one line."""
    match value:
        case Load(ref):
            return format_ref(ref)
        case Fill():
            return "padding"
        case Convert(Load(ref), source, target):
            return f"{target}({source} {format_ref(ref)})"


def format_ref(ref: Ref) -> str:
    """An offset in a buffer: buffer[const + stride*axis + table[axis]]."""
    terms = [f"{format_size(s)}*{a}" for a, s in ref.terms if s != 0]
    terms += [f"{table}[{axis}]" for table, axis in ref.tables]
    if ref.const != 0 or not terms:
        terms.insert(0, format_size(ref.const))
    return f"{ref.buffer}[{' + '.join(terms)}]"


def format_size(size: Size) -> str:
    """A number, or the name of a parameter."""
    return str(size) if isinstance(size, int) else size.name
