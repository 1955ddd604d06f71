"""Single elements of a tiled buffer, found by an expression of their index."""

from __future__ import annotations

from typing import Any

import numpy as np

from codegen import Cache, offset_function
from tilejit.arrays.memory import Array
from tilejit.layout.cute_shape import Spec
from tilejit.layout.indexing import access_map
from tilejit.tiled.buffers import check_packable, may_overlap

_FLOATS = {
    np.dtype(code): (1 << bits, least, most)
    for code, bits, least, most in (("f2", 11, 1e-4, 6e4), ("f4", 24, 1e-37, 1e38), ("f8", 53, 0.0, np.inf))
}
"""Floats: every integer up to the first number is exact; Python's floats between the others set no flags."""


class Elements:
    """The elements of a layout: where they are, and which numbers NumPy assigns to them just as `write_box`.

    Keys of integers and plain numbers are answered here, all others by `read_box` and `write_box`.
    """

    __slots__ = ("_is_shared", "_limits", "dims", "dtype", "layout", "offset", "size")

    def __init__(self, layout: Spec) -> None:
        self.layout, self.dims, self.dtype = layout, layout.dimensions, layout.dtype
        self.size = check_packable(layout)
        self.offset = None if layout.packed else offset_function(access_map(layout))
        self._is_shared = may_overlap(layout)
        self._limits = (0, -1)
        if layout.element.byte_dtype is None and self.dtype.kind in "iu":
            limits = np.iinfo(self.dtype)
            self._limits = int(limits.min), int(limits.max)
        elif self.dtype in _FLOATS:
            most, _, _ = _FLOATS[self.dtype]
            self._limits = -most, most

    def slot(self, buffer: Array, key: Any) -> int | None:
        """The slot of a key of plain integers inside the array; None for other keys and buffers."""
        if type(key) is not tuple:
            key = (key,)
        for k in key:
            if type(k) is not int:
                return None
        if self.offset is None or buffer.nbytes != self.size or buffer.dtype is not self.dtype:
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
        return self.offset(*key)

    def takes(self, buffer: Array, value: Any) -> bool:
        """Whether a value may be assigned to a slot of this buffer by NumPy."""
        if self._is_shared or not buffer.flags.writeable:
            return False
        kind: type = type(value)
        if kind is int:
            return bool(self._limits[0] <= value <= self._limits[1])
        if kind is float and self.dtype in _FLOATS:
            _, least, most = _FLOATS[self.dtype]
            return bool(least < abs(value) < most or value == 0.0)
        return bool(kind is self.dtype.type and self.dtype.kind in "iufb")


_known: Cache[int, Elements] = Cache()


def elements_of(layout: Spec) -> Elements:
    """The elements of a layout, found by the layout object itself."""
    known = _known.get(id(layout))
    if known is None or known.layout is not layout:
        known = _known.keep(id(layout), Elements(layout))
    return known
