"""Stream the lines of result rows that begin anywhere in a line, as register blocks complete them."""

from __future__ import annotations

from dataclasses import replace

from codegen.analysis.bodies import flat
from codegen.ir.building import (
    Term,
    compare,
    greatest,
    index_of,
    least,
    let,
    loop,
    minus,
    multiple,
    plus,
    rest,
    times,
)
from codegen.ir.lines import LINE_BYTES
from codegen.ir.nodes import Alloc, Call, For, If, Statement, Store, View
from codegen.ir.rewriting import Body, rewrite_body
from codegen.ir.values import Load
from codegen.passes.lines import line, to_line
from codegen.passes.sides import sides_of
from codegen.passes.tile import first_iteration
from codegen.schedule.copy_nest import CopyNest
from codegen.support.lookups import expect

CARRY, WAITING = "carry", "waiting"
"""The last line's worth of bytes of each result row of a tile, and its view for the columns of a block."""


def carry_lines(body: Body, nest: CopyNest) -> Body:
    """Complete one line of each result row with each block, from the bytes of this block and the one before.

    before:  for column in column_tile..column_stop: for row in row_tile..row_stop:
               dst[column, row] = src[row, column]
    after:   for column_block in column_tile..column_stop step 8:          Vectorize(row=8, column=8), u64
               column_first = min(column_block, columns - 8)
               waiting = carry + 64*(column_block - column_tile)
               if row_tile == 0: rows 0..8 into waiting, and from there the bytes before the first full line
               for row_first in max(row_tile, 8)..min(row_stop, whole) step 8:
                 for column in column_first..column_first + 8: for row in row_first..row_first + 8:
                   dst[column, row] = src[row, column] @streamed, carry waiting[column - column_first]
               if row_stop == rows: the bytes that are waiting, and the rows after the last full block

    Blocks that repeat columns have lines of their own in `carry`: a row must be carried once.
    """
    whole = let("whole", multiple(nest.axis("row").extent, nest.lanes["row"]))

    def carried(node: Statement) -> Body:
        if isinstance(node, For) and node.index == "column":
            return (_blocks(node, nest),)
        return (node,)

    return Alloc(CARRY, nest.scratch_bytes, "scratch"), whole, *rewrite_body(body, carried)


def _blocks(node: For, nest: CopyNest) -> For:
    """The loop over the blocks of some columns of a tile."""
    (first,), (last,), (inside,) = node.lower, node.upper, node.body
    (tile,), size = nest.tiles("column"), nest.lanes["column"]
    assert isinstance(inside, For), "rows are inside columns"
    store = expect((x for x in flat(inside.body) if isinstance(x, Store)), "a store", inside)
    rows, count = nest.lanes["row"], nest.axis("row").extent
    held = times(minus("column", "column_first"), LINE_BYTES)
    before = Load(WAITING, (held,), "bits8", (LINE_BYTES,), (0,), (1,))
    carried = replace(store, streamed=True, carry=before)
    return loop(
        "column_block",
        first,
        last,
        let("column_first", least("column_block", minus(nest.axis("column").extent, size))),
        View(WAITING, CARRY, times(minus("column_block", first_iteration(tile)), LINE_BYTES)),
        If((compare("row_tile", "eq", 0),), _begun(nest, store)),
        loop(
            "row_first",
            greatest("row_tile", rows),
            least("row_stop", "whole"),
            _block(nest, "row_first", carried),
            step=rows,
        ),
        If((compare("row_stop", "eq", count),), _ended(nest, store)),
        step=size,
    )


def _begun(nest: CopyNest, store: Store) -> Body:
    """The first block of rows, whose bytes before the first full line are stored, or which is that line."""
    before = Call("drain_part", ("out", "held", index_of("head")))
    is_line = replace(line("out", "held", 0), streamed=True)
    head = let("head", to_line("out")), If((compare("head", "gt", 0),), (before,), (is_line,))
    return _waiting(nest, 0, store), _each_column(nest, 0, 0, *head)


def _ended(nest: CopyNest, store: Store) -> Body:
    """The bytes that are waiting for the end of a line, and those of the rows after the last full block."""
    count, width = nest.axis("row").extent, nest.target.bits // 8
    begun, left = rest("out", LINE_BYTES), times(minus(count, "whole"), width)
    ends = View("line", "out", times(begun, -1)), View("last", "held", minus(LINE_BYTES, begun))
    rows = minus(count, nest.lanes["row"])
    others = Call("drain_part", ("out", "held", left))
    after = _waiting(nest, rows, store), _each_column(nest, "whole", minus(LINE_BYTES, left), others)
    return (
        _each_column(nest, "whole", 0, *ends, Call("drain_part", ("line", "last", begun))),
        If((compare("whole", "lt", count),), after),
    )


def _block(nest: CopyNest, row: Term, store: Store) -> For:
    """The columns of a block, and its rows from one on, with a store."""
    rows = _exactly(nest, "row", row, store)
    return _exactly(nest, "column", "column_first", rows)


def _exactly(nest: CopyNest, axis: str, first: Term, *body: Statement) -> For:
    """As many iterations of an axis as a block has."""
    size = nest.lanes[axis]
    return replace(loop(axis, first, plus(first, size), *body), fewest=size, most=size)


def _waiting(nest: CopyNest, row: Term, store: Store) -> For:
    """A block of rows that waits."""
    held = times(minus("column", "column_first"), LINE_BYTES)
    at = plus(held, times(minus("row", row), nest.target.bits // 8))
    return _block(nest, row, replace(store, array=WAITING, subscripts=(at,)))


def _each_column(nest: CopyNest, row: Term, held: Term, *body: Statement) -> For:
    """For each column of a block: what begins at a row of the destination, and in the line that waits."""
    at = plus(times("column", nest.axis("column").dst), times(row, nest.target.bits // 8))
    waiting = plus(times(minus("column", "column_first"), LINE_BYTES), held)
    views = View("out", sides_of(nest).dst, at), View("held", WAITING, waiting)
    return _exactly(nest, "column", "column_first", *views, *body)
