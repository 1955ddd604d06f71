"""What tilings, printers and readers know of a shape: its fields and what builds it, not its class."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple, Protocol

from tilejit.layout.dtypes import PrimitiveType
from tilejit.layout.padding import PaddingValue

UNBOUNDED = -1
"""The size of a dimension `?`."""

MAX_DEPTH = 32
SplitConfig = tuple[int, tuple[int, ...]]


class LayoutFields(Protocol):
    """A layout: what stands between XLA's braces."""

    @property
    def minor_to_major(self) -> tuple[int, ...]:
        """Logical dimensions, the fastest varying first."""

    @property
    def tiles(self) -> tuple[tuple[int, ...], ...]:
        """Outermost first; sizes in elements."""

    @property
    def descending(self) -> bool:
        """Whether the order is row-major."""

    @property
    def element_size_in_bits(self) -> int:
        """E; 0 is the storage width of the type."""

    @property
    def tail_padding_alignment_in_elements(self) -> int:
        """L."""

    @property
    def memory_space(self) -> int:
        """S."""

    @property
    def index_type(self) -> str | None:
        """# in the text."""

    @property
    def pointer_type(self) -> str | None:
        """* in the text."""

    @property
    def split_configs(self) -> tuple[SplitConfig, ...]:
        """SC; pairs of a dimension and its split indices."""

    @property
    def physical_shape(self) -> ShapeFields | None:
        """P."""

    @property
    def dynamic_shape_metadata_prefix_bytes(self) -> int:
        """M."""


class ShapeFields(Protocol):
    """An array's shape: its fields, and what follows from them."""

    @property
    def primitive_type(self) -> str:
        """Lower-case name, such as "bf16"."""

    @property
    def dimensions(self) -> tuple[int, ...]:
        """Logical sizes in elements; -1 is `?`."""

    @property
    def layout(self) -> LayoutFields | None:
        """None where nothing is said about memory."""

    @property
    def dynamic(self) -> tuple[bool, ...]:
        """For each dimension, whether its size is only a bound."""

    @property
    def padded_dimensions(self) -> tuple[int, ...] | None:
        """The size each dimension is padded to before tiling, or None."""

    @property
    def padding_value(self) -> PaddingValue | None:
        """What padding holds, or None where that is left open."""

    @property
    def element(self) -> PrimitiveType:
        """The row of the table of types."""

    @property
    def rank(self) -> int:
        """The number of dimensions."""

    @property
    def bits(self) -> int:
        """Width of one element in the buffer."""

    @property
    def minor_to_major(self) -> tuple[int, ...]:
        """Logical dimensions, the fastest varying first."""

    @property
    def tiles(self) -> tuple[tuple[int, ...], ...]:
        """The tiles of the layout, outermost first."""

    @property
    def physical_size(self) -> int:
        """Element slots in the buffer."""

    def __hash__(self) -> int:
        """Shapes are keys of caches."""


class Makers(NamedTuple):
    """What builds the things that XLA's text and JSON describe, from their fields."""

    layout: Callable[..., Any]
    shape: type[Any]
    tuple_shape: Callable[[tuple[Any, ...]], Any]
    buffer: Callable[[Any], Any]
