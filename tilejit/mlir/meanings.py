"""The ways to define the lanes of a vector in MLIR text."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TypeAlias

from xdsl.ir import Operation, SSAValue

from codegen import Index, Value, dataclass
from tilejit.mlir.dtypes import MemRef


@dataclass(frozen=True, slots=True)
class Held:
    """The elements of an array of the function's own.

    elements  the element of another array that a lane was loaded from; None if lanes were not loaded this way
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
    """The first lanes of each dimension, as in vector.create_mask: the smallest of these numbers counts."""

    limits: tuple[tuple[Index, ...], ...]


@dataclass(frozen=True, slots=True)
class Progression:
    """Integers with a constant step from lane to lane in each dimension."""

    start: int
    steps: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class Lanewise:
    """The result of an operation in each lane of its operands; `below` counts nested operations."""

    op: Operation
    depth: int


@dataclass(frozen=True, slots=True)
class Moved:
    """Lanes of another vector. For each of its dimensions: the dimension here, or None for its only lane."""

    source: SSAValue
    lanes: tuple[int | None, ...]


Lanes: TypeAlias = Held | Splat | Counted | Progression | Lanewise | Moved
