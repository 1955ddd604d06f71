"""The outcome for each loop: how it was vectorized, or why not, and the access or bound responsible."""

from __future__ import annotations

from codegen.ir.values import VectorShape
from codegen.support.dataclasses import dataclass

VECTORIZED = "vectorized"
"""Iterations of this loop run as lanes of super-vectors."""

CARRIED = "carried-dependence"
"""An iteration depends on another one of the same super-vector."""

VALUE = "carried-value"
"""A local is carried from iteration to iteration, but not as a reduction."""

NOT_ASKED = "reduction-not-asked"
"""The loop reduces, and lanes would change the order; vectorize_reductions or tj.reduction allows that."""

SCAN_NOT_ASKED = "scan-not-asked"
"""The loop scans, and lanes would combine in another grouping; vectorize_scans or tj.scan allows that."""

NOT_1D = "reduction-not-1-d"
"""Reductions and scans vectorize in one dimension only; pass one size."""

NOT_CONTIGUOUS = "not-contiguous"
"""A store does not traverse the memory dimension that fastest_varying requests."""

BOUND = "bound-uses-index"
"""A bound uses the index of a vectorized loop, so lanes would end at different iterations."""

SCATTER = "scatter"
"""Subscripts of a store are elements of arrays, so lanes may write the same element: it runs in order."""

DIAGONAL = "diagonal-access"
"""The index moves two subscripts of one array at once."""

UNSUPPORTED = "unsupported-op"
"""The loop contains an operation that super-vectors do not support."""

TOO_FEW = "too-few-loops"
"""The nest has fewer loops than the super-vector has dimensions."""

OTHER = "other-loop-chosen"
"""Another loop of the nest is a better one to vectorize."""

UNPROFITABLE = "not-profitable"
"""Lanes are expected to cost more than the scalar loop."""

ONE_LANE = "one-lane"
"""A super-vector of one lane is the scalar loop."""


@dataclass(frozen=True, slots=True)
class Refusal:
    """The reason why some loops cannot run as lanes. loop: the number of the loop responsible."""

    loop: int
    code: str
    text: str


@dataclass(frozen=True, slots=True)
class LoopReport:
    """The outcome for one loop.

    line    of the loop in its source; 0 if it has none, as in expressions
    shape   of its super-vectors; () if it stays scalar
    code    VECTORIZED, or one of the reasons above
    text    the access, bound or local in question; for vectorized loops, how each array is accessed
    tail    how the last iterations run: as `tilejit.kernel` has them; "" if scalar
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
        outcome = f"vectorized by {shape}" if self.vectorized else f"scalar, {self.code}"
        line = f"line {self.line}, " if self.line else ""
        return f"{line}loop {self.index}: {outcome}: {self.text}"
