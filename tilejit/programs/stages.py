"""What a compiled copy looks like at each stage, for explanations and plans alike."""

from __future__ import annotations

from abc import ABC, abstractmethod
from math import prod
from typing import TYPE_CHECKING, Protocol

from codegen import compiler_lock

if TYPE_CHECKING:  # stored copies load none of these
    from codegen import Kernel, StagedProgram, Step


class Compiled(Protocol):
    """A compiled copy, or several: their boxes and kernels."""

    @property
    def steps(self) -> tuple[Step, ...]:
        """The steps of all boxes."""

    @property
    def kernels(self) -> tuple[Kernel, ...]:
        """The distinct kernels."""


class Stages(ABC):
    """The texts of a compiled copy: they describe all of its boxes and kernels."""

    __slots__ = ()

    @property
    @abstractmethod
    def _compiled(self) -> Compiled:
        """The copy."""

    @property
    def steps(self) -> tuple[Step, ...]:
        """The boxes of the copy, the one that moves the most elements first."""
        return _largest_first(self._compiled.steps)

    @property
    def nest(self) -> str:
        """The scalar loop nest of every box, with the sizes of this copy."""
        return "\n".join(str(box) for step in self.steps for box in step.boxes)

    @property
    def schedule(self) -> str:
        """The schedule of every box, and its nest after the passes that apply it.

        The first line of a copy in two stages describes its blocks.
        """
        return "\n".join([*self._blocks, *(f"{step.schedule}\n{step.nest}" for step in self.steps)])

    @property
    def _blocks(self) -> list[str]:
        """A line that says how a copy runs in two stages, block by block; none if it runs in one pass."""
        staged = self._staged
        return [f"blocks    {staged.staging}\n"] if staged else []

    @property
    def _staged(self) -> StagedProgram | None:
        """The copy if it runs in two stages."""
        with compiler_lock:
            from codegen import LiveProgram, StagedProgram  # imported here because few copies need them

        compiled = self._compiled
        if isinstance(compiled, LiveProgram):
            compiled = compiled.now
        return compiled if isinstance(compiled, StagedProgram) else None

    @property
    def directives(self) -> str:
        """The directives of the largest box, in the form that `schedule=` takes.

        Those of a copy in two stages are the directives of the same copy in one pass. There are none, "",
        where boxes are joined: `schedule=` takes boxes one by one.
        """
        staged = self._staged
        steps = _largest_first(staged.direct.steps if staged else self._compiled.steps)
        copied = next((step for step in steps if not step.nest.fills), None)
        return "" if copied is None or copied.is_joined else directives_of(copied)

    @property
    def source(self) -> str:
        """The generated Python of every kernel; a comment has the extents of the axes that it loops over.

        Copies share machine code, in whose source the outer loops have letters for names.
        """
        with compiler_lock:
            from codegen import source_of_step  # imported here because stored copies do not need it

        first = {step.kernel: step for step in reversed(self.steps)}
        return "\n".join(source_of_step(step.compiled) for step in reversed(first.values()))

    @property
    def llvm(self) -> str:
        """The optimized LLVM IR of every kernel."""
        return "\n".join(kernel.llvm for kernel in self._compiled.kernels)

    @property
    def asm(self) -> str:
        """The machine code of every kernel, as assembly text."""
        return "\n".join(kernel.asm for kernel in self._compiled.kernels)


def directives_of(step: Step) -> str:
    """The directives of a box as text."""
    return ", ".join(map(str, step.nest.directives))


def _largest_first(steps: tuple[Step, ...]) -> tuple[Step, ...]:
    """Steps in the order of the elements that they move."""
    return tuple(sorted(steps, key=_volume, reverse=True))


def _volume(step: Step) -> tuple[bool, int]:
    """The elements that a box moves; padding sorts after all elements."""
    return step.box.source is not None, prod(axis.extent for axis in step.box.axes)
