"""A schedule: every decision about a nest, and nothing else; `choose.py` makes it, passes obey it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, TypeAlias

from codegen.ir.copies.nodes import PackedSide
from codegen.ir.copies.tiles import Block, Stage

Mode: TypeAlias = Literal[
    "run",
    "pieces",
    "reverse",
    "fill",
    "interleave",
    "transpose",
    "gather",
    "elements",
    "pack bits",
    "unpack bits",
]

OUTER_RANKS = (2, 4, 6)
"""Outer loops are padded with loops of one to one of these, so that few kernels serve all shapes."""

COLUMN_BYTES = (1, 2, 4)
"""Bytes of a column of packed elements that have a kernel with them as a constant; a TPU's word has four."""

REVERSED = (1, 2, 4, 8, 16)
"""Bytes of elements that are reversed in registers."""

REVERSED_GROUPS = (2, 3, 4)
"""Elements of short runs, pixels mostly, that are reversed together if they fill no more than a lane."""


@dataclass(frozen=True, slots=True)
class TransposeSchedule:
    """How a transposed copy is carried out; axes are the most minor first.

    rows, columns  axes joined along the destination's, and along the source's, contiguous direction
    tile           rows and columns of one tile
    stage, stream, block  as in `ir.Transpose`
    layers         an axis along which that many tiles go through one buffer together, or ""
    lines          of each result row in the buffer at one time, where long ones are staged
    """

    rows: tuple[str, ...]
    columns: tuple[str, ...]
    tile: tuple[int, int]
    stage: Stage
    stream: bool
    block: Block
    layers: str = ""
    together: int = 1
    lines: int = 1

    def __str__(self) -> str:
        rows, columns = " ".join(self.rows), " ".join(self.columns)
        text = f"rows {rows} | columns {columns} | tiles {self.tile[0]}x{self.tile[1]} by {self.block}s"
        text += f" | staged {self.stage}" if self.stage else ""
        text += f", {self.lines} lines each" if self.lines > 1 else ""
        text += f", {self.together} layers of {self.layers}" if self.layers else ""
        return text + (" | streaming stores" if self.stream else "")


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
    inner        the loops that the transfer takes in: () | (run,) | (columns, rows); the packed one is last;
                 (elements, runs) of short reversed ones; behind an interleave's,
                 the digits joined to its long one; all of them where they are pieces
    groups       loops that an interleave takes in besides, whose result rows go out by way of one buffer;
                 None: without a buffer
    interleave   the side ("dst" or "src") whose short digit is a constant, for that mode
    transpose    how a transposed copy is cut and written, for that mode
    rank         outer loops after padding with loops of one
    stream       whole aligned lines go past the cache
    strip        what a transfer takes at one time of the loop `stripped`, counted by axis STRIP; None: all
    prefetch     as in `ir.Elementwise`
    """

    mode: Mode
    outer: tuple[str, ...]
    inner: tuple[str, ...]
    interleave: PackedSide = ""
    rank: int = 1
    stream: bool = False
    transpose: TransposeSchedule | None = None
    strip: int | None = None
    groups: tuple[str, ...] | None = None
    prefetch: bool = False

    @property
    def stripped(self) -> str:
        """The only loop of a 1-D transfer, the last joined one of an interleave, the last one of groups."""
        return (self.inner + (self.groups or ()))[-1]

    def __str__(self) -> str:
        order = " ".join(self.outer) or "none"
        taken = " ".join(self.inner) or "none"
        if self.transpose:
            return f"{self.mode} | {self.transpose} | others {order}"
        packed = f" | interleave {self.interleave}" if self.interleave else ""
        packed += f" | groups {' '.join(self.groups) or 'none'}" if self.groups is not None else ""
        parallel = f" | parallel {self.outer[0]}" if self.outer else ""
        stream = " | streaming stores" if self.stream else ""
        strip = f" | strips of {self.strip}" if self.strip else ""
        strip += " | prefetches" if self.prefetch else ""
        shape = f"{self.mode} | outer {order} | inner {taken}{packed} | rank {self.rank}"
        return f"{shape}{parallel}{stream}{strip}"
