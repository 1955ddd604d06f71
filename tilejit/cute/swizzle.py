"""Swizzle<B,M,S>, which XORs bits into bits, and layouts composed with functions: A o offset o B."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from codegen import LayoutError, LayoutIndexError, cached, dataclass, shown
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
        """Offsets that are exchanged among themselves, from each multiple of that many on."""
        return 1 << self.bits + self.base + abs(self.shift) if self.bits else 1

    def __call__(self, offset: Any) -> Any:
        """The offset with its bits exchanged; integers or arrays of any, as int64 or Python's integers.

        Raises:
            LayoutIndexError: a negative offset.
            TypeError: not of integers.
        """
        many = isinstance(offset, np.ndarray)
        offset = exact_integers(offset, "an offset") if many else as_integer(offset, "an offset")
        if (offset.size and offset.min() < 0) if many else offset < 0:
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
        object.__setattr__(self, "offset", as_int_tuple(as_integer(self.offset, "an offset"), "an offset"))

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
        """Elements between the lowest and the highest offset, both included; a table is made once."""
        return _cosize(self)

    @property
    def is_compact(self) -> bool:
        """Whether a swizzle only moves the offsets 0 to size - 1 of a compact layout among themselves."""
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
            LayoutIndexError, LayoutError: as a Layout.
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
        """The offsets of all coordinates in colexicographic order; see `offsets`."""
        table = offsets(self.inner)
        low, high = (int(table.min()), int(table.max())) if table.size else (0, 0)
        if not -MAX_INT64 <= low + self.offset <= high + self.offset <= MAX_INT64:
            raise LayoutError(f"an offset of {named(self)} passes 64 bits\n  use smaller ones")
        out: NDArray[np.int64] = self.outer(table + self.offset)
        if out.dtype == object:
            raise LayoutError(f"an offset of {named(self)} passes 64 bits\n  use smaller ones")
        return out

    def _repr_html_(self) -> str | None:
        """The picture that notebooks show."""
        return notebook_html("layout_html", self)

    def __str__(self) -> str:
        """CuTe's text, A o offset o B."""
        outer = f"[{self.outer}]" if isinstance(self.outer, ComposedLayout) else str(self.outer)
        return f"{outer} o {self.offset} o {self.inner}"


@cached(256)
def _cosize(composed: ComposedLayout) -> int:
    """Of a table, where no argument tells; kept, for a table takes long."""
    if composed.is_compact:
        return composed.size
    table = composed.offsets()
    return int(table.max()) - int(table.min()) + 1 if table.size else 0
