"""The ways to give the lanes of a vector in MLIR text."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TypeAlias

from xdsl.ir import Operation, SSAValue

from codegen import Index, Value, dataclass
from tilejit.mlir.dtypes import MemRef


@dataclass(frozen=True, slots=True)
class Held:
    """The elements of an array of the function's own.

    elements  the element of another array that a lane was loaded from; None if lanes were not loaded so
    mask      the lanes that were loaded; None for all
    """

    memref: MemRef
    elements: Callable[[Sequence[Index]], Index] | None = None
    mask: SSAValue | None = None


@dataclass(frozen=True, slots=True)
class Splat:
    """One number in all lanes."""

    value: Value


@dataclass(frozen=True, slots=True)
class Counted:
    """The first lanes of each dimension, as vector.create_mask says: the least of these numbers of them."""

    limits: tuple[tuple[Index, ...], ...]


@dataclass(frozen=True, slots=True)
class Progression:
    """Whole numbers with a step from lane to lane of each dimension."""

    start: int
    steps: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class Lanewise:
    """What an operation computes in each lane from the same lane of its operands; operations below it."""

    op: Operation
    depth: int


@dataclass(frozen=True, slots=True)
class Moved:
    """Lanes of another vector. For each of its dimensions: the dimension here, or None for its only lane."""

    source: SSAValue
    lanes: tuple[int | None, ...]


Lanes: TypeAlias = Held | Splat | Counted | Progression | Lanewise | Moved
