"""XLA to CuTe: each dimension a mode, over a box no smaller than the array."""

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
    """A CuTe layout over a box, and the array that is a corner of it.

    f32[3,5]{1,0:T(2,2)} -> ((2,2),(2,3)):((2,12),(1,4)), box (4, 6), bound (3, 5), 24 slots

    Attributes:
        layout: one mode a dimension.
        bound: the array's dimensions; coordinates past them are padding.
        slots: elements of the buffer, padding included.
    """

    layout: Layout
    bound: tuple[int, ...]
    slots: int

    @property
    def box(self) -> tuple[int, ...]:
        """The size of each mode: the dimensions, rounded up to whole digits."""
        return tuple(mode.size for mode in self.layout)

    @property
    def exact(self) -> bool:
        """Whether the box is the array, so that the layout alone says everything."""
        return self.box == self.bound

    def __str__(self) -> str:
        """The layout's text, with box, bound and slots where they say more."""
        box = "" if self.exact else f", box {dims_text(self.box)} of {dims_text(self.bound)}"
        return f"{self.layout}{box}, {self.slots} slots"


def from_xla(shape: Shape) -> Layout:
    """The CuTe layout of an XLA shape: one mode a dimension, at every index the slot that the tiles give it.

    f32[8,4]{1,0:T(5)}   -> (8,4):(5,1)
    f32[3,5]{1,0:T(2,2)} -> ((2,2),(2,3)):((2,12),(1,4)), a box 4x6 with the array in a corner

    Offsets count elements, of any width. Each mode is coalesced; its size is the dimension, rounded up to
    whole digits, and only indices within the dimension hold elements. `bounded` keeps the two together.

    Raises:
        NoLayoutError: no layout has these slots (a partial tile inside a tile, a `*` whose tile cuts through
            rows); the witness is an index that shows it.
        LayoutError: the shape's size is not known.
        TypeError: not a Shape.
    """
    return _bounded(shape, "from_xla").layout


def bounded(shape: Shape) -> BoundedLayout:
    """The CuTe layout of an XLA shape with the array's bound and the slots of its buffer.

    bf16[3,200]{1,0:T(8,128)(2,1)} -> ((2,2),(128,2)):((1,256),(2,1024)), box (4, 256), 2048 slots

    Raises:
        LayoutError, TypeError: as `from_xla`.
    """
    return _bounded(shape, "bounded")


def _bounded(shape: Shape, call: str) -> BoundedLayout:
    if not isinstance(shape, Shape):
        raise TypeError(
            f"{call} takes a Shape, not {type(shape).__name__}\n  read a text with tilejit.as_layout(...)"
        )
    slots = shape.physical_size
    if 0 in shape.dimensions:
        return BoundedLayout(layout_of((Mode(n, 0),) for n in shape.dimensions), shape.dimensions, slots)
    chains = xla_chains(shape)
    if isinstance(chains, Witness):
        refuse(shape_name(shape), chains, "tilejit.pack and relayout take the shape as it is")
    return BoundedLayout(layout_of(chains), shape.dimensions, slots)
