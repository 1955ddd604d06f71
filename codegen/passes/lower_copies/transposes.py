"""Lower transposes: loops over tiles, and in each tile over register blocks."""

from __future__ import annotations

from dataclasses import replace

from codegen.ir.blocks import Block, block_shape
from codegen.ir.building import Term, compare, index_of, least, let, loop, minus, plus, quotient, rest, times
from codegen.ir.lines import LINE_BYTES
from codegen.ir.nodes import Blocks, Carried, For, If, Statement, Store, View
from codegen.ir.streams import Stream
from codegen.ir.values import IndexValue, Op
from codegen.passes.lower_copies.blocks import (
    converted_rows,
    element_text,
    row_at,
    transposed_block,
)
from codegen.passes.lower_copies.lowered import Lowered, Sides
from codegen.passes.lower_copies.short_rows import OTHERS_OFFSET, lower_short_rows
from codegen.passes.lower_copies.tile_loops import around_tiles, other_loops, others_offset
from codegen.schedule.transfers import COLUMN_TABLE
from codegen.schedule.transposes import TileLevel, TransposeTiles

EDGE_BLOCK: Block = "16x64"
"""The blocks before the first line and after the last one, which are part of a line."""

PARALLEL = {"rows": "i", "columns": "j"}
"""What threads share of a loop over tiles."""


def lower_transpose(transpose: TransposeTiles, sides: Sides) -> Lowered:
    """Loops over tiles; in each, blocks are loaded, transposed in registers and stored.

    before:  transpose dst <- src, rows x columns, tiles of 96x96 in blocks of 16x16
    after:   for i_tile in 0..rows step 96: for j_tile in 0..columns step 96:
               for j_block in j_tile..j_stop step 16: for i_block in i_tile..i_stop step 16:
                 dst[j, i] = transposed(src[i, j] [16, 16])

    A last block that would cross the edge begins earlier: i = min(i_block, rows - 16).

    If the schedule finds lines, the blocks that are streamed begin where lines do:

    after:   head = -dst % 64 // 4; stop = rows - (rows - head) % 16
             for i_tile in 0..rows step 96: for j_tile in 0..columns step 96:
               rows 0..head if i_tile == 0, and rows stop..rows if i_stop == rows, through the cache
               for i in i_tile + head..min(i_stop + head, stop) step 16: …
    """
    t = transpose
    body = _tile_blocks(t, tile_views(t, sides))
    if other_loops(t):
        body = (*_opaque_views(t, sides), *body)
    body = around_tiles(t, body, parallel=not sides.in_table)
    tile, block = ("x".join(map(str, shape)) for shape in (t.tile, t.block))
    at = "".join(f"{x.axis}, " for x in other_loops(t))
    if t.lanes:
        tile, block = f"{t.tile[0]} rows", f"{block}, of which `columns` are stored"
    how = _parts_text(t, tile, block)
    how += ", blocks at the end by elements" if t.lanes else ""
    how += "" if sides.in_table else f"; parallel over {PARALLEL.get(t.loops[0].axis, t.loops[0].axis)}"
    return Lowered(body, f"dst[{at}j, i] = {element_text(t, at)}", how, converted_rows(t))


def _parts_text(t: TransposeTiles, tile: str, block: str) -> str:
    """The tiles, the super-vectors and the blocks, the outermost first, for readers."""
    tiles, strips = f"{'Panels' if t.staged else 'Tiles'} of {tile}", t.schedule.strips
    if strips is None:
        return f"{tiles}, super-vectors of {block}"
    vectors = tile if t.inner is None else "x".join(map(str, strips))
    if t.outer.index == "tile":
        return f"{tiles}, super-vectors of {vectors} in blocks of {block}"
    tiles = f", {tiles.lower()}" if t.inner or t.staged else ""
    return f"Super-vectors of {vectors}{tiles} in blocks of {block}"


def _opaque_views(t: TransposeTiles, sides: Sides) -> tuple[Statement, ...]:
    """Both sides at this iteration of the loops over other digits."""
    src, dst = others_offset(t, "src"), others_offset(t, "dst")
    offset: tuple[Statement, ...] = ()
    if t.lanes:
        offset, src = (let(OTHERS_OFFSET, src),), index_of(OTHERS_OFFSET)
    views = View("src_tile", sides.src, src, opaque=True), View("dst_tile", sides.dst, dst, opaque=True)
    return (*offset, *views)


def tile_views(t: TransposeTiles, sides: Sides) -> tuple[str, str]:
    """The names of destination and source inside all loops."""
    return ("dst_tile", "src_tile") if other_loops(t) else (sides.dst, sides.src)


def _tile_blocks(t: TransposeTiles, views: tuple[str, str]) -> tuple[Statement, ...]:
    """The blocks of a tile, in the schedule's order."""
    streamed = (Stream("given"),) if t.stream and not t.staged else ()
    inner = Blocks(streamed=streamed, prefetch_bytes=t.schedule.prefetch_bytes)
    if t.lanes:
        return (lower_short_rows(t, t.lanes, *views, replace(inner, staged=t.staged)),)
    blocks = _ordered_blocks(t, inner, _block(t, views))
    outer = _in_parts(t, t.inner, blocks) if t.inner else blocks
    outer = replace(outer, blocks=replace(outer.blocks or Blocks(), staged=t.staged))
    return (*_edges(t, *views), outer) if t.schedule.finds_lines else (outer,)


