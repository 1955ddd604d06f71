"""The input and the result of lowering a transfer."""

from __future__ import annotations

from codegen.ir.building import index_of
from codegen.ir.element_types import bits_of, dtype_of
from codegen.ir.index import Index
from codegen.ir.instructions import conversion
from codegen.ir.nodes import Statement, Store, View
from codegen.ir.values import Load, Local, Op
from codegen.schedule.transfers import TransferNest
from codegen.support.dataclasses import dataclass

FILL = ("fill_low", "fill_high")
"""The arguments with the padding pattern, as two eight-byte numbers."""


@dataclass(frozen=True, slots=True)
class Sides:
    """Where a transfer reads and writes: the names of two views, and what surrounds them.

    Attributes:
        dst, src: the views of the innermost loop of the nest.
        in_table: whether a loop over the entries of offset tables surrounds the transfer.
        in_bits: whether the views are addressed in bits.
    """

    dst: str
    src: str
    in_table: bool
    in_bits: bool = False


def sides_of(nest: TransferNest) -> Sides:
    """Where the transfer of a nest reads and writes."""
    around = f"_{nest.loops[-1].axis}" if nest.loops else "_entry" if nest.entries else ""
    return Sides(f"dst{around}", f"src{around}", bool(nest.entries), nest.unit_bits == 1)


@dataclass(frozen=True, slots=True)
class Lowered:
    """A transfer as loops over super-vectors.

    Attributes:
        body: the statements that replace the transfer.
        what: what moves and how much, for readers: "dst[{at}x] = src[{at}x], x < count bytes"; `{at}`
            stands for the axes around it, each with a comma.
        how: the super-vectors: "Super-vectors of 64 bytes".
        prologue: statements before all loops, such as constants.
        shared: the loop of `body` that threads share, if the nest has no loops and no table.
        opaque: whether the views of the innermost loop are opaque, as those of outer loops are. This makes a
            body of several loops faster, because LLVM then keeps no pointer for each loop and access.
    """

    body: tuple[Statement, ...]
    what: str
    how: str
    prologue: tuple[Statement, ...] = ()
    opaque: bool = False
    shared: str = ""


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
