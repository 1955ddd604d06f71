"""`make_shape`: create a shape from its parts."""

from __future__ import annotations

from collections.abc import Iterable

from tilejit.layout.checks import int_tuple, tile_tuples
from tilejit.layout.dtypes import ElementLike, primitive_type
from tilejit.layout.padding import PaddingName, PaddingValue, padding_value_of
from tilejit.layout.shape import Layout, Shape


def make_shape(
    dtype: ElementLike,
    dims: Iterable[int],
    minor_to_major: Iterable[int] | None = None,
    tiles: Iterable[Iterable[int]] = (),
    *,
    padded_dimensions: Iterable[int] | None = None,
    padding_value: PaddingValue | PaddingName | None = None,
    element_size_in_bits: int = 0,
    tail_padding_alignment_in_elements: int = 1,
    memory_space: int = 0,
) -> Shape:
    """Create a shape from its parts, like XLA's ShapeUtil::MakeShape.

    >>> print(tilejit.make_shape("f32", (2, 3)))
    f32[2,3]{1,0}
    >>> print(tilejit.make_shape("bf16", (1000, 300), tiles=((8, 128), (2, 1))))
    bf16[1000,300]{1,0:T(8,128)(2,1)}
    >>> padded = tilejit.make_shape("f32", (2, 3), (0, 1), padded_dimensions=(3, 5), padding_value="ONE_PAD")
    >>> print(padded, padded.physical_size)
    f32[2,3]{0,1}, padded to [3,5], filled with 1.0 15

    Args:
        dtype: the element type: XLA's name, a NumPy dtype, or NumPy's code.
        dims: the dimensions in elements, dimension 0 first; -1 is `?`.
        minor_to_major: the dimensions, the fastest varying first; negative ones count from the end. None is
            row-major.
        tiles: tile sizes in elements, the outermost tile first; -1 is `*`.
        padded_dimensions: the size in elements that each dimension is padded to before tiling.
        padding_value: the value of padding elements: a number, or a name from XLA's enum PaddingValue.
            ZERO_PAD and ONE_PAD are 0 and 1 in the dtype. LOWEST_PAD and HIGHEST_PAD are its smallest and
            largest value, infinities if it has them. UNKNOWN_PAD leaves the value open, as None does.
        element_size_in_bits: E in XLA's text; 0 is the dtype's own storage width.
        tail_padding_alignment_in_elements: L in XLA's text; 1 adds nothing.
        memory_space: S in XLA's text, from 0 to 127.

    Returns:
        The shape.

    Raises:
        LayoutError: the parts do not describe an array.
        TypeError: a part has the wrong type.
    """
    sizes = int_tuple(dims, "dims")
    rank = len(sizes)
    order = (
        tuple(reversed(range(rank)))
        if minor_to_major is None
        else int_tuple(minor_to_major, "minor_to_major")
    )
    layout = Layout(
        minor_to_major=tuple(d + rank if -rank <= d < 0 else d for d in order),
        tiles=tile_tuples(tiles),
        element_size_in_bits=element_size_in_bits,
        tail_padding_alignment_in_elements=tail_padding_alignment_in_elements,
        memory_space=memory_space,
    )
    element = primitive_type(dtype)
    return Shape(
        primitive_type=element.name,
        dimensions=sizes,
        layout=layout,
        padded_dimensions=None
        if padded_dimensions is None
        else int_tuple(padded_dimensions, "padded_dimensions"),
        padding_value=padding_value_of(padding_value, element),
    )