def _ordered_blocks(t: TransposeTiles, inner: Blocks, body: tuple[Statement, ...]) -> For:
    """Both loops over the blocks of a tile or super-vector, in the schedule's order."""
    rows, columns = t.block
    level = t.inner or t.outer
    first, stop = level.index, level.stop

    def over(index: str, blocks: Blocks, *inside: Statement) -> For:
        """The loop over the blocks of one side."""
        size, count = (rows, t.rows) if index == "i" else (columns, t.columns)
        blocks = replace(blocks, latest=minus(count, size))
        if index == "i" and t.schedule.finds_lines:
            begin, end = plus(f"i_{first}", "head"), least(plus(f"i_{stop}", "head"), "stop")
            return loop(index, begin, end, *inside, step=size, blocks=blocks)
        return loop(index, f"{index}_{first}", f"{index}_{stop}", *inside, step=size, blocks=blocks)

    if t.schedule.order == "rows":
        return over("i", Blocks(), over("j", inner, *body))
    if t.schedule.order == "columns":
        return over("j", Blocks(), over("i", inner, *body))
    j = let("j", least("j_block", minus(t.columns, columns)))
    down = _wrapping(over("i", inner, j, *body), columns, first, stop)
    return loop("diagonal", f"j_{first}", f"j_{stop}", down, step=columns)


def _edges(t: TransposeTiles, dst: str, src: str) -> tuple[Statement, ...]:
    """The rows of a tile before the first line of the destination and after the last one, in narrow blocks.

    If no element begins a line, these are all rows.
    """
    narrow, index, stop = replace(t, block=block_shape(t.width, EDGE_BLOCK)), t.outer.index, t.outer.stop
    rows, columns = narrow.block

    def edge(first: Term, last: Term) -> For:
        """Blocks from one row to another."""
        across = Blocks(latest=minus(t.columns, columns))
        body = loop("j", f"j_{index}", f"j_{stop}", *_block(narrow, (dst, src)), step=columns, blocks=across)
        return loop("i", first, last, body, step=rows, blocks=Blocks(latest=minus(t.rows, rows)))

    begins = (compare(rest(dst, t.width), "eq", 0),) if t.width > 1 else ()
    head = let("head", quotient(rest(times(dst, -1), LINE_BYTES), t.width))
    after = let("stop", minus(t.rows, rest(minus(t.rows, "head"), t.block[0])))
    return (
        If(begins, (head,), (let("head", t.rows),)) if begins else head,
        after,
        If((compare(f"i_{index}", "eq", 0),), (edge(0, "head"),)),
        If((compare(f"i_{stop}", "eq", t.rows),), (edge("stop", t.rows),)),
    )


def _in_parts(t: TransposeTiles, level: TileLevel, blocks: For) -> For:
    """The loops over the super-vectors of a tile, or the tiles of a super-vector, in the order of blocks.

    before:  for i in i_tile..i_stop step 16: for j in j_tile..j_stop step 4: …             32 x 64
    after:   for i_strip in i_tile..i_stop step 32:
               i_strip_stop = min(i_strip + 32, i_stop)
               for j_strip in j_tile..j_stop step 64:
                 j_strip_stop = min(j_strip + 64, j_stop)
                 for i in i_strip..i_strip_stop step 16: for j in j_strip..j_strip_stop step 4: …
    """
    sizes = dict(zip("ij", level.size, strict=True))
    made = blocks
    for side in "ji" if t.schedule.order == "rows" else "ij":
        size, index = sizes[side], f"{side}_{level.index}"
        stop = let(f"{side}_{level.stop}", least(plus(index, size), f"{side}_{t.outer.stop}"))
        first, last = f"{side}_{t.outer.index}", f"{side}_{t.outer.stop}"
        made = loop(index, first, last, stop, made, step=size)
    return made


def _wrapping(down: For, columns: int, first: str, stop: str) -> For:
    """The loop over rows of blocks, which moves on by one column of blocks each time, around the tile.

    Blocks of one row, and blocks of one column, share cache sets at many pitches.
    """
    following = plus("j_block", columns)
    inside = Op("lt", (IndexValue(following), IndexValue(index_of(f"j_{stop}"))), "i1")
    wrapped = Op("select", (inside, IndexValue(following), IndexValue(index_of(f"j_{first}"))), "i64")
    carried = Carried("j_block", IndexValue(index_of("diagonal")), wrapped)
    return replace(down, carried=(carried,))


def _block(t: TransposeTiles, views: tuple[str, str]) -> tuple[Statement, ...]:
    """block = src[i, j] [R, C]; dst[j, i] = transposed(block)"""
    dst, src = views
    block, value = transposed_block(t, src)
    at, step = row_at(t.column_step, COLUMN_TABLE, index_of("j"))
    store = Store(dst, (plus(at, times("i", t.width)),), value, (0, 0), (step, t.width))
    return *block, store
