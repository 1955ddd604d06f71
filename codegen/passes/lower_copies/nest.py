"""Lower a parametrized copy nest to loops over super-vectors, which the emitter prints as they are."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from codegen.ir.building import least, loop, minus, plus, times
from codegen.ir.copies.nodes import (
    COLUMN_TABLE,
    ROW_TABLE,
    CopyChunks,
    CopyRun,
    Elementwise,
    FillRun,
    For,
    ForEach,
    Gather,
    Interleave,
    LoopNest,
    PackBits,
    Reverse,
    Stmt,
    Transfer,
    TransposeTiles,
    UnpackBits,
    refs,
)
from codegen.ir.copies.tiles import GROUP_TABLES, LINE_TABLE
from codegen.ir.index import index_symbol
from codegen.ir.lines import LINE_BYTES
from codegen.ir.nodes import (
    ArrayArg,
    BufferArg,
    Call,
    Function,
    IndexValue,
    Let,
    Load,
    ScalarArg,
    Statement,
    View,
)
from codegen.passes.lower_copies.chunks import lower_chunks
from codegen.passes.lower_copies.elements import lower_elements
from codegen.passes.lower_copies.gather import lower_gather
from codegen.passes.lower_copies.interleaves import lower_interleave, reads_in_order
from codegen.passes.lower_copies.lowered import Lowered, Sides, text
from codegen.passes.lower_copies.packed_bits import lower_packing, lower_unpacking
from codegen.passes.lower_copies.reversals import lower_reverse
from codegen.passes.lower_copies.runs import lower_fill, lower_run
from codegen.passes.lower_copies.transposes import lower_transpose

LOWERINGS: dict[type[Transfer], Callable[[Any, Sides], Lowered]] = {
    CopyChunks: lower_chunks,
    CopyRun: lower_run,
    Elementwise: lower_elements,
    FillRun: lower_fill,
    Gather: lower_gather,
    Interleave: lower_interleave,
    PackBits: lower_packing,
    Reverse: lower_reverse,
    TransposeTiles: lower_transpose,
    UnpackBits: lower_unpacking,
}
"""The lowering of each kind of transfer; the others are still printed as calls of routines."""

OFFSETS = ("src_offsets", "dst_offsets")
TABLES = frozenset((*OFFSETS, ROW_TABLE, COLUMN_TABLE, LINE_TABLE, *GROUP_TABLES, "segments", "moves"))
"""The arguments that are addresses of tables of 64-bit integers."""

BUFFERS = frozenset(("scratch", "pattern"))
"""The arguments that are addresses of other storage: the thread's own buffer, and a line of padding."""


def has_lowering(transfer: Transfer) -> bool:
    """Whether a transfer is lowered to loops."""
    return type(transfer) in LOWERINGS


def lower_copy_nest(nest: LoopNest, name: str, arguments: tuple[str, ...]) -> Function:
    """Replace the transfer of a nest by loops over super-vectors, inside the nest's own loops.

    before:  for a in a_extent:  copy_run dst[a_dst*a] <- src[a_src*a], count bytes
    after:   for a in 0..a_extent:
               src_a = src + a * a_src; dst_a = dst + a * a_dst
               for x in 0..count - 64 step 64:  dst_a[x] = src_a[x] [64]
               …

    arguments  the names of the kernel's arguments, in the order of its table
    """
    axes = [loop.axis for loop in nest.loops]
    around = f"_{axes[-1]}" if axes else "_entry" if nest.table_loop else ""
    in_bits = any(b.unit_bits == 1 for b in nest.buffers)
    sides = Sides(f"dst{around}", f"src{around}", nest.table_loop is not None, in_bits)
    lowered = LOWERINGS[type(nest.innermost)](nest.innermost, sides)
    body = _statement(nest.body, nest, ("src", "dst"), lowered, parallel=True)
    given = tuple(ArrayArg(a, "i64", 1, "C") if a in TABLES else ScalarArg(a, "i64") for a in arguments)
    units = {b.name: b.unit_bits for b in nest.buffers}
    sides_and_others = ("src", "dst", *(a for a in arguments if a in BUFFERS))
    buffers = tuple(BufferArg(name, units.get(name, 8)) for name in sides_and_others)
    axes += lowered.axes
    at = ", ".join([*(["entry"] if nest.table_loop else []), *axes])
    shared = "table entries" if nest.table_loop else axes[0] if axes else ""
    summary = f"{lowered.what.format(at=at)}. {lowered.how}"
    summary += f"; parallel over {shared}." if shared else "."
    return Function(name, given, (*lowered.prologue, *body), buffers=buffers, summary=summary)


def _statement(
    stmt: Stmt, nest: LoopNest, at: tuple[str, str], lowered: Lowered, *, parallel: bool
) -> tuple[Statement, ...]:
    """A loop of the nest around the lowered transfer; `at` names the views of both sides."""
    match stmt:
        case For(axis, extent, body):
            opaque = lowered.opaque or axis != nest.loops[-1].axis
            views = _views(nest, axis, at, opaque=opaque)
            inside = _statement(body, nest, (f"src_{axis}", f"dst_{axis}"), lowered, parallel=False)
            ends = ("begin", "end") if parallel else (0, text(extent))
            return (loop(axis, *ends, *views, *inside, parallel=parallel),)
        case ForEach(axis, _, body):
            views = _entry(nest, axis, at)
            inside = _statement(body, nest, (f"src_{axis}", f"dst_{axis}"), lowered, parallel=False)
            return (loop(axis, "begin", "end", *views, *inside, parallel=True),)
        case _:
            return lowered.body


def _entry(nest: LoopNest, axis: str, at: tuple[str, str]) -> list[Statement]:
    """The views of both sides at one entry of the offset tables, and the prefetch of a later entry.

    Hardware prefetchers cannot predict entries. Transfers that read their entry in order prefetch while they
    run, by the distance between the entries: prefetching all lines of an entry at once would stall.
    """
    inner = nest.innermost
    out: list[Statement] = []
    for name, side, table, ref in zip(("src", "dst"), at, OFFSETS, refs(inner), strict=True):
        if ref is not None:
            offset = Let(table.removesuffix("s"), Load(table, (index_symbol(axis),), "i64"))
            out += [offset, View(f"{name}_{axis}", side, index_symbol(offset.name))]
    if not getattr(inner, "stream", False):
        return out
    later = least(plus(axis, "prefetch_entries"), plus("end", -1))
    out.append(Let("later_offset", Load("src_offsets", (later,), "i64")))
    if isinstance(inner, CopyRun) or (isinstance(inner, Interleave) and reads_in_order(inner)):
        return [*out, Let("prefetch_distance", IndexValue(minus("later_offset", "src_offset")))]
    lines = Call("prefetch_line", (plus(at[0], "later_offset", "prefetch_low", "x"),))
    return [*out, loop("x", 0, "prefetch_bytes", lines, step=LINE_BYTES)]


def _views(nest: LoopNest, axis: str, at: tuple[str, str], *, opaque: bool) -> list[Statement]:
    """The views of both sides in one iteration of a loop."""
    src, dst = refs(nest.innermost)
    sides = (("dst", at[1], dst), *(() if src is None else (("src", at[0], src),)))
    return [
        View(f"{name}_{axis}", old, times(index_symbol(axis), text(ref.stride(axis))), opaque)
        for name, old, ref in sides
    ]
