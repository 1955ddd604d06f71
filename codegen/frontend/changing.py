"""Loop-carried locals that begin as Python numbers, and become NumPy numbers in a loop."""

from __future__ import annotations

from codegen.frontend.operands import Choice, Operand, indexed, leaves
from codegen.frontend.operations import apply_op
from codegen.frontend.ranges import Bounds
from codegen.ir import dtypes
from codegen.ir.index import depends_on_elements
from codegen.ir.values import Const, Local, Op, Value
from codegen.support.dataclasses import dataclass
from codegen.support.errors import KernelError

FLAG = ".first"
"""The end of the name of a flag: whether a carried local is still the Python number that it begins as."""


@dataclass(frozen=True, slots=True)
class Changing:
    """A carried local while its loop is read.

    s = 0.0; for i in range(n): s = s + x[i]  ->  "f32", first 0.0: a Python float in the first iteration

    given   its name in the loop IR
    dtype   what both promote to
    first   the operand of another dtype that it may be instead, the same in all iterations; None for none
    """

    given: str
    dtype: str
    first: Operand | None = None

    @property
    def flag(self) -> str:
        """The local that says whether it is still `first`."""
        return self.given + FLAG

    def operand(self, is_first: Value | None = None) -> Operand:
        """The local in an iteration; with a condition, after the loop."""
        later = Operand(self.dtype, Local(self.given, dtypes.concrete(self.dtype)))
        if self.first is None:
            return later
        choice = Choice(is_first or Local(self.flag, "i1"), self.first, later)
        return Operand(self.dtype, later.value, choice=choice)

    def joined(self, name: str, start: Operand, after: Operand) -> Changing:
        """The same local, given what it is at the end of an iteration.

        Raises:
            KernelError: it is of too many dtypes.
        """
        found = dtypes.promote([self.dtype, after.dtype])
        itself = Local(self.given, dtypes.concrete(self.dtype))
        known = leaves(start)
        others = {x for x in known + leaves(after) if x.dtype != found and x.value != itself}
        new = others - {*known}
        if any(x.dtype not in dtypes.WEAK for x in new):
            first, last = (" or ".join(dict.fromkeys(map(_shown, leaves(x)))) for x in (start, after))
            raise KernelError(
                f"{name} is {first} before the loop and {last} after an iteration\n"
                "start with that dtype, or convert the new value"
            )
        if len(others) > 1 or not all(isinstance(x.value, Const) for x in new):
            raise KernelError(
                f"{name} is a Python number in some iterations and {_shown(after)} in others\n"
                f"convert it wherever it is set: np.{dtypes.numpy_dtype(dtypes.concrete(found))}(…)"
            )
        return Changing(self.given, found, *others)

    def is_first(self, operand: Operand) -> Value:
        """Whether an operand is `first`, as a value."""
        if operand.choice is None:
            return Const(operand == self.first, "i1")
        condition = operand.choice.condition
        then, otherwise = (self.is_first(x) for x in (operand.choice.then, operand.choice.otherwise))
        if then == otherwise:
            return then
        if isinstance(otherwise, Const):
            return _both(condition, then) if not otherwise.value else _any(_not(condition), then)
        if isinstance(then, Const):
            return _any(condition, otherwise) if then.value else _both(_not(condition), otherwise)
        return Op("select", (condition, then, otherwise), "i1")

    def after(self, start: Operand, update: Operand, bounds: Bounds) -> Operand:
        """The local after the loop."""
        if self.first is None or self.is_first(update) != Const(False, "i1"):
            return self.operand()
        if depends_on_elements(*bounds.lower, *bounds.upper):
            return self.operand()
        return self.operand(_both(_runs_never(bounds), self.is_first(start)))


def _shown(operand: Operand) -> str:
    names = {"weak_bool": "a Python bool", "weak_int": "a Python int", "weak_float": "a Python float"}
    return names.get(operand.dtype, operand.dtype)


def _runs_never(bounds: Bounds) -> Value:
    """Whether a loop has no iterations."""
    test = "ge" if bounds.step > 0 else "le"
    found: Value = Const(False, "i1")
    for low in bounds.lower:
        for high in bounds.upper:
            found = _any(apply_op(test, indexed(low), indexed(high)).value, found)
    return found


def _not(value: Value) -> Value:
    return Op("not", (value,), "i1")


def _both(one: Value, two: Value) -> Value:
    for x, other in ((one, two), (two, one)):
        if isinstance(x, Const):
            return other if x.value else x
    return Op("and", (one, two), "i1")


def _any(one: Value, two: Value) -> Value:
    for x, other in ((one, two), (two, one)):
        if isinstance(x, Const):
            return x if x.value else other
    return Op("or", (one, two), "i1")
