"""A schedule: every decision about a nest, and nothing else; `choose.py` makes it, passes obey it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, TypeAlias

Mode: TypeAlias = Literal["run", "fill", "transpose", "elements", "pack bits", "unpack bits"]

OUTER_RANKS = (2, 4, 6)
"""Outer loops are padded with loops of one to one of these, so that few kernels serve all shapes."""

STRIP = "strip"
"""The axis that counts the strips of a 1-D transfer."""


@dataclass(frozen=True, slots=True)
class Thresholds:
    """Sizes from which another way of copying is the faster one; the defaults fit no machine in particular.

    stream_bytes   from this many bytes read and written on, whole lines are stored past the cache
    """

    stream_bytes: int = 16 << 20


DEFAULT_THRESHOLDS = Thresholds()


@dataclass(frozen=True, slots=True)
class Schedule:
    """How one nest is carried out.

    mode         what the innermost loops become
    outer        the loops that stay loops, outermost first; the first one is shared among threads
    inner        the loops that the transfer takes in: () | (run,) | (columns, rows)
    interleave   for a transpose: the side ("dst" or "src") whose short digit is a constant, else ""
    rank         outer loops after padding with loops of one
    stream       whole aligned lines go past the cache
    strip        elements that a 1-D transfer takes at one time, counted by the axis STRIP; None: all
    tile         rows and columns that a 2-D transfer takes at one time; None: the routine's own choice
    """

    mode: Mode
    outer: tuple[str, ...]
    inner: tuple[str, ...]
    interleave: str = ""
    rank: int = 1
    stream: bool = False
    strip: int | None = None
    tile: tuple[int, int] | None = None

    def __str__(self) -> str:
        order = " ".join(self.outer) or "none"
        taken = " ".join(self.inner) or "none"
        packed = f" | interleave {self.interleave}" if self.interleave else ""
        parallel = f" | parallel {self.outer[0]}" if self.outer else ""
        stream = " | streaming stores" if self.stream else ""
        strip = f" | strips of {self.strip}" if self.strip else ""
        tile = f" | tiles {self.tile[0]}x{self.tile[1]}" if self.tile else ""
        shape = f"{self.mode} | outer {order} | inner {taken}{packed} | rank {self.rank}"
        return f"{shape}{parallel}{stream}{strip}{tile}"
