"""Groups of accesses whose lanes are a constant step apart, and the instructions that they have together."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from typing import NamedTuple

from codegen.ir.blocks import INTERLEAVED_ROWS
from codegen.ir.building import plus
from codegen.ir.element_types import bits_of
from codegen.ir.index import Affine, Index, Sum
from codegen.ir.nodes import Store
from codegen.ir.rewriting import Access
from codegen.ir.values import Load, VectorShape
from codegen.passes.lane_orders import Instructions, Lane, Moved, Placed, exactly_reordered

REGISTERS = "registers"
"""The distance of a register from the next one, which is unknown."""


class Group(NamedTuple):
    """Accesses that are alike except for a constant offset.

    A[8*i], A[8*i + 4] [16], 8 apart    buffer A, rest 8*i, step 8, members 2

    Attributes:
        buffer, rest: the address without the constant.
        dtype, shape, step, first: those of the values and of each access.
        stores: whether these are stores.
        stores_before: how many statements before a load store to the buffer.
    """

    buffer: str
    rest: Index
    dtype: str
    shape: VectorShape
    step: int
    first: Index | None
    stores: bool
    stores_before: int = 0

    @property
    def width(self) -> int:
        """Bytes of an element."""
        return bits_of(self.dtype) // 8

    @property
    def members(self) -> int:
        """The accesses that cover all elements together."""
        return abs(self.step) // self.width

    def complete(self, offsets: Iterable[int]) -> Iterator[tuple[int, ...]]:
        """The offsets of accesses that cover all elements together, lowest first."""
        left = sorted(set(offsets))
        while left:
            found = tuple(left[0] + k * self.width for k in range(self.members))
            if is_complete := set(found) <= set(left):
                yield found
            left = [each for each in left[1:] if not is_complete or each not in found]

    def are_apart(self, one: int, other: int) -> bool:
        """Whether accesses at two offsets have no elements in common."""
        distance, step = abs(one - other), abs(self.step)
        return distance >= step * self.shape[0] or self.width <= distance % step <= step - self.width

    def reordered(self) -> Moved | None:
        """The access to all elements, and the instructions between these and registers; None without any."""
        (lanes,) = self.shape
        moves = [Lane(lanes, self.step, self.width)]
        if self.members > 1:
            moves.append(Lane(self.members, self.width, REGISTERS))
        found = _reordered(moves, self.width, stores=self.stores)
        if found is None or self.first is None:
            return found
        memory = found.store if self.stores else found.load
        return found if self.members > 1 and len(memory.shape) == 1 else None


def in_rows(access: Access, shape: VectorShape, dtype: str) -> tuple[Access, Instructions]:
    """The access to a block by rows of adjacent elements, and what reorders these; itself if nothing does.

    A[4*i + a_stride*j] [16, 16], rows 4 apart, lanes a_stride -> rows a_stride apart, lanes 4; transposed
    """
    (rows, lanes), (pitch, step), width = shape, access.steps, bits_of(dtype) // 8
    moves, stores = [Lane(rows, pitch, REGISTERS), Lane(lanes, step, width)], isinstance(access, Store)
    found = _reordered(moves, width, stores=stores, apart=True)
    if found is None:
        return access, ()
    return placed_as(access, found.store if stores else found.load), found.instructions


def placed_as(access: Access, memory: Placed) -> Access:
    """An access to the lowest of its elements and those after it, as they are in memory."""
    *others, last = access.subscripts or (Affine(),)
    return replace(access, subscripts=(*others, plus(last, memory.first)), steps=memory.steps)


def _reordered(moves: Sequence[Lane], width: int, *, stores: bool, apart: bool = False) -> Moved | None:
    """How lanes at these distances in memory and in registers are reordered; None without instructions."""
    lanes = tuple(Lane(n, to, at) if stores else Lane(n, at, to) for n, at, to in moves)
    return exactly_reordered(lanes, width, width, apart=apart)


def group_of(access: Load | Store, buffer: str, address: Index) -> tuple[Group, int] | None:
    """The group of an access, and its offset; None if lanes are adjacent, or not a constant step apart."""
    value = access if isinstance(access, Load) else access.value
    match access:
        case (
            Load(steps=(int(step),), offsets=None, along=())
            | Store(steps=(int(step),), offsets=None, along=(), where=None)
        ) if value.dtype != "i1":
            offset = address.constant if isinstance(address, Affine) else 0
            offset = address.rest.constant if isinstance(address, Sum) else offset
            stores = isinstance(access, Store)
            rest = plus(address, -offset)
            made = Group(buffer, rest, value.dtype, value.shape, step, access.first, stores)
            if step != made.width and step % made.width == 0 and made.members in (1, *INTERLEAVED_ROWS):
                return made, offset
    return None
