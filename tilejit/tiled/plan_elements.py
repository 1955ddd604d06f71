"""The elements of packs and unpacks: which conversions kernels make, and the dtype of a result."""

from __future__ import annotations

from typing import Any

import numpy as np

from codegen import Element
from tilejit.arrays.values import is_byte, widens_to
from tilejit.layout.cute_shape import Spec
from tilejit.layout.dtypes import array_dtype
from tilejit.programs.compiled import array_element
from tilejit.programs.moves import move_for
from tilejit.programs.tuning import Casting, casting_error, may_cast


def pack_element(dtype: np.dtype[Any], spec: Spec, casting: Casting) -> tuple[Element | None, bool]:
    """How a kernel reads an array for this layout, and whether its values are checked first.

    The element is None if only NumPy makes the conversion. Integers in bytes are checked if the layout's
    elements are narrower.

    Raises:
        LayoutError: `casting` does not allow the conversion.
    """
    have, want = dtype.newbyteorder("="), spec.dtype
    bits, is_allowed = 8 * dtype.itemsize, may_cast(have, want, casting)
    if spec.element.byte_dtype is not None and is_byte(have):
        return Element(spec.primitive_type, bits), True
    if have == want:
        return Element(spec.primitive_type, bits), False
    if not is_allowed:
        raise casting_error(
            have, want, casting, f"the array is {have}, but the layout is {spec.primitive_type}"
        )
    move = move_for(dtype, want) if spec.bits >= 8 else None
    return (move.source if move else None), False


def assigned_element(dtype: np.dtype[Any], spec: Spec) -> tuple[Element | None, bool]:
    """How a kernel reads an array that is assigned to elements, and whether its range is checked first.

    The kernel assigns the result of `arrays.values.elements`. The element is None if only NumPy makes the
    conversion, or if values need other checks.
    """
    if dtype == spec.dtype:
        return array_element(spec), False
    target, kind = spec.element, dtype.kind
    if target.byte_dtype is not None:
        is_copied = is_byte(dtype) and not has_upper_bits(spec)
        return (array_element(spec) if is_copied else None), True
    holds_nan = target.kind != "float" or target.bits >= 8
    is_number = kind in "biuf" or (kind == "V" and dtype.names is None and target.kind == "float")
    if not (holds_nan and is_number and dtype.isnative) or spec.bits < 8:
        return None, False
    move = move_for(dtype, spec.dtype)
    if move is None:
        return None, False
    return move.source, kind == "f" and target.kind in ("signed", "unsigned")


def cast_of(
    element: Element | None, spec: Spec, have: np.dtype[Any], want: np.dtype[Any]
) -> tuple[np.dtype[Any], np.dtype[Any]] | None:
    """The dtypes of a conversion to or from the layout's elements; None if the kernel copies bytes."""
    return None if element is not None and element.name == spec.primitive_type else (have, want)


def is_swapped(dtype: np.dtype[Any]) -> bool:
    """Whether elements have their bytes in the order that is not native.

    Types of one byte have no order, even if ml_dtypes' ones are marked with one.
    """
    return dtype.itemsize > 1 and not dtype.isnative


def has_upper_bits(spec: Spec) -> bool:
    """Whether integers in bytes, copied to narrower elements, may leave bits above the element.

    int8 holds -7 as 0xF9, s4 as 0x09. Packed elements have no other bits, and unsigned integers set none.
    """
    return spec.element.byte_dtype == np.int8 and not spec.packed


def extends_sign(spec: Spec, dtype: np.dtype[Any]) -> bool:
    """Whether bytes that a kernel unpacks lack the upper bits of negative integers."""
    return spec.element.kind == "signed" and widens_to(spec.element, dtype)


def unpacked_dtype(spec: Spec, out: Any, dtype: Any) -> np.dtype[Any]:
    """The dtype of the result of an unpack: the requested one, that of `out`, or the layout's.

    Raises:
        LayoutError: arrays cannot have it.
        TypeError: the dtype does not exist.
    """
    if dtype is not None:
        return array_dtype(dtype)
    return out.dtype if isinstance(out, np.ndarray) else spec.dtype


def unpack_element(spec: Spec, dtype: np.dtype[Any]) -> Element | None:
    """How a kernel writes elements of an array; None if only NumPy makes the conversion.

    Bytes receive the bits of narrower integers; `extends_sign` tells whether those are not the value yet.
    """
    if dtype.newbyteorder("=") == spec.dtype or widens_to(spec.element, dtype):
        return array_element(spec)
    if not dtype.isnative or spec.bits < 8:
        return None
    move = move_for(spec.dtype, dtype)
    return move.target if move else None
