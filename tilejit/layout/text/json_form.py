"""Shapes in JSON's own types, padding included; reading is strict."""

from __future__ import annotations

import math
from typing import Any, cast

from codegen import LayoutError
from tilejit.layout.fields import MAX_DEPTH, LayoutFields, Makers, ShapeFields
from tilejit.layout.padding import PaddingValue

_SHAPE_FIELDS = ("primitive_type", "dimensions", "layout", "dynamic", "padded_dimensions", "padding_value")
_LAYOUT_FIELDS = (
    *("minor_to_major", "tiles", "element_size_in_bits", "tail_padding_alignment_in_elements"),
    *("memory_space", "index_type", "pointer_type", "split_configs", "physical_shape"),
    "dynamic_shape_metadata_prefix_bytes",
)


def shape_to_json(shape: ShapeFields) -> dict[str, Any]:
    """Return a dict that json.dumps accepts; infinities and NaN are strings.

    {"primitive_type": "f32", "dimensions": [2, 3], "layout": {"minor_to_major": [0, 1], …}, …}
    """
    return {
        "primitive_type": shape.primitive_type,
        "dimensions": list(shape.dimensions),
        "layout": None if shape.layout is None else _layout_to_json(shape.layout),
        "dynamic": list(shape.dynamic),
        "padded_dimensions": None if shape.padded_dimensions is None else list(shape.padded_dimensions),
        "padding_value": _value_to_json(shape.padding_value),
    }


def shape_from_json(data: dict[str, Any], makers: Makers, depth: int = 0) -> Any:
    """Read the shape from a dict that `shape_to_json` returned; missing fields take their defaults.

    Raises:
        LayoutError: a field is unknown, missing or invalid.
        TypeError: `data` is not a dict.
    """
    if not isinstance(data, dict):
        raise TypeError(f"expected a dict as the JSON form of a shape, got {type(data).__name__}")
    if depth > MAX_DEPTH:
        raise LayoutError(f"physical shapes nest more than {MAX_DEPTH} deep\n  reduce the nesting")
    _check_fields(data, _SHAPE_FIELDS, ("primitive_type", "dimensions"))
    layout = data.get("layout")
    try:
        return makers.shape(
            primitive_type=data["primitive_type"],
            dimensions=data["dimensions"],
            layout=None if layout is None else _layout_from_json(layout, makers, depth),
            dynamic=tuple(data.get("dynamic", ())),
            padded_dimensions=data.get("padded_dimensions"),
            padding_value=_value_from_json(data.get("padding_value")),
        )
    except (TypeError, AttributeError, KeyError, IndexError) as error:
        raise LayoutError(
            f"the JSON form of a shape has a field of the wrong type: {error}\n  see Shape.to_json()"
        ) from error


def _layout_to_json(layout: LayoutFields) -> dict[str, Any]:
    form: dict[str, Any] = {name: getattr(layout, name) for name in _LAYOUT_FIELDS}
    form["minor_to_major"] = list(layout.minor_to_major)
    form["tiles"] = [list(tile) for tile in layout.tiles]
    form["split_configs"] = [[dim, list(indices)] for dim, indices in layout.split_configs]
    form["physical_shape"] = None if layout.physical_shape is None else shape_to_json(layout.physical_shape)
    return form


def _layout_from_json(form: dict[str, Any], makers: Makers, depth: int) -> Any:
    _check_fields(form, _LAYOUT_FIELDS, ("minor_to_major",))
    inner = form.get("physical_shape")
    physical = None if inner is None else shape_from_json(inner, makers, depth + 1)
    return makers.layout(**{**form, "physical_shape": physical})


def _check_fields(form: dict[str, Any], known: tuple[str, ...], needed: tuple[str, ...]) -> None:
    if not isinstance(form, dict):
        raise LayoutError(
            f"expected a dict with {known[0]}, got {type(form).__name__}\n  see Shape.to_json()"
        )
    for name in form:
        if name not in known:
            raise LayoutError(f"unknown field {str(name)[:40]!r}\n  use only {', '.join(known)}")
    for name in needed:
        if name not in form:
            raise LayoutError(f"the field {name!r} is missing\n  see Shape.to_json()")


def _value_to_json(value: PaddingValue | None) -> Any:
    if isinstance(value, complex):
        return [_value_to_json(value.real), _value_to_json(value.imag)]
    if isinstance(value, float) and not math.isfinite(value):
        return repr(value)
    return value


def _value_from_json(form: Any) -> PaddingValue | None:
    if isinstance(form, list | tuple) and len(form) == 2:
        return complex(_real_from_json(form[0]), _real_from_json(form[1]))
    return cast("PaddingValue | None", _real_from_json(form))


def _real_from_json(form: Any) -> Any:
    return float(form) if form in ("inf", "-inf", "nan") else form
