"""A shape from its parts."""

from __future__ import annotations

from collections.abc import Iterable

from tilejit.layout.checks import int_tuple, tile_tuples
from tilejit.layout.dtypes import ElementLike, primitive_type
from tilejit.layout.padding import PaddingValue
from tilejit.layout.shape import Layout, Shape


def make_shape(
    dtype: ElementLike,
    dims: Iterable[int],
    minor_to_major: Iterable[int] | None = None,
    tiles: Iterable[Iterable[int]] = (),
    *,
    padded_dimensions: Iterable[int] | None = None,
    padding_value: PaddingValue | None = None,
    element_size_in_bits: int = 0,
    tail_padding_alignment_in_elements: int = 1,
    memory_space: int = 0,
) -> Shape:
    """A shape from its parts; dimensions in minor_to_major may count from the end.

    make_shape("f32", (2, 3), (0, 1), padded_dimensions=(3, 5), padding_value=0) -> 15 slots, column-major

    Raises:
        LayoutError: the parts do not describe an array.
        TypeError: a part of a wrong type.
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
    return Shape(
        primitive_type=primitive_type(dtype).name,
        dimensions=sizes,
        layout=layout,
        padded_dimensions=None
        if padded_dimensions is None
        else int_tuple(padded_dimensions, "padded_dimensions"),
        padding_value=padding_value,
    )
