"""Properties that follow from the fields of a shape: order, tiles, and sizes in elements, bits and bytes."""

from __future__ import annotations

import math

from codegen import cached
from tilejit.layout import tiling
from tilejit.layout.fields import UNBOUNDED, ShapeFields
from tilejit.layout.strides import keeps_order


class ShapeFacts:
    """Properties of a Shape that follow from its fields."""

    __slots__ = ()

    @property
    def rank(self: ShapeFields) -> int:
        """The number of dimensions."""
        return len(self.dimensions)

    @property
    def true_rank(self: ShapeFields) -> int:
        """The number of dimensions whose size is not 0 or 1; `?` counts."""
        return sum(size > 1 or size == UNBOUNDED for size in self.dimensions)

    @property
    def bits(self: ShapeFields) -> int:
        """The width of an element in the buffer, in bits: E if given, otherwise the storage width."""
        return (self.layout.element_size_in_bits if self.layout else 0) or self.element.storage_bits

    @property
    def packed(self: ShapeFields) -> bool:
        """Whether several elements share a byte: E is given and below 8."""
        return self.layout is not None and 0 < self.layout.element_size_in_bits < 8

    @property
    def minor_to_major(self: ShapeFields) -> tuple[int, ...]:
        """The order of the layout; row-major without a layout."""
        return self.layout.minor_to_major if self.layout else tuple(reversed(range(self.rank)))

    @property
    def tiles(self: ShapeFields) -> tuple[tuple[int, ...], ...]:
        """The tiles of the layout in elements, the outermost first; empty without a layout."""
        return self.layout.tiles if self.layout else ()

    @property
    def descending(self: ShapeFields) -> bool:
        """Whether the order is row-major, regardless of tiles."""
        return self.layout is None or self.layout.descending

    @property
    def untiled(self: ShapeFields) -> bool:
        """Whether the tiles change nothing: they add no padding and keep the order of the untiled layout.

        [24,128] with T(8,128) -> True    [2,3,4] with T(8,128) -> False
        """
        return not self.tiles or keeps_order(*tile_steps_of(self))

    @property
    def size_in_bytes(self: ShapeFields) -> int:
        """Bytes of the buffer, rounded up.

        f32[3,5]{1,0:T(2,2)} -> 96    s4[3]{0:E(4)} -> 2

        Raises:
            LayoutError: the size is unknown, as for `physical_size`.
        """
        return -(-self.physical_size * self.bits // 8)

    @property
    def padding_fraction(self: ShapeFields) -> float:
        """The fraction of the buffer that is padding, from 0 to 1; 0 for an empty buffer.

        f32[3,5]{1,0:T(2,2)} -> 0.375
        """
        size = self.physical_size
        return (size - math.prod(self.dimensions)) / size if size else 0.0

    @property
    def xla_array_size(self: ShapeFields) -> int:
        """Bytes as XLA's ArraySize counts them: with the padding of the first tile only, then L and E.

        f32[3,5]{1,0:T(3,5)(4,1)} -> 60, while size_in_bytes is 80
        """
        _, extents = tile_steps_of(self)
        tail = self.layout.tail_padding_alignment_in_elements if self.layout else 1
        return -(-tiling.physical_size(extents[min(1, len(extents) - 1)], tail, self.bits) * self.bits // 8)


@cached(256)
def tile_steps_of(shape: ShapeFields) -> tuple[tuple[tiling.TileStep, ...], tuple[tuple[int, ...], ...]]:
    """Cached `tile_steps` of a shape."""
    return tiling.tile_steps(shape)
