"""Swizzle<B,M,S>, which XORs bits into bits, and layouts composed with functions: A o offset o B."""

from __future__ import annotations

import operator
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from codegen.errors import LayoutError, LayoutIndexError
from tilejit.layout.cute.int_tuple import IntTuple, as_int_tuple
from tilejit.layout.cute.layout import Layout, offsets
from tilejit.layout.cute.slicing import has_underscore, slice_and_offset
from tilejit.layout.tokens import MAX_INT64, shown

MAX_BITS = 63


@dataclass(frozen=True, slots=True)
class Swizzle:
    """XOR of `bits` bits, at M + |S| and up, into those at M and up; S < 0 exchanges the two places.

    Swizzle(3, 4, 3) XORs bits 7 to 9 into bits 4 to 6: 128 -> 144.    Swizzle(0, 3, 0) changes nothing.

    Attributes:
        bits: B, how many bits.
        base: M, low bits that stay as they are.
        shift: S, the distance between source and target; |S| >= B, so that every swizzle is its own inverse.

    Raises:
        LayoutError: at construction, for negative B or M, |S| < B, or bits past the 63rd.
    """

    bits: int
    base: int
    shift: int

    def __post_init__(self) -> None:
        """Check the three numbers."""
        for name in ("bits", "base", "shift"):
            object.__setattr__(self, name, operator.index(getattr(self, name)))
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

    def __call__(self, offset: Any) -> Any:
        """The offset with its bits exchanged; integers or arrays of them.

        Raises:
            LayoutIndexError: a negative offset.
        """
        if not isinstance(offset, np.ndarray):
            offset = operator.index(offset)
        if (offset.min(initial=0) if isinstance(offset, np.ndarray) else offset) < 0:
            raise LayoutIndexError("a swizzle is of offsets of 0 or more\n  add an offset that makes them so")
        mask = (1 << self.bits) - 1 << self.base + max(0, self.shift)
        moved = offset & mask
        return offset ^ (moved >> self.shift if self.shift >= 0 else moved << -self.shift)


@dataclass(frozen=True, slots=True)
class ComposedLayout:
    """A o offset o B: the function c -> A(offset + B(c)), where A is a Swizzle, a Layout or composed itself.

    ComposedLayout(Swizzle(3, 4, 3), 0, Layout((8, 8), (8, 1)))    text: Sw<3,4,3> o 0 o (8,8):(8,1)

    Attributes:
        outer: A, applied last.
        offset: added to what B gives.
        inner: B, which has the shape.

    Raises:
        TypeError: at construction, for parts of another type.
    """

    outer: Swizzle | Layout | ComposedLayout
    offset: int
    inner: Layout | ComposedLayout

    def __post_init__(self) -> None:
        """Check the types."""
        if not isinstance(self.outer, Swizzle | Layout | ComposedLayout):
            raise TypeError(
                f"a composed layout begins with a Swizzle or a Layout, not {type(self.outer).__name__}"
            )
        if not isinstance(self.inner, Layout | ComposedLayout):
            raise TypeError(f"a composed layout ends with a Layout, not {type(self.inner).__name__}")
        object.__setattr__(self, "offset", as_int_tuple(operator.index(self.offset), "an offset"))

    @property
    def shape(self) -> IntTuple:
        """The shape of B."""
        return self.inner.shape

    @property
    def size(self) -> int:
        """Coordinates in the domain."""
        return self.inner.size

    @property
    def rank(self) -> int:
        """Modes at the top."""
        return self.inner.rank

    @property
    def depth(self) -> int:
        """How deep the shape nests."""
        return self.inner.depth

    @property
    def cosize(self) -> int:
        """Elements between the lowest and the highest offset, both included."""
        table = self.offsets()
        return int(table.max()) - int(table.min()) + 1 if table.size else 0

    def __len__(self) -> int:
        """The rank."""
        return self.rank

    def __call__(self, *coordinates: Any) -> Any:
        """The offset of a coordinate; `_` slices B and moves the offset.

        Raises:
            LayoutIndexError, LayoutError: as a Layout.
        """
        crd = coordinates[0] if len(coordinates) == 1 else coordinates
        if not isinstance(crd, int | np.ndarray) and has_underscore(crd):
            if isinstance(self.inner, Layout):
                kept, start = slice_and_offset(crd, self.inner)
                return ComposedLayout(self.outer, self.offset + start, kept)
            return ComposedLayout(self.outer, self.offset, self.inner(crd))
        return self.outer(self.offset + self.inner(crd))

    def offsets(self) -> NDArray[np.int64]:
        """The offsets of all coordinates in colexicographic order; see `offsets`."""
        table = offsets(self.inner)
        low, high = (int(table.min()), int(table.max())) if table.size else (0, 0)
        if not -MAX_INT64 <= low + self.offset <= high + self.offset <= MAX_INT64:
            raise LayoutError(f"an offset of {str(self)[:80]} passes 64 bits\n  use smaller ones")
        out: NDArray[np.int64] = self.outer(table + self.offset)
        return out

    def __str__(self) -> str:
        """CuTe's text, A o offset o B."""
        outer = f"[{self.outer}]" if isinstance(self.outer, ComposedLayout) else str(self.outer)
        return f"{outer} o {self.offset} o {self.inner}"
