"""Protocols for shapes, layouts and their constructors, for modules that the classes themselves import."""

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
    """A layout: everything between XLA's braces."""

    @property
    def minor_to_major(self) -> tuple[int, ...]:
        """Logical dimensions, the fastest varying first."""

    @property
    def tiles(self) -> tuple[tuple[int, ...], ...]:
        """Tile sizes in elements, the outermost tile first."""

    @property
    def descending(self) -> bool:
        """Whether the order is row-major."""

    @property
    def element_size_in_bits(self) -> int:
        """E in the text; 0 is the storage width of the type."""

    @property
    def tail_padding_alignment_in_elements(self) -> int:
        """L in the text."""

    @property
    def memory_space(self) -> int:
        """S in the text."""

    @property
    def index_type(self) -> str | None:
        """`#` in the text."""

    @property
    def pointer_type(self) -> str | None:
        """`*` in the text, outside of tiles."""

    @property
    def split_configs(self) -> tuple[SplitConfig, ...]:
        """SC in the text; pairs of a dimension and its split indices."""

    @property
    def physical_shape(self) -> ShapeFields | None:
        """P in the text."""

    @property
    def dynamic_shape_metadata_prefix_bytes(self) -> int:
        """M in the text, in bytes."""


class ShapeFields(Protocol):
    """The shape of an array: its fields, and properties that follow from them."""

    @property
    def primitive_type(self) -> str:
        """Lower-case name, such as "bf16"."""

    @property
    def dimensions(self) -> tuple[int, ...]:
        """Logical sizes in elements; -1 is `?`."""

    @property
    def layout(self) -> LayoutFields | None:
        """The layout in memory, or None to leave it open."""

    @property
    def dynamic(self) -> tuple[bool, ...]:
        """For each dimension, whether its size is only a bound."""

    @property
    def padded_dimensions(self) -> tuple[int, ...] | None:
        """The size each dimension is padded to before tiling, or None."""

    @property
    def padding_value(self) -> PaddingValue | None:
        """The value of padding elements, or None to leave it open."""

    @property
    def element(self) -> PrimitiveType:
        """The element type."""

    @property
    def rank(self) -> int:
        """The number of dimensions."""

    @property
    def bits(self) -> int:
        """The width of an element in the buffer, in bits."""

    @property
    def minor_to_major(self) -> tuple[int, ...]:
        """Logical dimensions, the fastest varying first."""

    @property
    def tiles(self) -> tuple[tuple[int, ...], ...]:
        """The tiles of the layout, outermost first."""

    @property
    def physical_size(self) -> int:
        """Elements in the buffer."""

    def __hash__(self) -> int:
        """Shapes are keys of caches."""


class Makers(NamedTuple):
    """The constructors of the objects that XLA's text and JSON describe."""

    layout: Callable[..., Any]
    shape: type[Any]
    tuple_shape: Callable[[tuple[Any, ...]], Any]
    buffer: Callable[[Any], Any]
