"""Print shapes and layouts as XLA's text: lower-case dtypes, defaults omitted."""

from __future__ import annotations

from collections.abc import Sequence

from tilejit.layout.fields import LayoutFields, ShapeFields
from tilejit.layout.tiling import MERGE

PADDING_WORDS = (", padded to ", ", filled with ")
"""The words before a shape's padding, outside XLA's grammar, so that no reader silently drops it."""


def print_shape(shape: ShapeFields) -> str:
    """The text of an array's shape, which `Shape.parse` reads; padding follows in words.

    f32[3,<=5]{1,0:T(2,2)}    f32[]    f32[]{:T(256)}    token[]
    f32[2,3]{0,1}, padded to [3,5], filled with 0.0

    `Shape.parse` rejects these words, so that the padding cannot get lost.
    """
    text, (padded, filled) = array_text(shape), PADDING_WORDS
    if shape.padded_dimensions is not None:
        text += f"{padded}[{','.join(map(str, shape.padded_dimensions))}]"
    if shape.padding_value is not None:
        text += f"{filled}{shape.padding_value}"
    return text


def array_text(shape: ShapeFields) -> str:
    """The text of an array's shape, without padding."""
    dims = ",".join(
        _dimension(size, dynamic) for size, dynamic in zip(shape.dimensions, shape.dynamic, strict=True)
    )
    layout = "" if shape.layout is None else print_layout(shape.layout)
    return f"{shape.primitive_type}[{dims}]{'' if layout == '{}' else layout}"


def print_layout(layout: LayoutFields) -> str:
    """The text of a layout, braces included.

    {1,0:T(8,128)(2,1)E(16)S(1)}    {}    {:T(256)}
    """
    order = ",".join(map(str, layout.minor_to_major))
    properties = _properties(layout)
    return f"{{{order}:{properties}}}" if properties else f"{{{order}}}"


def print_tuple(members: Sequence[str]) -> str:
    """The text of a tuple of shapes, with its index as a comment before every fifth."""
    parts = [f"/*index={i}*/{text}" if i and i % 5 == 0 else text for i, text in enumerate(members)]
    return f"({', '.join(parts)})"


def _dimension(size: int, dynamic: bool) -> str:
    if size < 0:
        return "?"
    return f"<={size}" if dynamic else str(size)


def _properties(layout: LayoutFields) -> str:
    """The properties after the colon, in XLA's order."""
    parts: list[str] = []
    if layout.tiles:
        parts.append("T" + "".join(f"({_tile(tile)})" for tile in layout.tiles))
    if layout.tail_padding_alignment_in_elements != 1:
        parts.append(f"L({layout.tail_padding_alignment_in_elements})")
    if layout.index_type is not None:
        parts.append(f"#({layout.index_type})")
    if layout.pointer_type is not None:
        parts.append(f"*({layout.pointer_type})")
    if layout.element_size_in_bits:
        parts.append(f"E({layout.element_size_in_bits})")
    if layout.memory_space:
        parts.append(f"S({layout.memory_space})")
    if layout.split_configs:
        splits = (f"({dim}:{','.join(map(str, indices))})" for dim, indices in layout.split_configs)
        parts.append("SC" + "".join(splits))
    if layout.physical_shape is not None:
        parts.append(f"P({layout.physical_shape})")
    if layout.dynamic_shape_metadata_prefix_bytes:
        parts.append(f"M({layout.dynamic_shape_metadata_prefix_bytes})")
    return "".join(parts)


def _tile(tile: Sequence[int]) -> str:
    return ",".join("*" if size == MERGE else str(size) for size in tile)
