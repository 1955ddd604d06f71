"""Choose a schedule for a normalized scalar nest: the only module with heuristics for it."""

from __future__ import annotations

from math import prod
from typing import TypeAlias

from codegen.ir.copies.nodes import Convert, Fill, For, LoopNest, PackedSide, Side, refs
from codegen.ir.copies.rewriting import int_size, scalar
from codegen.ir.instructions import is_instruction, takes
from codegen.ir.lines import LINE_BYTES
from codegen.schedule.choose_interleave import around, chunk_of, grouped_axes, joined_axes
from codegen.schedule.choose_order import best_order, by_source, window_cut
from codegen.schedule.choose_transpose import VectorSize, transpose_candidates, transpose_schedule
from codegen.schedule.schedule import (
    DEFAULT_THRESHOLDS,
    OUTER_RANKS,
    STRIP,
    Mode,
    Schedule,
    Thresholds,
)
from codegen.schedule.transpose_box import earns_special
from codegen.support.errors import KernelError

Transfer: TypeAlias = tuple[Mode, tuple[str, ...], PackedSide]
"""The mode, inner loops and interleave side of a schedule."""

SHORT_CHUNKS = 8
"""A loop longer than this does not need a table."""

MOST_PIECES = 1 << 10
"""Maximum number of chunks in one table: 8 KiB."""

MOST_GROUPS = 1 << 16
"""Short reversed runs per call, so that threads can share them."""


def choose(
    nest: LoopNest,
    *,
    threads: int = 1,
    footprint: int = 0,
    thresholds: Thresholds = DEFAULT_THRESHOLDS,
    virtual_vector_size: VectorSize | None = None,
) -> Schedule:
    """The schedule for one box.

    If both sides are contiguous along the same loop, the copy uses runs, which are reversed if the source
    goes backwards there. If they are contiguous along different loops, it uses a 2-D transfer. Short chunks
    that together fill lines are copied by a table. Everything else is copied element by element along the
    destination's most minor loop.

    `footprint` is the number of bytes that the complete copy reads and writes; `virtual_vector_size` counts
    elements of the nest.
    """
    past_cache = footprint >= thresholds.stream_bytes
    transfer = _transfer(nest, past_cache=past_cache)
    mode, inner, interleave = transfer
    if mode == "transpose" or (
        past_cache and interleave == "src" and len(inner) == 2 and _begins_inside_lines(nest, inner[0])
    ):
        found = transpose_schedule(nest, stream=past_cache, threads=threads, size=virtual_vector_size)
        if found is not None and not (interleave and found.transpose and found.transpose.block == "part"):
            return found
    if mode == "transpose":
        transfer = mode, inner, interleave = _short_transfer(nest, inner)
    stream = past_cache and _streams(nest, mode, inner, interleave)
    outer = [loop for loop in nest.loops if loop.axis not in inner]
    if stream:
        outer = best_order(nest, outer, inner, reads_first=interleave == "dst" and _is_chunk(nest, inner))
    return _scheduled(nest, transfer, outer, threads, virtual_vector_size, stream=stream)


def candidates(
    nest: LoopNest,
    *,
    threads: int = 1,
    footprint: int = 0,
    thresholds: Thresholds = DEFAULT_THRESHOLDS,
    virtual_vector_size: VectorSize | None = None,
) -> tuple[Schedule, ...]:
    """Distinct schedules that are worth measuring; the first one is that of `choose`.

    Fills and copies with offset tables have no other.
    """
    first = choose(
        nest,
        threads=threads,
        footprint=footprint,
        thresholds=thresholds,
        virtual_vector_size=virtual_vector_size,
    )
    src, _ = refs(nest.innermost)
    if src is None or nest.table_loop:
        return (first,)
    if first.transpose:
        return transpose_candidates(nest, first, threads=threads, size=virtual_vector_size)
    transfer = _transfer(nest, past_cache=footprint >= thresholds.stream_bytes)
    if transfer[0] == "transpose":
        transfer = _short_transfer(nest, transfer[1])
    outer = [loop for loop in nest.loops if loop.axis not in transfer[1]]
    streams = (False, True) if _streams(nest, *transfer) else (False,)
    others = [
        _scheduled(nest, transfer, order, threads, virtual_vector_size, stream=stream)
        for order in (outer, by_source(src, outer))
        for stream in streams
    ]
    return tuple(dict.fromkeys([first, *others]))


