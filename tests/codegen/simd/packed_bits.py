"""The packing and unpacking routines, called through kernels on guarded memory, against the interpreter.

`python -m tests.codegen.simd.packed_bits` checks all of them at the CPU level that TILEJIT_CPU names.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from codegen.ir.buffers import Buffer
from codegen.ir.packed_bits import COLUMN_BYTES
from codegen.ir.strided_box import Axis, Element, StridedBox
from codegen.pipeline.observer import nobody
from codegen.pipeline.steps import kernel_of
from codegen.runtime.kernel import Kernel, copy_operands
from codegen.schedule.transfer_loops import Loop
from codegen.schedule.transfers import PackBits, TransferNest, UnpackBits
from tests.tools.boxes import copy_box
from tests.tools.extent import spread
from tests.tools.guard import CANARY, Guarded
from tests.tools.kernel_store import use_kept_ir

Bytes = NDArray[np.uint8]
WIDTHS = (1, 2, 4)
MOST = 200
LONG = (255, 256, 257, 319, 320, 321, 384, 447, 511, 512, 513, 640)
"""Counts that reach streaming lines in a run, with any head and tail."""

PITCHES = (256, 211)
"""Bytes between rows: full lines, which stream, and an odd number."""
WIDE, WIDE_PITCH = (511, 512, 513, 575, 576, 577, 1023, 1024, 1025, 1100), 1155
"""Columns for rows that begin inside lines and are long enough for a buffer."""


@dataclass(frozen=True)
class Routine:
    """A routine. `column` is the number of bytes in a column, or 0 for runs."""

    way: str
    bits: int
    column: int
    stream: bool

    def __str__(self) -> str:
        kind = f"rows_{self.bits}_{self.column}" if self.column else f"run_{self.bits}"
        return f"{'stream_' * self.stream}{self.way}_{kind}"

    @property
    def group(self) -> int:
        return 8 // self.bits

    @property
    def instruction(self) -> str:
        """The instruction with which it packs or unpacks in registers."""
        rows = self.column * self.group
        columns = "" if not rows else "_from_rows" if self.way == "pack" else f"_into_{rows}_rows"
        return f"{self.way}ed_{self.bits}{columns}"

    def nest(self, count: int, step: int) -> TransferNest:
        """The routine as a nest: `count` bytes of a run, or as many columns."""
        make: Any = PackBits if self.way == "pack" else UnpackBits
        sizes = (self.column, step, count) if self.column else (count, 1, 1)
        inner = make(self.bits, *sizes, self.stream)
        return TransferNest((Loop("i"),), inner)

    def box(self, count: int, step: int) -> StridedBox:
        """The same copy, element by element, in bits."""
        columns, rows = (count, self.column * self.group) if self.column else (1, count * self.group)
        loose, packed = (8, 8 * step), (self.column * 8, self.bits)
        if not self.column:
            loose, packed = (0, 8), (0, self.bits)
        elements, bits = (Element(f"u{self.bits}", bits) for bits in (8, self.bits))
        sides = (loose, packed) if self.way == "pack" else (packed, loose)
        axes = (
            Axis(name, n, *(side[k] for side in sides))
            for k, (name, n) in enumerate((("column", columns), ("row", rows)))
        )
        return StridedBox(
            tuple(axes), 0, 0, *((elements, bits) if self.way == "pack" else (bits, elements)), 1
        )

    @cached_property
    def kernel(self) -> Kernel:
        kernel, _ = kernel_of(self.nest(2, 3), (), nobody)
        assert f"{self.instruction}(" in kernel.source, kernel.source
        assert ("stream_u8_" in kernel.source) == self.stream, kernel.source
        return kernel

    def call(self, src: Bytes, dst: Bytes, count: int, step: int) -> None:
        given = {"count": count, "columns": count, "src_step": step, "dst_step": step}
        values = np.array([given.get(name, 0) for name in self.kernel.arguments], np.int64)
        operands = copy_operands(src.ctypes.data, dst.ctypes.data)
        self.kernel.call(operands, 0, values.ctypes.data, 0, 1)

    def spans(self, count: int, step: int) -> tuple[int, int]:
        """Bytes of the loose and of the packed side."""
        if not self.column:
            return count * self.group, count
        return ((self.column * self.group - 1) * step + count if count else 0), count * self.column

    def sizes(self, count: int, step: int) -> tuple[int, int]:
        """Bytes of the source and of the destination."""
        loose, packed = self.spans(count, step)
        return (loose, packed) if self.way == "pack" else (packed, loose)

    def wanted(self, whole: Bytes, count: int, step: int) -> Bytes:
        """The expected bytes for `count`, cut out of those for the largest count."""
        if self.way == "pack" or not self.column:
            return whole[: self.sizes(count, step)[1]]
        out = np.full(self.sizes(count, step)[1], CANARY, np.uint8)
        for row in range(self.column * self.group if count else 0):
            out[row * step :][:count] = whole[row * step :][:count]
        return out

    def source(self, count: int, step: int) -> Bytes:
        """Bytes of any value, a third of them zero."""
        rng = np.random.default_rng(self.bits)
        size = self.sizes(count, step)[0]
        return rng.integers(0, 256, size, np.uint8) * (rng.integers(0, 3, size) > 0).astype(np.uint8)


def routines(*, plain: bool = True) -> Iterator[Routine]:
    """All routines. Streaming ones contain plain ones, for the ends and for unaligned data."""
    for stream in (True, False) if plain else (True,):
        for way in ("pack", "unpack"):
            for bits in WIDTHS:
                for column in (0, *COLUMN_BYTES):
                    yield Routine(way, bits, column, stream)


def check(routine: Routine) -> None:
    """Every count at every alignment of either side, and flush against both guard pages."""
    every = tuple(range(MOST + 1))
    ways = [(step, every) for step in PITCHES] + [(WIDE_PITCH, WIDE)]
    for step, counts in ways if routine.column else [(1, every + LONG)]:
        most = max(counts)
        src, size = routine.source(most, step), routine.sizes(most, step)[1]
        whole = np.full(size, CANARY, np.uint8)
        copy_box(routine.box(most, step), Buffer(src, 1), Buffer(whole, 1))
        rooms = Guarded(len(src) + 64), Guarded(size + 64)
        for count in counts:
            wanted = routine.wanted(whole, count, step)
            source = src[: routine.sizes(count, step)[0]]
            for at_end, gaps in _places(count, 12 if routine.column else 40):
                _once(routine, rooms, (source, wanted), (count, step), at_end, gaps)


def _places(count: int, many: int) -> Iterator[tuple[bool, tuple[int, int]]]:
    """The end, and the gaps to it in bytes. Over all counts, both sides have all their alignments."""
    yield False, (0, 0)
    yield True, (0, 0)
    for k in range(many):
        yield bool(k & 1), ((k * 11 + count * 5) % 64, (k * 64 // many + count) % 64)


def _once(
    routine: Routine,
    rooms: tuple[Guarded, Guarded],
    data: tuple[Bytes, Bytes],
    given: tuple[int, int],
    at_end: bool,
    gaps: tuple[int, int],
) -> None:
    src, dst = (
        room.place(len(side), at_end=at_end, gap=gap)
        for room, side, gap in zip(rooms, data, gaps, strict=True)
    )
    src[:] = data[0]
    routine.call(src, dst, *given)
    where = f"{routine} of {given[0]}, pitch {given[1]}, gaps {gaps} at the {'end' if at_end else 'start'}"
    assert np.array_equal(dst, data[1]), where
    assert rooms[0].untouched(), where
    assert rooms[1].untouched(), where


if __name__ == "__main__":
    use_kept_ir()
    for each in spread(list(routines(plain=False)), 5):
        check(each)
    print("checked")
