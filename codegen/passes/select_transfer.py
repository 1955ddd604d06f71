"""Replace the innermost loops by the transfer that the schedule selects."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from math import prod

from codegen.ir.copies.nodes import (
    Buffer,
    Convert,
    CopyChunks,
    CopyRun,
    Elementwise,
    Expr,
    FillRun,
    For,
    Interleave,
    Load,
    LoopNest,
    PackBits,
    Ref,
    Reverse,
    TileLoop,
    Transfer,
    Transpose,
    TransposeTiles,
    UnpackBits,
    refs,
    wrap,
)
from codegen.ir.copies.rewriting import int_size, keep_only, scalar
from codegen.ir.copies.tiles import Digit, PackedLines, RowGroups, TileGrid, block_shape
from codegen.ir.lines import LANE_BYTES, LINE_BYTES
from codegen.passes.lane_reads import lane_reads
from codegen.schedule.schedule import Schedule, TransposeSchedule


def super_vectorize(nest: LoopNest, schedule: Schedule) -> LoopNest:
    """Replace the loops named in `schedule.inner`.

    before:  for i in 9: for j in 128:  dst[512*i + 4*j] = src[1200*i + 4*j]
    after:   for i in 9:                copy_run dst[512*i] <- src[1200*i], 512 bytes
    """
    loops = {loop.axis: loop for loop in nest.loops}
    outer = tuple(loops[axis] for axis in schedule.outer)
    inner = tuple(loops[axis] for axis in schedule.inner)
    match schedule.mode:
        case "run":
            transfer: Transfer = _run(nest, outer, inner[0], schedule)
        case "pieces":
            transfer = _chunks(nest, outer, inner, schedule)
        case "reverse":
            transfer = _reverse(nest, outer, inner, schedule)
        case "fill":
            nest, transfer = _fill(nest, outer, inner[0])
        case "interleave":
            transfer = _interleave(nest, outer, inner, schedule)
        case "transpose":
            outer, transfer = (), _transpose(nest, schedule)
        case "elements":
            transfer = _elements(nest, outer, inner[0] if inner else None, prefetch=schedule.prefetch)
        case "pack bits" | "unpack bits":
            nest, transfer = _bits(nest, outer, inner, schedule)
    return replace(nest, body=wrap(outer, nest.table_loop, transfer))


def _outside(nest: LoopNest, outer: tuple[For, ...]) -> tuple[Ref | None, Ref]:
    """Source and destination with the terms of the outer loops only."""
    return refs(keep_only(scalar(nest), {loop.axis for loop in outer}))


def _outer_refs(nest: LoopNest, outer: tuple[For, ...]) -> tuple[Ref, Ref]:
    src, dst = _outside(nest, outer)
    if src is None:
        raise AssertionError("this transfer has a source")
    return src, dst


def _run(nest: LoopNest, outer: tuple[For, ...], loop: For, schedule: Schedule) -> CopyRun:
    src, dst = _outer_refs(nest, outer)
    count = int_size(loop.extent) * nest.buffer("dst").element.bits // 8
    return CopyRun(dst, src, count, schedule.stream)


def _reverse(nest: LoopNest, outer: tuple[For, ...], inner: tuple[For, ...], schedule: Schedule) -> Reverse:
    """One run, or several contiguous short runs."""
    src, dst = _outer_refs(nest, outer)
    count = inner[1].extent if len(inner) > 1 else 1
    width = nest.buffer("dst").element.bits // 8
    return Reverse(dst, src, width, inner[0].extent, count, schedule.stream)


def _chunks(nest: LoopNest, outer: tuple[For, ...], inner: tuple[For, ...], schedule: Schedule) -> CopyChunks:
    """The inner loops are contiguous in the destination; a table holds their source offsets."""
    src, dst = _outer_refs(nest, outer)
    full_src, _ = refs(scalar(nest))
    if full_src is None:
        raise AssertionError("a copy of chunks has a source")
    digits = tuple((int_size(x.extent), int_size(full_src.stride(x.axis))) for x in inner)
    width = nest.buffer("dst").element.bits // 8
    return CopyChunks(dst, src, width, prod(n for n, _ in digits), PackedLines(digits), schedule.stream)


def _fill(nest: LoopNest, outer: tuple[For, ...], loop: For) -> tuple[LoopNest, FillRun]:
    count = int_size(loop.extent) * nest.buffer("dst").element.bits // 8
    nest = in_bytes(nest, loop.axis)
    return nest, FillRun(_outside(nest, outer)[1], count)


def _interleave(
    nest: LoopNest, outer: tuple[For, ...], inner: tuple[For, ...], schedule: Schedule
) -> Interleave:
    """Join the inner digits after columns and rows to the long digit, the one that is not packed."""
    src, dst = _outer_refs(nest, outer)
    full_src, full_dst = refs(scalar(nest))
    if full_src is None:
        raise AssertionError("an interleave has a source")
    columns, rows, *joined = inner
    width = nest.buffer("dst").element.bits // 8
    row_count, column_count, lines = rows.extent, columns.extent, None
    if joined:
        packed = full_dst if schedule.interleave == "dst" else full_src
        first = int_size(row_count) * int_size(column_count) * width // LINE_BYTES
        following = ((int_size(x.extent), int_size(packed.stride(x.axis))) for x in joined)
        lines = PackedLines(((first, LINE_BYTES), *following))
        times = prod(int_size(x.extent) for x in joined)
        if schedule.interleave == "dst":
            column_count = int_size(column_count) * times
        else:
            row_count = int_size(row_count) * times
    return Interleave(
        dst,
        src,
        width,
        row_count,
        column_count,
        full_src.stride(rows.axis),
        full_dst.stride(columns.axis),
        schedule.interleave,
        schedule.stream,
        lines,
        _groups(nest, schedule),
    )


def _groups(nest: LoopNest, schedule: Schedule) -> RowGroups | None:
    """The groups that are deinterleaved at the same time; at least a line of each row is contiguous."""
    src, dst = refs(scalar(nest))
    if src is None or schedule.groups is None:
        return None
    extents = {loop.axis: int_size(loop.extent) for loop in nest.loops}
    digits = tuple((extents[a], int_size(src.stride(a)), int_size(dst.stride(a))) for a in schedule.groups)
    width = nest.buffer("dst").element.bits // 8
    columns, first = extents[schedule.inner[0]], extents[schedule.inner[1]]
    run = -(-LINE_BYTES // width // first) * first
    return RowGroups(digits or ((1, 0, 0),), columns, width, run)


def _in_tiles(
    cut: TransposeSchedule,
    digits: Callable[[tuple[str, ...]], tuple[Digit, ...]],
    dst: Ref,
    src: Ref,
    widths: tuple[int, int],
    value: Expr,
) -> TransposeTiles:
    """Loops over tiles and blocks; a joined side gets a table of offsets."""
    (source_width, width), rows, columns = widths, digits(cut.rows), digits(cut.columns)
    row_count, column_count = (prod(n for n, _, _ in side) for side in (rows, columns))
    tile, block, lanes = cut.tile, block_shape(width, cut.block), None
    if row_count < block[0] or column_count < block[1]:
        raise AssertionError(f"expected {block} rows and columns or more, got {row_count, column_count}")
    others = {axis: digits((axis,))[0] for axis in cut.loops if axis not in ("rows", "columns")}
    if cut.block == "part":
        block = block_shape(width, "lane")
        tile = tile[0], block[1]
        lanes = lane_reads(rows, column_count, tuple(others.values()), width, block[0])
    return TransposeTiles(
        dst,
        src,
        source_width,
        width,
        row_count,
        column_count,
        rows[0][1] if len(rows) == 1 else _joined([(n, s) for n, s, _ in rows], more=2 * tile[0]),
        columns[0][2] if len(columns) == 1 else _joined([(n, d) for n, _, d in columns]),
        tuple(TileLoop(axis, *others.get(axis, ())) for axis in cut.loops),
        tile,
        block,
        cut.order,
        cut.stream,
        cut.prefetch_bytes,
        cut.stage == "rows",
        lanes,
        (value.source, value.target) if isinstance(value, Convert) else None,
    )


def _joined(digits: list[tuple[int, int]], more: int = 0) -> PackedLines:
    return PackedLines(tuple(digits), more=more)


def _transpose(nest: LoopNest, schedule: Schedule) -> Transpose | TransposeTiles:
    """The transfer takes all loops and determines the order of its tiles itself."""
    cut = schedule.transpose
    src, dst = _outer_refs(nest, ())
    full_src, full_dst = refs(scalar(nest))
    if full_src is None or cut is None:
        raise AssertionError("a transpose has a source and a TransposeSchedule")
    extents = {loop.axis: int_size(loop.extent) for loop in nest.loops}

    def digits(axes: tuple[str, ...]) -> tuple[Digit, ...]:
        return tuple((extents[a], int_size(full_src.stride(a)), int_size(full_dst.stride(a))) for a in axes)

    width = nest.buffer("dst").element.bits // 8
    source_width = nest.buffer("src").element.bits // 8
    if cut.loops:
        return _in_tiles(cut, digits, dst, src, (source_width, width), scalar(nest).value)
    grid = TileGrid(
        digits(cut.rows),
        digits(cut.columns),
        digits(schedule.outer),
        source_width,
        width,
        cut.tile,
        block_shape(width, cut.block),
        digits((cut.layers,))[0] if cut.layers else None,
        cut.together,
        LANE_BYTES if cut.block == "part" else 0,
    )
    return Transpose(dst, src, width, grid, cut.stage, cut.stream, cut.block, _conversion(nest))


def _conversion(nest: LoopNest) -> str:
    """The conversion that a transpose applies to each element, as its routines name it; "" for none."""
    value = scalar(nest).value
    if not isinstance(value, Convert):
        return ""
    return (
        value.source.replace(" ", "_")
        if value.source.startswith("swap ")
        else f"{value.source}_to_{value.target}"
    )


def _elements(nest: LoopNest, outer: tuple[For, ...], loop: For | None, *, prefetch: bool) -> Elementwise:
    store = scalar(nest)
    src, dst = refs(store)
    kept = keep_only(store, {x.axis for x in outer})
    target = nest.buffer("dst").element
    return Elementwise(
        kept.ref,
        kept.value,
        loop.extent if loop else 1,
        dst.stride(loop.axis) if loop else 0,
        src.stride(loop.axis) if loop and src else 0,
        target,
        nest.buffer("src").element if src else target,
        prefetch,
    )


def _bits(
    nest: LoopNest, outer: tuple[For, ...], inner: tuple[For, ...], schedule: Schedule
) -> tuple[LoopNest, Transfer]:
    """The packed loop is last in `inner`; a loop before it runs over the columns."""
    loop, columns = inner[-1], inner[0].extent if len(inner) > 1 else 1
    source, target = nest.buffer("src").element, nest.buffer("dst").element
    nest = in_bytes(nest, loop.axis)
    src, dst = _outer_refs(nest, outer)
    full_src, full_dst = refs(scalar(nest))
    if full_src is None:
        raise AssertionError("packing has a source")
    if schedule.mode == "pack bits":
        count = int_size(loop.extent) * target.bits // 8
        step = full_src.stride(loop.axis)
        return nest, PackBits(dst, src, target.bits, count, step, columns, schedule.stream)
    count = int_size(loop.extent) * source.bits // 8
    step = full_dst.stride(loop.axis)
    return nest, UnpackBits(dst, src, source.bits, count, step, columns, schedule.stream)


def in_bytes(nest: LoopNest, unit_axis: str) -> LoopNest:
    """The nest with offsets in bytes; the packed side's stride along `unit_axis` rounds down to 0."""
    if all(b.unit_bits == 8 for b in nest.buffers):
        return nest
    store = scalar(nest)

    def scaled(ref: Ref) -> Ref:
        return replace(
            ref, const=int_size(ref.const) // 8, terms=tuple((a, int_size(s) // 8) for a, s in ref.terms)
        )

    value = Load(scaled(store.value.ref)) if isinstance(store.value, Load) else store.value
    buffers = tuple(Buffer(b.name, b.element, 8) for b in nest.buffers)
    return replace(
        nest,
        buffers=buffers,
        body=wrap(nest.loops, nest.table_loop, replace(store, ref=scaled(store.ref), value=value)),
    )