def read_windows(nest: LoopNest, *, footprint: int, thresholds: Thresholds) -> tuple[str, int] | None:
    """The loop to split, and the block size, so that the source is read one window at a time.

    None if it does not pay: it does only for a streamed interleave whose chunks are far apart.
    """
    if footprint < thresholds.stream_bytes or any(b.unit_bits == 1 for b in nest.buffers):
        return None
    mode, inner, interleave = _transfer(nest, past_cache=True)
    return window_cut(nest, inner) if mode == "interleave" and interleave == "dst" else None


def _is_chunk(nest: LoopNest, inner: tuple[str, ...]) -> bool:
    """Whether the source rows that an interleave packs together begin at most a line apart."""
    src, _ = refs(nest.innermost)
    return src is not None and len(inner) == 2 and 0 < int_size(src.stride(inner[1])) <= LINE_BYTES


def _begins_inside_lines(nest: LoopNest, columns: str) -> bool:
    """Whether the destination's rows, one for each column, may begin inside a line."""
    _, dst = refs(nest.innermost)
    return int_size(dst.stride(columns)) % LINE_BYTES != 0


def _short_transfer(nest: LoopNest, inner: tuple[str, ...]) -> Transfer:
    """The transfer of a transpose whose digits are too short to fill a register."""
    if isinstance(scalar(nest).value, Convert):
        return "elements", _minor_axis(nest), ""
    return "interleave", inner, ""


