"""Stream the tiles of a transpose."""

from __future__ import annotations

from dataclasses import replace

from codegen.analysis.bodies import flat
from codegen.ir.building import compare, least, let, loop, minus, plus, quotient, rest
from codegen.ir.nodes import For, If, Statement, View
from codegen.ir.rewriting import Body, rewrite_body
from codegen.ir.streams import Stream
from codegen.passes.lines import streaming, to_line
from codegen.passes.sides import sides_of
from codegen.schedule.copy_nest import CopyNest
from codegen.support.lookups import expect


def stream_tiles(body: Body, nest: CopyNest) -> Body:
    """Stream all rows of each tile, or those between the first line of the destination and the last.

    before:  for row in row_tile..row_stop: for column in …: dst[column, row] = src[row, column]
    after:   head = -dst % 64 // 4; stop = rows - (rows - head) % 16         once, Stream("headed")
             if row_tile == 0: for row in 0..head: for column in …: …
             if row_stop == rows: for row in stop..rows: for column in …: …
             for row in row_tile + head..min(row_stop + head, stop): for column in …: … @streamed
    """
    streamed, dst = streaming(body), sides_of(nest).dst
    if all(x.form != "headed" for x in nest.obeying(Stream)):
        return streamed
    innermost = (x for x in flat(body) if isinstance(x, For) and x.index == nest.order[-1])
    scalar = expect(innermost, "the innermost loop", nest.order).body
    bounds, edges = _bounds(nest), _edges(scalar, nest)

    def found(node: Statement) -> Body:
        if isinstance(node, View) and node.name == dst:
            return node, *bounds
        if not isinstance(node, For):
            return (node,)
        first = edges if node.index == nest.order[len(nest.outer)] else ()
        if node.index == "row":
            lower, upper = plus(*node.lower, "head"), least(plus(*node.upper, "head"), "stop")
            node = replace(node, lower=(lower,), upper=(upper,))
        return *first, node

    made = rewrite_body(streamed, found)
    return made if any(isinstance(x, View) and x.name == dst for x in flat(body)) else (*bounds, *made)


def _bounds(nest: CopyNest) -> Body:
    """The first row that begins a line of the destination, and the one after the last line.

    If no element begins a line, no row does.
    """
    width, dst, count = nest.target.bits // 8, sides_of(nest).dst, nest.axis("row").extent
    begins = (compare(rest(dst, width), "eq", 0),) if width > 1 else ()
    head = let("head", quotient(to_line(dst), width))
    after = let("stop", minus(count, rest(minus(count, "head"), nest.lanes["row"])))
    return If(begins, (head,), (let("head", count),)) if begins else head, after


def _edges(scalar: Body, nest: CopyNest) -> Body:
    """The rows of a tile before the first line of the destination and after the last."""
    count = nest.axis("row").extent
    (row_tile, *_), (column_tile, *_) = nest.tiles("row"), nest.tiles("column")
    across = loop("column", column_tile.index, "column_stop", *scalar)
    return (
        If((compare(row_tile.index, "eq", 0),), (loop("row", 0, "head", across),)),
        If((compare("row_stop", "eq", count),), (loop("row", "stop", count, across),)),
    )
