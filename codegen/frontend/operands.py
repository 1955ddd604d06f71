"""Typed expressions while a function is read: IR values, with their index expressions if they have any."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np

from codegen.ir import dtypes
from codegen.ir.index import Affine, Index, depends_on_elements
from codegen.ir.values import Const, IndexValue, Op, Value
from codegen.support.dataclasses import dataclass
from codegen.support.errors import IntegerError, KernelError, shown

DEEPEST = 256
"""The deepest nesting of operations: the code that reads them recurses as deeply."""

BITS = 4096
"""Numbers of more bits are not computed while a function is read."""


_SIDES = 16
"""The most numbers of different dtypes that one number may be."""


@dataclass(frozen=True, slots=True)
class Choice:
    """One of two operands of different dtypes. The condition is known only when the kernel runs."""

    condition: Value
    then: Operand
    otherwise: Operand


@dataclass(frozen=True, slots=True)
class Operand:
    """An expression with its dtype.

    2*i + 1 -> Operand("weak_int", IndexValue(…), (Affine(…),), (Affine(…),))

    dtype     the dtype for promotion, weak or not; the value has the concrete one
    least     index expressions whose minimum it is; only one if it is itself an index expression
    largest   index expressions whose maximum it is; both are empty if it is neither
    choice    for a number of one dtype or another: both. Then the value has a dtype that both convert to.
    """

    dtype: str
    value: Value
    least: tuple[Index, ...] = ()
    largest: tuple[Index, ...] = ()
    choice: Choice | None = None

    @property
    def index(self) -> Index | None:
        """The index expression, if the operand is one."""
        return self.least[0] if len(self.least) == 1 and self.least == self.largest else None

    @property
    def literal(self) -> int | float | bool | None:
        """The Python number, if the operand is a constant in the source."""
        return self.value.value if isinstance(self.value, Const) and self.dtype in dtypes.WEAK else None


def literal_operand(value: object) -> Operand:
    """A Python number, with a weak dtype, or a NumPy number, with its own.

    Raises:
        KernelError: it is not a number, or is complex.
    """
    if isinstance(value, np.generic):
        name = dtypes.dtype_name(value.dtype)
        return Operand(name, Const(value.astype(_plain(name)).item(), name))
    if isinstance(value, bool):
        return Operand("weak_bool", Const(value, "i1"))
    if isinstance(value, int):
        if value.bit_length() > BITS:
            raise KernelError(f"a number of {value.bit_length()} bits is too large")
        ends: tuple[Index, ...] = (Affine(value),)
        return Operand("weak_int", Const(value, "i64"), ends, ends)
    if isinstance(value, float):
        return Operand("weak_float", Const(value, "f64"))
    raise KernelError(
        f"a {type(value).__name__} is not a number that kernels support\n"
        "use Python's bool, int and float, and NumPy's scalars; pass arrays as arguments"
    )


def _plain(name: str) -> Any:
    """A dtype whose .item() is a Python number; bfloat16's is not."""
    return np.float32 if name == "bf16" else dtypes.numpy_dtype(name)


def indexed(index: Index) -> Operand:
    """An index expression as an operand: a Python int."""
    if isinstance(index, Affine) and not index.terms:
        return literal_operand(index.constant)
    return Operand("weak_int", IndexValue(index), (index,), (index,))


def convert_operand(operand: Operand, dtype: str) -> Value:
    """The value in a dtype: constants stay constants, others are cast.

    2.0 to f32 -> Const(2.0, "f32")    i (i64) to f32 -> Op("cast", …)
    x if c else 300, with x of u8, to i64 -> Op("select", (c, x to i64, 300))

    Raises:
        IntegerError: a Python integer that the dtype cannot hold, as in NumPy 2.
    """
    value = operand.value
    if operand.choice is not None and not _keeps(operand, dtype):
        one, two = (convert_operand(x, dtype) for x in (operand.choice.then, operand.choice.otherwise))
        return Op("select", (operand.choice.condition, one, two), dtype)
    if isinstance(value, Const):
        return _convert_number(value, dtype, exact=operand.dtype in dtypes.WEAK)
    return value if value.dtype == dtype else Op("cast", (value,), dtype)


