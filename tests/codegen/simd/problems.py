"""Copies between guard pages, given by their digits, and compared with NumPy's assignment."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache
from itertools import product

import numpy as np

from codegen import CopyOptions, CopyProgram, CopyRequest, Element, strided_map
from codegen.pipeline.copies import compile_copy
from tests.tools.guard import Guarded, span_bytes, strided_view
from tilejit.arrays.strided import span

ARENA_BYTES = 1 << 20

Digit = tuple[int, int, int]
"""An extent, a stride in the source, and one in the destination."""


@dataclass(frozen=True, slots=True)
class Problem:
    """A transposed copy by its digits (extent, source stride, destination stride), most minor first."""

    width: int
    rows: tuple[Digit, ...]
    columns: tuple[Digit, ...]
    others: tuple[Digit, ...] = ()

    @property
    def digits(self) -> tuple[Digit, ...]:
        """All digits as the dimensions of an array, most major first."""
        return tuple(reversed((*self.rows, *self.columns, *self.others)))


def problem(
    width: int,
    rows: tuple[int, ...],
    columns: tuple[int, ...],
    others: tuple[int, ...] = (),
    *,
    gaps: tuple[int, int] = (0, 0),
    columns_swapped: bool = False,
    change: str = "",
) -> Problem:
    """Digits for those extents.

    Row digits have opposite orders in the source and the destination, so that they stay separate. Column
    digits do too if `columns_swapped`; otherwise a gap keeps them separate.

    Args:
        gaps: bytes after each source row and result row.
        columns_swapped: whether column digits have opposite orders.
        change: "backwards" reverses the source along the rows; "broadcast rows" and "broadcast others"
            repeat it.
    """
    src, dst = [width], [width]
    for n in rows:
        dst.append(dst[-1] * n)
    for n in columns:
        src.append(src[-1] * n)
    row_steps, src_end = _steps(rows, src[-1] + gaps[0], swapped=True)
    column_steps, dst_end = _steps(columns, dst[-1] + gaps[1], swapped=columns_swapped)
    if change == "backwards":
        row_steps = [-s for s in row_steps]
    elif change == "broadcast rows":
        row_steps[-1] = 0
    other_src, _ = _steps(others, 0 if change == "broadcast others" else src_end, swapped=True)
    other_dst, _ = _steps(others, dst_end, swapped=False)
    return Problem(
        width,
        tuple(zip(rows, row_steps, dst[:-1], strict=True)),
        tuple(zip(columns, src[:-1], column_steps, strict=True)),
        tuple(zip(others, other_src, other_dst, strict=True)),
    )


def _steps(extents: tuple[int, ...], first: int, *, swapped: bool) -> tuple[list[int], int]:
    """Strides of digits, with the first or (swapped) the last the most minor, and where they end."""
    steps, at = [0] * len(extents), first
    for k in reversed(range(len(extents))) if swapped else range(len(extents)):
        steps[k] = at
        at = at * extents[k] + (0 if swapped else 64)
    return steps, at


def copied(digits: tuple[Digit, ...], width: int, threads: int = 1, *, stream: bool = False) -> CopyProgram:
    """The copy of an array with those digits, in cache or past it."""
    dims = tuple(n for n, _, _ in digits)
    sides = [tuple(d[k] for d in digits) for k in (1, 2)]
    maps = [strided_map(dims, s, span(dims, s, width), element_bits=8 * width) for s in sides]
    element = Element(f"u{8 * width}", 8 * width)
    options = CopyOptions(threads, stream_bytes=0 if stream else 1 << 40)
    return compile_copy(CopyRequest(maps[0], maps[1], element, element, options=options))


@cache
def arenas() -> tuple[Guarded, Guarded]:
    """Memory for sources and for destinations."""
    return Guarded(ARENA_BYTES), Guarded(ARENA_BYTES)


PLACES = tuple((src, dst, 0) for src, dst in product((False, True), repeat=2))
"""Source and destination each begin after a guard page, or end at one."""


def check(
    program: CopyProgram,
    digits: tuple[Digit, ...],
    width: int,
    places: tuple[tuple[bool, bool, int], ...] = PLACES,
    *,
    threads: int = 1,
) -> None:
    """Run at every place (source at its end, destination at its end, gap before or after it)."""
    dims, dtype = tuple(n for n, _, _ in digits), np.dtype(f"V{width}")
    src_strides, dst_strides = (tuple(d[k] for d in digits) for k in (1, 2))
    source, target = arenas()
    rng = np.random.default_rng(len(digits) * dims[0])
    content = rng.integers(0, 256, span_bytes(width, dims, src_strides), np.uint8)
    noise = rng.integers(0, 256, span_bytes(width, dims, dst_strides), np.uint8)
    wanted = noise.copy()
    strided_view(wanted, dtype, dims, dst_strides)[...] = strided_view(content, dtype, dims, src_strides)
    for src_at_end, dst_at_end, gap in places:
        data = source.place(len(content), at_end=src_at_end)
        room = target.place(len(noise), at_end=dst_at_end, gap=gap)
        data[:], room[:] = content, noise
        first = [
            strided_view(*a).ctypes.data
            for a in ((data, dtype, dims, src_strides), (room, dtype, dims, dst_strides))
        ]
        program.run(first[0], first[1], threads)
        where = f"source at end {src_at_end}, destination at end {dst_at_end}, gap {gap}"
        wrong = np.flatnonzero(room != wanted)
        assert not len(wrong), f"{len(wrong)} wrong bytes from {wrong[0]} on: {where}"
        assert target.untouched(), f"bytes beside the destination changed: {where}"
        assert source.untouched(), f"bytes beside the source changed: {where}"
        assert (data == content).all(), f"the source changed: {where}"
