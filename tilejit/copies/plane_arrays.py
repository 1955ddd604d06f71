"""The arrays of planes: found by name, checked against the format, and returned as they were given."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from codegen import LayoutError
from tilejit.arrays.memory import Array
from tilejit.catalog.packing import Packing, Plane, Sizes, extents
from tilejit.copies.sources import as_array
from tilejit.layout.dtypes import PrimitiveType, array_dtype, from_numpy, lookup
from tilejit.tiled.outputs import check_alike


def named_arrays(given: Any, packing: Packing, name: str) -> dict[str, Array]:
    """The arrays by the names of their planes, in the order of the planes.

    Raises:
        LayoutError: a plane is missing, or a name is unknown.
        TypeError: a value is not an array.
    """
    known = [plane.name for plane in packing.planes]
    if not isinstance(given, Mapping):
        given = {known[0]: given}
    missing = [plane for plane in known if plane not in given and plane not in packing.optional]
    odd = [plane for plane in given if plane not in known]
    if missing or odd:
        what = f"has no plane {str(odd[0])[:40]!r}" if odd else f"lacks its plane {missing[0]!r}"
        listed = ", ".join(f"{p.name} [{p.axes}] {p.values_text}" for p in packing.planes)
        raise LayoutError(f"the format {name!r} {what}\n  pass a mapping of its planes to arrays: {listed}")
    return {plane: as_array(given[plane], plane) for plane in known if plane in given}


def checked_plane(plane: Plane, array: Array, sizes: Sizes, name: str) -> Array:
    """The array of a plane, codes as uint8.

    Raises:
        LayoutError: its dimensions, dtype or values differ from the plane's.
    """
    dims = extents(plane.axes, sizes)
    if array.shape != dims:
        raise LayoutError(
            f"{plane.name}: expected an array of {list(dims)} ({plane.axes}), got {list(array.shape)}\n"
            f"  see tilejit.describe_format({name!r})"
        )
    element = from_numpy(array.dtype)
    return _codes(plane, array, element) if plane.bits else _of_dtype(plane, array, element)


def _codes(plane: Plane, array: Array, element: PrimitiveType) -> Array:
    """The codes of an array of integers, or the bits of floats of the plane's width, as uint8."""
    mask = np.uint8((1 << plane.bits) - 1)
    if element.kind in ("float", "complex"):
        if element.bits != plane.bits or plane.low:
            raise LayoutError(
                f"{plane.name}: expected codes of {plane.bits} bits, got {element.name}\n"
                "  pass them as uint8 or int8"
            )
        array = array.view(np.uint8) & mask
        if not plane.levels:
            return array
    elif element.byte_dtype is not None:
        array = array.astype(element.byte_dtype)
    low, high = plane.code_range
    if array.size and not (low <= int(array.min()) and int(array.max()) <= high):
        wrong = np.unravel_index(int(np.argmax((array < low) | (array > high))), array.shape)
        index = ", ".join(map(str, map(int, wrong)))
        raise LayoutError(
            f"{plane.name}: element [{index}] is {int(array[wrong])}, but codes are {low} to {high}\n"
            "  pass codes, not values"
        )
    if plane.low:
        array = array.astype(np.int16) - plane.low
    codes = array.astype(np.int8 if plane.signed else np.uint8, copy=False).view(np.uint8)
    return codes & mask if plane.signed and plane.bits < 8 else codes


def _of_dtype(plane: Plane, array: Array, element: PrimitiveType) -> Array:
    """The array in the dtype of a plane, in native byte order; floats of 8 bits may be given as bytes."""
    want = lookup(plane.dtype) if plane.dtype else element
    if want.kind == "float" and want.bits == 8 and element.name == "u8":
        return array.view(plane_dtype(plane, want))
    if element.name != want.name:
        raise LayoutError(
            f"{plane.name}: expected {plane.dtype}, got {element.name}\n  convert it first, e.g. with astype"
        )
    return array.astype(array.dtype.newbyteorder("="), copy=False)


def decoded_codes(plane: Plane, codes: Array) -> Array:
    """A plane with its stored codes as users pass them: uint8, or int8 if a code may be negative."""
    if plane.low:
        dtype = plane.array_dtype
        found: Array = codes.astype(dtype) + dtype(plane.low)
        return found
    if not plane.signed:
        return codes
    if plane.bits == 8:
        return codes.view(np.int8)
    shift = 8 - plane.bits
    return (codes << np.uint8(shift)).view(np.int8) >> np.int8(shift)


def plane_dtype(plane: Plane, element: PrimitiveType) -> np.dtype[Any]:
    """The dtype of a plane as users pass it; `element` is that of a plane without codes."""
    return np.dtype(plane.array_dtype) if plane.bits else array_dtype(element)


def check_plane_out(plane: Plane, element: PrimitiveType, sizes: Sizes, out: Array, what: str) -> None:
    """Raise a LayoutError unless an array of `out` has the form of a plane, in any byte order."""
    dtype = plane_dtype(plane, element)
    is_alike = out.dtype.newbyteorder("=") == dtype
    check_alike(out, extents(plane.axes, sizes), out.dtype if is_alike else dtype, what)


def one_dtype(found: Mapping[str, PrimitiveType]) -> PrimitiveType | None:
    """The dtype that all have; None if there are none.

    Raises:
        LayoutError: they have several.
    """
    if len(set(found.values())) > 1:
        listed = ", ".join(f"{name} {element.name}" for name, element in found.items())
        raise LayoutError(f"expected one dtype, got {listed}\n  convert them to one dtype, e.g. with astype")
    return next(iter(found.values()), None)
