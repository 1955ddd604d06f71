"""The named formats, by what they hold."""

from __future__ import annotations

import tilejit as tj
from tilejit.catalog.packing import Packing
from tilejit.layout.dtypes import primitive_type
from tilejit.layout.formats.registry import find_format


def is_layout(name: str) -> bool:
    """Whether a format is a layout of one array, and not of planes or words of codes."""
    found = find_format(name)
    if found.example is None:
        return False
    dims, dtype = found.example
    built = found.layout(primitive_type(dtype), dims, {})
    return not isinstance(built, Packing) or built.is_layout


LAYOUTS = tuple(filter(is_layout, tj.formats()))
"""The formats that are layouts of one array."""