def _keeps(operand: Operand, dtype: str) -> bool:
    """Whether the value of a choice converts to a dtype as each of its sides does."""
    held = operand.value.dtype
    if dtype == held:
        return True
    narrower = dtype != "i1" and not dtypes.is_float(dtype)
    return not narrower and all(holds(held, leaf) for leaf in leaves(operand))


def holds(dtype: str, leaf: Operand) -> bool:
    """Whether a dtype holds every value of an operand; for a constant, its own value."""
    value = leaf.value
    if isinstance(value, Const):
        made = np.array(_convert_number(value, dtype, exact=False).value).astype(dtypes.numpy_dtype(dtype))
        number = float(made) if dtypes.is_float(dtype) else int(made)
        return number == value.value or number != number
    given = value.dtype
    large = given in ("i64", "u64") and dtypes.is_float(dtype)
    return given == "i1" or (dtypes.promote([given, dtype]) == dtype and not large)


def either(condition: Value, then: Operand, otherwise: Operand, *, whole: Operand | None = None) -> Operand:
    """One of two operands. Both keep their dtypes, as in Python's `x if c else y`.

    whole   the same number, of the dtype that both promote to

    Raises:
        KernelError: it may have too many dtypes.
    """
    if then == otherwise:
        return then
    if isinstance(condition, Const):
        return then if condition.value else otherwise
    given = [then.dtype, otherwise.dtype]
    found = dtypes.promote(given)
    check_depth((then, otherwise))
    if whole is None:
        try:
            values = [convert_operand(x, dtypes.concrete(found)) for x in (then, otherwise)]
        except IntegerError:  # an integer that does not fit the other side's dtype
            found = dtypes.promote([dtypes.concrete(dtype) for dtype in given])
            values = [convert_operand(x, found) for x in (then, otherwise)]
        whole = Operand(found, Op("select", (condition, *values), dtypes.concrete(found)))
    if then.choice is None and otherwise.choice is None and then.dtype == otherwise.dtype:
        return whole
    made = replace(whole, dtype=found, choice=Choice(condition, then, otherwise))
    if len(leaves(made)) > _SIDES:
        raise KernelError(
            f"this number may have one of more than {_SIDES} dtypes\n"
            "convert both sides of `x if c else y` to one: np.float64(x) if c else np.float64(y)"
        )
    return made


def leaves(operand: Operand) -> tuple[Operand, ...]:
    """The operands that a choice is between; itself for any other."""
    if operand.choice is None:
        return (operand,)
    return leaves(operand.choice.then) + leaves(operand.choice.otherwise)


def decided(operand: Operand, condition: Value, holds: bool) -> Operand:
    """The operand where a condition holds, or where it does not."""
    if operand.choice is None:
        return operand
    choice = operand.choice
    if choice.condition == condition:
        return decided(choice.then if holds else choice.otherwise, condition, holds)
    sides = tuple(decided(x, condition, holds) for x in (choice.then, choice.otherwise))
    return operand if sides == (choice.then, choice.otherwise) else either(choice.condition, *sides)


def for_each_side(run: Callable[..., Operand], *operands: Operand) -> Operand:
    """`run(*operands)`, computed for each dtype that the operands may have.

    x if c else 2  ->  run(x) if c else run(2)
    """
    choice = next((x.choice for x in operands if x.choice is not None), None)
    if choice is None:
        return run(*operands)
    then, otherwise = (
        for_each_side(run, *(decided(x, choice.condition, holds) for x in operands))
        for holds in (True, False)
    )
    return either(choice.condition, then, otherwise)


