"""The common part of all pictures of layouts: drawn dimensions, the slots of a corner, and the tiles."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from math import prod

import numpy as np
from numpy.typing import NDArray

from codegen import LayoutError, dataclass
from tilejit.cute.layout import Layout
from tilejit.layout.cute_shape import CuteShape, Spec
from tilejit.layout.indexing import linear_index, multi_index
from tilejit.layout.shape_facts import tile_steps_of

Grid = NDArray[np.int64]
COLORS = 8
"""The number of colors that `Tiling.color` uses."""


def drawn_dimensions(shape: Spec) -> tuple[int, ...]:
    """The dimensions of a board: the last two that tiles cut, then of more than one index, then of all.

    f32[2,5,7] -> 1, 2    f32[1,32,3,4]{3,2,1,0:T(16,1,1)} -> 1, 3    f32[1,5,1] -> 1, 2
    """
    every = range(shape.rank)
    long = [d for d in every if shape.dimensions[d] > 1]
    choice = (*reversed(_cut_dimensions(shape, long)), *reversed(long), *reversed(every))
    return tuple(sorted(tuple(dict.fromkeys(choice))[:2]))


def _cut_dimensions(shape: Spec, long: Sequence[int]) -> list[int]:
    """Those of the dimensions along which the outermost tiles hold more than one element."""
    if 0 in shape.dimensions:
        return []
    try:
        levels = Tiling.levels(shape)
    except LayoutError:  # modes of stride 0 may have more tiles than 64-bit integers can count
        return []
    if not levels:
        return []
    start = levels[0].number((0,) * shape.rank)
    units = {d: tuple(int(d == at) for at in range(shape.rank)) for d in long}
    return [d for d in long if levels[0].number(units[d]) == start]


def board_extents(shape: Spec, drawn: Spec | None = None) -> tuple[int, int]:
    """Rows and columns of a board, along the dimensions of `drawn` if that is another shape."""
    dims = drawn_dimensions(drawn or shape)
    *_, rows, columns = 1, 1, *(shape.dimensions[d] for d in dims)
    return rows, columns


def other_extents(shape: Spec) -> list[int]:
    """The extents of the dimensions that a board does not draw."""
    drawn = drawn_dimensions(shape)
    return [n for d, n in enumerate(shape.dimensions) if d not in drawn]


def prefixes(others: Sequence[int]) -> Iterator[tuple[int, ...]]:
    """Indices of the other dimensions in row-major order, one by one: they may be too many for memory."""
    for number in range(prod(others)):
        index = []
        for extent in reversed(others):
            number, digit = divmod(number, extent)
            index.append(digit)
        yield tuple(reversed(index))


def slice_name(shape: Spec, prefix: tuple[int, ...]) -> str:
    """The slice in NumPy's notation: "[:, 0, :]"."""
    drawn, rest = drawn_dimensions(shape), iter(prefix)
    names = (":" if d in drawn else str(next(rest)) for d in range(shape.rank))
    return f"[{', '.join(names)}]"


def corner_index(shape: Spec, prefix: tuple[int, ...], rows: int, columns: int) -> tuple[Grid, ...]:
    """The indices of a corner of the drawn dimensions, one array per dimension."""
    i, j = np.indices((rows, columns))
    drawn, rest = drawn_dimensions(shape), iter(prefix)
    along = dict(zip(drawn, (i, j)[-len(drawn) :], strict=True)) if drawn else {}
    return tuple(along[d] if d in along else np.full_like(i, next(rest)) for d in range(shape.rank))


def corner(shape: Spec, prefix: tuple[int, ...], rows: int, columns: int) -> Grid:
    """The linear indices of a corner of the drawn dimensions."""
    return slots_at(shape, corner_index(shape, prefix, rows, columns))


def slots_at(shape: Spec, index: tuple[Grid, ...]) -> Grid:
    """The linear indices of a corner, given its indices."""
    if not shape.rank:
        return np.full((1, 1), linear_index(shape, ()), np.int64)
    return np.asarray(linear_index(shape, index), np.int64)


def held(shape: Spec) -> Iterator[tuple[int, ...] | None]:
    """The index in each slot, None for padding."""
    return (multi_index(shape, slot) for slot in range(shape.physical_size))


