"""The meanings of vectors in MLIR text: stored elements, a number in all lanes, or results of operations."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TypeAlias

from xdsl.ir import Operation, SSAValue

from codegen import Index, Value, dataclass
from tilejit.mlir.dtypes import MemRef


@dataclass(frozen=True, slots=True)
class Held:
    """The elements of an internal array.

    elements  returns the element of another array from which a lane was loaded; None if lanes were not loaded
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
    """The first lanes of each dimension, as in vector.create_mask: as many as the minimum of its limits."""

    limits: tuple[tuple[Index, ...], ...]


@dataclass(frozen=True, slots=True)
class Progression:
    """Integers with a constant step from lane to lane in each dimension."""

    start: int
    steps: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class Lanewise:
    """The result of an operation on each lane of its operands; `depth` counts the nested operations."""

    op: Operation
    depth: int


@dataclass(frozen=True, slots=True)
class Moved:
    """The lanes of another vector.

    lanes  for each dimension of `source`, the dimension here; None if it has only one lane
    """

    source: SSAValue
    lanes: tuple[int | None, ...]


Lanes: TypeAlias = Held | Splat | Counted | Progression | Lanewise | Moved
