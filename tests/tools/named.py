"""The named formats, by what they hold."""

from __future__ import annotations

import tilejit as tj
from tilejit.layout.formats.examples import example_packing
from tilejit.layout.formats.registry import find_format


def is_layout(name: str) -> bool:
    """Whether a format is a layout of one array, and not of planes or words of codes."""
    packing = example_packing(find_format(name))
    return packing is None or packing.is_layout


LAYOUTS = tuple(filter(is_layout, tj.formats()))
"""The formats that are layouts of one array."""