def padded_shape(shape: Spec) -> Spec:
    """The shape with its dimensions rounded up to complete outermost tiles, whose padding has indices too.

    f32[3,5]{1,0:T(2,2)} -> f32[4,6]{1,0:T(2,2)}    u8[3,5] (4,8):(8,1) -> u8[4,8] (4,8):(8,1)

    Raises:
        LayoutError: a mode of a CuTe layout is longer than any dimension can be.
    """
    if isinstance(shape, CuteShape):
        return replace(shape, dimensions=shape.function.sizes)
    out = list(shape.padded_dimensions or shape.dimensions)
    steps, _ = tile_steps_of(shape)
    if shape.layout is not None and steps and 0 not in shape.dimensions:
        order, step = tuple(reversed(shape.minor_to_major)), steps[0]
        for group, tile in zip(step.groups, step.tile, strict=True):
            axis = group[0] - step.lead
            if len(group) == 1 and axis >= 0:
                out[order[axis]] = -(-out[order[axis]] // tile) * tile
    return replace(shape, dimensions=tuple(out), padded_dimensions=None)


@dataclass(frozen=True, slots=True)
class Tiling:
    """The tiles of one level: which tile holds each element, and its color.

    Attributes:
        alone: the shape with the tiles up to this level only, in which each tile is contiguous.
        unit: elements of the tile; without tiles, the contiguous run.
        counts: the number of tiles along each axis, most major first; empty without tiles.
    """

    alone: Spec
    unit: int
    counts: tuple[int, ...]

    @classmethod
    def of(cls, shape: Spec) -> Tiling:
        """The outermost tiles of XLA's layouts; a CuTe layout has none."""
        if isinstance(shape, CuteShape):
            return cls(shape, 1, ())
        _, extents = tile_steps_of(shape)
        return next(iter(cls.levels(shape)), cls(shape, max(1, (extents[-1] or (1,))[-1]), ()))

    @classmethod
    def levels(cls, shape: Spec) -> tuple[Tiling, ...]:
        """The tiles of every level, the outermost first.

        In a CuTe layout, each level drops one more of the slowest digits of each mode:
        ((2,4),(2,2)):((1,4),(2,16)) -> tiles of 2 x 2, 4 x 2 of them

        Raises:
            LayoutError: modes of stride 0 make more tiles than 64-bit integers can count.
        """
        if isinstance(shape, CuteShape):
            modes = [[n for n, _ in mode if n != 1] or [1] for mode in shape.function.modes]
            depths = 0 if 0 in shape.dimensions else max(map(len, modes), default=1) - 1
            return tuple(cls._of_digits(shape, [mode[: depths - k] for mode in modes]) for k in range(depths))
        steps, extents = tile_steps_of(shape)
        if shape.layout is None:
            return ()
        alone = [replace(shape.layout, tiles=shape.layout.tiles[: k + 1]) for k in range(len(steps))]
        return tuple(
            cls(replace(shape, layout=alone[k]), prod(step.tile), extents[k + 1][: -len(step.tile)])
            for k, step in enumerate(steps)
        )

    @classmethod
    def _of_digits(cls, shape: CuteShape, kept: Sequence[Sequence[int]]) -> Tiling:
        """The tiles that the kept digits of each mode make."""
        inner = [prod(sizes) for sizes in kept]
        counts = [size // low for size, low in zip(shape.function.sizes, inner, strict=True)]
        slow, fast = _row_major(counts, prod(inner)), _row_major(inner, 1)
        layout = Layout(tuple(zip(inner, counts, strict=True)), tuple(zip(fast, slow, strict=True)))
        return cls(CuteShape("u8", shape.dimensions, layout), prod(inner), tuple(counts))

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


def tile_lengths(shape: Spec, levels: Sequence[Tiling]) -> list[int | None]:
    """Slots of a tile at each level; None if it is not known that a tile is contiguous.

    bf16[16,256]{1,0:T(8,128)(2,1)} -> 1024, 2    f8e8m0fnu[128,8]{1,0:T(32,4)(4,1,1,4)} -> None, 16

    Inner tiles may split the axes that count tiles. Tiles of CuTe layouts may lie anywhere.
    """
    if isinstance(shape, CuteShape):
        return [None] * len(levels)
    steps, extents = tile_steps_of(shape)
    out: list[int | None] = []
    for k, level in enumerate(levels):
        outer = len(level.counts)
        contiguous = all(step.lead == 0 and step.untouched >= outer for step in steps[k + 1 :])
        out.append(prod(extents[-1]) // max(1, prod(level.counts)) if contiguous else None)
    return out


def _row_major(sizes: Sequence[int], unit: int) -> list[int]:
    """The strides of these sizes in row-major order."""
    return [unit * prod(sizes[k + 1 :]) for k in range(len(sizes))]
