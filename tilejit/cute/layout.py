"""CuTe's Layout: a shape and a stride with the same nesting, a function from coordinates to offsets."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from functools import wraps
from typing import Any, TypeVar, cast

import numpy as np
from numpy.typing import NDArray

from codegen import LayoutError, LayoutIndexError, dataclass, shown
from tilejit.cute.coordinates import offset_at
from tilejit.cute.int_tuple import (
    MAX_DEPTH,
    IntTuple,
    as_int_tuple,
    as_integer,
    congruent,
    depth,
    flatten,
    limit_nesting,
    modes,
    prefix_product,
    product,
    text_of,
)
from tilejit.cute.text import read_layout
from tilejit.cute.underscore import has_underscore, kept_modes
from tilejit.support.notebook import notebook_html
from tilejit.support.tokens import MAX_INT64, named

MAX_TABLE = 1 << 27
"""The most offsets in a table, 1 GiB."""
F = TypeVar("F", bound=Callable[..., Any])


@dataclass(frozen=True, slots=True, init=False)
class Layout:
    """A function from coordinates to offsets: the inner product of a coordinate with the strides.

    >>> layout = Layout((2, 2), (2, 4))
    >>> layout(3), layout((1, 1)), str(Layout((4, 8)))
    (6, 6, '(4,8):(1,4)')

    An integer coordinate counts the first mode fastest (colexicographic). A coordinate of a nested mode is an
    integer or a tuple. As in CuTe, the last mode may exceed its size. Strides may be zero or negative.

    Args:
        shape: sizes in elements, an integer or nested tuples of integers.
        stride: the distance in elements from one coordinate to the next, nested like the shape. None takes
            the compact strides, first mode fastest.

    Raises:
        LayoutError: at construction, if a size is negative, the stride nests differently, or a number exceeds
            64 bits.
        TypeError: at construction, if an argument is not made of integers.
    """

    shape: IntTuple
    stride: IntTuple

    def __init__(self, shape: object, stride: object = None) -> None:
        """Take a shape and a stride; without a stride the layout is compact, the first mode fastest."""
        if stride is None or not _plain(shape, stride):
            shape, stride = _checked(shape, stride)
        object.__setattr__(self, "shape", shape)
        object.__setattr__(self, "stride", stride)

    @staticmethod
    def parse(text: str) -> Layout:
        """Read a layout such as "(2,2):(2,4)".

        >>> Layout.parse("(4,8):(8,1)")
        Layout((4, 8), (8, 1))

        Args:
            text: CuTe's text of a layout.

        Returns:
            The layout.

        Raises:
            LayoutError: the text is not a layout; the message shows where and what to write instead.
            TypeError: the text is not a str.
        """
        layout: Layout = read_layout(text, Layout)
        return layout

    def __str__(self) -> str:
        """CuTe's text, shape:stride."""
        return f"{text_of(self.shape)}:{text_of(self.stride)}"

    def __repr__(self) -> str:
        return f"Layout({self.shape}, {self.stride})"

    def _repr_html_(self) -> str | None:
        """Draw the layout for a notebook."""
        return notebook_html("layout_html", self)

    def __call__(self, *coordinates: Any) -> Any:
        """The offset of a coordinate: one integer, one for each mode, or nested; `_` slices instead.

        (4,8):(8,1) at 5 or (1, 1) -> 9    at (_, 2) -> (4):(8)

        Integer arrays give arrays: int64, or Python integers if an offset exceeds 64 bits.

        Raises:
            LayoutIndexError: a coordinate is negative.
            LayoutError: the coordinate does not nest like the shape, or arrays do not broadcast.
        """
        crd = coordinates[0] if len(coordinates) == 1 else coordinates
        if not isinstance(crd, int | np.ndarray):
            limit_nesting(crd, "a coordinate")
            if has_underscore(crd):
                return sliced(self, crd)
        return offset_at(crd, self.shape, self.stride)

    def __len__(self) -> int:
        """The rank: the number of modes at the top level."""
        return len(modes(self.shape))

    def __getitem__(self, place: int | slice | tuple[int, ...]) -> Layout:
        """Return a mode, a mode of a mode, or a range of modes.

        ((2,3),4):((1,8),2) at 0 -> (2,3):(1,8)    at (0, 1) -> 3:8    at slice(1, None) -> (4):(2)

        Raises:
            LayoutIndexError: the mode does not exist.
        """
        if isinstance(place, tuple):
            out = self
            for one in place:
                out = out[one]
            return out
        shape, stride = modes(self.shape), modes(self.stride)
        if isinstance(place, slice):
            return trusted(shape[place], stride[place])
        number = as_integer(place, "a mode's place")
        if not -len(shape) <= number < len(shape):
            fix = f"pass one from {-len(shape)} to {len(shape) - 1}" if shape else "it has no modes"
            raise LayoutIndexError(f"mode {shown(number)} is out of range in {named(self)}\n  {fix}")
        return trusted(shape[number], stride[number])

    def __iter__(self) -> Iterator[Layout]:
        """The modes at the top level."""
        for shape, stride in zip(modes(self.shape), modes(self.stride), strict=True):
            yield trusted(shape, stride)

    @property
    def size(self) -> int:
        """The number of coordinates: the product of the shape."""
        return product(self.shape)

    @property
    def cosize(self) -> int:
        """The number of elements from the lowest to the highest offset; see `cosize`."""
        return cosize(self)

    @property
    def rank(self) -> int:
        """The number of modes at the top level; 1 for an integer shape."""
        return len(modes(self.shape))

    @property
    def depth(self) -> int:
        """The levels of nesting; 0 for an integer shape."""
        return depth(self.shape)


