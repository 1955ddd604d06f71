"""`Placement`: the slots of an array's elements in a buffer, by a layout or by a table; packs and unpacks."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from codegen import dataclass
from tilejit.copies.convert import pack
from tilejit.layout.cute_shape import Spec, retyped
from tilejit.layout.dtypes import PrimitiveType
from tilejit.layout.indexing import linear_index
from tilejit.recognize.probes.bit_patterns import array_of, joined_bits, patterns_of, separate_bits
from tilejit.recognize.probes.slots import CHUNK, Bytes, Table, bytes_of_slots, slot_values, taken
from tilejit.recognize.probes.value_map import ValueMap
from tilejit.tiled.tiled_array import TiledArray

Words = NDArray[Any]
"""What slots hold: unsigned integers, or complex128 for slots of 128 bits."""


@dataclass(frozen=True, eq=False, slots=True)
class Placement:
    """The slots of an array's elements in a buffer, and what they hold.

    Attributes:
        element: the element type.
        dtype: the dtype of arrays.
        dims: the dimensions of the array.
        width: the bits of a slot.
        size_bytes: the size of the buffer.
        slots: the slot of each element in C order, or of each bit of each element; None if `spec` says it.
        apart: whether bits have slots, because those of an element are not side by side.
        value_map: what happens to the elements' patterns; None for nothing.
        spec: the layout; None if only a table describes the slots.
        padding: the buffer with zeros for all elements; None if it then has only zeros.
    """

    element: PrimitiveType
    dtype: np.dtype[Any]
    dims: tuple[int, ...]
    width: int
    size_bytes: int
    slots: Table | None
    apart: bool = False
    value_map: ValueMap | None = None
    spec: Spec | None = None
    padding: Bytes | None = None

    def table(self) -> NDArray[Any]:
        """The slot of each element in C order, or of each bit of each element."""
        if self.slots is not None:
            return self.slots
        assert self.spec is not None
        index = tuple(np.indices(self.dims, sparse=True)) if self.dims else ()
        return np.broadcast_to(np.asarray(linear_index(self.spec, index)), self.dims).reshape(-1)

    def packed(self, array: NDArray[Any]) -> Bytes:
        """The buffer of an array."""
        words = self._words(array)
        if self.spec is None:
            data = scattered(words, self.table(), self.width, self.size_bytes)
        else:
            buffer = pack(words.reshape(self.dims), self._of_words(self.spec)).buffer
            data = bytes_of_slots(buffer, self.width, self.size_bytes)
        return data if self.padding is None else data | self.padding

    def unpacked(self, data: Bytes) -> NDArray[Any]:
        """The array of a buffer."""
        held = slot_words(data, self.width)
        if self.spec is None:
            words = taken(held, self.table())
        else:
            spec = self._of_words(self.spec)
            words = TiledArray(np.ascontiguousarray(held[: spec.physical_size]), spec).unpack().reshape(-1)
        if self.element.bits < 128:
            values = joined_bits(words, self.element) if self.apart else words
            patterns = values if self.value_map is None else self.value_map.inverted(values)
            words = array_of(patterns, self.element, self.dtype)
        return words.reshape(self.dims)

    def _words(self, array: NDArray[Any]) -> Words:
        """What the slots of elements hold, in C order."""
        if self.element.bits == 128:
            return np.ascontiguousarray(array).reshape(-1)
        patterns = patterns_of(array, self.element)
        values = patterns if self.value_map is None else self.value_map.applied(patterns)
        return separate_bits(values, self.element) if self.apart else values

    def _of_words(self, spec: Spec) -> Spec:
        """The layout of an array of words, one in each slot."""
        name = "c128" if self.width == 128 else f"u{8 * word_dtype(self.width).itemsize}"
        return retyped(spec, name)


def scattered(words: Words, slots: Table, width: int, size_bytes: int) -> Bytes:
    """The buffer that has each word in its slot, and zeros elsewhere."""
    out = np.zeros(size_bytes * 8 // width, word_dtype(width))
    for start in range(0, slots.size, CHUNK):
        out[slots[start : start + CHUNK]] = words[start : start + CHUNK]
    return bytes_of_slots(out, width, size_bytes)


def word_dtype(width: int) -> np.dtype[Any]:
    """The dtype of the words of slots."""
    return np.dtype(np.complex128) if width == 128 else np.dtype(f"u{max(width, 8) // 8}")


def all_ones(width: int) -> Words:
    """A word with all bits of a slot set."""
    ones = np.full(max(width, 8) // 8, 0xFF, np.uint8)
    return (ones & np.uint8((1 << width) - 1) if width < 8 else ones).view(word_dtype(width))


def slot_words(data: Bytes, width: int) -> Words:
    """The words of all complete slots of a buffer."""
    return data[: data.size // 16 * 16].view(np.complex128) if width == 128 else slot_values(data, width)
