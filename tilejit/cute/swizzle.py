"""Swizzle<B,M,S>, which XORs bits into bits, and layouts composed with functions: A o offset o B."""

from __future__ import annotations

from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from codegen import LayoutError, LayoutIndexError, cached, dataclass, shown
from tilejit.cute.digit_step import DigitStep
from tilejit.cute.exact.injective import is_injective
from tilejit.cute.int_tuple import IntTuple, as_int_tuple, as_integer, limit_nesting
from tilejit.cute.integers import exact_integers, reach_of
from tilejit.cute.layout import Layout, extent, offsets
from tilejit.cute.slicing import slice_and_offset
from tilejit.cute.underscore import has_underscore
from tilejit.support.notebook import notebook_html
from tilejit.support.tokens import MAX_INT64, named

MAX_BITS = 63


@dataclass(frozen=True, slots=True)
class Swizzle:
    """XOR the `bits` bits that start at position M + |S| into those that start at M; S < 0 swaps the two.

    >>> swizzle = Swizzle(3, 4, 3)  # XORs bits 7 to 9 into bits 4 to 6
    >>> swizzle(128), str(swizzle)
    (144, 'Sw<3,4,3>')

    Swizzle(0, 3, 0) changes nothing.

    Attributes:
        bits: B, the number of bits.
        base: M, the number of low bits that stay as they are.
        shift: S, the distance from source to target; |S| >= B, so every swizzle is its own inverse.

    Raises:
        LayoutError: at construction, if B or M is negative, |S| < B, or bits lie past the 63rd.
    """

    bits: int
    base: int
    shift: int

    def __post_init__(self) -> None:
        """Check the three numbers."""
        for name in ("bits", "base", "shift"):
            object.__setattr__(self, name, as_integer(getattr(self, name), f"{name} of a swizzle"))
        text = f"Sw<{shown(self.bits)},{shown(self.base)},{shown(self.shift)}>"
        if self.bits < 0 or self.base < 0:
            raise LayoutError(f"{text} has a negative number of bits\n  write B and M of 0 or more")
        if abs(self.shift) < self.bits:
            raise LayoutError(
                f"{text} shifts its bits onto themselves\n  write |S| of {shown(self.bits)} or more"
            )
        if self.bits + self.base + abs(self.shift) > MAX_BITS:
            raise LayoutError(f"{text} reaches past the 63rd bit\n  write B + M + |S| of at most {MAX_BITS}")

    def __str__(self) -> str:
        """CuTe's text, Sw<B,M,S>."""
        return f"Sw<{self.bits},{self.base},{self.shift}>"

    @property
    def block(self) -> int:
        """The size in elements of the blocks within which offsets are exchanged."""
        return 1 << self.bits + self.base + abs(self.shift) if self.bits else 1

    def __call__(self, offset: Any) -> Any:
        """Apply the XOR to an offset: integers, or arrays of integers, as int64 or Python integers.

        Raises:
            LayoutIndexError: an offset is negative.
            TypeError: an offset is not an integer.
        """
        many = isinstance(offset, np.ndarray)
        offset = exact_integers(offset, "an offset") if many else as_integer(offset, "an offset")
        if (offset.size and offset.min() < 0) if many else offset < 0:
            raise LayoutIndexError(
                "a swizzle takes nonnegative offsets\n  add an offset to make them nonnegative"
            )
        mask = (1 << self.bits) - 1 << self.base + max(0, self.shift)
        moved = offset & mask
        return offset ^ (moved >> self.shift if self.shift >= 0 else moved << -self.shift)


Outer: TypeAlias = "Swizzle | DigitStep | Layout | ComposedLayout"
"""What a composed layout may begin with."""


