"""Convert XLA shapes to CuTe layouts: each dimension becomes a mode over a box that holds the array."""

from __future__ import annotations

from codegen import dataclass
from tilejit.cute.digits import Mode
from tilejit.cute.layout import Layout
from tilejit.cute.tables import layout_of
from tilejit.cute.witness import Witness
from tilejit.layout.bridge.from_offsets import refuse
from tilejit.layout.bridge.xla_chains import xla_chains
from tilejit.layout.helpers import dims_text
from tilejit.layout.indexing import shape_name
from tilejit.layout.shape import Shape


@dataclass(frozen=True, slots=True)
class BoundedLayout:
    """A CuTe layout over a box, and the array that fills a corner of it.

    >>> found = bounded(tilejit.Shape.parse("f32[3,5]{1,0:T(2,2)}"))
    >>> print(found.layout, found.box, found.bound, found.slots)
    ((2,2),(2,3)):((2,12),(1,4)) (4, 6) (3, 5) 24

    Attributes:
        layout: one mode for each dimension.
        bound: the dimensions of the array in elements; coordinates past them are padding.
        slots: elements of the buffer, padding included.
    """

    layout: Layout
    bound: tuple[int, ...]
    slots: int

    @property
    def box(self) -> tuple[int, ...]:
        """The size of each mode in elements: the dimensions, rounded up to whole digits."""
        return tuple(mode.size for mode in self.layout)

    @property
    def exact(self) -> bool:
        """Whether the array fills the box, so that the layout alone describes it."""
        return self.box == self.bound

    def __str__(self) -> str:
        """The layout's text, with box, bound and slots if they add information."""
        box = "" if self.exact else f", box {dims_text(self.box)} of {dims_text(self.bound)}"
        return f"{self.layout}{box}, {self.slots} slots"


def from_xla(shape: Shape) -> Layout:
    """Convert an XLA shape to the CuTe layout that maps every index to its slot.

    >>> print(from_xla(tilejit.Shape.parse("f32[8,4]{1,0:T(5)}")))
    (8,4):(5,1)
    >>> print(from_xla(tilejit.Shape.parse("f32[3,5]{1,0:T(2,2)}")))  # a box 4 x 6
    ((2,2),(2,3)):((2,12),(1,4))

    Args:
        shape: a Shape whose size is known.

    Returns:
        A layout with one coalesced mode for each dimension. Offsets count elements. The size of a mode is the
        dimension rounded up to whole digits; only indices within the dimension are elements of the array.
        `bounded` returns both.

    Raises:
        NoLayoutError: no layout has these slots, because a partial tile lies inside a tile or the tile of a
            `*` cuts through rows. The witness is an index that shows it.
        LayoutError: the size of the shape is unknown.
        TypeError: the argument is not a Shape.
    """
    return _bounded(shape, "from_xla").layout


def bounded(shape: Shape) -> BoundedLayout:
    """Convert an XLA shape to a CuTe layout, together with the array's bound and the slots of its buffer.

    >>> found = bounded(tilejit.Shape.parse("bf16[3,200]{1,0:T(8,128)(2,1)}"))
    >>> print(found.layout, found.box, found.slots)
    ((2,2),(128,2)):((1,256),(2,1024)) (4, 256) 2048

    Args:
        shape: a Shape whose size is known.

    Returns:
        A `BoundedLayout`.

    Raises:
        NoLayoutError: as `from_xla`.
        LayoutError: the size of the shape is unknown.
        TypeError: the argument is not a Shape.
    """
    return _bounded(shape, "bounded")


def _bounded(shape: Shape, call: str) -> BoundedLayout:
    if not isinstance(shape, Shape):
        raise TypeError(
            f"{call}: expected a Shape, got {type(shape).__name__}\n  read text with tilejit.as_layout(...)"
        )
    slots = shape.physical_size
    if 0 in shape.dimensions:
        return BoundedLayout(layout_of((Mode(n, 0),) for n in shape.dimensions), shape.dimensions, slots)
    chains = xla_chains(shape)
    if isinstance(chains, Witness):
        refuse(shape_name(shape), chains, "tilejit.pack and relayout take the shape as it is")
    return BoundedLayout(layout_of(chains), shape.dimensions, slots)
