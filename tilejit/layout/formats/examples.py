"""The examples of formats: their packings, and arrays for their planes."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import Any

import numpy as np

from tilejit.catalog.format import Format
from tilejit.catalog.packing import Array, Packing, Sizes, extents
from tilejit.layout.dtypes import PrimitiveType, lookup, primitive_type
from tilejit.layout.formats.packings import elements_of

Values = Callable[[tuple[int, ...], int, int], Array]
"""values(shape, number, seed) -> integers from 0 to number - 1."""
SCALES = "f16"
"""The dtype of planes that take any, beside a main plane of codes."""
_NOTHING: Mapping[str, Any] = MappingProxyType({})


def example_packing(found: Format, parameters: Mapping[str, Any] = _NOTHING) -> Packing | None:
    """The planes and fields of a format's example; None if a rule or a function decides the layout."""
    if found.example is None:
        return None
    dims, dtype = found.example
    built = found.layout(primitive_type(dtype), dims, dict(parameters))
    return built if isinstance(built, Packing) else None


def free_element(found: Format, packing: Packing) -> PrimitiveType:
    """The element type of planes that take any, in the example of a format."""
    assert found.example is not None
    return primitive_type(found.example[1]) if packing.main.is_free else lookup(SCALES)


def example_planes(packing: Packing, sizes: Sizes, free: PrimitiveType, values: Values) -> dict[str, Array]:
    """An array for each plane: codes, and numbers below 256; the seed of plane k is k.

    Args:
        packing: the planes.
        sizes: the size of each axis.
        free: the element type of planes that take any.
        values: the integers.
    """
    elements, found = elements_of(packing.planes, free), {}
    for seed, plane in enumerate(packing.planes):
        shape = extents(plane.axes, sizes)
        if plane.bits:
            low, high = plane.code_range
            found[plane.name] = (low + values(shape, high - low + 1, seed)).astype(plane.array_dtype)
        else:
            found[plane.name] = numbers(elements[plane.name], values(shape, 256, seed))
    return found


def numbers(element: PrimitiveType, values: Array) -> Array:
    """Numbers of a dtype from integers below 256; those of 8 bits by their byte."""
    numpy: Any = element.numpy
    return values.astype(np.uint8).view(numpy) if element.bits == 8 else values.astype(numpy)