def _plain(shape: object, stride: object, room: int = MAX_DEPTH) -> bool:
    """Whether both are already valid: Python ints within bounds, in tuples that nest alike."""
    if type(shape) is int:
        return type(stride) is int and 0 <= shape <= MAX_INT64 and -MAX_INT64 <= stride <= MAX_INT64
    if type(shape) is not tuple or type(stride) is not tuple or len(shape) != len(stride) or room == 0:
        return False
    for size, step in zip(shape, stride, strict=True):
        if type(size) is int:
            if type(step) is not int or not 0 <= size <= MAX_INT64 or not -MAX_INT64 <= step <= MAX_INT64:
                return False
        elif not _plain(size, step, room - 1):
            return False
    return True


def _checked(shape: object, stride: object) -> tuple[IntTuple, IntTuple]:
    """Return both as IntTuples, or raise the error that describes the mistake."""
    sizes = as_int_tuple(shape, "a shape")
    smallest = min(flatten(sizes), default=1)
    if smallest < 0:
        raise LayoutError(f"a size is {shown(smallest)}\n  pass sizes of 0 or more")
    steps = prefix_product(sizes) if stride is None else as_int_tuple(stride, "a stride")
    if not congruent(sizes, steps):
        raise LayoutError(
            f"the stride {named(steps)} does not nest like the shape {named(sizes)}\n"
            "  pass one stride for each size"
        )
    return sizes, steps


def trusted(shape: IntTuple, stride: IntTuple) -> Layout:
    """Create a Layout from parts that are known to match, without checks."""
    out = object.__new__(Layout)
    object.__setattr__(out, "shape", shape)
    object.__setattr__(out, "stride", stride)
    return out


def sliced(layout: Layout, crd: Any, whole: bool = True) -> Layout:
    """The modes at which a coordinate has `_`, or those where it has an integer, side by side.

    (3,4):(4,1) at (_, 5), whole -> (3):(4)    not whole -> (4):(1)
    """
    kept = kept_modes(crd, layout.shape, layout.stride, whole)
    return trusted(tuple(shape for shape, _ in kept), tuple(stride for _, stride in kept))


def is_composed(value: object) -> bool:
    """Whether this is a ComposedLayout."""
    return type(value) is not Layout and hasattr(value, "inner")


def of_inner(operation: F) -> F:
    """Decorate an operation to act on the inner part of composed layouts: f(A o 0 o B) = A o 0 o f(B).

    select of Sw<3,4,3> o 0 o (8,64):(64,1) at 1 -> Sw<3,4,3> o 0 o (64):(1)
    """

    @wraps(operation)
    def applied(*given: Any, **by_name: Any) -> Any:
        if given and is_composed(given[0]):
            layout, *others = given
            return replace(layout, inner=applied(layout.inner, *others, **by_name))
        return operation(*given, **by_name)

    return cast(F, applied)