def strong_operand(operand: Operand) -> Operand:
    """The operand with the dtype that NumPy gives Python numbers: float64, int64 or bool."""
    if operand.choice is not None:
        return for_each_side(strong_operand, operand)
    dtype = dtypes.concrete(operand.dtype)
    return Operand(dtype, convert_operand(operand, dtype), operand.least, operand.largest)


def _convert_number(number: Const, dtype: str, *, exact: bool) -> Const:
    value = number.value
    if dtype == "i1":
        return Const(bool(value), dtype)
    if dtypes.is_float(dtype):
        try:
            return Const(float(value), dtype)
        except OverflowError:
            raise IntegerError("an integer is too large for floats") from None
    if isinstance(value, float) and not np.isfinite(value):
        raise KernelError(f"cannot convert {value} to {dtype}")
    info = np.iinfo(dtypes.numpy_dtype(dtype))
    if info.min <= int(value) <= info.max:
        return Const(int(value), dtype)
    if exact:
        raise _out_of_range(int(value), dtype)
    return Const(int(np.array(int(value) % 2**64, np.uint64).astype(dtypes.numpy_dtype(dtype))), dtype)


def _out_of_range(number: int, dtype: str) -> IntegerError:
    info = np.iinfo(dtypes.numpy_dtype(dtype))
    return IntegerError(f"{shown(number)} does not fit {dtype}\n{dtype} holds {info.min} to {info.max}")


def select_operand(operand: Operand, dtype: str) -> Operand:
    """A Python integer in the integer dtype of an np.where; other operands are unchanged.

    200 to i8 -> -56 where NumPy wraps it, before 2.5; an error where NumPy refuses it

    NumPy itself converts the integer, because its releases differ.

    Raises:
        IntegerError: the installed NumPy refuses the integer.
    """
    value = operand.value
    if not isinstance(value, Const) or operand.dtype != "weak_int" or dtype[0] not in "iu" or dtype == "i1":
        return operand
    number = int(value.value)
    try:
        made = np.where(True, number, np.zeros(1, dtypes.numpy_dtype(dtype)))
    except OverflowError:
        raise _out_of_range(number, dtype) from None
    return Operand(dtype, Const(int(made[0]), dtype))


def cast_operand(operand: Operand, dtype: str) -> Operand:
    """Convert an operand like NumPy's astype, or to a weak dtype like Python's int(), float() or bool()."""
    if operand.literal is not None and dtype in dtypes.WEAK:
        made: Callable[[Any], Any] = {"weak_int": int, "weak_float": float, "weak_bool": bool}[dtype]
        try:
            return literal_operand(made(operand.literal))
        except (ArithmeticError, ValueError) as error:
            raise KernelError(refused(error)) from None
    check_depth((operand,))
    value = convert_operand(operand, dtypes.concrete(dtype))
    if dtypes.is_float(dtype) or dtypes.is_bool(dtype):
        return Operand(dtype, value)
    if depends_on_elements(*operand.least, *operand.largest) and not _holds_all(dtype, operand.dtype):
        return Operand(dtype, value)
    return Operand(dtype, value, operand.least, operand.largest)


def _holds_all(dtype: str, given: str) -> bool:
    """Whether an integer dtype has all numbers of another one; Python's integers do."""
    return dtype == "weak_int" or dtype == dtypes.promote([dtype, dtypes.concrete(given)])


def check_depth(operands: tuple[Operand, ...]) -> None:
    """Raise a KernelError if the operands are nested too deeply for another operation."""
    if any(isinstance(x.value, Op) and x.value.depth >= DEEPEST for x in operands):
        raise KernelError(
            f"more than {DEEPEST} operations are nested\n"
            "give parts names in a kernel, t = x + y; compute parts of an expression by separate calls"
        )


def refused(error: Exception) -> str:
    """The error message for constants in the source on which Python raises."""
    cause = "division by zero" if isinstance(error, ZeroDivisionError) else str(error)
    return (
        f"Python itself raises here: {cause}\n"
        "constants are computed while the source is read: change them, or pass them as arguments"
    )
