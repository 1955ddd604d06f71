"""The state of a recording: the reductions and numbers of a function that is called with stand-ins."""

from __future__ import annotations

from dataclasses import field
from typing import NamedTuple, TypeAlias

from codegen import KernelError, Local, Operand, ScalarArg, dataclass, dtypes
from tilejit.expressions.memory_orders import Forms
from tilejit.expressions.reduced_axes import Axes, kept_rank
from tilejit.kernels.direct_loops import Number

Names: TypeAlias = frozenset[str]
"""The arrays that an expression depends on."""


class Part(NamedTuple):
    """An expression.

    Attributes:
        operand: the computation.
        names: the arrays that it depends on.
        form: the number of its memory form; None for a number.
    """

    operand: Operand
    names: Names
    form: int | None


@dataclass(frozen=True, slots=True)
class Stage:
    """A recorded reduction of an expression along some of its dimensions.

    name       the array that holds the result for later expressions
    how        sum, mean, min, max or dot; exponent: the smallest exponent, which must not be negative
    combiner   the operation that combines two elements in `dtype`, the dtype of the result
    axes       the reduced dimensions, counted from the first
    pair       the arrays on the two sides of a dot product, whose last dimensions must match
    forms      the memory forms that determine the order of NumPy's result; empty for C order
    core       the number of trailing dimensions that a product consumes, so that they do not affect the order
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
    """The state of a recording.

    ranks    the rank of each array
    stages   the reductions so far
    forms    the memory forms of the expressions
    numbers  the numbers that kernels take as arguments, by name
    unknown  whether the function needed the value of an integer, even if it handled the error
    """

    ranks: dict[str, int]
    stages: list[Stage] = field(default_factory=list)
    forms: Forms = field(default_factory=Forms)
    numbers: dict[str, Number] = field(default_factory=dict)
    unknown: bool = False

    def needed(self) -> NumberNeeded:
        """The error of an operation that needs the value of an integer."""
        self.unknown = True
        return NumberNeeded("the value of an integer argument is known only in calls")

    def number(self, at: int, name: str, dtype: str) -> Operand:
        """The operand for a number among the arguments.

        Args:
            at: the position of the argument.
            name: its name in kernels.
            dtype: its dtype, which may be weak.
        """
        held = dtypes.concrete(dtype)
        self.numbers[name] = Number(at, ScalarArg(name, held))
        return Operand(dtype, Local(name, held))

    def rank(self, names: Names) -> int:
        """The rank of an expression of these arrays."""
        return max((self.ranks[name] for name in names), default=0)

    @property
    def next_name(self) -> str:
        """The name of the next reduction's result."""
        return f"r{len(self.stages)}"

    def enter(self, stage: Stage) -> Part:
        """Record a reduction, and return the part that stands for its result."""
        self.ranks[stage.name] = kept_rank(self.rank(stage.names), stage.axes, stage.keepdims)
        self.stages.append(stage)
        operand = Operand(stage.dtype, Local(stage.name, stage.dtype))
        return Part(operand, frozenset({stage.name}), self.forms.array(stage.name))


class NumberNeeded(KernelError):
    """An operation needs the value of an integer argument."""
