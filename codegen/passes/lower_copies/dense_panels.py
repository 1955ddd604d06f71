"""Lower transposes of short result rows: a panel is filled in register blocks and leaves as long runs."""

from __future__ import annotations

from codegen.ir.building import index_of, least, let, loop, minus, plus, times
from codegen.ir.element_types import dtype_of
from codegen.ir.nodes import Alloc, Blocks, Let, Statement, Store, View
from codegen.ir.values import Each
from codegen.passes.lower_copies.blocks import block_of, converted_rows, row_at, transposed_block
from codegen.passes.lower_copies.dense_runs import drain_panel, if_less, layer_stride, run_sizes
from codegen.passes.lower_copies.lowered import Lowered, Sides
from codegen.passes.lower_copies.short_rows import OTHERS_OFFSET, short_rows
from codegen.passes.lower_copies.tile_loops import around_tiles, others_offset
from codegen.schedule.offset_tables import OffsetTable
from codegen.schedule.transfer_loops import Loop
from codegen.schedule.transposes import TransposeRuns


def lower_transposed_runs(t: TransposeRuns, sides: Sides) -> Lowered:
    """Loops over panels; each is filled with transposed blocks, and written run by run.

    before:  transpose dst <- src, rows x columns, panels of 2048 columns in blocks of 64x64
    after:   for column_panel in 0..panels:
               for column, row in blocks:          panel[column, row] = transposed(src[row, column] [64, 64])
               for run in runs, x in its lines:    dst[run, x] = panel[run, x] [64] @streamed

    Blocks have more rows than a short result row has elements. The extra bytes land in the next column of the
    panel, and are overwritten with that column.
    """
    fill = _fill(t) if t.layers == 1 else _fill_layers(t)
    body = (*_views(t, sides), *run_sizes(t), *fill, *drain_panel(t))
    body = around_tiles(t, body, parallel=not sides.in_table)
    names = {"columns": "", "layers": "layer, "}
    at = "".join(names.get(x.axis, f"{x.axis}, ") for x in t.loops)
    wide = f"{t.tile} columns" if isinstance(t.tile, int) else "columns"
    how = f"Panels of {wide}{' of several layers' if t.layers != 1 else ''}"
    block = f"{t.block[0]}x{t.block[1]}"
    vectors = f"{t.strip} columns in blocks of {block}" if t.strip and not t.lanes else block
    how += f", super-vectors of {vectors}"
    how += ", of which `columns` are kept, blocks at the end by elements" if t.lanes else ""
    over = {"columns": "panels", "layers": "layer"}.get(t.loops[0].axis, t.loops[0].axis)
    how += "" if sides.in_table else f"; parallel over {over}"
    return Lowered(body, f"dst[{at}column, row] = {_element_text(t, at)}", how, _prologue(t))


def _element_text(t: TransposeRuns, at: str) -> str:
    """The value of an element and the range of its indices, for readers: bf16(f32 src[row, column]), …"""
    element, sizes = f"src[{at}row, column]", "row < rows, column < columns"
    if t.convert is None:
        return f"{element}, {sizes}, u{8 * t.width}"
    source, target = t.convert
    if source.startswith("swap "):
        return f"swap_{8 * t.width}({element}), {sizes}"
    return f"{dtype_of(target)}({dtype_of(source)} {element}), {sizes}"


def _prologue(t: TransposeRuns) -> tuple[Statement, ...]:
    """The panel, the bytes of a result row, the last block of rows, and scratch if conversions need it."""
    out: list[Statement] = [
        Alloc("panel", t.panel_bytes, "scratch"),
        let("row_bytes", times(t.rows, t.width)),
    ]
    if not t.lanes:
        out.append(Let("last_row", if_less(t.block[0], t.rows, minus(t.rows, t.block[0]), 0)))
    return (*out, *converted_rows(block_of(t)))


def _views(t: TransposeRuns, sides: Sides) -> tuple[Statement, ...]:
    """Both sides at this panel without its columns; the last panel may begin at an earlier column."""
    src, dst, offset = others_offset(t, "src"), others_offset(t, "dst"), tuple[Statement, ...]()
    if t.lanes:
        offset, src = (let("panel_offset", src),), index_of("panel_offset")
    views = View("src_tile", sides.src, src, opaque=True), View("dst_tile", sides.dst, dst, opaque=True)
    first = index_of(0) if t.lanes else least("column_tile", minus(t.columns, t.block[1]))
    return (*offset, *views, let("column_first", first))


def _fill_layers(t: TransposeRuns) -> tuple[Statement, ...]:
    """Fill the panel layer by layer."""
    views = (
        View("panel_layer", "panel", times("layer", "layer_bytes")),
        View("src_layer", "src_tile", times("layer", layer_stride(t))),
    )
    return (loop("layer", 0, "layers", *views, *_fill(t)),)


def _fill(t: TransposeRuns) -> tuple[Statement, ...]:
    """panel[column - column_first, row] = src[row, column] of one layer, by super-vectors.

    A last block begins earlier.
    """
    src, panel = ("src_layer", "panel_layer") if t.layers != 1 else ("src_tile", "panel")
    if t.lanes:
        return _fill_short_rows(t, panel, src)
    rows, columns = t.block
    block, value = transposed_block(block_of(t), src)
    at, step = row_at(_panel_columns(t), "dst", minus("column", "column_first"))
    if t.separate and isinstance(step, int | str):
        step = Each(step)
    store = Store(panel, (plus(at, times("row", t.width)),), value, (0, 0), (step, t.width))
    last_i, last_j = (Blocks(latest=x) for x in (index_of("last_row"), minus("column_stop", columns)))
    down = loop("row", 0, t.rows, *block, store, step=rows, blocks=last_i)
    if not t.strip:
        return (loop("column", "column_first", "column_stop", down, step=columns, blocks=last_j),)
    size = t.strip
    stop = let("column_strip_stop", least(plus("column_strip", size), "column_stop"))
    strip = loop("column", "column_strip", "column_strip_stop", down, step=columns, blocks=last_j)
    return (loop("column_strip", "column_first", "column_stop", stop, strip, step=size),)


def _fill_short_rows(t: TransposeRuns, panel: str, src: str) -> tuple[Statement, ...]:
    """As `_fill`, if source rows are shorter than a lane."""
    if t.lanes is None:
        raise AssertionError("short rows have lanes")
    layer = times("layer", layer_stride(t)) if t.layers != 1 else 0
    others = any(x.axis != "columns" for x in t.loops)
    column, ends = _panel_columns(t), (0, t.rows)
    return (
        let(OTHERS_OFFSET, plus("panel_offset", layer)),
        short_rows(block_of(t), column, t.lanes, (panel, src), ends, inside_others=others),
    )


def _panel_columns(t: TransposeRuns) -> Loop:
    """The loop over columns, which are apart in the panel."""
    if isinstance(t.panel_step, OffsetTable):
        return Loop("column", t.columns, dst_table=t.panel_step)
    return Loop("column", t.columns, dst=t.panel_step)
