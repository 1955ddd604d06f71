"""Loads and stores of numbers, registers and elements, each declared once for all its types and lanes.

The meaning of each is that of its node, `Load` or `Store`: the interpreter runs it, and bounds are proven for
the bytes that it touches. Super-vectors of bits have any shape: `accesses.py` has their names.
"""

from __future__ import annotations

from typing import Literal

from codegen.ir.element_types import HALF_TYPES, bits_of
from codegen.ir.families import EVERY, LANES
from codegen.ir.instruction import Facts
from codegen.ir.lines import LANE_BYTES, WIDTHS
from codegen.ir.nodes import Store
from codegen.ir.packed_bits import PACKED_BITS
from codegen.ir.values import Load
from codegen.support.dataclasses import dataclass

COMPUTED = (*EVERY, *HALF_TYPES)
"""Element types that kernels compute with."""


@dataclass(frozen=True, slots=True)
class AccessFamily(Facts):
    """Accesses of one kind.

    The cost is that of a copy by one such access and a contiguous one, for the most expensive element type:
    f16, which CPUs do not convert as NumPy does. Accesses of single numbers and elements have none.

    Attributes:
        name: the first word of the names of its routines.
        reads: whether it loads; otherwise it stores.
        dtypes: the element types in memory; those of bits are unsigned integers.
        lanes: the numbers of lanes; 0 for a single number or element.
        forms: the accesses to some of the lanes, the last word of a name: "first" for as many as an operand
            says, "where" for a mask, "" for all; "at" for an element at a base and an offset.
        apart: what an operand says about lanes that are not contiguous: their distance, or their offsets.
        streams: whether it bypasses the cache.
        least_bytes: the size of the smallest register.
    """

    name: str
    reads: bool
    dtypes: tuple[str, ...]
    lanes: tuple[int, ...] = LANES
    forms: tuple[str, ...] = ("", "first")
    apart: Literal["", "step", "offsets"] = ""
    streams: bool = False
    least_bytes: int = 0

    @property
    def block_forms(self) -> tuple[str, ...]:
        """The forms of accesses to blocks, whose rows are a number of bytes apart; none if it has none."""
        if self.apart == "offsets" or self.streams:
            return ()
        return tuple(form for form in self.forms if form in ("", "where"))

    def takes(self, dtype: str, lanes: int) -> bool:
        """Whether there are routines for an element type and a number of lanes."""
        return dtype in self.dtypes and lanes in self.lanes and bits_of(dtype) * lanes >= 8 * self.least_bytes


_STORES = ("", "first", "where")
_BITS = tuple(f"u{bits}" for bits in (*PACKED_BITS, 8, 16, 32, 64))
_MOVED = tuple(f"u{8 * width}" for width in WIDTHS)

REGISTER_ACCESSES = (
    AccessFamily("load", True, COMPUTED, cost=94),
    AccessFamily("strided_load", True, COMPUTED, apart="step", cost=141),
    AccessFamily("gather", True, COMPUTED, apart="offsets", cost=134),
    AccessFamily("store", False, COMPUTED, forms=_STORES, cost=94),
    AccessFamily("strided_store", False, COMPUTED, forms=_STORES, apart="step", cost=112),
    AccessFamily("scatter", False, COMPUTED, forms=_STORES, apart="offsets", cost=200),
    AccessFamily("stream", False, COMPUTED, forms=("",), streams=True, least_bytes=LANE_BYTES, cost=94),
)
"""Accesses of registers of numbers. Those of halves are f32, converted when they are loaded and stored."""

NUMBER_ACCESSES = (
    AccessFamily("read", True, COMPUTED, lanes=(0,), forms=("at",)),
    AccessFamily("write", False, COMPUTED, lanes=(0,), forms=("at",)),
)
"""Accesses of single numbers."""

ELEMENT_ACCESSES = (
    AccessFamily("load", True, _BITS, lanes=(0,), forms=("at",)),
    AccessFamily("store", False, _BITS, lanes=(0,), forms=("at",)),
    AccessFamily("move", False, _MOVED, lanes=(0,), forms=("at",)),
)
"""Accesses of single elements of bits; a move stores what it loads."""

ACCESSES = (*REGISTER_ACCESSES, *NUMBER_ACCESSES, *ELEMENT_ACCESSES)
"""All families of accesses."""

_OF_REGISTERS = {(each.reads, each.apart, each.streams): each for each in REGISTER_ACCESSES}
_OF_NUMBERS = {each.reads: each for each in NUMBER_ACCESSES}


def access_family(access: Load | Store) -> AccessFamily:
    """The family of an access to a number, to a register of numbers, or to a block of registers."""
    reads = isinstance(access, Load)
    value = access if isinstance(access, Load) else access.value
    if not value.shape:
        return _OF_NUMBERS[reads]
    if access.offsets is not None:
        return _OF_REGISTERS[reads, "offsets", False]
    if access.steps[-1:] != (bits_of(value.dtype) // 8,):
        return _OF_REGISTERS[reads, "step", False]
    return _OF_REGISTERS[reads, "", isinstance(access, Store) and access.streamed]
