"""Convert CuTe layouts to XLA shapes: tiles must produce the storage order of the modes' digits."""

from __future__ import annotations

from collections.abc import Iterable
from typing import NoReturn

from codegen import LayoutError, shown
from tilejit.cute.int_tuple import as_integer, modes, product
from tilejit.cute.layout import Layout, offsets
from tilejit.cute.modes import flat_modes
from tilejit.cute.swizzle import ComposedLayout
from tilejit.cute.witness import NoLayoutError, Witness
from tilejit.layout.bridge.chains import cut_chain
from tilejit.layout.bridge.from_offsets import recognized
from tilejit.layout.bridge.from_xla import BoundedLayout
from tilejit.layout.bridge.storage_order import Unplaced, storage_stages
from tilejit.layout.bridge.tile_spelling import spelled
from tilejit.layout.checks import int_tuple
from tilejit.layout.dtypes import ElementLike, primitive_type
from tilejit.layout.from_parts import make_shape
from tilejit.layout.helpers import dims_text
from tilejit.layout.shape import Shape
from tilejit.support.tokens import named

MOST_AXES = 64
"""NumPy's limit on dimensions: a witness is an index of a table with an axis for each mode."""


def to_xla(
    layout: Layout | ComposedLayout | BoundedLayout,
    *,
    dtype: ElementLike = "f32",
    dims: Iterable[int] | None = None,
    element_size_in_bits: int = 0,
    slots: int | None = None,
) -> Shape:
    """Convert a CuTe layout to the XLA shape that maps every index to the same slot.

    >>> print(to_xla(parse("((2,2),(2,3)):((2,12),(1,4))"), dims=(3, 5)))
    f32[3,5]{1,0:T(2,2)}
    >>> print(to_xla(parse("(8,4):(5,1)")))
    f32[8,4]{1,0:T(5)}
    >>> print(to_xla(parse("(5,16,5):(5,32,1)")))
    f32[5,16,5]{2,0,1:T(*,32)}

    The shape has the fewest tiles that the search finds. It finds tiles whenever each stride exceeds all
    offsets of the smaller strides. The buffer then has at most as many slots as the largest stride times its
    size, unless `*` was needed.

    Args:
        layout: one mode for each dimension. A BoundedLayout also provides its bound and slots.
        dtype: the dtype of the elements.
        dims: the dimensions of the array in elements, each at most the size of its mode. None takes the
            sizes.
        element_size_in_bits: E of the shape.
        slots: the size of the buffer in elements. None takes as many as the tiles need.

    Returns:
        The shape.

    Raises:
        NoLayoutError: tiles cannot express the layout, except in rare cases of a `*` that cuts through
            digits: a stride is 0 or negative, offsets overlap or interleave, or it has a swizzle. The witness
            is an index that shows it, with the least offset that tiles could give there.
        LayoutError: `dims` or `slots` do not match the layout.
        TypeError: an argument has the wrong type.
    """
    if isinstance(layout, BoundedLayout):
        dims = layout.bound if dims is None else dims
        slots = layout.slots if slots is None else slots
        layout = layout.layout
    if isinstance(layout, ComposedLayout):
        layout = _plain(layout)
    if not isinstance(layout, Layout):
        raise TypeError(
            f"to_xla: expected a Layout, got {type(layout).__name__}\n  read text with cute.parse(...)"
        )
    sizes = tuple(mode.size for mode in layout)
    slots = None if slots is None else as_integer(slots, "slots")
    bound = _bound(layout, sizes, dims)
    element = primitive_type(dtype)
    if 0 in bound:
        if slots:
            raise LayoutError(
                f"an array without elements has 0 slots, not {shown(slots)}\n  pass slots=0 or omit it"
            )
        return make_shape(element, bound, element_size_in_bits=element_size_in_bits)
    chains = tuple(cut_chain(tuple(flat_modes(mode)), n) for mode, n in zip(layout, bound, strict=True))
    stages = storage_stages(chains)
    if isinstance(stages, Unplaced):
        _refuse_tiles(layout, stages)
    minor_to_major, tiles = spelled(stages)
    shape = make_shape(element, bound, minor_to_major, tiles, element_size_in_bits=element_size_in_bits)
    if slots is None or slots == shape.physical_size:
        return shape
    if slots < shape.physical_size:
        raise LayoutError(
            f"the tiles need {shape.physical_size} slots, not {shown(slots)}\n"
            "  pass that number, or omit slots"
        )
    return make_shape(
        element,
        bound,
        minor_to_major,
        tiles,
        element_size_in_bits=element_size_in_bits,
        tail_padding_alignment_in_elements=slots,
    )


def _plain(composed: ComposedLayout) -> Layout:
    """The plain layout that equals a composed one."""
    if composed.rank > MOST_AXES:
        raise LayoutError(f"{named(composed)} has {composed.rank} modes\n  compose at most {MOST_AXES}")
    table = offsets(composed).reshape(tuple(map(product, modes(composed.shape))), order="F")
    if table.size == 0:
        return Layout(table.shape)
    return recognized(table, named(composed), "XLA's tiles express neither swizzles nor a first offset")


def _bound(layout: Layout, sizes: tuple[int, ...], dims: Iterable[int] | None) -> tuple[int, ...]:
    """The requested dimensions, checked against the modes."""
    if dims is None:
        return sizes
    bound = int_tuple(dims, "dims")
    if len(bound) != len(sizes) or not all(0 <= n <= size for n, size in zip(bound, sizes, strict=False)):
        raise LayoutError(
            f"an array {dims_text(bound)} does not fit the modes of {named(layout)}\n"
            f"  pass dims of at most {dims_text(sizes)}"
        )
    return bound


def _refuse_tiles(layout: Layout, fault: Unplaced) -> NoReturn:
    here = f"index {fault.index} gives {fault.offset}"
    if fault.twin is not None:
        cause = f"{here}, and so does index {fault.twin}"
    elif fault.offset < 0:
        cause = f"{here}, and slots count from 0"
    else:
        cause = f"{here}, within the range of smaller strides, which reach {fault.reach} at index {fault.far}"
    index = fault.index[0] if len(fault.index) == 1 else fault.index
    raise NoLayoutError(
        f"{named(layout)} cannot be expressed by tiles: {cause}\n"
        "  use positive strides, each larger than all offsets of the smaller ones",
        Witness(index, fault.offset, None if fault.offset < 0 else fault.reach + 1),
    )
