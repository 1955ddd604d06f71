"""The ordinary layout of a packing, if it has one."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import astuple, replace
from typing import Any, cast

import numpy as np

from codegen import LayoutError, cached, dataclass
from tilejit.catalog.packing import Field, Packing, Plane
from tilejit.layout.cute_shape import CuteShape, Spec
from tilejit.layout.dtypes import PRIMITIVE_TYPES, PrimitiveType, lookup
from tilejit.layout.formats.blocking import Blocking
from tilejit.layout.formats.registry import called
from tilejit.layout.formats.spelling import blocked_shape
from tilejit.layout.formats.strided import strided_shape
from tilejit.layout.text.pattern_text import parse_pattern


def packing_shape(
    packing: Packing, name: str, element: PrimitiveType, dims: tuple[int, ...], width: int
) -> Spec:
    """Return the layout of an array in a packing.

    Args:
        packing: the packing.
        name: the name of its format.
        element: the element type of the array; for codes also u8 or s8, whose values are the codes.
        dims: the dimensions of the array.
        width: element_size_in_bits if the caller gave it; else 0.

    Raises:
        LayoutError: the packing has several planes, or takes other elements or dimensions.
    """
    if not packing.is_layout:
        planes = ", ".join(plane.name for plane in packing.planes)
        buffers = ", ".join(dict.fromkeys(field.buffer for field in packing.fields))
        given = f"a mapping of {planes} to arrays" if len(packing.planes) > 1 else f"the array of {planes}"
        raise LayoutError(
            f"the format {name!r} is not a layout of one array: it packs {planes} into {buffers}\n"
            f"  in Python, tilejit.pack takes {given}; files and other calls take layouts of one array"
        )
    (field,), bits = packing.fields, packing.main.bits
    if bits:
        element, width = code_element(name, element, bits), width or bits % 8
    shape = blocked_shape(blocking_of(packing, name, dims), element, width)
    return replace(shape, padding_value=_value_of(field.padding, element)) if field.padding else shape


def find_packing(text: str, parameters: dict[str, Any]) -> tuple[str, dict[str, Any], Packing]:
    """Return the name of a format, its parameters from both the text and keywords, and its packing.

    Raises:
        LayoutError: the text is not the name of a format of planes, or a parameter is given twice.
        TypeError: the format does not take a parameter.
    """
    found, own = called(text, parameters)
    packing = found.packing(own)
    if packing is None:
        raise LayoutError(f"the format {found.name!r} has no planes\n  pass one array")
    return found.name, own, packing


def names_planes(text: str, parameters: dict[str, Any]) -> bool:
    """Whether a text names a format that is not a layout of one array."""
    found, own = called(text, parameters)
    if found.depends_on:
        return False
    # Another keyword is the width of a layout's elements, or a mistake that the call reports.
    packing = found.packing({key: own[key] for key in found.parameters or () if key in own})
    return packing is not None and not packing.is_layout


def elements_of(planes: Iterable[Plane], free: PrimitiveType | None) -> dict[str, PrimitiveType]:
    """The element types of planes: u8 for codes; `free` is that of the planes which take any.

    Raises:
        LayoutError: it is None, but there is such a plane.
    """
    found = {p.name: free if p.is_free else lookup("u8" if p.bits else p.dtype) for p in planes}
    for name, element in found.items():
        if element is None:
            raise LayoutError(f"the plane {name!r} takes any dtype\n  pass dtype=")
    return cast("dict[str, PrimitiveType]", found)


def field_blocking(field: Field, dims: tuple[int, ...]) -> Blocking:
    """The digits of a field's elements, of an array with those dimensions; without a pattern, in C order.

    Raises:
        LayoutError: the dimensions do not fit the pattern.
    """
    return parse_pattern(field.pattern).blocking(dims, field.sizes)


@dataclass(frozen=True, slots=True)
class Place:
    """Where a field lies in its buffer, in bits: its first record, its share of a record, and the record."""

    start: int
    length: int
    pitch: int


@cached(256)
def record_shape(blocking: Blocking, element: PrimitiveType, bits: int, place: Place) -> CuteShape | None:
    """Return the layout of a field in the buffer of its records; None if strides do not say it.

    Q4_0's codes, [4,64] with (C p j) -> C j p, 128 of 144 bits, from bit 16
        -> u4[4,64] Sw<0,0,0> o 4 o (4,(16,2,2)):(72,(2,1,36)) E(4)
    """
    dims = blocking.dimensions
    if 0 in dims or any(map(blocking.is_padded, range(len(dims)))) or any(n % bits for n in astuple(place)):
        return None
    if not all(one.reverses for one in blocking.permutations):
        return None
    inner, order = 1, list(blocking.order)
    while order and inner * bits < place.length:
        digit = order.pop()
        inner *= blocking.digits[digit.dim][digit.number]
    if inner * bits != place.length:
        return None
    pitches = {order[-1]: place.pitch // bits} if order else {}
    backward = frozenset(one.digit for one in blocking.permutations)
    start = place.start // bits
    return strided_shape(blocking, element, bits % 8, reversed_digits=backward, offset=start, pitches=pitches)


def blocking_of(packing: Packing, name: str, dims: tuple[int, ...]) -> Blocking:
    """The digits of an array in a packing that is an ordinary layout.

    Raises:
        LayoutError: the dimensions do not fit.
    """
    packing.sizes(dims, f"the format {name!r}")
    (field,) = packing.fields
    return field_blocking(field, dims)


def _value_of(code: int, element: PrimitiveType) -> int | float:
    """The value of an element whose bits are a code.

    (127, u8) -> 127    (127, f8e8m0fnu) -> 1.0    (8, s4) -> -8
    """
    if element.kind == "signed":
        return code - (code >> element.bits - 1 << element.bits)
    if element.kind == "unsigned" or element.numpy is None:
        return code
    return float(np.array(code, np.uint8).view(element.numpy))


def code_element(name: str, element: PrimitiveType, bits: int) -> PrimitiveType:
    """The element type of codes of that width.

    (u8, 4) -> u4    (s8, 4) -> s4    (f4e2m1fn, 4) -> f4e2m1fn

    Raises:
        LayoutError: elements have another width.
    """
    if element.bits == bits and (element.name != "pred" or bits == 1):
        return element
    if element.name in ("u8", "s8"):
        return PRIMITIVE_TYPES[f"{element.name[0]}{bits}"]
    raise LayoutError(
        f"the format {name!r} stores codes of {bits} bits, got {element.name}\n"
        f"  pass codes as uint8 or int8, or a dtype of {bits} bits"
    )
