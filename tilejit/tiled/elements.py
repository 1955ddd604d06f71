"""Single elements of a tiled buffer, located by an expression of their index."""

from __future__ import annotations

from typing import Any

import numpy as np

from codegen import Cache, offset_function
from tilejit.arrays.memory import Array
from tilejit.layout.cute_shape import Spec
from tilejit.layout.indexing import access_map
from tilejit.tiled.buffers import check_packable, may_overlap

_FLOATS = {
    "bf16": (1 << 8, 1e-37, 1e38),
    "f16": (1 << 11, 1e-4, 6e4),
    "f32": (1 << 24, 1e-37, 1e38),
    "f64": (1 << 53, 0.0, np.inf),
}
"""Integers up to the first number are exact; Python floats between the others set no flags."""

_BYTES_DTYPE = np.dtype(np.uint8)


class Elements:
    """The elements of a layout: their locations, and the values that NumPy assigns to them like `write_box`.

    This class answers keys of integers and plain numbers; `read_box` and `write_box` answer all others.

    Attributes:
        dtype: the dtype of the elements.
        stored: the dtype of the buffer.
    """

    __slots__ = (
        "_decoded",
        "_floats",
        "_is_shared",
        "_limits",
        "_offset",
        "bits",
        "dims",
        "dtype",
        "layout",
        "size",
        "stored",
    )

    def __init__(self, layout: Spec) -> None:
        self.layout, self.dims, self.dtype, self.bits = layout, layout.dimensions, layout.dtype, layout.bits
        self.size = check_packable(layout)
        self.stored = _BYTES_DTYPE if layout.packed else self.dtype
        self._offset = offset_function(access_map(layout))
        self._is_shared = may_overlap(layout)
        self._decoded: tuple[Any, ...] = ()
        if layout.packed:
            self._decoded = tuple(np.arange(1 << self.bits, dtype=np.uint8).view(self.dtype))
        self._limits = layout.element.integer_range or (0, -1)
        self._floats = _FLOATS.get(layout.primitive_type)
        if self._floats:
            self._limits = -self._floats[0], self._floats[0]

    def read(self, buffer: Array, key: Any) -> Any:
        """Read the element at a key of plain integers inside the array; None for other keys and buffers."""
        slot = self._slot(buffer, key)
        if slot is None:
            return None
        if not self._decoded:
            return buffer[slot]
        at, shift = divmod(slot * self.bits, 8)
        return self._decoded[buffer.item(at) >> shift & len(self._decoded) - 1]

    def write(self, buffer: Array, key: Any, value: Any) -> bool:
        """Assign a value that the buffer takes; return False for keys that `read` does not answer."""
        slot = self._slot(buffer, key)
        if slot is None:
            return False
        if not self._decoded:
            buffer[slot] = value
            return True
        raw = value if type(value) is int else np.asarray(value, self.dtype).view(np.uint8).item()
        at, shift = divmod(slot * self.bits, 8)
        mask = len(self._decoded) - 1
        buffer[at] = buffer.item(at) & ~(mask << shift) | (raw & mask) << shift
        return True

    def _slot(self, buffer: Array, key: Any) -> int | None:
        if type(key) is not tuple:
            key = (key,)
        for k in key:
            if type(k) is not int:
                return None
        if self._offset is None or buffer.nbytes != self.size or buffer.dtype is not self.stored:
            return None
        dims = self.dims
        if len(key) != len(dims):
            return None
        negative = False
        for k, n in zip(key, dims, strict=True):
            if not -n <= k < n:
                return None
            negative |= k < 0
        if negative:
            key = [k % n for k, n in zip(key, dims, strict=True)]
        return self._offset(*key)

    def takes(self, buffer: Array, value: Any) -> bool:
        """Whether NumPy may assign a value to elements of this buffer."""
        if self._is_shared or not buffer.flags.writeable:
            return False
        kind: type = type(value)
        if kind is int:
            return bool(self._limits[0] <= value <= self._limits[1])
        if kind is float and self._floats:
            _, least, most = self._floats
            return bool(least < abs(value) < most or value == 0.0)
        return kind is self.dtype.type


_known: Cache[int, Elements] = Cache()


def elements_of(layout: Spec) -> Elements:
    """The elements of a layout, cached by the layout object."""
    known = _known.get(id(layout))
    if known is None or known.layout is not layout:
        known = _known.keep(id(layout), Elements(layout))
    return known
