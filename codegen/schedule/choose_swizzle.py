"""Recognize memory swizzles: copies whose boxes together write the same contiguous chunks repeatedly."""

from __future__ import annotations

import sys
from dataclasses import replace
from math import gcd, prod

import numpy as np

from codegen.ir.instructions import instruction
from codegen.ir.lines import LINE_BYTES
from codegen.ir.strided_box import Digit
from codegen.maps.boxed_copy import BoxedCopy
from codegen.schedule.choose_inner import MOST_CHUNKS
from codegen.schedule.choose_segments import RunBox, run_boxes_of
from codegen.schedule.offset_tables import Table
from codegen.schedule.schedule import MOST_LOOPS
from codegen.support.dataclasses import dataclass

MOST_BOXES = 64
"""Copies with more boxes than this are skipped."""


@dataclass(frozen=True, slots=True)
class ChunkTable:
    """Chunks of `width` bytes that are contiguous in the destination, for each index of the `outer` digits.

    src, dst  source and destination offsets of the first chunk, in bytes
    offsets   source offset of each chunk relative to `src`, in bytes
    outer     digits, most major first
    """

    src: int
    dst: int
    width: int
    offsets: tuple[int, ...]
    outer: tuple[Digit, ...]

    @property
    def bytes_each(self) -> int:
        """Bytes that the chunks fill for one index of the outer digits."""
        return self.width * len(self.offsets)

    @property
    def is_near(self) -> bool:
        """Whether those chunks are read from a range of as many bytes as they fill."""
        return max(self.offsets) - min(self.offsets) + self.width == self.bytes_each


def chunk_table_of(copy: BoxedCopy) -> ChunkTable | None:
    """The chunks of several boxes that differ only in the chunks that they write; None for other copies."""
    boxes = run_boxes_of(copy, MOST_BOXES, padded=False)
    if len(boxes) < 2:
        return None
    together = gcd(*(w.run for w in boxes))
    widths = sorted((bits // 8 for bits in instruction("joined").shapes), reverse=True)
    width = next((w for w in widths if together % w == 0), 0)
    if not width or together > LINE_BYTES or not _mostly(boxes, together):
        return None
    first = boxes[0]
    for stop in (*(dst for _, _, dst in first.digits), sys.maxsize):
        outer = tuple(d for d in first.digits if d[2] >= stop)
        found = _chunk_table(boxes, width, stop, outer)
        if found and len(outer) <= MOST_LOOPS:
            return replace(found, dst=found.dst + copy.dst.bounds[0])
    return None


def _mostly(boxes: list[RunBox], run: int) -> bool:
    """Whether at least half of the bytes are in runs of this length: longer runs copy faster as runs."""
    moved = [(w.run, w.run * prod(d[0] for d in w.digits)) for w in boxes]
    return 2 * sum(size for own, size in moved if own == run) >= sum(size for _, size in moved)


def _chunk_table(boxes: list[RunBox], width: int, stop: int, outer: tuple[Digit, ...]) -> ChunkTable | None:
    """The boxes as chunks repeated along `outer`; digits with smaller strides than `stop` list the chunks."""
    if any(tuple(d for d in w.digits if d[2] >= stop) != outer for w in boxes):
        return None
    inner = [tuple(d for d in w.digits if d[2] < stop) for w in boxes]
    count = sum(w.run * prod(d[0] for d in digits) for w, digits in zip(boxes, inner, strict=True)) // width
    if count > MOST_CHUNKS:
        return None
    pairs = [_pairs(w, digits, width) for w, digits in zip(boxes, inner, strict=True)]
    src, dst = (np.concatenate([p[k] for p in pairs]) for k in (0, 1))
    order = np.argsort(dst)
    src, dst = src[order], dst[order]
    if (np.diff(dst) != width).any() or any(d[2] % (count * width) for d in outer):
        return None
    return ChunkTable(int(src[0]), int(dst[0]), width, tuple((src - src[0]).tolist()), tuple(reversed(outer)))


def _pairs(box: RunBox, inner: tuple[Digit, ...], width: int) -> tuple[Table, Table]:
    """(source, destination) offsets of all chunks of a box, without the outer digits."""
    k = np.arange(0, box.run, width)
    src, dst = box.src + k, box.offset + k
    for extent, src_step, dst_step in inner:
        n = np.arange(extent)[:, None]
        src, dst = (n * src_step + src).ravel(), (n * dst_step + dst).ravel()
    return src, dst
