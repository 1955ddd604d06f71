"""The digits of a layout in the order they lie in storage: nested, the holes between them as padding."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

from tilejit.layout.bridge.chains import Chain


@dataclass(frozen=True, slots=True)
class Piece:
    """One digit of a dimension, or a hole between digits, at its place in storage.

    Attributes:
        dim: the dimension it counts; None for a hole, of which only index 0 is used.
        extent: the indices it has.
        room: those that its place in storage has; more than `extent` are padding above it.
        weight: the index of the dimension at which it is 1; 0 for a hole.
    """

    dim: int | None
    extent: int
    room: int
    weight: int


@dataclass(frozen=True)
class StorageOrder:
    """Every piece, the most major first; the position in `pieces` is the name of a piece.

    ((2,2),(2,3)):((2,12),(1,4)) -> dim 0 extent 2, dim 1 extent 3, dim 0 extent 2, dim 1 extent 2

    Attributes:
        pieces: digits, and a hole above each digit whose room is a multiple of its extent: a tiling may
            spell that padding either way. A hole at the end is there where the least stride is above 1.
        rank: dimensions of the array.
    """

    pieces: tuple[Piece, ...]
    rank: int

    @cached_property
    def axes(self) -> tuple[tuple[int, ...], ...]:
        """For each dimension its pieces, the one of most weight first."""
        outer_first = sorted(range(len(self.pieces)), key=lambda k: -self.pieces[k].weight)
        return tuple(tuple(k for k in outer_first if self.pieces[k].dim == dim) for dim in range(self.rank))

    @cached_property
    def holes(self) -> frozenset[int]:
        """The pieces that count no dimension."""
        return frozenset(k for k, piece in enumerate(self.pieces) if piece.dim is None)

    @cached_property
    def short(self) -> frozenset[int]:
        """The pieces with more room than extent: padded themselves, or with the hole above them."""
        return frozenset(k for k, piece in enumerate(self.pieces) if piece.room != piece.extent)

    @cached_property
    def last_hole(self) -> int | None:
        """The hole below every digit, which nothing else can spell."""
        last = len(self.pieces) - 1
        return last if last in self.holes else None

    def hole_above(self, piece: int) -> int | None:
        """The hole that may spell the padding of a short piece."""
        return piece - 1 if piece - 1 in self.holes else None


@dataclass(frozen=True, slots=True)
class Unplaced:
    """A stride that no tiling has: the index where it first shows, the offset there, what it clashes with.

    Attributes:
        index: 1 in one digit, 0 in all others.
        offset: that of `index`, the stride of the digit.
        twin: another index of the same offset, or None.
        step: the stride of the next lower digit, which divides every higher one in a tiling.
    """

    index: tuple[int, ...]
    offset: int
    twin: tuple[int, ...] | None
    step: int


@dataclass(frozen=True, slots=True)
class _Digit:
    """A digit of a chain: `weight` is the index at which it is 1."""

    stride: int
    extent: int
    dim: int
    weight: int

    def index(self, value: int, rank: int) -> tuple[int, ...]:
        """The index that has this value in the digit and 0 in all others."""
        return tuple(value * self.weight if dim == self.dim else 0 for dim in range(rank))


def storage_order(chains: tuple[Chain, ...]) -> StorageOrder | Unplaced:
    """The order that one chain a dimension asks of storage, or a stride that no tiling has.

    Tiles place digits in mixed radix: each stride is a positive multiple of the next lower one and clears
    all of that digit's offsets. The chains are coalesced.
    """
    pieces: list[Piece] = []
    lower: _Digit | None = None
    for digit in sorted(_digits(chains), key=lambda digit: digit.stride):
        step = lower.stride if lower else 1
        if digit.stride <= 0 or digit.stride % step:
            twin = None if digit.stride else (0,) * len(chains)
            return Unplaced(digit.index(1, len(chains)), digit.stride, twin, step)
        room = digit.stride // step
        if lower and room < lower.extent:
            twin = lower.index(room, len(chains))
            return Unplaced(digit.index(1, len(chains)), digit.stride, twin, step)
        if lower:
            pieces[-1] = Piece(lower.dim, lower.extent, room, lower.weight)
        hole = _hole(lower.extent if lower else 1, room)
        if hole > 1:
            pieces.append(Piece(None, hole, hole, 0))
        pieces.append(Piece(digit.dim, digit.extent, digit.extent, digit.weight))
        lower = digit
    return StorageOrder(tuple(reversed(pieces)), len(chains))


def _digits(chains: tuple[Chain, ...]) -> list[_Digit]:
    """The digits of all dimensions, their weights known."""
    out = []
    for dim, chain in enumerate(chains):
        weight = 1
        for extent, stride in chain:
            out.append(_Digit(stride, extent, dim, weight))
            weight *= extent
    return out


def _hole(extent: int, room: int) -> int:
    """The extent of a hole that would spell the padding from extent to room; 1 where none can."""
    return room // extent if room % extent == 0 else 1
