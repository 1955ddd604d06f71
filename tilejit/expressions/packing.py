"""The copies that pack the results of an expression, shown with its kernel."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Literal, TypeAlias

import numpy as np

from codegen import BlockProgram, CopyProgram, dataclass
from tilejit.copies.tiled_plans import plan_pack
from tilejit.layout.cute_shape import Spec
from tilejit.layout.padding import padding_bytes
from tilejit.programs.pack_programs import padding_program
from tilejit.programs.stages import Compiled, Stages
from tilejit.programs.tuning import Casting, Padding

Text: TypeAlias = Literal["schedule", "source", "llvm", "asm"]
"""What is shown of a kernel and of copies."""


@dataclass(frozen=True)
class CopyStages(Stages):
    """What copies look like at each stage."""

    copies: Compiled

    @property
    def _compiled(self) -> Compiled:
        return self.copies


@dataclass(frozen=True, slots=True)
class Packing:
    """The copies before and after the kernel of a call, each with a title that says what it moves."""

    before: tuple[tuple[str, Stages], ...]
    kernel: str
    after: tuple[tuple[str, Stages], ...]

    def text(self, which: Text, own: str) -> str:
        """The texts of the copies and of the kernel, which is `own`, in the order in which they run."""
        parts = [(title, getattr(x, which)) for title, x in self.before]
        parts += [(self.kernel, own), *((title, getattr(x, which)) for title, x in self.after)]
        titled = which in ("schedule", "source")  # both are read; tools read the others
        return "\n".join(f"# {title}\n{text}" if titled else text for title, text in parts)


def packing_of_blocks(names: Sequence[str], loops: BlockProgram, padded: Mapping[str, Spec]) -> Packing:
    """The copies of an expression that is computed block by block.

    Args:
        names: the operands.
        loops: the kernel and the copies of its blocks.
        padded: the layouts of results whose padding is written first.
    """
    size = "x".join(map(str, loops.grid.extents))
    pads = [(f"The padding of {name}", CopyStages(padding_of_result(x, 1))) for name, x in padded.items()]
    copies, count = loops.copies, len(names)  # the addresses of arrays in cache follow those of operands
    reads = [(x, f"Each block of {names[x.src]}, into the cache") for x in copies if x.src < count]
    writes = [(x, f"Each block of {names[x.dst]}, from the cache") for x in copies if x.dst < count]
    before, after = ([(title, CopyStages(x)) for x, title in each] for each in (reads, writes))
    return Packing(
        (*(pad for pad in pads if pad[1].steps), *before), f"Each block of {size} elements", tuple(after)
    )


def padding_of_result(spec: Spec, threads: int) -> CopyProgram:
    """The program that writes padding as `pack` does: the layout's own value, or 0."""
    return padding_program(spec, padding_bytes(spec.padding_value, spec.element), threads)


@dataclass(frozen=True, slots=True)
class PackOf:
    """A pack of a plain result into tiles: the layout, the array, and the keywords of `pack`."""

    layout: Spec
    shape: tuple[int, ...]
    strides: tuple[int, ...]
    dtype: np.dtype[Any]
    padding: Padding | None
    casting: Casting

    @property
    def plan(self) -> Stages:
        """The plan of the same pack."""
        return plan_pack(
            self.layout,
            self.shape,
            self.dtype,
            strides=self.strides,
            padding=self.padding,
            casting=self.casting,
        )


def packing_of_results(packs: Sequence[PackOf]) -> Packing:
    """The copies of an expression that is computed into plain arrays, which are packed then."""
    titles = [
        f"Result {k} is packed" if len(packs) > 1 else "The result is packed" for k in range(len(packs))
    ]
    return Packing((), "All elements", tuple((t, x.plan) for t, x in zip(titles, packs, strict=True)))
