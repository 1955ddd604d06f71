"""What became of each loop: vectorized how, or why not, and which access or bound it was."""

from __future__ import annotations

from dataclasses import dataclass

from codegen.ir.nodes import VectorShape

VECTORIZED = "vectorized"
"""Iterations of this loop run as lanes of super-vectors."""

CARRIED = "carried-dependence"
"""An iteration needs what another one of the same super-vector does."""

VALUE = "carried-value"
"""A local goes from iteration to iteration, but not as a reduction."""

NOT_ASKED = "reduction-not-asked"
"""The loop reduces, in lanes in another order; vectorize_reductions or tj.reduction allows it."""

NOT_1D = "reduction-not-1-d"
"""Reductions run in lanes of one dimension only; give one size."""

NOT_CONTIGUOUS = "not-contiguous"
"""What is stored does not walk the memory dimension that fastest_varying asks for."""

BOUND = "bound-uses-index"
"""A bound uses the index of a vectorized loop, so lanes would end at different iterations."""

IRREGULAR = "irregular-access"
"""A subscript of a store divides the index: lanes may fall on one element."""

DIAGONAL = "diagonal-access"
"""The index walks two subscripts of one array at once."""

UNSUPPORTED = "unsupported-op"
"""The loop holds something that has no form in super-vectors."""

TOO_FEW = "too-few-loops"
"""The nest has fewer loops than the super-vector has dimensions."""

OTHER = "other-loop-chosen"
"""Another loop of the nest is the better one to run as lanes."""

UNPROFITABLE = "not-profitable"
"""Lanes are expected to cost more than the scalar loop."""

ONE_LANE = "one-lane"
"""A super-vector of one lane is the scalar loop."""


@dataclass(frozen=True, slots=True)
class Refusal:
    """Why some loops can't run as lanes. loop: the number of the one that is to blame."""

    loop: int
    code: str
    text: str


@dataclass(frozen=True, slots=True)
class LoopReport:
    """What became of a loop.

    shape   of the super-vectors in it; () where it stays scalar
    code    VECTORIZED, or one of the reasons above
    text    the access, bound or local in question; for vectorized loops how each array is walked
    tail    what serves the last iterations: "mask", "shift", "scalar", "assume_divisible"; "" where scalar
    """

    index: str
    line: int
    vectorized: bool
    shape: VectorShape
    code: str
    text: str
    tail: str = ""

    def __str__(self) -> str:
        shape = "x".join(map(str, self.shape))
        what = f"vectorized by {shape}" if self.vectorized else f"scalar, {self.code}"
        return f"line {self.line}, loop {self.index}: {what}: {self.text}"
