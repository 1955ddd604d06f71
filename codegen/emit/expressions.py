"""How one element is read, converted and written in a kernel's source."""

from __future__ import annotations

from codegen.ir import Element

_INTEGERS = ("s8", "s16", "s32", "s64", "u8", "u16", "u32", "u64")


def _conversions() -> dict[tuple[str, str], str]:
    table = {
        ("f32", "bf16"): "f32_to_bf16({})",
        ("bf16", "f32"): "bf16_to_f32({})",
        ("f16", "f32"): "f32_of_half_bits({})",
        ("f32", "f64"): "{}",
        ("f64", "f32"): "{}",
    }
    table |= {(a, b): "{}" for a in _INTEGERS for b in _INTEGERS if a != b}
    table |= {(a, b): "{}" for a in _INTEGERS if a != "u64" for b in ("f32", "f64")}
    table |= {(f"swap u{n}", f"u{n}"): f"swap_{n}({{}})" for n in (16, 32, 64)}
    return table


CONVERSIONS = _conversions()
"""(source, target) -> the expression around the loaded element; bit-equal to NumPy and ml_dtypes."""


def can_convert(source: str, target: str) -> bool:
    """Whether a kernel converts between these element types by itself."""
    return (source, target) in CONVERSIONS


def load_call(element: Element, address: str, *, at: str = "") -> str:
    """The element at an address as an integer, or as a float where it is one; `at` is an offset in bytes."""
    name = _stored_name(element)
    return f"load_{name}_at({address}, {at})" if at else f"load_{name}({address})"


def store_call(element: Element, address: str, value: str, *, at: str = "") -> str:
    """Write a value as such an element; `at` is an offset in bytes behind the address."""
    name = _stored_name(element)
    name = name if name.startswith("f") else f"u{element.bits}"
    return f"store_{name}_at({address}, {at}, {value})" if at else f"store_{name}({address}, {value})"


def _stored_name(element: Element) -> str:
    if element.name in ("f32", "f64"):
        return element.name
    signed = element.name in _INTEGERS and element.name.startswith("s")
    return f"{'s' if signed else 'u'}{element.bits}"
