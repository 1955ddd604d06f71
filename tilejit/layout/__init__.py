"""Layouts: XLA's shapes and their text, sizes, helpers, named formats, and a reader for all of them."""

from tilejit.layout.as_layout import as_layout, named_format, recipe_of
from tilejit.layout.dtypes import PRIMITIVE_TYPES, PrimitiveType, primitive_type
from tilejit.layout.formats import (
    FormatDescription,
    describe_format,
    formats,
    register_format,
    unregister_format,
)
from tilejit.layout.from_parts import make_shape
from tilejit.layout.helpers import (
    axis_letters,
    bump_indices,
    byte_strides,
    dimension_stride,
    in_bounds,
    is_dim_major,
    is_dim_minor,
    is_monotonic_with_dim0_major,
    is_monotonic_with_dim0_minor,
    normalize_dimension,
    reshape_is_bitcast,
    validate_layout,
)
from tilejit.layout.shape import AnyShape, BufferShape, Layout, Shape, TupleShape, parse_shape
from tilejit.layout.tiling import TileStep, tile_steps

__all__ = [
    "PRIMITIVE_TYPES",
    "AnyShape",
    "BufferShape",
    "FormatDescription",
    "Layout",
    "PrimitiveType",
    "Shape",
    "TileStep",
    "TupleShape",
    "as_layout",
    "axis_letters",
    "bump_indices",
    "byte_strides",
    "describe_format",
    "dimension_stride",
    "formats",
    "in_bounds",
    "is_dim_major",
    "is_dim_minor",
    "is_monotonic_with_dim0_major",
    "is_monotonic_with_dim0_minor",
    "make_shape",
    "named_format",
    "normalize_dimension",
    "parse_shape",
    "primitive_type",
    "recipe_of",
    "register_format",
    "reshape_is_bitcast",
    "tile_steps",
    "unregister_format",
    "validate_layout",
]
