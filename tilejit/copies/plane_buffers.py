"""The buffers of planes: found by name, checked against the format, and written."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from codegen import LayoutError, dataclass
from tilejit.arrays.array_likes import as_numpy
from tilejit.arrays.memory import Array
from tilejit.arrays.numpy_originals import numpy_copyto
from tilejit.arrays.values import refuse_masked
from tilejit.catalog.packing import Packing, Sizes, extents
from tilejit.copies.plane_arrays import one_dtype
from tilejit.copies.plane_fields import Elements, PlacedField, place_fields
from tilejit.layout.dtypes import PrimitiveType, array_dtype, from_numpy, lookup
from tilejit.tiled.buffers import flat_bytes
from tilejit.tiled.plan_elements import is_swapped

ANY = "any"
"""The dtype of a buffer that holds the planes which take any."""


@dataclass(frozen=True, slots=True)
class PlacedBuffer:
    """A buffer of an array with known dimensions.

    Attributes:
        name: its name.
        fields: what it holds.
        nbytes: its bytes.
        dtype: the dtype of its elements.
        dims: its dimensions in elements.
        is_stated: whether the format states them, as they are in checkpoints; otherwise it is flat bytes.
    """

    name: str
    fields: tuple[PlacedField, ...]
    nbytes: int
    dtype: np.dtype[Any]
    dims: tuple[int, ...]
    is_stated: bool

    def write(
        self, encoded: list[Array | None], arrays: Mapping[str, Array], out: Array | None, threads: int | None
    ) -> Array:
        """Write encoded fields to `out`, or to a new array in the dtype and dimensions of the buffer."""
        is_direct = out is not None and out.flags.c_contiguous
        data = np.asarray(out).reshape(-1).view(np.uint8) if is_direct else np.empty(self.nbytes, np.uint8)
        for field, part in zip(self.fields, encoded, strict=True):
            field.write(data, part, arrays, threads)
        if out is None:
            return data.view(self.dtype).reshape(self.dims)
        if not is_direct:
            numpy_copyto(out, data.view(out.dtype).reshape(out.shape))
        return out

    def check(self, given: Array, what: str) -> None:
        """Check that an array may be this buffer: its elements in native byte order, or its bytes as uint8.

        Dimensions may be flat. Those of size 1 do not count.

        Raises:
            LayoutError: it has another size, dtype or shape.
            TypeError: it holds Python objects.
        """
        if given.dtype.hasobject:
            raise TypeError(
                f"{what}: expected bytes or numbers, got Python objects\n  convert them with astype"
            )
        if given.nbytes != self.nbytes:
            raise LayoutError(
                f"expected {self.nbytes} bytes as {what}, got {given.nbytes}\n"
                "  pass the dimensions of the array, and a buffer of its size"
            )
        if not self._may_be(given):
            raise LayoutError(
                f"expected {self.dtype}{list(self.dims)} as {what}, got {given.dtype}{list(given.shape)}\n"
                "  convert it with astype or reshape, or pass its bytes as a flat array of uint8"
            )

    def _may_be(self, given: Array) -> bool:
        """Whether an array of the right size has the form of the buffer; integers of one width are alike."""
        if is_swapped(given.dtype):
            return False
        if not self.is_stated:
            return True
        rows = _rows_of_bytes(given.shape, given.itemsize)
        if len(rows) > 1 and rows != _rows_of_bytes(self.dims, self.dtype.itemsize):
            return False
        if is_raw(given.dtype):
            return True
        found, want = from_numpy(given.dtype), from_numpy(self.dtype)
        alike = {found.kind, want.kind} <= {"signed", "unsigned"} or want.name == "u8"
        return found == want or (alike and found.bits == want.bits)


def place_buffers(packing: Packing, sizes: Sizes, elements: Elements) -> list[PlacedBuffer]:
    """The buffers that hold planes with elements, or fields without planes."""
    free = next((elements[p.name] for p in packing.planes if p.is_free and p.name in elements), None)
    placed = []
    for buffer in packing.buffers:
        fields = tuple(place_fields(packing, buffer, sizes, elements))
        if not fields:
            continue
        size = fields[0].records * fields[0].pitch
        text = packing.tensors.get(buffer, "")
        name, _, dims = (text or f"u8: {size}").partition(":")
        dtype = array_dtype(free if name == ANY else lookup(name))
        placed.append(PlacedBuffer(buffer, fields, size, dtype, extents(dims, sizes), bool(text)))
    return placed


def stored_dtype(given: Mapping[str, Array], packing: Packing) -> PrimitiveType | None:
    """The dtype of the buffers that hold the planes which take any; None if they are bytes or missing.

    Raises:
        LayoutError: they have several.
    """
    free = [name for name, text in packing.tensors.items() if text.startswith(f"{ANY}:")]
    typed = [name for name in free if name in given and not is_raw(given[name].dtype)]
    return one_dtype({name: from_numpy(given[name].dtype) for name in typed})


def is_raw(dtype: np.dtype[Any]) -> bool:
    """Whether arrays of a dtype are bytes without a meaning: uint8, or records."""
    return dtype == np.uint8 or dtype.type is np.void


def named_buffers(given: Any, packing: Packing, name: str) -> dict[str, Array]:
    """The buffers by name.

    Raises:
        LayoutError: there is none, a name is unknown, or a buffer alone lacks the others.
        TypeError: one is neither an array nor bytes.
    """
    if not isinstance(given, Mapping):
        optional = [(plane,) for plane in packing.optional]
        if any(f.planes not in optional for f in packing.fields if f.buffer != packing.buffers[0]):
            raise LayoutError(
                f"the format {name!r} has the buffers {', '.join(packing.buffers)}\n"
                "  pass a mapping of these names to arrays"
            )
        given = {packing.buffers[0]: given}
    odd = [str(key) for key in given if key not in packing.buffers]
    if odd or not given:
        names = ", ".join(packing.buffers)
        got = f"got {odd[0][:40]!r}" if odd else "got none"
        raise LayoutError(f"the format {name!r} has the buffers {names}; {got}\n  pass them by these names")
    return {key: _array(given[key], key) for key in packing.buffers if key in given}


def _array(value: Any, name: str) -> Array:
    found = as_numpy(value)
    refuse_masked(found)
    try:
        return found if isinstance(found, np.ndarray) else flat_bytes(found)
    except (TypeError, LayoutError) as error:
        raise type(error)(f"{name}: {error}") from error


def _rows_of_bytes(dims: tuple[int, ...], itemsize: int) -> tuple[int, ...]:
    """The dimensions of an array's bytes, without those of size 1.

    (4, 1, 16), 4 -> (4, 64)    (), 4 -> (4,)
    """
    *rows, last = [n for n in dims if n != 1] or [1]
    return (*rows, last * itemsize)
