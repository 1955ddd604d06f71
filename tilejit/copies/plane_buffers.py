"""The buffers of planes: found by name, checked against the format, and those of `out`."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

import numpy as np

from codegen import LayoutError, dataclass
from tilejit.arrays.array_likes import as_numpy
from tilejit.arrays.memory import Array
from tilejit.arrays.numpy_originals import numpy_copyto
from tilejit.arrays.values import refuse_masked
from tilejit.catalog.packing import Packing, Sizes, extents
from tilejit.copies.plane_arrays import named_targets, one_dtype
from tilejit.copies.plane_fields import Elements, PlacedField, place_fields
from tilejit.layout.dtypes import PrimitiveType, from_numpy, lookup
from tilejit.tiled.buffers import flat_bytes
from tilejit.tiled.outputs import check_apart, check_target
from tilejit.tiled.plan_elements import is_swapped

ANY = "any"
"""The dtype of a buffer that holds the planes which take any."""


@dataclass(frozen=True, slots=True)
class PlacedBuffer:
    """A buffer of an array with known dimensions.

    Attributes:
        name: its name.
        fields: what it holds.
        element: the type of its elements in checkpoints; None if the format does not state it.
        dims: its dimensions in checkpoints, in elements; those of its bytes if the format states none.
    """

    name: str
    fields: tuple[PlacedField, ...]
    element: PrimitiveType | None
    dims: tuple[int, ...]

    @property
    def nbytes(self) -> int:
        """Its bytes."""
        return bytes_of(self.fields)

    @property
    def dtype(self) -> np.dtype[Any]:
        """The dtype of its elements; uint8 if the format states none."""
        dtype = self.element.numpy if self.element else np.dtype(np.uint8)
        assert dtype is not None
        return dtype

    def encoded(self, arrays: Mapping[str, Array], threads: int | None) -> list[Array]:
        """What `write` stores: a part for each field."""
        return [field.encoded(arrays, threads) for field in self.fields]

    def write(self, encoded: list[Array], out: Array | None, threads: int | None) -> Array:
        """Write the fields to `out`, or to a new array with the dtype and the dimensions of the buffer."""
        is_direct = out is not None and out.flags.c_contiguous
        data = np.asarray(out).reshape(-1).view(np.uint8) if is_direct else np.empty(self.nbytes, np.uint8)
        for field, part in zip(self.fields, encoded, strict=True):
            field.write(data, part, threads)
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
            TypeError: it has masked elements or holds Python objects.
        """
        refuse_masked(given)
        if given.dtype.hasobject:
            raise TypeError(f"{what}: expected an array of bytes or numbers, got one of Python objects")
        if given.nbytes != self.nbytes:
            raise LayoutError(
                f"expected {self.nbytes} bytes as {what}, got {given.nbytes}\n"
                "  pass the dimensions of the array, and a buffer of its size"
            )
        own = _rows_of_bytes(given.shape, given.itemsize)
        has_shape = (
            self.element is None or len(own) == 1 or own == _rows_of_bytes(self.dims, self.dtype.itemsize)
        )
        if is_swapped(given.dtype) or not (has_shape and self._may_be(given.dtype)):
            raise LayoutError(
                f"expected {self.dtype}{list(self.dims)} as {what}, got {given.dtype}{list(given.shape)}\n"
                "  convert it with astype or reshape, or pass its bytes as a flat array of uint8"
            )

    def _may_be(self, dtype: np.dtype[Any]) -> bool:
        """Whether elements of that dtype are those of the buffer: the same, integers alike, or bytes."""
        want = self.element
        if want is None or is_raw(dtype):
            return True
        found, integers = from_numpy(dtype), ("signed", "unsigned")
        if found.bits == 8 and want.name == "u8":
            return True
        return found == want or (found.bits == want.bits and {found.kind, want.kind} <= {*integers})


def place_buffers(packing: Packing, sizes: Sizes, elements: Elements) -> list[PlacedBuffer]:
    """The buffers that hold planes with elements, or fields without planes."""
    free = next((elements[p.name] for p in packing.planes if p.is_free and p.name in elements), None)
    placed = []
    for buffer in packing.buffers:
        fields = tuple(place_fields(packing, buffer, sizes, elements))
        if not fields:
            continue
        dtype, _, dims = (packing.tensors or {}).get(buffer, "").partition(":")
        element = (free if dtype == ANY else lookup(dtype)) if dtype else None
        shape = extents(dims, sizes) if dtype else (bytes_of(fields),)
        placed.append(PlacedBuffer(buffer, fields, element, shape))
    return placed


def bytes_of(fields: tuple[PlacedField, ...]) -> int:
    """The bytes of the buffer that holds some fields."""
    return fields[0].records * fields[0].pitch


def stored_dtype(given: Mapping[str, Array], packing: Packing) -> PrimitiveType | None:
    """The dtype of the buffers that hold the planes which take any; None if they are bytes or missing.

    Raises:
        LayoutError: they have several.
    """
    free = [name for name, text in (packing.tensors or {}).items() if text.startswith(f"{ANY}:")]
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
    try:
        return found if isinstance(found, np.ndarray) else flat_bytes(found)
    except (TypeError, LayoutError) as error:
        raise type(error)(f"{name}: {error}") from error


def buffers_of_out(out: Any, placed: list[PlacedBuffer], sources: Iterable[Array]) -> dict[str, Array]:
    """The arrays of `out` by the names of buffers, after all checks; none if it is None.

    Raises:
        LayoutError: one is missing, does not fit its buffer, is read-only, or overlaps a source or another.
        TypeError: one is not an array.
    """
    if out is None:
        return {}
    targets = named_targets(out, [buffer.name for buffer in placed])
    for buffer in placed:
        what, target = f"{buffer.name} of out", targets[buffer.name]
        buffer.check(target, what)
        check_target(target, *sources, what=what)
    check_apart(targets)
    return targets


def _rows_of_bytes(dims: tuple[int, ...], itemsize: int) -> tuple[int, ...]:
    """The dimensions of an array's bytes, without those of size 1.

    (4, 1, 16), 4 -> (4, 64)    (), 4 -> (4,)
    """
    *rows, last = [n for n in dims if n != 1] or [1]
    return (*rows, last * itemsize)
