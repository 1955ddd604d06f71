"""Shapes and layouts as Python code, for `repr`."""

from __future__ import annotations

from dataclasses import fields
from typing import Any

from tilejit.layout.fields import LayoutFields, ShapeFields
from tilejit.layout.text.xla_print import print_layout, print_shape


def shape_code(shape: ShapeFields) -> str:
    """The expression that creates a shape, from its text if that is complete.

    Shape.parse('f32[3,5]{1,0:T(2,2)}')    Shape('f32', (3, 5))
    Shape('f32', (3, 5), Layout.parse('{0,1}'), padded_dimensions=(4, 8), padding_value=0.0)
    """
    if _has_text(shape):
        return f"Shape.parse({print_shape(shape)!r})"
    parts = [repr(shape.primitive_type), repr(shape.dimensions)]
    if shape.layout is not None:
        parts.append(layout_code(shape.layout))
    more: dict[str, object] = {
        "dynamic": shape.dynamic if any(shape.dynamic) else None,
        "padded_dimensions": shape.padded_dimensions,
        "padding_value": shape.padding_value,
    }
    parts += [f"{name}={value!r}" for name, value in more.items() if value is not None]
    return f"Shape({', '.join(parts)})"


def layout_code(layout: LayoutFields) -> str:
    """The expression that creates a layout: Layout.parse('{1,0:T(2,2)}').

    All fields are written out only if the physical shape has no text.
    """
    physical = layout.physical_shape
    if physical is None or _has_text(physical):
        return f"Layout.parse({print_layout(layout)!r})"
    record: Any = layout
    given = [(field.name, getattr(record, field.name)) for field in fields(record)]
    return f"Layout({', '.join(f'{name}={value!r}' for name, value in given)})"


def _has_text(shape: ShapeFields) -> bool:
    """Whether XLA's text describes a shape completely: without padding, and row-major if without a layout."""
    if shape.padded_dimensions is not None or shape.padding_value is not None:
        return False
    if shape.layout is None:
        return not shape.element.is_array_element
    physical = shape.layout.physical_shape
    return physical is None or _has_text(physical)