@dataclass(frozen=True, slots=True)
class ComposedLayout:
    """A o offset o B: the function c -> A(offset + B(c)), where A is a Swizzle, a DigitStep or a layout.

    >>> layout = ComposedLayout(Swizzle(1, 0, 2), 0, Layout((4, 2), (2, 1)))
    >>> print(layout)
    Sw<1,0,2> o 0 o (4,2):(2,1)
    >>> layout((2, 0))
    5

    Attributes:
        outer: A, applied last: a Swizzle, a DigitStep, a Layout or a ComposedLayout.
        offset: the elements added to the offsets of B.
        inner: B, which has the shape.

    Raises:
        TypeError: at construction, if a part has another type.
    """

    outer: Outer
    offset: int
    inner: Layout | ComposedLayout

    def __post_init__(self) -> None:
        """Check the types."""
        if not isinstance(self.outer, Swizzle | DigitStep | Layout | ComposedLayout):
            raise TypeError(
                f"a composed layout must begin with a Swizzle or a Layout, got {type(self.outer).__name__}"
            )
        if not isinstance(self.inner, Layout | ComposedLayout):
            raise TypeError(f"a composed layout must end with a Layout, got {type(self.inner).__name__}")
        object.__setattr__(self, "offset", as_int_tuple(as_integer(self.offset, "an offset"), "an offset"))

    @property
    def shape(self) -> IntTuple:
        """The shape of B, in elements."""
        return self.inner.shape

    @property
    def size(self) -> int:
        """The number of coordinates."""
        return self.inner.size

    @property
    def rank(self) -> int:
        """The number of modes at the top level."""
        return self.inner.rank

    @property
    def depth(self) -> int:
        """The levels of nesting of the shape."""
        return self.inner.depth

    @property
    def cosize(self) -> int:
        """The number of elements from the lowest to the highest offset, both included; cached."""
        return _cosize(self)

    @property
    def is_compact(self) -> bool:
        """Whether a swizzle only permutes the offsets 0 to size - 1 of a compact layout."""
        if not isinstance(self.outer, Swizzle) or not isinstance(self.inner, Layout) or self.offset:
            return False
        whole = extent(self.inner) == (0, self.inner.size - 1) and self.inner.size % self.outer.block == 0
        return whole and is_injective(self.inner)

    def __len__(self) -> int:
        """The rank."""
        return self.rank

    def __call__(self, *coordinates: Any) -> Any:
        """The offset of a coordinate; `_` slices B and moves the offset.

        Raises:
            LayoutIndexError, LayoutError: as for a Layout.
        """
        crd = coordinates[0] if len(coordinates) == 1 else coordinates
        if not isinstance(crd, int | np.ndarray):
            limit_nesting(crd, "a coordinate")
        if not isinstance(crd, int | np.ndarray) and has_underscore(crd):
            return slice_and_offset(crd, self)[0]
        inside = self.inner(crd)
        if isinstance(inside, np.ndarray) and reach_of(inside) + abs(self.offset) > MAX_INT64:
            inside = inside.astype(object)
        return self.outer(self.offset + inside)

    def offsets(self) -> NDArray[np.int64]:
        """Tabulate the offsets of all coordinates in colexicographic order; see `offsets`.

        >>> ComposedLayout(Swizzle(1, 0, 2), 0, Layout((4, 2), (2, 1))).offsets()
        array([0, 2, 5, 7, 1, 3, 4, 6])

        Returns:
            A 1-D int64 array, in elements.

        Raises:
            LayoutError: there are more than 2^27 offsets, or one exceeds 64 bits.
        """
        table = offsets(self.inner)
        low, high = (int(table.min()), int(table.max())) if table.size else (0, 0)
        if not -MAX_INT64 <= low + self.offset <= high + self.offset <= MAX_INT64:
            raise self._too_wide()
        out: NDArray[np.int64] = self.outer(table + self.offset)
        if out.dtype == object:
            raise self._too_wide()
        return out

    def _too_wide(self) -> LayoutError:
        return LayoutError(f"an offset of {named(self)} exceeds 64 bits\n  use smaller strides or offsets")

    def _repr_html_(self) -> str | None:
        """Draw the layout for a notebook."""
        return notebook_html("layout_html", self)

    def __str__(self) -> str:
        """CuTe's text, A o offset o B."""
        outer = f"[{self.outer}]" if isinstance(self.outer, ComposedLayout) else str(self.outer)
        return f"{outer} o {self.offset} o {self.inner}"


@cached(256)
def _cosize(composed: ComposedLayout) -> int:
    """The cosize from a table, if nothing else decides; cached, because a table is slow."""
    if composed.is_compact:
        return composed.size
    table = composed.offsets()
    return int(table.max()) - int(table.min()) + 1 if table.size else 0
