"""What pictures of layouts share: which dimensions are drawn, the slots of a corner, and the tiles."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from math import prod

import numpy as np
from numpy.typing import NDArray

from codegen import dataclass
from tilejit.cute.layout import Layout
from tilejit.layout.cute_shape import CuteShape, Spec
from tilejit.layout.indexing import linear_index, multi_index
from tilejit.layout.tiling import tile_steps

Grid = NDArray[np.int64]
COLORS = 8
"""As many as `Tiling.color` counts on."""


def drawn_dimensions(dims: Sequence[int]) -> tuple[int, ...]:
    """The dimensions of a board: the last two of more than one index, or the last two where these are fewer.

    (2, 5, 7) -> 1, 2    (32, 32, 1, 1) -> 0, 1    (1, 5, 1) -> 1, 2
    """
    long = [d for d, n in enumerate(dims) if n > 1][-2:]
    return tuple(long) if len(long) == 2 else tuple(range(len(dims)))[-2:]


def board_extents(shape: Spec) -> tuple[int, int]:
    """Rows and columns of a board."""
    *_, rows, columns = 1, 1, *(shape.dimensions[d] for d in drawn_dimensions(shape.dimensions))
    return rows, columns


def other_extents(shape: Spec) -> list[int]:
    """The dimensions that a board is a slice of."""
    drawn = drawn_dimensions(shape.dimensions)
    return [n for d, n in enumerate(shape.dimensions) if d not in drawn]


def prefixes(others: Sequence[int]) -> Iterator[tuple[int, ...]]:
    """Indices of the other dimensions in row-major order, one by one: there may be more than memory holds."""
    for number in range(prod(others)):
        index = []
        for extent in reversed(others):
            number, digit = divmod(number, extent)
            index.append(digit)
        yield tuple(reversed(index))


def slice_name(shape: Spec, prefix: tuple[int, ...]) -> str:
    """How NumPy writes a slice: "[:, 0, :]"."""
    drawn, rest = drawn_dimensions(shape.dimensions), iter(prefix)
    names = (":" if d in drawn else str(next(rest)) for d in range(shape.rank))
    return f"[{', '.join(names)}]"


def corner_index(shape: Spec, prefix: tuple[int, ...], rows: int, columns: int) -> tuple[Grid, ...]:
    """The indices of a corner of the drawn dimensions, an array each."""
    i, j = np.indices((rows, columns))
    drawn, rest = drawn_dimensions(shape.dimensions), iter(prefix)
    along = dict(zip(drawn, (i, j)[-len(drawn) :], strict=True)) if drawn else {}
    return tuple(along[d] if d in along else np.full_like(i, next(rest)) for d in range(shape.rank))


def corner(shape: Spec, prefix: tuple[int, ...], rows: int, columns: int) -> Grid:
    """The linear indices of a corner of the drawn dimensions."""
    if not shape.rank:
        return np.full((1, 1), linear_index(shape, ()), np.int64)
    return np.asarray(linear_index(shape, corner_index(shape, prefix, rows, columns)), np.int64)


def held(shape: Spec) -> Iterator[tuple[int, ...] | None]:
    """The index that each slot holds, None for padding."""
    return (multi_index(shape, slot) for slot in range(shape.physical_size))


@dataclass(frozen=True, slots=True)
class Tiling:
    """The first tile of a shape: which tile holds what, and its color.

    Attributes:
        alone: the shape with its first tile only; there the tiles lie one after the other.
        unit: elements of the tile; without tiles, the run that is contiguous.
        counts: how many tiles there are along each axis, most major first; empty without tiles.
    """

    alone: Spec
    unit: int
    counts: tuple[int, ...]

    @classmethod
    def of(cls, shape: Spec) -> Tiling:
        """The tiles of XLA's layouts; a CuTe layout has none."""
        if isinstance(shape, CuteShape):
            return cls(shape, 1, ())
        steps, extents = tile_steps(shape)
        if shape.layout is None or not steps:
            return cls(shape, max(1, (extents[-1] or (1,))[-1]), ())
        alone = replace(shape, layout=replace(shape.layout, tiles=shape.layout.tiles[:1]))
        return cls(alone, prod(steps[0].tile), extents[1][: -len(steps[0].tile)])

    @classmethod
    def by_digits(cls, shape: Spec) -> Tiling:
        """The same, and of a CuTe layout what all digits but the slowest of each mode make together.

        ((2,4),(2,2)):((1,4),(2,16)) -> tiles of 2 x 2, 4 x 2 of them
        """
        if not isinstance(shape, CuteShape):
            return cls.of(shape)
        modes = [[n for n, _ in mode if n != 1] or [1] for mode in shape.function.modes]
        most = max(map(len, modes), default=1)
        if most < 2 or 0 in shape.dimensions:
            return cls(shape, 1, ())
        inner = [prod(sizes[: most - 1]) for sizes in modes]
        counts = [prod(sizes) // low for sizes, low in zip(modes, inner, strict=True)]
        slow, fast = _row_major(counts, prod(inner)), _row_major(inner, 1)
        layout = Layout(tuple(zip(inner, counts, strict=True)), tuple(zip(fast, slow, strict=True)))
        alone = CuteShape("u8", shape.dimensions, layout)
        return cls(alone, prod(inner), tuple(counts))

    def numbers(self, slots: Grid) -> Grid:
        """The tile of each element, given its slot in `alone`; all 0 without tiles."""
        return slots // self.unit if self.counts else np.zeros_like(slots)

    def number(self, index: tuple[int, ...]) -> int:
        """The tile of the element at an index."""
        return int(self.numbers(np.asarray(linear_index(self.alone, index), np.int64)))

    def color(self, number: int) -> int:
        """A tile's color: its coordinates times 1, 3, 5, ... so that no two neighbors are alike."""
        color, weight = 0, 1
        for count in reversed(self.counts):
            number, digit = divmod(number, count)
            color += weight * digit
            weight += 2
        return color % COLORS


def _row_major(sizes: Sequence[int], unit: int) -> list[int]:
    """The strides in which the last size counts fastest."""
    return [unit * prod(sizes[k + 1 :]) for k in range(len(sizes))]
