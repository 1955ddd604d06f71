"""What became of each loop: vectorised how, or why not, and which access or bound it was."""

from __future__ import annotations

from dataclasses import dataclass

from codegen.loops.ir import VectorShape

VECTORISED = "vectorised"
CARRIED = "carried-dependence"
VALUE = "carried-value"
NOT_ASKED = "reduction-not-asked"
NOT_1D = "reduction-not-1-d"
NOT_CONTIGUOUS = "not-contiguous"
BOUND = "bound-uses-index"
IRREGULAR = "irregular-access"
DIAGONAL = "diagonal-access"
UNSUPPORTED = "unsupported-op"
TOO_FEW = "too-few-loops"
OTHER = "other-loop-chosen"
UNPROFITABLE = "not-profitable"
ONE_LANE = "one-lane"

REASONS = {
    VECTORISED: "Iterations of this loop run as lanes of super-vectors.",
    CARRIED: "An iteration needs what another one of the same super-vector does.",
    VALUE: "A local goes from iteration to iteration, but not as a reduction.",
    NOT_ASKED: "The loop reduces, in lanes in another order; vectorize_reductions or tj.reduction allows it.",
    NOT_1D: "Reductions run in lanes of one dimension only; give one size.",
    NOT_CONTIGUOUS: "What is stored does not walk the memory dimension that fastest_varying asks for.",
    BOUND: "A bound uses the index of a vectorised loop, so lanes would end at different iterations.",
    IRREGULAR: "A subscript of a store divides the index: lanes may fall on one element.",
    DIAGONAL: "The index walks two subscripts of one array at once.",
    UNSUPPORTED: "The loop holds something that has no form in super-vectors.",
    TOO_FEW: "The nest has fewer loops than the super-vector has dimensions.",
    OTHER: "Another loop of the nest is the better one to run as lanes.",
    UNPROFITABLE: "Lanes are expected to cost more than the scalar loop.",
    ONE_LANE: "A super-vector of one lane is the scalar loop.",
}
"""One sentence for each code."""


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
    code    VECTORISED or a reason, a key of REASONS
    text    the access, bound or local in question; for vectorised loops how each array is walked
    tail    what serves the last iterations: "mask", "shift", "scalar", "assume_divisible"; "" where scalar
    """

    index: str
    line: int
    vectorised: bool
    shape: VectorShape
    code: str
    text: str
    tail: str = ""

    def __str__(self) -> str:
        shape = "x".join(map(str, self.shape))
        what = f"vectorised by {shape}" if self.vectorised else f"scalar, {self.code}"
        return f"line {self.line}, loop {self.index}: {what}: {self.text}"
