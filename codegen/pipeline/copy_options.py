"""How a copy is compiled."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Protocol, TypeAlias, TypeVar

from codegen.schedule.machine import STREAM_BYTES
from codegen.support.dataclasses import dataclass

if TYPE_CHECKING:  # a stored program loads no schedules
    from codegen.ir.strided_box import StridedBox
    from codegen.schedule.schedule import Schedule, VectorSize

STRUCTURE, SIZES = "structure", "sizes"
"""Values of `specialize`: one kernel per structure, or one per structure and sizes."""

Pick: TypeAlias = "Callable[[StridedBox, tuple[Schedule, ...]], Schedule]"
"""Picks one of several schedules of a box."""

AnyProgram = TypeVar("AnyProgram")


class PickCopy(Protocol):
    """Picks one of several programs of the same copy."""

    def __call__(self, programs: Sequence[AnyProgram], /) -> AnyProgram:
        """Return the chosen program."""
        ...


@dataclass(frozen=True, slots=True)
class CopyOptions:
    """What all boxes of a copy share.

    Attributes:
        threads: how many threads the program runs on.
        virtual_vector_size: elements that move at a time: one number, rows and columns, or None.
        specialize: "structure" makes kernels that many shapes share, "sizes" makes every extent and stride a
            literal.
        stream_bytes: the least footprint of copies that are stored past the cache.
        tile: rows and columns of the tiles of transposes, or None.
        pick: picks one of several schedules by measuring them; without it the choice is a guess.
        pick_copy: picks one of several programs: all boxes in one launch, or box by box.
        schedule: the directives of the largest box as text, instead of those that the compiler chooses.
    """

    threads: int = 1
    virtual_vector_size: VectorSize | None = None
    specialize: str = STRUCTURE
    stream_bytes: int = STREAM_BYTES
    tile: tuple[int, int] | None = None
    pick: Pick | None = None
    pick_copy: PickCopy | None = None
    schedule: str = ""


DEFAULT_OPTIONS = CopyOptions()
