"""Copies whose boxes together write the same pieces side by side again and again: swizzles of memory."""

from __future__ import annotations

import sys
from dataclasses import dataclass, replace
from math import gcd, prod

import numpy as np

from codegen.frontend.lower_copy import LoweredCopy
from codegen.ir.copies.tiles import LINE_BYTES, Digit, Table
from codegen.schedule.choose import CHUNK_BYTES, MOST_PIECES
from codegen.schedule.choose_segments import Whole, wholes_of
from codegen.schedule.schedule import OUTER_RANKS

MOST_BOXES = 64
"""More boxes than this are not looked at."""


@dataclass(frozen=True, slots=True)
class Places:
    """`count` pieces of `width` bytes side by side in the destination, at each place of the `outer` digits.

    src, dst  where the first of them reads and begins; `offsets` are places from there on, in bytes
    outer     digits, the most major first
    """

    src: int
    dst: int
    width: int
    offsets: tuple[int, ...]
    outer: tuple[Digit, ...]

    @property
    def bytes_each(self) -> int:
        """Bytes that the pieces of one place fill."""
        return self.width * len(self.offsets)

    @property
    def is_near(self) -> bool:
        """Whether those pieces are read from as many bytes as they fill."""
        return max(self.offsets) - min(self.offsets) + self.width == self.bytes_each


def places_of(copy: LoweredCopy) -> Places | None:
    """The places of several boxes that differ only in the pieces that they write; None where they do not."""
    wholes = wholes_of(copy, MOST_BOXES, padded=False)
    if len(wholes) < 2:
        return None
    together = gcd(*(w.run for w in wholes))
    width = next((w for w in sorted(CHUNK_BYTES, reverse=True) if together % w == 0), 0)
    if not width or together > LINE_BYTES or not _mostly(wholes, together):
        return None
    first = wholes[0]
    for stop in (*(dst for _, _, dst in first.digits), sys.maxsize):
        outer = tuple(d for d in first.digits if d[2] >= stop)
        found = _places(wholes, width, stop, outer)
        if found and len(outer) <= OUTER_RANKS[-1]:
            return replace(found, dst=found.dst + copy.dst.bounds[0])
    return None


def _mostly(wholes: list[Whole], run: int) -> bool:
    """Whether half of the bytes or more are in runs of that length: longer ones are faster copied whole."""
    moved = [(w.run, w.run * prod(d[0] for d in w.digits)) for w in wholes]
    return 2 * sum(size for own, size in moved if own == run) >= sum(size for _, size in moved)


def _places(wholes: list[Whole], width: int, stop: int, outer: tuple[Digit, ...]) -> Places | None:
    """The boxes as pieces of runs that `outer` walks, each box with what it has below `stop`."""
    if any(tuple(d for d in w.digits if d[2] >= stop) != outer for w in wholes):
        return None
    inner = [tuple(d for d in w.digits if d[2] < stop) for w in wholes]
    count = sum(w.run * prod(d[0] for d in digits) for w, digits in zip(wholes, inner, strict=True)) // width
    if count > MOST_PIECES:
        return None
    pairs = [_pairs(w, digits, width) for w, digits in zip(wholes, inner, strict=True)]
    src, dst = (np.concatenate([p[k] for p in pairs]) for k in (0, 1))
    order = np.argsort(dst)
    src, dst = src[order], dst[order]
    if (np.diff(dst) != width).any() or any(d[2] % (count * width) for d in outer):
        return None
    return Places(int(src[0]), int(dst[0]), width, tuple((src - src[0]).tolist()), tuple(reversed(outer)))


def _pairs(whole: Whole, inner: tuple[Digit, ...], width: int) -> tuple[Table, Table]:
    """(source, destination) of every piece of a box, but for the outer digits."""
    k = np.arange(0, whole.run, width)
    src, dst = whole.src + k, whole.place + k
    for extent, src_step, dst_step in inner:
        n = np.arange(extent)[:, None]
        src, dst = (n * src_step + src).ravel(), (n * dst_step + dst).ravel()
    return src, dst
