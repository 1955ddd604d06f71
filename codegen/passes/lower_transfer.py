"""Replace the transfer of a copy by loops over super-vectors; `lower_copies` has the loops of each kind."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

from codegen.ir.building import loop, times
from codegen.ir.index import index_symbol
from codegen.ir.nodes import ArrayArg, Blocks, BufferArg, Function, Let, ScalarArg, Statement, View
from codegen.ir.strided_box import SIDES
from codegen.ir.values import Load
from codegen.passes.lower_copies.gather import lower_gather
from codegen.passes.lower_copies.lowered import Lowered, Sides, sides_of
from codegen.passes.lower_copies.moves import lower_moves
from codegen.schedule.offset_tables import OFFSET_TABLES
from codegen.schedule.segments import SEGMENT_PADDING
from codegen.schedule.transfer_loops import Loop
from codegen.schedule.transfers import (
    Gather,
    Moves,
    Transfer,
    TransferNest,
    kernel_name,
    structure_digest,
    table_arguments,
)

LOWERINGS: dict[type[Transfer], Callable[[Any, Sides], Lowered]] = {
    Gather: lower_gather,
    Moves: lower_moves,
}
"""The lowering of each kind of transfer."""


def declared(nest: TransferNest, arguments: tuple[str, ...]) -> Function:
    """The kernel of a nest without statements.

    arguments  the names of the kernel's arguments, in the order of its table
    """
    tables = table_arguments(nest)
    given = tuple(ArrayArg(a, "i64", 1, "C") if a in tables else ScalarArg(a, "i64") for a in arguments)
    padding = (BufferArg(SEGMENT_PADDING),) if isinstance(nest.transfer, Gather) else ()
    buffers = (*(BufferArg(side, nest.unit_bits) for side in SIDES), *padding)
    name = kernel_name(nest, structure_digest(nest, arguments))
    return Function(name, given, (), buffers=buffers)


def lower_transfer(function: Function, nest: TransferNest) -> Function:
    """Replace the transfer of a nest by loops over super-vectors, inside the nest's own loops.

    before:  for a in a_extent: dst += a_dst, src += a_src:  Moves(x in x_extent, dst = src)
    after:   for a in 0..a_extent:
               src_a = src + a * a_src; dst_a = dst + a * a_dst
               for x in 0..x_extent:  dst_a[x] = src_a[x]

    `function` has no statements yet.
    """
    axes = [loop.axis for loop in nest.loops]
    lowered = LOWERINGS[type(nest.transfer)](nest.transfer, sides_of(nest))
    body = _around(nest, lowered)
    at = "".join(f"{axis}, " for axis in [*(["entry"] if nest.entries else []), *axes])
    shared = "table entries" if nest.entries else axes[0] if axes else lowered.shared
    summary = f"{lowered.what.format(at=at)}. {lowered.how}"
    summary += f"; parallel over {shared}." if shared else "."
    return replace(function, body=(*lowered.prologue, *body), summary=summary)


def _around(nest: TransferNest, lowered: Lowered) -> tuple[Statement, ...]:
    """The loops of the nest, and the loop over table entries, around the lowered transfer."""
    outer = ["_entry"] if nest.entries else [""]
    outer += [f"_{x.axis}" for x in nest.loops]
    body = lowered.body
    for k, x in reversed(list(enumerate(nest.loops))):
        opaque = lowered.opaque or k < len(nest.loops) - 1
        views = _views(nest, x, outer[k], opaque=opaque)
        first = k == 0 and not nest.entries
        ends = ("begin", "end") if first else (0, x.extent)
        body = (loop(x.axis, *ends, *views, *body),)
    if not nest.entries:
        return body
    blocks = Blocks(ahead="entry") if nest.transfer.stream else None
    return (loop("entry", "begin", "end", *_entry(nest), *body, blocks=blocks),)


def _entry(nest: TransferNest) -> list[Statement]:
    """The views of both sides at one entry of the offset tables."""
    out: list[Statement] = []
    for side, table in zip(("src", "dst"), OFFSET_TABLES, strict=True):
        if side == "dst" or not nest.fills:
            offset = Let(table.removesuffix("s"), Load(table, (index_symbol("entry"),), "i64"))
            out += [offset, View(f"{side}_entry", side, index_symbol(offset.name))]
    return out


def _views(nest: TransferNest, around: Loop, outer: str, *, opaque: bool) -> list[Statement]:
    """The views of both sides in one iteration of a loop; `outer` is the suffix of the views around it."""
    requests = isinstance(nest.transfer, Moves) and nest.transfer.requests
    sides = [("dst", around.dst)] if not requests else []
    sides += [("src", around.src)] if not nest.fills else []
    return [
        View(f"{side}_{around.axis}", f"{side}{outer}", times(around.axis, stride), opaque)
        for side, stride in sides
    ]
