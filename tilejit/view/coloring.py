"""The meaning of colors in a picture: the tile, the order in memory, or the bank and the row of a swizzle."""

from __future__ import annotations

from itertools import accumulate
from math import prod
from operator import mul
from typing import Literal, TypeAlias

from codegen import LayoutError, dataclass
from tilejit.cute.swizzle import Swizzle
from tilejit.layout.cute_shape import CuteShape, Spec
from tilejit.layout.shape_facts import tile_steps_of
from tilejit.support.units import counted
from tilejit.view.boards import COLORS, Grid, Tiling, tile_lengths

Color: TypeAlias = Literal["tile", "order", "bank", "row"]
COLORINGS: tuple[Color, ...] = ("tile", "order", "bank", "row")
SHADES = 64
"""Steps of the gradient of memory order."""
LARGE_TILE = 512
"""Elements of a tile that is drawn alone, without text in its cells."""
MAX_PERIOD = 1024
"""In a larger buffer, the gradient restarts after a run of at most this many slots."""


@dataclass(frozen=True, slots=True)
class Coloring:
    """The color of each slot.

    Attributes:
        color: the meaning of colors.
        period: slots that the gradient of memory order spans.
        bank: the lowest bit of the bank in a slot's number, and the number of bits; None without a swizzle.
        row: the same for the row.
    """

    color: Color
    period: int
    bank: tuple[int, int] | None
    row: tuple[int, int] | None

    @classmethod
    def of(cls, spec: Spec, color: str | None = None) -> Coloring:
        """The coloring of a layout; by default the one that shows the most.

        Swizzles are colored by bank. Arrays of several tiles are colored by tile, unless the tiles are large
        or scattered by inner tiles. All others are colored by memory order.

        Raises:
            LayoutError: the coloring does not exist, or is "bank" or "row" without an outermost swizzle.
            TypeError: the color is neither a str nor None.
        """
        bank, row = bank_bits(spec)
        chosen = _default(spec, swizzled=bank is not None) if color is None else color
        if not isinstance(chosen, str):
            raise TypeError(f"color: expected a str or None, got {type(chosen).__name__}")
        if chosen not in COLORINGS:
            raise LayoutError(f"color: expected one of {', '.join(COLORINGS)}, got {str(chosen)[:40]!r}")
        if chosen in ("bank", "row") and bank is None:
            raise LayoutError(
                f"expected a layout with an outermost swizzle to color by {chosen}, got {str(spec)[:80]}\n"
                "  color by tile or by order"
            )
        return cls(chosen, order_period(spec), bank, row)

    @property
    def choices(self) -> tuple[Color, ...]:
        """The colorings that the layout supports."""
        return COLORINGS if self.bank else COLORINGS[:2]

    @property
    def block(self) -> tuple[int, int]:
        """Rows of all banks in which a swizzle repeats, and the slots of one; 0, 0 without a swizzle."""
        if self.bank is None or self.row is None:
            return 0, 0
        columns = 1 << sum(self.bank)
        return max(1, (1 << sum(self.row)) // columns), columns

    def numbers(self, slots: Grid, tiles: Grid) -> Grid:
        """The color of each slot: one of SHADES by memory order, else one of COLORS.

        Args:
            slots: the slots, any shape.
            tiles: the color of the outermost tile that each belongs to, the same shape.
        """
        match self.color:
            case "tile":
                return tiles
            case "order":
                return slots % self.period * (SHADES - 1) // max(1, self.period - 1)
        first, bits = (self.bank if self.color == "bank" else self.row) or (0, 0)
        return (slots >> first) % (1 << bits) % COLORS

    @property
    def note(self) -> str:
        """A description of the colors; empty for tiles, which have edges."""
        match self.color:
            case "tile":
                return ""
            case "order":
                return f"colors: order in memory, from yellow to purple over {counted(self.period, 'slot')}"
        first, bits = (self.bank if self.color == "bank" else self.row) or (0, 0)
        return f"colors: {self.color}, {_bits(first, bits)} of the slot's number"


def _bits(first: int, count: int) -> str:
    return f"bit {first}" if count == 1 else f"bits {first} to {first + count - 1}"


def bank_bits(spec: Spec) -> tuple[tuple[int, int], tuple[int, int]] | tuple[None, None]:
    """The bits of a slot's number that a swizzle changes, and those that it reads: lowest bit and count.

    Sw<3,4,3> o 0 o (8,128):(128,1) -> (4, 3), (7, 3)    f32[3,5] -> None, None
    """
    if not isinstance(spec, CuteShape) or not spec.function.steps:
        return None, None
    swizzle = spec.function.steps[-1][1]
    if not isinstance(swizzle, Swizzle) or not swizzle.bits:
        return None, None
    changed = swizzle.base + max(0, -swizzle.shift), swizzle.bits
    return changed, (swizzle.base + max(0, swizzle.shift), swizzle.bits)


def slot_runs(spec: Spec) -> list[int]:
    """The lengths in slots of the runs that the layout consists of, such as rows of tiles."""
    if isinstance(spec, CuteShape):
        digits = (digit for mode in spec.function.modes for digit in mode)
        return [n * abs(stride) for n, stride in digits if n > 1 and stride]
    return list(accumulate(reversed(tile_steps_of(spec)[1][-1]), mul))


def order_period(spec: Spec) -> int:
    """Slots that one gradient spans: a large tile, a small buffer, or the longest run up to MAX_PERIOD.

    bf16[64,32]{1,0:T(32,16)(2,1)} -> 512    f32[3,5]{1,0:T(2,2)} -> 24    f32[4096,4096] -> 1024
    """
    size = spec.physical_size
    if tile := _large_tile_length(spec):
        return tile
    if size <= MAX_PERIOD:
        return max(1, size)
    return max((run for run in slot_runs(spec) if 1 < run <= MAX_PERIOD), default=MAX_PERIOD)


def _large_tile_length(spec: Spec) -> int | None:
    """Slots of a large outermost tile if it is contiguous and one gradient can span it; else None."""
    if isinstance(spec, CuteShape):
        return None
    levels = Tiling.levels(spec)
    if not levels or levels[0].unit < LARGE_TILE:
        return None
    length = tile_lengths(spec, levels)[0]
    return length if length is not None and 0 < length <= MAX_PERIOD else None


def _default(spec: Spec, *, swizzled: bool) -> Color:
    if swizzled:
        return "bank"
    try:
        levels = Tiling.levels(spec)
    except LayoutError:
        return "order"
    if not levels or prod(levels[0].counts) == 1 or levels[0].unit >= LARGE_TILE:
        return "order"
    scattered = not isinstance(spec, CuteShape) and tile_lengths(spec, levels)[0] is None
    return "order" if scattered else "tile"
