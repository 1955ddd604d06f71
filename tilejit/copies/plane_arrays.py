"""The arrays of planes: found by name, checked against the format, and given back as codes."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from codegen import LayoutError
from tilejit.arrays.array_likes import as_numpy
from tilejit.arrays.memory import Array
from tilejit.arrays.values import refuse_masked
from tilejit.catalog.packing import Packing, Plane, extents
from tilejit.copies.plane_fields import element_of
from tilejit.layout.dtypes import PrimitiveType, from_numpy, lookup


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
    return {plane: _array(given[plane], plane) for plane in known if plane in given}


def _array(value: Any, what: object) -> Array:
    if isinstance(value, str | bytes):
        raise TypeError(f"{what}: expected an array, got {type(value).__name__}")
    refuse_masked(value)
    return np.asarray(as_numpy(value))


def checked_plane(plane: Plane, array: Array, sizes: Mapping[str, Any], name: str) -> Array:
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
    if not plane.bits:
        return _of_dtype(plane, array, element)
    if element.bits == plane.bits and element.name not in ("pred", "s8") and not plane.low:
        array = array.view(np.uint8) & np.uint8((1 << plane.bits) - 1)
        if not plane.levels:
            return array
    elif element.kind not in ("signed", "unsigned", "pred"):
        raise LayoutError(
            f"{plane.name}: expected codes of {plane.bits} bits as uint8 or int8, got {element.name}"
        )
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
    return codes & np.uint8((1 << plane.bits) - 1) if plane.signed and plane.bits < 8 else codes


def _of_dtype(plane: Plane, array: Array, element: PrimitiveType) -> Array:
    """The array in the dtype of a plane; 8-bit types may be given as bytes, and bytes as 8-bit types."""
    if not plane.dtype or element.name == plane.dtype:
        return array.astype(array.dtype.newbyteorder("="), copy=False)
    want = lookup(plane.dtype)
    if element.bits == want.bits == 8:
        return array.view(want.dtype if hasattr(want, "dtype") else want.numpy)
    raise LayoutError(
        f"{plane.name}: expected {plane.dtype}, got {element.name}\n  convert it first, e.g. with astype"
    )


def given_codes(plane: Plane, codes: Array) -> Array:
    """Stored codes as users give them: uint8, or int8 if a code may be negative."""
    if plane.low:
        kind = np.int8 if plane.low < 0 else np.uint8 if plane.code_range[1] < 256 else np.uint16
        return (codes.astype(np.int16) + plane.low).astype(kind)
    if not plane.signed:
        return codes
    shift = 8 - plane.bits
    return (codes << np.uint8(shift)).view(np.int8) >> np.int8(shift)


def free_dtype(packing: Packing, arrays: Mapping[str, Array]) -> str:
    """The dtype of the planes that take any; empty if there are none.

    Raises:
        LayoutError: they have several.
    """
    free = {
        p.name: element_of(p, arrays[p.name]).name for p in packing.planes if p.is_free and p.name in arrays
    }
    if len(set(free.values())) > 1:
        listed = ", ".join(f"{plane} {dtype}" for plane, dtype in free.items())
        raise LayoutError(f"expected one dtype, got {listed}\n  convert them to one dtype, e.g. with astype")
    return next(iter(free.values()), "")