def _scheduled(
    nest: LoopNest,
    transfer: Transfer,
    outer: list[For],
    threads: int,
    size: VectorSize | None,
    *,
    stream: bool,
) -> Schedule:
    mode, inner, interleave = transfer
    strip = _strip(nest, transfer, size)
    outer, groups, together = list(outer), None, None
    if stream and interleave == "src":
        groups, together = grouped_axes(nest, inner, outer, threads)
    if groups:
        outer, strip = around(outer, groups, together), together
    elif strip:
        cut = next(x for x in nest.loops if x.axis == inner[-1])
        at = _strip_position(nest, mode, outer, cut)
        outer.insert(at, For(STRIP, int_size(cut.extent) // strip, cut.body))
    if threads > 1 and outer and int_size(outer[0].extent) < 2 * threads:
        widest = max(outer, key=lambda loop: int_size(loop.extent))
        if int_size(widest.extent) > int_size(outer[0].extent):
            outer.remove(widest)
            outer.insert(0, widest)
    axes = tuple(loop.axis for loop in outer)
    return Schedule(
        mode, axes, inner, interleave, padded_rank(len(outer)), stream, strip=strip, groups=groups
    )


def _strip(nest: LoopNest, transfer: Transfer, size: VectorSize | None) -> int | None:
    """Elements per strip, a multiple of a byte if elements are packed; None if one transfer takes all."""
    mode, inner, interleave = transfer
    if mode == "interleave":
        return chunk_of(nest, inner) if interleave == "dst" and len(inner) > 2 else None
    if mode == "reverse" and len(inner) == 2:
        runs = int_size(next(loop.extent for loop in nest.loops if loop.axis == inner[1]))
        return MOST_GROUPS if runs > 4 * MOST_GROUPS else None
    if size is None or mode == "fill" or len(inner) != 1:
        return None
    strip = prod(size) if isinstance(size, tuple) else size
    if mode in ("pack bits", "unpack bits"):
        per_byte = 8 // min(b.element.bits for b in nest.buffers)
        strip = -(-strip // per_byte) * per_byte
    extent = int_size(next(loop.extent for loop in nest.loops if loop.axis == inner[0]))
    return strip if strip < extent else None


def _strip_position(nest: LoopNest, mode: Mode, outer: list[For], cut: For) -> int:
    """The position of the strip loop among the outer loops.

    It is innermost for a 1-D transfer. For an interleave, it is outside the loops with smaller destination
    strides, which write next to its lines.
    """
    if mode != "interleave":
        return len(outer)
    _, dst = refs(nest.innermost)
    step = abs(int_size(dst.stride(cut.axis)))
    return next(
        (k for k, loop in enumerate(outer) if abs(int_size(dst.stride(loop.axis))) < step), len(outer)
    )


def _streams(nest: LoopNest, mode: Mode, inner: tuple[str, ...], interleave: PackedSide) -> bool:
    """Whether the transfer writes full lines; packing strided elements does not."""
    if mode in ("pack bits", "unpack bits"):
        return len(inner) == 2 or _byte_side_stride(nest, inner[0]) == 8
    return mode in ("run", "pieces") or (mode == "reverse" and len(inner) == 1) or interleave != ""


def _byte_side_stride(nest: LoopNest, axis: str) -> int:
    """The stride, in bits, of the side with one byte per element."""
    src, dst = refs(nest.innermost)
    ref = src if nest.buffer("dst").element.bits < 8 else dst
    return int_size(ref.stride(axis)) if ref else 0


def padded_rank(loops: int) -> int:
    """The number of outer loops of the kernel that runs nests with `loops` outer loops."""
    rank = next((r for r in OUTER_RANKS if r >= loops), None)
    if rank is None:
        raise KernelError(f"{loops} outer loops are more than any kernel has; fold some into a table")
    return rank


def _transfer(nest: LoopNest, *, past_cache: bool) -> Transfer:
    store = scalar(nest)
    src, dst = refs(store)
    packed = [b for b in nest.buffers if b.unit_bits == 1]
    if packed:
        return _packed_transfer(nest)
    if isinstance(store.value, Convert):
        return _converting(nest)
    width = nest.buffer("dst").element.bits // 8
    row = _unit(nest, "dst", width)
    if isinstance(store.value, Fill):
        return ("fill", (row.axis,), "") if row else ("elements", _minor_axis(nest), "")
    column = _unit(nest, "src", width)
    is_reversed = row is not None and src is not None and src.stride(row.axis) == -width
    if row is None or column is None or src is None or is_reversed:
        chunks = _chunk_axes(nest, row) if row else ()
        if row and is_reversed and not chunks and takes("reversed_elements", 8 * width):
            return "reverse", _reversed_runs(nest, row, width), ""
        return ("pieces", chunks, "") if chunks else ("elements", _minor_axis(nest), "")
    if row is column:
        return "run", (row.axis,), ""
    rows, columns = int_size(row.extent), int_size(column.extent)
    interleave: PackedSide = ""
    if takes(f"deinterleaved_{rows}", 8 * width) and dst.stride(column.axis) == rows * width:
        interleave = "dst"
    elif takes(f"deinterleaved_{columns}", 8 * width) and src.stride(row.axis) == columns * width:
        interleave = "src"
    long, short = (column, row) if interleave == "dst" else (row, column)
    joined = joined_axes(nest, long, short, interleave, past_cache=past_cache) if interleave else ()
    return "interleave" if interleave else "transpose", (column.axis, row.axis, *joined), interleave


def _reversed_runs(nest: LoopNest, row: For, width: int) -> tuple[str, ...]:
    """The reversed loop and, if its runs are short, the loop along which they are contiguous."""
    length = int_size(row.extent)
    size = length * width
    src, dst = refs(scalar(nest))
    if src is None or not takes(f"reversed_groups_{length}", 8 * width):
        return (row.axis,)
    groups = (x.axis for x in nest.loops if src.stride(x.axis) == dst.stride(x.axis) == size)
    return (row.axis, *groups)[:2]


def _chunk_axes(nest: LoopNest, row: For) -> tuple[str, ...]:
    """Loops that are contiguous in the destination, the first one short; none if they do not fill a line."""
    _, dst = refs(scalar(nest))
    width = nest.buffer("dst").element.bits // 8
    size_bytes = prod(int_size(loop.extent) for loop in nest.loops) * width
    if not earns_special(size_bytes) or not takes("joined", 8 * width):
        return ()
    if nest.table_loop or int_size(row.extent) > SHORT_CHUNKS:
        return ()
    taken, count = [row], int_size(row.extent)
    while following := next((x for x in nest.loops if dst.stride(x.axis) == count * width), None):
        if count * int_size(following.extent) > MOST_PIECES:
            break
        taken.append(following)
        count *= int_size(following.extent)
    return tuple(x.axis for x in taken) if count * width >= LINE_BYTES else ()


def _converting(nest: LoopNest) -> Transfer:
    """A transpose if both sides are contiguous along different loops; else a loop that LLVM vectorizes."""
    row = _unit(nest, "dst", nest.buffer("dst").element.bits // 8)
    column = _unit(nest, "src", nest.buffer("src").element.bits // 8)
    if row is None or column is None or row is column:
        return "elements", _minor_axis(nest), ""
    return "transpose", (column.axis, row.axis), ""


def _packed_transfer(nest: LoopNest) -> Transfer:
    """Bytes of packed elements if all other strides are multiples of a byte; else single elements."""
    store = scalar(nest)
    src, _ = refs(store)
    dst_bits = nest.buffer("dst").element.bits
    row = _unit(nest, "dst", dst_bits)
    no_table = nest.table_loop is None
    if isinstance(store.value, Fill):
        if no_table and row and _whole_bytes(nest, "dst", row, dst_bits):
            return "fill", (row.axis,), ""
        return "elements", _minor_axis(nest), ""
    if isinstance(store.value, Convert) or src is None:
        return "elements", _minor_axis(nest), ""
    src_bits = nest.buffer("src").element.bits
    if no_table and dst_bits < 8 <= src_bits and row and _whole_bytes(nest, "dst", row, dst_bits):
        return "pack bits", (*_columns(nest, row, dst_bits), row.axis), ""
    column = _unit(nest, "src", src_bits)
    if no_table and src_bits < 8 <= dst_bits and column and _whole_bytes(nest, "src", column, src_bits):
        return "unpack bits", (*_columns(nest, column, src_bits), column.axis), ""
    return "elements", _minor_axis(nest), ""


def _columns(nest: LoopNest, packed: For, bits: int) -> tuple[str, ...]:
    """The loop over columns of `packed` that are contiguous on both sides; none if elements are, too."""
    src, dst = refs(nest.innermost)
    rows = int_size(packed.extent)
    is_column = is_instruction(f"unpacked_{bits}_into_{rows}_rows")
    if src is None or _byte_side_stride(nest, packed.axis) == 8 or not is_column:
        return ()
    column = rows * bits
    steps = (8, column) if nest.buffer("dst").element.bits == bits else (column, 8)
    return tuple(x.axis for x in nest.loops if (src.stride(x.axis), dst.stride(x.axis)) == steps)[:1]


def _whole_bytes(nest: LoopNest, side: Side, unit: For, bits: int) -> bool:
    src, dst = refs(nest.innermost)
    ref = dst if side == "dst" else src
    if ref is None or int_size(ref.const) % 8 or int_size(unit.extent) * bits % 8:
        return False
    return all(int_size(s) % 8 == 0 for a, s in ref.terms if a != unit.axis)


def _unit(nest: LoopNest, side: Side, width: int) -> For | None:
    """The loop along which a side is contiguous, or None."""
    src, dst = refs(nest.innermost)
    ref = dst if side == "dst" else src
    if ref is None:
        return None
    return next((loop for loop in nest.loops if ref.stride(loop.axis) == width), None)


def _minor_axis(nest: LoopNest) -> tuple[str, ...]:
    return (nest.loops[-1].axis,) if nest.loops else ()
