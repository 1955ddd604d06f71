"""`Layout`: how the dimensions of a shape lie in memory, in XLA's terms."""

from __future__ import annotations

import operator
from dataclasses import dataclass
from typing import TYPE_CHECKING

from codegen import LayoutError, shown
from tilejit.layout.checks import (
    check_element_name,
    check_order,
    check_tile,
    checked_split,
    int_tuple,
    set_fields,
    tile_tuples,
)
from tilejit.layout.text import xla_print
from tilejit.layout.tiling import MAX_TILES
from tilejit.support.tokens import MAX_INT64

if TYPE_CHECKING:
    from tilejit.layout.shape import Shape

MAX_DEPTH = 32
SplitConfig = tuple[int, tuple[int, ...]]


@dataclass(frozen=True, slots=True)
class Layout:
    """How the dimensions of a shape lie in memory; carries everything between XLA's braces.

    str(Layout((1, 0), ((8, 128), (2, 1)))) -> "{1,0:T(8,128)(2,1)}"    `*` in a tile is -1 (MERGE).

    Attributes:
        minor_to_major: logical dimensions, the fastest varying first.
        tiles: outermost first; sizes in elements.
        element_size_in_bits: E; 0 is the type's own storage width.
        tail_padding_alignment_in_elements: L.
        memory_space: S.
        index_type: # in the text.
        pointer_type: * in the text.
        split_configs: SC; pairs of a dimension and its split indices.
        physical_shape: P.
        dynamic_shape_metadata_prefix_bytes: M.

    Raises:
        LayoutError: at construction, for anything that describes no memory.
        TypeError: at construction, for a field of a wrong type.
    """

    minor_to_major: tuple[int, ...]
    tiles: tuple[tuple[int, ...], ...] = ()
    element_size_in_bits: int = 0
    tail_padding_alignment_in_elements: int = 1
    memory_space: int = 0
    index_type: str | None = None
    pointer_type: str | None = None
    split_configs: tuple[SplitConfig, ...] = ()
    physical_shape: Shape | None = None
    dynamic_shape_metadata_prefix_bytes: int = 0

    def __post_init__(self) -> None:
        """Check every field, and turn lists and NumPy integers into tuples and ints."""
        order = int_tuple(self.minor_to_major, "minor_to_major")
        set_fields(self, minor_to_major=order, tiles=tile_tuples(self.tiles))
        check_order(order, len(order))
        for tile in self.tiles:
            check_tile(tile)
        if len(self.tiles) > MAX_TILES:
            raise LayoutError(f"the layout has {len(self.tiles)} tiles\n  use at most {MAX_TILES}")
        self._check_numbers()
        for name in ("index_type", "pointer_type"):
            if getattr(self, name) is not None:
                set_fields(self, **{name: check_element_name(getattr(self, name), name)})
        set_fields(self, split_configs=tuple(checked_split(s, len(order)) for s in self.split_configs))
        if len({dim for dim, _ in self.split_configs}) < len(self.split_configs):
            raise LayoutError(
                "the split config names a dimension twice\n  give each dimension's indices in one place"
            )
        if self.physical_shape is not None:
            _check_physical_shape(self.physical_shape)

    def _check_numbers(self) -> None:
        for name, least in (
            ("element_size_in_bits", 0),
            ("tail_padding_alignment_in_elements", 1),
            ("memory_space", 0),
            ("dynamic_shape_metadata_prefix_bytes", 0),
        ):
            value = operator.index(getattr(self, name))
            if not least <= value <= MAX_INT64:
                raise LayoutError(f"{name} is {shown(value)}\n  give a number from {least} to 2^63-1")
            set_fields(self, **{name: value})

    @property
    def descending(self) -> bool:
        """Whether the order is row-major: the last dimension is the fastest."""
        return self.minor_to_major == tuple(reversed(range(len(self.minor_to_major))))

    def __str__(self) -> str:
        """XLA's text, braces included, defaults left out."""
        return xla_print.print_layout(self)

    @staticmethod
    def parse(text: str, rank: int | None = None) -> Layout:
        """Read a layout alone, such as "{1,0:T(8,128)}"; given a rank, the order must be of that rank.

        Raises:
            LayoutError: the text is not a layout; the message shows where and what to write instead.
            TypeError: not a str.
        """
        from tilejit.layout.text.xla_text import parse_layout

        return parse_layout(text, rank)


def _check_physical_shape(shape: Shape | None) -> None:
    """The shape in P: an array's, nested not too deep."""
    from tilejit.layout.shape import Shape

    depth = 0
    while shape is not None:
        if not isinstance(shape, Shape):
            raise TypeError(f"physical_shape is a Shape or None, not {type(shape).__name__}")
        depth += 1
        if depth > MAX_DEPTH:
            raise LayoutError(f"physical shapes nest more than {MAX_DEPTH} deep\n  nest them less")
        shape = shape.layout.physical_shape if shape.layout else None
