"""`Placement`: the slots of an array's elements in a buffer, by a layout or by a table; packs their words."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from codegen import LayoutError, dataclass
from tilejit.copies.convert import pack
from tilejit.layout.cute_shape import CuteShape, Spec
from tilejit.layout.indexing import linear_index
from tilejit.recognize.probes.slots import CHUNK, Bytes, Table, bytes_of_slots, slot_values, taken
from tilejit.tiled.buffers import flat_bytes
from tilejit.tiled.tiled_array import TiledArray

Words = NDArray[Any]
"""What slots hold: unsigned integers, or complex128 for slots of 128 bits."""


@dataclass(frozen=True, eq=False, slots=True)
class Placement:
    """The slots of elements in a buffer.

    Attributes:
        dims: the dimensions of the array.
        width: the bits of a slot.
        size_bytes: the size of the buffer.
        spec: the layout; None if only a table describes the slots.
        slots: the slot of each element in C order, if there is no layout.
        padding: the buffer with zeros for all elements; None if it then has only zeros.
    """

    dims: tuple[int, ...]
    width: int
    size_bytes: int
    spec: Spec | None
    slots: Table | None
    padding: Bytes | None

    def table(self) -> NDArray[Any]:
        """The slot of each element, with the array's dimensions."""
        if self.spec is None:
            return self._listed.reshape(self.dims)
        index = tuple(np.indices(self.dims, sparse=True)) if self.dims else ()
        return np.asarray(linear_index(self.spec, index)).reshape(self.dims)

    def packed(self, words: Words) -> Bytes:
        """The buffer for the elements' words in C order."""
        if self.spec is None:
            data = scattered(words, self._listed, self.width, self.size_bytes)
        else:
            array = np.ascontiguousarray(words).reshape(self.dims)
            data = bytes_of_slots(pack(array, self._of_words(self.spec)).buffer, self.width, self.size_bytes)
        return data if self.padding is None else data | self.padding

    def unpacked(self, data: Bytes) -> Words:
        """The elements' words in C order, from a buffer."""
        held = slot_words(data, self.width)
        if self.spec is None:
            return taken(held, self._listed)
        spec = self._of_words(self.spec)
        return TiledArray(np.ascontiguousarray(held[: spec.physical_size]), spec).unpack().reshape(-1)

    @property
    def _listed(self) -> Table:
        if self.slots is None:
            raise AssertionError("a placement has neither a layout nor a table")
        return self.slots

    def _of_words(self, spec: Spec) -> Spec:
        """The layout of an array of words, one in each slot."""
        name = "c128" if self.width == 128 else f"u{8 * word_dtype(self.width).itemsize}"
        if isinstance(spec, CuteShape):
            return replace(spec, primitive_type=name, element_size_in_bits=0, padding_value=None)
        layout = spec.layout and replace(spec.layout, element_size_in_bits=0)
        return replace(spec, primitive_type=name, layout=layout, padding_value=None)


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


def checked_bytes(buffer: Any, size: int) -> Bytes:
    """The bytes of a buffer of that size.

    Raises:
        LayoutError: it has another size, or is not contiguous.
        TypeError: it is not bytes-like.
    """
    data = flat_bytes(buffer)
    if data.size != size:
        raise LayoutError(
            f"expected a buffer of {size} bytes, got {data.size}\n  pass what the function returns"
        )
    return data
