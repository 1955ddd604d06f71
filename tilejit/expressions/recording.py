"""What is written down while a function of elements is called with stand-ins: its reductions and numbers."""

from __future__ import annotations

from dataclasses import field
from typing import NamedTuple, TypeAlias

from codegen import KernelError, Local, Operand, ScalarArg, dataclass, dtypes
from tilejit.expressions.memory_orders import Forms
from tilejit.expressions.reduced_axes import Axes, kept_rank
from tilejit.kernels.direct_loops import Number

Names: TypeAlias = frozenset[str]
"""The arrays that an expression is made of."""


class Part(NamedTuple):
    """An expression.

    Attributes:
        operand: what it computes.
        names: the arrays that it is made of.
        form: the number of its form in memory; None where it is a number.
    """

    operand: Operand
    names: Names
    form: int | None


@dataclass(frozen=True, slots=True)
class Stage:
    """A reduction that a function makes: of an expression, along some of its dimensions.

    name       of the array that holds it for what comes after
    how        sum, mean, min, max or dot; exponent: the least one, which must not be negative
    combiner   what combines two elements, in `dtype`, which is the result's
    axes       which go, counted from the first
    pair       of a dot product the arrays on its two sides, whose last dimensions must agree
    forms      those in memory whose order NumPy's result takes over; none where that is C's
    core       how many of their last dimensions have no part in that, since a product takes them
    """

    name: str
    how: str
    combiner: str
    operand: Operand
    names: Names
    dtype: str
    axes: Axes
    keepdims: bool = False
    pair: tuple[Names, ...] = ()
    forms: tuple[int, ...] = ()
    core: int = 0


@dataclass()
class Recording:
    """What a function does while it is called with stand-ins.

    ranks    of each array
    stages   its reductions
    forms    how what it computes lies in memory
    numbers  what kernels have of the numbers, by their names there
    unknown  whether the function asked for what only the value of an integer tells, and perhaps went on
    """

    ranks: dict[str, int]
    stages: list[Stage] = field(default_factory=list)
    forms: Forms = field(default_factory=Forms)
    numbers: dict[str, Number] = field(default_factory=dict)
    unknown: bool = False

    def needed(self) -> NumberNeeded:
        """The error of a question that only the value of an integer answers."""
        self.unknown = True
        return NumberNeeded("an integer among the arguments is known in calls alone")

    def number(self, at: int, name: str, dtype: str) -> Operand:
        """A number among the arguments, which kernels have by a name and in a dtype, weak or not."""
        held = dtypes.concrete(dtype)
        self.numbers[name] = Number(at, ScalarArg(name, held))
        return Operand(dtype, Local(name, held))

    def rank(self, names: Names) -> int:
        """The rank of an expression of these arrays."""
        return max((self.ranks[name] for name in names), default=0)

    @property
    def next_name(self) -> str:
        """What the result of the next reduction is called."""
        return f"r{len(self.stages)}"

    def enter(self, stage: Stage) -> Part:
        """A reduction; what stands for its result."""
        self.ranks[stage.name] = kept_rank(self.rank(stage.names), stage.axes, stage.keepdims)
        self.stages.append(stage)
        operand = Operand(stage.dtype, Local(stage.name, stage.dtype))
        return Part(operand, frozenset({stage.name}), self.forms.array(stage.name))


class NumberNeeded(KernelError):
    """An expression hangs on an integer in a way that only its value can tell."""
