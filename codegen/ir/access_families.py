"""Loads and stores of elements, numbers, vectors and blocks, each declared once for all types and shapes.

The meaning of each is that of its node, `Load`, `Store` or `Prefetch`: the interpreter runs it, and bounds
are proven for the bytes that it touches.
"""

from __future__ import annotations

from typing import Literal

from codegen.ir.element_types import HALF_TYPES, bits_of
from codegen.ir.families import EVERY, MOST_LANES
from codegen.ir.instruction import Facts
from codegen.ir.lines import LANE_BYTES, LINE_BYTES, WIDTHS
from codegen.ir.nodes import Store
from codegen.ir.packed_bits import PACKED_BITS
from codegen.ir.values import Load, VectorShape
from codegen.support.dataclasses import dataclass

COMPUTED = (*EVERY, *HALF_TYPES)
"""Element types that kernels compute with."""

MOVED = tuple(f"u{8 * width}" for width in WIDTHS)
"""Element types that copies move: their bits."""

PLACES = ("", "each", "at", "at_low", "at_high")
"""The positions of a block's rows: at a pitch, at a pitch from the first row, or by a table or half of its
entries."""


@dataclass(frozen=True, slots=True)
class AccessFamily(Facts):
    """Accesses of one kind.

    The cost is that of a copy by one such access and a contiguous one, for the most expensive element type:
    f16, which CPUs do not convert as NumPy does. Accesses of single numbers and elements have none.

    Attributes:
        name: the first word of the names of its routines.
        reads: whether it loads; otherwise it stores.
        dtypes: the element types in memory; those of bits are unsigned integers.
        forms: for elements, vectors and blocks, the accesses to all ("") or some of the lanes: "first" for as
            many as an operand says, which counts the rows of blocks, "where" for a mask, "carried" for rows
            of a line that begin anywhere in one; none if there are no such accesses.
        apart: what an operand says about lanes that are not contiguous: their distance, or their offsets.
        streams: whether it bypasses the cache.
        least_bytes: the size of the smallest register.
    """

    name: str
    reads: bool
    dtypes: tuple[str, ...]
    forms: tuple[tuple[str, ...], tuple[str, ...], tuple[str, ...]]
    apart: Literal["", "step", "offsets"] = ""
    streams: bool = False
    least_bytes: int = 0

    def takes(self, dtype: str, shape: VectorShape, form: str = "") -> bool:
        """Whether there is a routine for an element type, a shape and a form."""
        if dtype not in self.dtypes or len(shape) >= len(self.forms) or form not in self.forms[len(shape)]:
            return False
        if form == "carried" and (dtype not in MOVED or bits_of(dtype) * shape[-1] != 8 * LINE_BYTES):
            return False
        return not shape or (
            all(0 < extent <= MOST_LANES for extent in shape)
            and bits_of(dtype) * shape[-1] >= 8 * self.least_bytes
        )


_SINGLE, _LOADS, _STORES = (("",), (), ()), ((), ("", "first"), ("",)), ("", "first", "where")
_BITS = tuple(f"u{bits}" for bits in PACKED_BITS)
_HELD = tuple(dict.fromkeys((*COMPUTED, *MOVED)))

VECTOR_ACCESSES = (
    AccessFamily("load", True, _HELD, _LOADS, cost=94),
    AccessFamily("strided_load", True, COMPUTED, _LOADS, "step", cost=141),
    AccessFamily("gather", True, COMPUTED, ((), ("", "first"), ()), "offsets", cost=134),
    AccessFamily("store", False, _HELD, ((), _STORES, _STORES), cost=94),
    AccessFamily("strided_store", False, COMPUTED, ((), _STORES, _STORES), "step", cost=112),
    AccessFamily("scatter", False, COMPUTED, ((), _STORES, ()), "offsets", cost=200),
    AccessFamily(
        "stream",
        False,
        _HELD,
        ((), ("",), ("", "first", "carried")),
        streams=True,
        least_bytes=LANE_BYTES,
        cost=94,
    ),
)
"""Accesses of vectors and blocks. Those of halves are f32, converted when they are loaded and stored."""

PREFETCH = AccessFamily("prefetch", True, MOVED, ((), ("",), ("",)))
"""Requests for the lines of a vector or a block that a later iteration loads."""

NUMBER_ACCESSES = (
    AccessFamily("read", True, COMPUTED, _SINGLE),
    AccessFamily("write", False, COMPUTED, _SINGLE),
)
"""Accesses of single numbers."""

ELEMENT_ACCESSES = (
    AccessFamily("load", True, (*_BITS, *MOVED[:4]), _SINGLE),
    AccessFamily("store", False, (*_BITS, *MOVED[:4]), _SINGLE),
    AccessFamily("move", False, MOVED, _SINGLE),
)
"""Accesses of single elements of bits; a move stores what it loads."""

ACCESSES = (*VECTOR_ACCESSES, *NUMBER_ACCESSES, *ELEMENT_ACCESSES, PREFETCH)
"""All families of accesses."""

_OF_VECTORS = {(each.reads, each.apart, each.streams): each for each in VECTOR_ACCESSES}
_OF_NUMBERS = {each.reads: each for each in NUMBER_ACCESSES}


def access_family(access: Load | Store) -> AccessFamily:
    """The family of an access to a number, a vector or a block."""
    reads = isinstance(access, Load)
    value = access if isinstance(access, Load) else access.value
    if not value.shape:
        return _OF_NUMBERS[reads]
    if access.offsets is not None:
        return _OF_VECTORS[reads, "offsets", False]
    if access.steps[-1:] != (bits_of(value.dtype) // 8,):
        return _OF_VECTORS[reads, "step", False]
    return _OF_VECTORS[reads, "", isinstance(access, Store) and access.streamed]
