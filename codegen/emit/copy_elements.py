"""The source text for reading, converting and writing one element in a kernel."""

from __future__ import annotations

from codegen.ir.copies.nodes import Element
from codegen.ir.element_types import BYTE_FLOAT_TYPES, FLOAT_TYPES, INTEGER_TYPES

_LEFT_TO_NUMPY = (("f32", "u32"), ("f64", "u32"), ("bf16", "u32"), ("bf16", "pred"))
"""Conversions that only NumPy runs. Its result for a float outside u32's range depends on the element's
position in the array (vector or tail). For bf16 to pred, kernels would lose the flag of signaling NaNs."""


def _conversions() -> dict[tuple[str, str], str]:
    others = ("pred", *INTEGER_TYPES)
    pairs = [
        (a, b)
        for a in (*others, *FLOAT_TYPES)
        for b in (*others, *FLOAT_TYPES)
        if (a, b) not in _LEFT_TO_NUMPY
    ]
    pairs += [pair for a in BYTE_FLOAT_TYPES for b in FLOAT_TYPES for pair in ((a, b), (b, a))]
    table = {(a, b): f"convert_{a}_to_{b}({{}})" for a, b in pairs if a != b}
    table |= {(a, b): "{}" for a in INTEGER_TYPES for b in INTEGER_TYPES if a != b}
    table |= {(f"swap u{n}", f"u{n}"): f"swap_{n}({{}})" for n in (16, 32, 64)}
    return table


CONVERSIONS = _conversions()
"""(source, target) -> the expression around the loaded element; bit-equal to NumPy and ml_dtypes."""


def can_convert(source: str, target: str) -> bool:
    """Whether kernels can convert between these element types."""
    return (source, target) in CONVERSIONS


def run_call(kind: str, result: str) -> str:
    """The routine that converts contiguous elements, or "" if a plain loop is as fast."""
    is_routine = CONVERSIONS[kind, result].startswith("convert_")
    return f"convert_run_{kind}_to_{result}" if is_routine else ""


def load_call(element: Element, address: str, *, at: str = "") -> str:
    """The call that loads an element as an integer or a float; `at` is an offset in bytes."""
    name = _stored_name(element)
    return f"load_{name}_at({address}, {at})" if at else f"load_{name}({address})"


def store_call(element: Element, address: str, value: str, *, at: str = "") -> str:
    """The call that stores a value as an element; `at` is an offset in bytes."""
    name = _stored_name(element)
    name = name if name.startswith("f") else f"u{element.bits}"
    return f"store_{name}_at({address}, {at}, {value})" if at else f"store_{name}({address}, {value})"


def _stored_name(element: Element) -> str:
    if element.name in ("f32", "f64"):
        return element.name
    signed = element.name in INTEGER_TYPES and element.name.startswith("s")
    return f"{'s' if signed else 'u'}{element.bits}"
