"""What the soak verifies besides the bytes, which it compares in every case.

Proofs, checks of boxes and interpreted kernels take longer than the copies themselves, and most of them
repeat earlier ones with other sizes. So all of these run in one case in `VERIFIED_ONE_IN`. In other cases,
the first launch of each kernel is proven, and each kernel is interpreted the first few times, and once after
each pass: passes promise the next ones how often loops run, and only the interpreter checks that.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from random import Random

from codegen.ir.strided_box import StridedBox
from codegen.maps.boxed_copy import BoxedCopy
from codegen.pipeline import copies, proofs
from codegen.pipeline.proofs import prove_launch
from codegen.pipeline.staged import StagedProgram
from codegen.pipeline.verify import verify_box, verify_copy
from codegen.runtime.kernel import Kernel
from codegen.runtime.launch import Launch

VERIFIED_ONE_IN = 20
INTERPRETED_FIRST = 4


@dataclass
class Sample:
    """The sample of one process.

    Attributes:
        counts: launches, and how many of them were proven.
        all: whether the current case is verified as a whole.
        proven: the kernels that were proven, with the kind of call.
        interpreted: how often each kernel was interpreted.
        passes: the kernels that were interpreted after each pass.
    """

    counts: Counter[str]
    all: bool = True
    proven: set[tuple[str, type]] = field(default_factory=set)
    interpreted: Counter[str] = field(default_factory=Counter)
    passes: set[str] = field(default_factory=set)

    def begin(self, seed: int, number: int) -> None:
        """Choose whether to verify a case as a whole; the choice takes nothing from the case's own draws."""
        self.all = Random(f"{seed} {number}").randrange(VERIFIED_ONE_IN) == 0

    def prove_launch(self, launch: Launch) -> int:
        """`proofs.prove_launch` for launches of the sample; 0 for others."""
        kind = launch.step.kernel.name, type(launch.calls)
        self.counts["launches"] += 1
        if not self.all and kind in self.proven:
            return 0
        self.counts["launches proven"] += 1
        accesses = prove_launch(launch)
        self.proven.add(kind)
        return accesses

    def interprets(self, kernels: Iterable[Kernel]) -> bool:
        """Whether to interpret a copy that runs these kernels."""
        names = {kernel.name for kernel in kernels}
        if not self.all and all(self.interpreted[name] >= INTERPRETED_FIRST for name in names):
            return False
        self.interpreted.update(names)
        return True

    def interprets_passes(self, kernels: Iterable[Kernel]) -> bool:
        """Whether to interpret what each pass makes of these kernels: once, and in cases of the sample."""
        names = {kernel.name for kernel in kernels} - self.passes
        self.passes |= names
        return self.all or bool(names)

    def verify_copy(self, copy: BoxedCopy) -> None:
        """`verify.verify_copy` in cases of the sample."""
        if self.all:
            verify_copy(copy)

    def verify_box(self, before: StridedBox, after: StridedBox) -> None:
        """`verify.verify_box` in cases of the sample."""
        if self.all:
            verify_box(before, after)

    @contextmanager
    def replacing(self) -> Iterator[None]:
        """Inside the block, TILEJIT_VERIFY checks the sample, and copies in two stages are counted."""
        prepare = StagedProgram.prepare

        def counted(program: StagedProgram, dst: int) -> None:
            self.counts["staged"] += 1
            self.counts["staged with requests"] += any(x.requests for x in program.blocks.copies)
            prepare(program, dst)

        own = (
            (proofs, "prove_launch", prove_launch),
            (copies, "verify_copy", verify_copy),
            (copies, "verify_box", verify_box),
        )
        for module, name, _ in own:
            setattr(module, name, getattr(self, name))
        StagedProgram.prepare = counted  # type: ignore[method-assign]
        try:
            yield
        finally:
            for module, name, original in own:
                setattr(module, name, original)
            StagedProgram.prepare = prepare  # type: ignore[method-assign]
