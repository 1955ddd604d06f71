"""Codes whose bits are not side by side in a slot: one layout for each run of bits that stay together."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from tilejit.layout.cute_shape import Spec
from tilejit.layout.dtypes import PRIMITIVE_TYPES, PrimitiveType
from tilejit.recognize.probes.closed_form import Buffer, Spellings, best_spellings
from tilejit.recognize.probes.slots import Table

NO_FORM = "no closed form"
WIDTHS = (1, 2, 4, 8, 16, 32)
"""The widths of parts that are elements themselves."""


class BitPlane(NamedTuple):
    """Bits of elements that stay together, and the layout of these parts of all elements.

    Attributes:
        low: the lowest bit of an element that belongs to the plane.
        bits: the number of bits.
        layout: the layout of the parts, as elements of `bits` bits; None if they are not aligned to their
            width, or if there is no closed form.
        text: the text of the layout. Where a text begins with "in bits: ", CuTe's text is that of the lowest
            bit, counted in bits from the start of the buffer; in a stream, each bit counts as an element.
    """

    low: int
    bits: int
    layout: Spec | None
    text: str

    def __str__(self) -> str:
        high = self.low + self.bits - 1
        return f"{f'bits {self.low}-{high}' if self.bits > 1 else f'bit {self.low}'}: {self.text}"


def planes_of(
    positions: Table, element: PrimitiveType, dims: tuple[int, ...], size_bytes: int
) -> tuple[BitPlane, ...]:
    """The planes of elements whose bits have these positions in the buffer.

    Args:
        positions: for each bit of each element, its position in the buffer.
        element: the element type.
        dims: the dimensions of the array.
        size_bytes: the size of the buffer.
    """
    bits = element.bits
    rows = positions.reshape(-1, bits)
    starts = [k for k in range(bits) if k == 0 or not np.array_equal(rows[:, k], rows[:, k - 1] + 1)]
    planes = tuple(
        _plane(rows[:, low], low, high - low, dims, size_bytes)
        for low, high in zip(starts, [*starts[1:], bits], strict=True)
    )
    if all(plane.text != NO_FORM for plane in planes):
        return planes
    for dim in range(len(dims)):
        table = np.moveaxis(positions.reshape(*dims, bits), -1, dim + 1)
        whole = (*dims[:dim], dims[dim] * bits, *dims[dim + 1 :])
        found = _spelled(np.ascontiguousarray(table), 1, whole, size_bytes)
        if found and found.cute:
            return (BitPlane(0, bits, None, f"in bits: {found.cute}, a stream along dimension {dim}"),)
    return planes


def _plane(positions: Table, low: int, bits: int, dims: tuple[int, ...], size_bytes: int) -> BitPlane:
    """The plane of parts of elements whose lowest bits have these positions."""
    if not np.any(positions % bits) and bits in WIDTHS:
        found = _spelled(positions // bits, bits, dims, size_bytes)
        if found is not None:
            return BitPlane(low, bits, found.layout, found.text)
    found = _spelled(positions, 1, dims, size_bytes)
    return BitPlane(low, bits, None, f"in bits: {found.cute}" if found and found.cute else NO_FORM)


def _spelled(slots: Table, width: int, dims: tuple[int, ...], size_bytes: int) -> Spellings | None:
    name = f"u{width}" if width in WIDTHS else "u8"
    return best_spellings(slots.reshape(dims), Buffer(PRIMITIVE_TYPES[name], dims, width, size_bytes))
