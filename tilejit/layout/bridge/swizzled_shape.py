"""A swizzle over the buffer of any shape: XLA's tiles as CuTe's modes, padding included."""

from __future__ import annotations

from operator import attrgetter

from codegen import LayoutError
from tilejit.cute.digit_step import DigitStep
from tilejit.cute.digits import Chain, Mode, joined
from tilejit.cute.layout import Layout, cosize
from tilejit.cute.swizzle import ComposedLayout, Swizzle
from tilejit.cute.tables import layout_of
from tilejit.layout.cute_shape import CuteLayout, CuteShape, Spec
from tilejit.layout.shape import Shape
from tilejit.layout.strides import GAP, buffer_digits
from tilejit.layout.tiling import tile_steps


def swizzled_shape(swizzle: Swizzle | DigitStep, offset: int, shape: Spec) -> CuteShape:
    """Return the shape whose slots are those of another one, moved by an offset and a swizzle.

    Sw<1,0,2>, 0, f32[4,4]{1,0:T(2,2)} -> f32[4,4] Sw<1,0,2> o 0 o ((2,2),(2,2)):((2,8),(1,4))

    Raises:
        LayoutError: CuTe's modes cannot express the shape, or offsets are negative or exceed 2^63 bits.
    """
    inner: CuteLayout = buffer_layout(shape) if isinstance(shape, Shape) else shape.layout
    if isinstance(inner, ComposedLayout) and isinstance(inner.outer, Swizzle) and not inner.outer.bits:
        offset, inner = offset + inner.offset, inner.inner
    layout = ComposedLayout(swizzle, offset, inner)
    width = 0 if shape.bits == shape.element.storage_bits else shape.bits
    return CuteShape(shape.primitive_type, shape.dimensions, layout, width, shape.padding_value)


def buffer_layout(shape: Shape) -> Layout:
    """Return the CuTe layout of a shape whose modes cover the whole buffer, padding included.

    f32[3,5]{1,0:T(2,2)} -> ((2,2),(2,3)):((2,12),(1,4))    f32[3]{0:T(1024)} -> (1024):(1)

    Padding that belongs to no dimension becomes more coordinates of the last one.

    Raises:
        LayoutError: a tile lies partly in two others, or the buffer ends with padding of L or `*`.
    """
    steps, extents = tile_steps(shape)
    if 0 in shape.dimensions:
        return layout_of((Mode(n, 0),) for n in shape.dimensions)
    for count in range(len(steps) + 1):
        chains = _chains(shape, buffer_digits(steps[:count], extents[: count + 1]))
        if chains is None:
            tile = ",".join(map(str, shape.tiles[count - 1]))
            raise LayoutError(
                f"the tile ({tile}) cuts digits of the tiles before it\n"
                "  use tile sizes that divide, or are multiples of, those before"
            )
    assert chains is not None
    layout = layout_of(chains)
    if cosize(layout) != shape.physical_size:
        raise LayoutError(
            f"its buffer ends with padding: {shape.physical_size} slots, of which rows take "
            f"{cosize(layout)}\n  omit L, and merge dimensions with * only where tiles divide them"
        )
    return layout


def _chains(shape: Shape, digits: object) -> list[Chain] | None:
    """The digits of each dimension, and those of padding; None if a dimension lacks a digit."""
    if not isinstance(digits, list):
        return None
    chains: list[Chain] = []
    for dim in range(shape.rank):
        axis = shape.rank - 1 - shape.minor_to_major.index(dim)
        own = sorted(
            (digit for digit in digits if digit.dim == axis and digit.size > 1), key=attrgetter("weight")
        )
        reach = 1
        for digit in own:
            if digit.weight != reach:
                return None
            reach *= digit.size
        if reach < shape.dimensions[dim]:
            return None
        chains.append(tuple(joined(Mode(digit.size, digit.stride) for digit in own)))
    gaps = tuple(Mode(digit.size, digit.stride) for digit in digits if digit.dim == GAP and digit.size > 1)
    if gaps and chains:
        chains[-1] = (*chains[-1], *gaps)
    return chains
