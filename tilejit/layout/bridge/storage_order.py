"""The digits of a layout in storage order, nested, with the holes between them as padding."""

from __future__ import annotations

from functools import cached_property
from operator import attrgetter

from codegen import dataclass
from tilejit.cute.digits import Chain, Digit, digits_of

BLOCK = -1
"""Marks pieces that an earlier stage merged, in place of a dimension."""


@dataclass(frozen=True, slots=True)
class Piece:
    """One digit of a dimension, or a hole between digits, in storage.

    Attributes:
        dim: the dimension that it counts, or BLOCK; None for a hole, of which only index 0 is used.
        extent: its number of indices.
        room: the number of indices that its position in storage has; the excess over `extent` is padding.
        weight: the index of the dimension at which it is 1; 0 for a hole or a block.
    """

    dim: int | None
    extent: int
    room: int
    weight: int


@dataclass(frozen=True)
class StorageOrder:
    """Every piece, the most major first; a piece is named by its position in `pieces`.

    ((2,2),(2,3)):((2,12),(1,4)) -> dim 0 extent 2, dim 1 extent 3, dim 0 extent 2, dim 1 extent 2

    Attributes:
        pieces: digits, and a hole above each digit whose room is a multiple of its extent, because tiles may
            produce that padding in either way. If the smallest stride exceeds 1, a hole follows at the end.
        rank: the number of dimensions of the array.
    """

    pieces: tuple[Piece, ...]
    rank: int

    @cached_property
    def axes(self) -> tuple[tuple[int, ...], ...]:
        """For each dimension its pieces, the one with the largest weight first."""
        outer_first = sorted(range(len(self.pieces)), key=lambda k: -self.pieces[k].weight)
        return tuple(tuple(k for k in outer_first if self.pieces[k].dim == dim) for dim in range(self.rank))

    @cached_property
    def holes(self) -> frozenset[int]:
        """The pieces that do not count a dimension."""
        return frozenset(k for k, piece in enumerate(self.pieces) if piece.dim is None)

    @cached_property
    def short(self) -> frozenset[int]:
        """The pieces with more room than extent: they are padded themselves, or the hole above them is."""
        return frozenset(k for k, piece in enumerate(self.pieces) if piece.room != piece.extent)

    @cached_property
    def last_hole(self) -> int | None:
        """The hole below every digit, which only its own padding can produce."""
        last = len(self.pieces) - 1
        return last if last in self.holes else None

    def hole_above(self, piece: int) -> int | None:
        """The hole that may produce the padding of a short piece."""
        return piece - 1 if piece - 1 in self.holes else None


@dataclass(frozen=True, slots=True)
class Stage:
    """Tiles that put every piece of an order in its position and then merge the lowest ones into one axis.

    Attributes:
        order: the pieces. The most major ones belong to later stages and do not change; they have neither
            holes nor room.
        above: the number of pieces of later stages.
        extent: the extent of the axis that the other pieces merge into.
        room: the extent that this axis is then cut or padded to. The last stage merges nothing.
    """

    order: StorageOrder
    above: int
    extent: int
    room: int


@dataclass(frozen=True, slots=True)
class Unplaced:
    """A stride that lies among the offsets of smaller strides.

    Attributes:
        index: the index that moves by this stride alone.
        offset: its offset.
        twin: an index with the same offset that moves by smaller strides; None if there is none.
        far: the index at which the smaller strides reach their highest offset.
        reach: that offset.
    """

    index: tuple[int, ...]
    offset: int
    twin: tuple[int, ...] | None
    far: tuple[int, ...]
    reach: int


def storage_stages(chains: tuple[Chain, ...]) -> tuple[Stage, ...] | Unplaced:
    """Return the stages that store the chains of all dimensions, or a stride that conflicts.

    There is usually one stage: each stride is a multiple of the next lower one and exceeds all of that
    digit's offsets. Where a stride is not such a multiple, `*` merges everything below it into one axis,
    which is cut or padded to the stride. The chains are coalesced.

    (5,16,5):(5,32,1) -> the pieces of strides 5 and 1 merge into an axis of 25, padded to 32
    """
    digits = sorted(digits_of(chains), key=attrgetter("stride"))
    blocks: list[list[Piece]] = [[]]
    sizes: list[tuple[int, int]] = []
    lower: Digit | None = None
    highest = 0
    for number, digit in enumerate(digits):
        if digit.stride <= highest or digit.stride < 1:
            return _unplaced(digit, digits[:number], len(chains))
        step, reach = (lower.stride, lower.stride * lower.size) if lower else (1, 1)
        room = digit.stride // step
        if digit.stride % step or digit.stride < reach:
            sizes.append((reach, digit.stride))
            blocks.append([Piece(BLOCK, digit.stride, digit.stride, 0)])
        else:
            if lower:
                blocks[-1][-1] = _piece(lower, room)
            blocks[-1] += _hole(lower.size if lower else 1, room)
        blocks[-1].append(_piece(digit))
        highest += digit.stride * (digit.size - 1)
        lower = digit
    sizes.append((1, 1))
    out: list[Stage] = []
    for number, (block, (extent, room)) in enumerate(zip(blocks, sizes, strict=True)):
        later = [piece for above in blocks[number + 1 :] for piece in above if piece.weight]
        plain = [Piece(piece.dim, piece.extent, piece.extent, piece.weight) for piece in later]
        order = StorageOrder(tuple(reversed([*block, *plain])), len(chains))
        out.append(Stage(order, len(plain), extent, room))
    return tuple(out)


def _piece(digit: Digit, room: int = 0) -> Piece:
    """The position of a digit in storage; by default without extra room."""
    return Piece(digit.dim, digit.size, room or digit.size, digit.weight)


def _hole(extent: int, room: int) -> list[Piece]:
    """The hole that could produce the padding from extent to room, if possible."""
    count, rest = divmod(room, extent)
    return [Piece(None, count, count, 0)] if count > 1 and not rest else []


def _unplaced(digit: Digit, smaller: list[Digit], rank: int) -> Unplaced:
    """The conflict of a digit's stride with the offsets of smaller strides, which nest."""
    index, twin, far = [0] * rank, [0] * rank, [0] * rank
    index[digit.dim] = digit.weight
    rest = digit.stride
    for other in reversed(smaller):
        count = min(rest // other.stride, other.size - 1)
        rest -= count * other.stride
        twin[other.dim] += count * other.weight
        far[other.dim] += (other.size - 1) * other.weight
    reach = sum(other.stride * (other.size - 1) for other in smaller)
    return Unplaced(tuple(index), digit.stride, None if rest else tuple(twin), tuple(far), reach)