def expect_layout(value: object) -> Layout:
    """Return a Layout as it is.

    Raises:
        TypeError: it is something else.
    """
    if type(value) is Layout:
        return value
    if is_composed(value):
        raise TypeError(
            "expected a Layout, got a ComposedLayout\n"
            "  pass its .inner, and compose the result: ComposedLayout(c.outer, c.offset, …)"
        )
    raise TypeError(f"expected a Layout, got {type(value).__name__}; parse() reads one from text")


def extent(layout: Layout) -> tuple[int, int]:
    """The lowest and the highest offset, both included; (0, 0) without coordinates.

    (4,2):(-1,4) -> (-3, 4)
    """
    expect_layout(layout)
    low = high = 0
    for size, step in zip(flatten(layout.shape), flatten(layout.stride), strict=True):
        if size == 0:
            return 0, 0
        if step < 0:
            low += (size - 1) * step
        else:
            high += (size - 1) * step
    return low, high


def size(layout: Any) -> int:
    """Count the coordinates of a layout, or multiply the integers of an IntTuple.

    >>> size(parse("(4,(2,3)):(1,(4,8))")), size((4, 8))
    (24, 32)

    Args:
        layout: a Layout, a ComposedLayout or an IntTuple.

    Returns:
        The number of elements.

    Raises:
        TypeError: the argument has another type.

    Source: CuTe's size.
    """
    return layout.size if hasattr(layout, "size") else product(as_int_tuple(layout))


def cosize(layout: Any) -> int:
    """Count the elements from the lowest to the highest offset, both included.

    >>> cosize(parse("(4,8):(8,1)")), cosize(parse("(4,8):(10,1)")), cosize(parse("(4,2):(-1,4)"))
    (32, 38, 8)
    >>> cosize(parse("(4,0):(1,4)"))
    0

    Args:
        layout: a Layout or a ComposedLayout.

    Returns:
        The number of elements; 0 for a layout without coordinates.

    Raises:
        TypeError: the argument is not a layout.

    Source: CuTe's cosize.
    """
    if not isinstance(layout, Layout) and hasattr(layout, "offsets"):
        return int(layout.cosize)
    if expect_layout(layout).size == 0:
        return 0
    low, high = extent(layout)
    return high - low + 1


def coshape(layout: Any) -> int:
    """Return the shape of the codomain: with integer strides, a single mode of the cosize.

    >>> coshape(parse("(4,8):(10,1)"))
    38

    Args:
        layout: a Layout or a ComposedLayout.

    Returns:
        The size in elements.

    Raises:
        TypeError: the argument is not a layout.

    Source: CuTe's coshape.
    """
    return cosize(layout)


def offsets(layout: Any) -> NDArray[np.int64]:
    """Tabulate the offsets of all coordinates in colexicographic order: table[i] == layout(i).

    >>> offsets(parse("(2,3):(3,1)"))
    array([0, 3, 1, 4, 2, 5])

    `.reshape(flat_shape, order="F")` restores the layout's dimensions.

    Args:
        layout: a Layout or a ComposedLayout.

    Returns:
        A 1-D int64 array, in elements.

    Raises:
        LayoutError: there are more than 2^27 offsets, or one exceeds 64 bits.
        TypeError: the argument is not a layout.
    """
    if not isinstance(layout, Layout) and hasattr(layout, "offsets"):
        table: NDArray[np.int64] = layout.offsets()
        return table
    expect_layout(layout)
    count = layout.size
    if count > MAX_TABLE:
        raise LayoutError(
            f"the table of {named(layout)} is too large: its size is {shown(count)}\n"
            "  use at most 2^27 elements"
        )
    low, high = extent(layout)
    if not -MAX_INT64 <= low <= high <= MAX_INT64:
        raise LayoutError(f"an offset of {named(layout)} exceeds 64 bits\n  use smaller strides")
    table = np.zeros(min(count, 1), np.int64)
    for extent_, step in zip(flatten(layout.shape), flatten(layout.stride), strict=True):
        if extent_ > 1:
            steps = np.arange(extent_, dtype=np.int64) * step
            table = (steps[:, None] + table).reshape(-1)
    return table
