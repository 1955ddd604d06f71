"""Where the loops of a copy read and write, and the values that they move."""

from __future__ import annotations

from codegen.ir.building import index_of
from codegen.ir.element_types import bits_of, dtype_of
from codegen.ir.index import Index
from codegen.ir.instructions import conversion
from codegen.ir.nodes import Statement, Store, View
from codegen.ir.values import Load, Local, Op
from codegen.schedule.copy_nest import CopyNest
from codegen.schedule.directives import Groups
from codegen.schedule.loops import Loop
from codegen.support.dataclasses import dataclass

FILL = ("fill_low", "fill_high")
"""The arguments with the padding pattern, as two eight-byte numbers."""


@dataclass(frozen=True, slots=True)
class Sides:
    """The names of two views."""

    dst: str
    src: str


def sides_of(nest: CopyNest) -> Sides:
    """Both sides where the statement is."""
    return Sides("dst_at", "src_at") if nest.obeying(Groups) else outer_sides(nest)


def outer_sides(nest: CopyNest) -> Sides:
    """Both sides inside the loops that view them."""
    views = [x.axis for x in (*nest.around, *viewed(nest))]
    return Sides(f"dst_{views[-1]}", f"src_{views[-1]}") if views else first_sides(nest)


def first_sides(nest: CopyNest) -> Sides:
    """Both sides outside of all loops, at an entry if there is a table of them."""
    return Sides("dst_entry", "src_entry") if nest.entries else Sides("dst", "src")


def viewed(nest: CopyNest) -> tuple[Loop, ...]:
    """The inner loops that view both sides, as the outer ones do: those around the blocks of a transpose."""
    return tuple(x for x in nest.loops if nest.order and x.axis not in nest.lanes)


def named(name: str, value: Load | Op) -> Local:
    """The value of a Let."""
    return Local(name, value.dtype, value.shape)


def moved_element(width: int, dst: str, to: Index, src: str, at: Index) -> tuple[Statement, ...]:
    """dst[to] = src[at], one element of `width` bytes, by its address.

    LLVM would vectorize a loop whose offsets it sees: it collects addresses in registers and extracts them
    one by one, which takes up to 2.7 times as long.
    """
    move = Store("to", (index_of(0),), Load("at", (index_of(0),), f"bits{8 * width}"))
    return View("to", dst, to), View("at", src, at, opaque=True), move


def converted(convert: tuple[str, str] | None, elements: Load) -> Load | Op:
    """Elements as the destination holds them: converted if necessary, and typed as bits.

    (f32, bf16)   src[x] of bits32 -> convert_f32_to_bf16(src[x]) of bits16
    """
    if convert is None:
        return elements
    dtype = f"bits{bits_of(dtype_of(convert[1]))}"
    return Op(conversion(*convert).name, (elements,), dtype, elements.shape)
