"""What was done to a packed array: its layouts as they were requested and as they resolved, in JSON.

    [{"layout": "tpu", "parameters": {}, "shape": {"primitive_type": "f32", "dimensions": [100, 300], ...}}]

An array that was packed several times has several entries, the first packing first. Every file that TileJIT
packs keeps this list: in the metadata of a .safetensors file, or beside the other files (`provenance`).
"""

from __future__ import annotations

from collections.abc import Mapping
from itertools import pairwise
from math import isfinite, prod
from typing import Any, NoReturn, TypeAlias

import numpy as np

from codegen import LayoutError, dataclass
from tilejit.arrays.memory import Array
from tilejit.files.json_text import reason, shortened
from tilejit.layout.cute_shape import Spec, spec_from_json
from tilejit.layout.indexing import shape_name
from tilejit.tiled.buffers import check_packable
from tilejit.tiled.tiled_array import TiledArray

MOST_PACKINGS = 100
MOST_NAME = 80
"""The most characters of a layout that a message shows."""
KEYS = ("layout", "parameters", "shape")


@dataclass(frozen=True, slots=True)
class Record:
    """One packing of an array.

    Attributes:
        layout: the text of the layout as it was requested, such as "nvfp4-scales".
        parameters: the parameters of a format or a pattern, as JSON types.
        spec: the complete shape that they resolved to for the array.
    """

    layout: str
    parameters: Mapping[str, Any]
    spec: Spec

    def __str__(self) -> str:
        """The requested layout: "nvfp4-scales", "tenstorrent tile=16,32"; without one, the shape."""
        words = [self.layout or shape_name(self.spec)]
        words += [f"{key}={_number_text(value)}" for key, value in self.parameters.items()]
        text = " ".join(words)
        return text if len(text) <= MOST_NAME else f"{text[: MOST_NAME - 3]}..."


Packings: TypeAlias = tuple[Record, ...]
"""The packings of an array, the first one first; empty for an array that is not packed."""


def unpacked(packings: Packings, data: Array) -> Array | None:
    """The array that was packed, from a packed buffer; None if a size is not that of its packing."""
    found = data
    for one in reversed(packings):
        flat = np.ascontiguousarray(found).reshape(-1).view(np.uint8)
        if flat.size != one.spec.size_in_bytes:
            return None
        found = TiledArray(flat if one.spec.packed else flat.view(one.spec.dtype), one.spec).unpack()
    return found


def packing_of(layout: Any, parameters: Mapping[str, Any], spec: Spec) -> Record:
    """The record of a packing that was requested as `as_layout` reads it."""
    text = layout if isinstance(layout, str) else str(layout)
    return Record(text, {key: _plain(value) for key, value in parameters.items()}, spec)


def packings_to_json(packings: Packings) -> list[dict[str, Any]]:
    """The packings in JSON's own types; `packings_from_json` reads them back."""
    return [
        {"layout": one.layout, "parameters": dict(one.parameters), "shape": one.spec.to_json()}
        for one in packings
    ]


def packings_from_json(data: Any, where: str, fix: str) -> Packings:
    """Read packings that `packings_to_json` has described.

    Args:
        data: the JSON value.
        where: the file and, if it holds several, the record, for errors.
        fix: what to do about a damaged record, for errors.

    Raises:
        LayoutError: a field is missing, unknown or invalid; the message names the record and the field.
    """

    def refuse(field: str, problem: str, cause: Exception | None = None) -> NoReturn:
        raise LayoutError(f"{where}: {field}: {problem}\n  {fix}") from cause

    if not isinstance(data, list) or not 0 < len(data) <= MOST_PACKINGS:
        refuse("packings", f"expected a list of 1 to {MOST_PACKINGS} packings, got {_kind(data)}")
    found = []
    for number, one in enumerate(data):
        at = f"packings[{number}]"
        if not isinstance(one, dict):
            refuse(at, f"expected an object with {', '.join(KEYS)}, got {_kind(one)}")
        for key in one:
            if key not in KEYS:
                refuse(f"{at}.{key[:40]}", f"unknown field; this version reads {', '.join(KEYS)}")
        for key in KEYS:
            if key not in one:
                refuse(f"{at}.{key}", "the field is missing")
        if not isinstance(one["layout"], str):
            refuse(f"{at}.layout", f"expected a string, got {_kind(one['layout'])}")
        if not isinstance(one["parameters"], dict):
            refuse(f"{at}.parameters", f"expected an object, got {_kind(one['parameters'])}")
        try:
            spec = spec_from_json(one["shape"])
            check_packable(spec)
        except (ValueError, TypeError, OverflowError, RecursionError) as error:
            refuse(f"{at}.shape", reason(error).splitlines()[0][:200], error)
        found.append(Record(one["layout"], one["parameters"], spec))
    for number, (inner, outer) in enumerate(pairwise(found), 1):
        if not outer.spec.rank or _bytes_unpacked(outer.spec) != inner.spec.size_in_bytes:
            size = inner.spec.size_in_bytes
            refuse(
                f"packings[{number}].shape",
                f"expected the {size} bytes of the packing before, got {shape_name(outer.spec)}",
            )
    return tuple(found)


def _bytes_unpacked(spec: Spec) -> int:
    """Bytes of the array that a packing restores; narrow integers take a byte each."""
    return prod(spec.dimensions) * spec.dtype.itemsize


def _plain(value: Any) -> Any:
    """A parameter as a JSON type; values of other types become their text."""
    if isinstance(value, list | tuple):
        return [_plain(item) for item in value]
    if isinstance(value, np.generic):
        return _plain(value.item())
    is_json = isinstance(value, str | int | None) or (isinstance(value, float) and isfinite(value))
    return value if is_json else str(value)


def _number_text(value: Any) -> str:
    return ",".join(map(str, value)) if isinstance(value, list) else str(value)


def _kind(value: Any) -> str:
    """A value in a message: its contents if they are short."""
    if isinstance(value, list):
        return f"{len(value)} packings"
    return "an object" if isinstance(value, dict) else shortened(value)
