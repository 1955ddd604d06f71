"""The names of the views that the loops of a copy read and write."""

from __future__ import annotations

from codegen.ir.lines import LINE_BYTES
from codegen.ir.values import Local
from codegen.schedule.copy_nest import CopyNest
from codegen.schedule.loops import Loop
from codegen.support.dataclasses import dataclass

FILL = ("fill_low", "fill_high")
"""The arguments with the padding pattern, as two eight-byte numbers."""

PATTERN = Local("pattern", "bits8", (LINE_BYTES,))
"""A line of padding."""


@dataclass(frozen=True, slots=True)
class Sides:
    """The names of two views."""

    dst: str
    src: str


def sides_of(nest: CopyNest) -> Sides:
    """Both sides where the statement is."""
    views = [x.axis for x in (*nest.around, *viewed(nest))]
    return Sides(f"dst_{views[-1]}", f"src_{views[-1]}") if views else first_sides(nest)


def first_sides(nest: CopyNest) -> Sides:
    """Both sides outside of all loops, at an entry if there is a table of them."""
    return Sides("dst_entry", "src_entry") if nest.entries else Sides("dst", "src")


def viewed(nest: CopyNest) -> tuple[Loop, ...]:
    """The inner loops that view both sides, as the outer ones do: those around the blocks of a transpose."""
    return tuple(x for x in nest.loops if nest.transposes and x.axis not in nest.lanes)
