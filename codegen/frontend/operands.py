"""Typed expressions while a function is read: IR values, with their index expressions if they have any."""

from __future__ import annotations

import operator
from collections.abc import Callable
from typing import Any

import numpy as np

from codegen.frontend.comparisons import swapped, within
from codegen.frontend.index_arithmetic import both, bounded, floor_div, modulo, scaled
from codegen.frontend.powers import known_power
from codegen.ir import dtypes
from codegen.ir.index import Affine, Index, depends_on_elements, scale_index
from codegen.ir.values import Const, IndexValue, Op, Value
from codegen.support.dataclasses import dataclass
from codegen.support.errors import IntegerError, KernelError, PowerError, shown

DEEPEST = 256
"""The deepest nesting of operations: the code that reads them recurses as deeply."""

_BITS = 4096
"""Numbers of more bits are not computed while a function is read."""


@dataclass(frozen=True, slots=True)
class Operand:
    """An expression with its dtype.

    2*i + 1 -> Operand("weak_int", IndexValue(…), (Affine(…),), (Affine(…),))

    dtype     the dtype for promotion, weak or not; the value has the concrete one
    least     index expressions whose minimum it is; only one if it is itself an index expression
    largest   index expressions whose maximum it is; both are empty if it is neither
    """

    dtype: str
    value: Value
    least: tuple[Index, ...] = ()
    largest: tuple[Index, ...] = ()

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
        if value.bit_length() > _BITS:
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

    Raises:
        IntegerError: a Python integer that the dtype cannot hold, as in NumPy 2.
    """
    value = operand.value
    if isinstance(value, Const):
        return _convert_number(value, dtype, exact=operand.dtype in dtypes.WEAK)
    return value if value.dtype == dtype else Op("cast", (value,), dtype)


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
    _check_depth((operand,))
    value = convert_operand(operand, dtypes.concrete(dtype))
    if dtypes.is_float(dtype) or dtypes.is_bool(dtype):
        return Operand(dtype, value)
    if depends_on_elements(*operand.least, *operand.largest) and not _holds_all(dtype, operand.dtype):
        return Operand(dtype, value)
    return Operand(dtype, value, operand.least, operand.largest)


def _holds_all(dtype: str, given: str) -> bool:
    """Whether an integer dtype has all numbers of another one; Python's integers do."""
    return dtype == "weak_int" or dtype == dtypes.promote([dtype, dtypes.concrete(given)])


def apply_op(op: str, *operands: Operand) -> Operand:
    """An IR operation on operands, typed as NumPy types scalars.

    add(2*i, 1) -> the index expression 2*i + 1    mul(f32, weak 2.0) -> Op("mul", …, "f32")
    lt(i32, weak 2**40) -> le(i32, 2**31 - 1), equivalent to NumPy's comparison

    Raises:
        KernelError: it is undefined for these dtypes, or Python itself raises on these numbers.
    """
    _check_depth(operands)
    if all(operand.literal is not None for operand in operands) and op in _FOLDED:
        return _fold(op, [operand.literal for operand in operands])
    given = [operand.dtype for operand in operands]
    found = dtypes.result_type(op, given)
    if op == "pow" and _is_negative(operands[1]) and not dtypes.is_float(found):
        if found in dtypes.WEAK:  # Python returns a float.
            return apply_op(op, *(cast_operand(operand, "weak_float") for operand in operands))
        raise PowerError(
            "Integers to negative integer powers are not allowed.\n"
            "make the base a float: float(x) ** -1, or np.float64(x) ** -1"
        )
    least, largest = map(bounded, _ends(op, operands))
    if depends_on_elements(*least, *largest):
        # Results of narrower dtypes wrap around, where index expressions don't.
        exact = found in ("weak_int", "i64")
        return Operand(found, _value(op, operands, found), least * exact, largest * exact)
    if found == "weak_int" and least and least == largest and len(least) == 1:
        return indexed(least[0])
    return Operand(found, _value(op, operands, found), least, largest)


def _check_depth(operands: tuple[Operand, ...]) -> None:
    if any(isinstance(x.value, Op) and x.value.depth >= DEEPEST for x in operands):
        raise KernelError(
            f"more than {DEEPEST} operations are nested\n"
            "give parts names in a kernel, t = x + y; compute parts of an expression by separate calls"
        )


def _is_negative(operand: Operand) -> bool:
    return isinstance(operand.value, Const) and operand.value.value < 0


def _value(op: str, operands: tuple[Operand, ...], found: str) -> Value:
    given = [operand.dtype for operand in operands]
    result = dtypes.concrete(found)
    if op == "select":
        condition, *both = operands
        return Op(op, (truth_operand(condition), *(convert_operand(x, result) for x in both)), result)
    if op in dtypes.COMPARISONS:
        op, operands = _within(op, *operands)
        common = _compared_in(operands)
        if _mixed_signs(common, operands):
            return _compared_signs(op, *operands)
        return Op(op, tuple(convert_operand(x, common) for x in operands), "i1")
    common = dtypes.concrete(dtypes.operand_type(op, given))
    values = tuple(convert_operand(x, common) for x in operands)
    if common == "i1":
        op = {"add": "or", "mul": "and", "max": "or", "min": "and"}.get(op, op)
        if op == "abs":
            return values[0]
    if op == "pow" and (known := known_power(*values)) is not None:
        return known
    if op in ("floor", "ceil", "trunc") and not dtypes.is_float(common):
        return values[0]
    return Op(op, values, result)


def _within(op: str, one: Operand, two: Operand) -> tuple[str, tuple[Operand, Operand]]:
    """An equivalent comparison whose number fits the dtype of the other operand."""
    swap = one.literal is not None and two.literal is None
    x, number = (two, one.literal) if swap else (one, two.literal)
    if not isinstance(number, int) or dtypes.is_bool(x.dtype) or dtypes.is_float(x.dtype):
        return op, (one, two)
    new_op, fitting = within(swapped(op) if swap else op, number, dtypes.concrete(x.dtype))
    return (op, (one, two)) if fitting == number else (new_op, (x, literal_operand(fitting)))


def _compared_in(operands: tuple[Operand, ...]) -> str:
    """The dtype in which a comparison gives the same result as NumPy's."""
    given = [operand.dtype for operand in operands]
    common = dtypes.concrete(dtypes.promote(given))
    strong = {d for d in given if d not in dtypes.WEAK}
    if not strong or dtypes.is_float(common) or "weak_int" not in given:
        return common
    # NumPy compares with the Python integer itself, even if the dtype cannot hold it.
    if common == "u64":
        return common
    return common if any(operand.literal is not None for operand in operands) else "i64"


def _mixed_signs(common: str, operands: tuple[Operand, ...]) -> bool:
    """Whether these are u64 and signed integers, which no single integer dtype can hold."""
    given = [operand.dtype for operand in operands]
    if "u64" not in given or any(map(dtypes.is_float, given)):
        return False
    return common == "f64" or any(x.dtype == "weak_int" and x.literal is None for x in operands)


def _compared_signs(op: str, a: Operand, b: Operand) -> Value:
    """Compare u64 with signed integers: negative ones are less than any u64, others are compared as u64.

    u64 < i32 -> not i32 < 0 and u64 < i32 as u64
    """
    if b.dtype == "u64":
        return _compared_signs(swapped(op), b, a)
    signed = convert_operand(b, "i64")
    negative = Op("lt", (signed, Const(0, "i64")), "i1")
    alike = Op(op, (a.value, Op("cast", (signed,), "u64")), "i1")
    if op in ("gt", "ge", "ne"):
        return Op("or", (negative, alike), "i1")
    return Op("and", (Op("not", (negative,), "i1"), alike), "i1")


def truth_operand(operand: Operand) -> Value:
    """The truth value as in Python's `if`: booleans as they are, numbers compared with 0."""
    if dtypes.is_bool(operand.dtype):
        return operand.value
    return apply_op("ne", operand, literal_operand(0)).value


_FOLDED: dict[str, Callable[..., Any]] = {
    "add": operator.add,
    "sub": operator.sub,
    "mul": operator.mul,
    "div": operator.truediv,
    "floordiv": operator.floordiv,
    "mod": operator.mod,
    "pow": operator.pow,
    "shl": operator.lshift,
    "shr": operator.rshift,
    "and": operator.and_,
    "or": operator.or_,
    "xor": operator.xor,
    "not": operator.invert,
    "neg": operator.neg,
    "abs": operator.abs,
    "min": min,
    "max": max,
    "eq": operator.eq,
    "ne": operator.ne,
    "lt": operator.lt,
    "le": operator.le,
    "gt": operator.gt,
    "ge": operator.ge,
    "select": lambda condition, then, otherwise: then if condition else otherwise,
}


def _fold(op: str, numbers: list[Any]) -> Operand:
    """Python's result for constants in the source."""
    if op in ("pow", "shl") and all(isinstance(n, int) for n in numbers):
        bits = numbers[0].bit_length() * numbers[1] if op == "pow" else numbers[0].bit_length() + numbers[1]
        if bits > _BITS:
            raise KernelError(f"a number of more than {_BITS} bits is too large")
    if op == "not":
        numbers = [int(n) if isinstance(n, bool) else n for n in numbers]
    try:
        return literal_operand(_FOLDED[op](*numbers))
    except (ArithmeticError, TypeError, ValueError) as error:
        raise KernelError(refused(error)) from None


def refused(error: Exception) -> str:
    """The error message for constants in the source on which Python raises."""
    cause = "division by zero" if isinstance(error, ZeroDivisionError) else str(error)
    return (
        f"Python itself raises here: {cause}\n"
        "constants are computed while the source is read: change them, or pass them as arguments"
    )


def _ends(op: str, operands: tuple[Operand, ...]) -> tuple[tuple[Index, ...], tuple[Index, ...]]:
    """The index expressions whose minimum, and those whose maximum, a result is; () if there are none."""
    match op, operands:
        case "add", (a, b):
            return both(a.least, b.least), both(a.largest, b.largest)
        case "sub", (a, b):
            minus = Operand("weak_int", b.value, scaled(b.largest, -1), scaled(b.least, -1))
            return _ends("add", (a, minus))
        case "neg", (a,):
            return scaled(a.largest, -1), scaled(a.least, -1)
        case "mul", (a, b):
            number = _number(a) if _number(b) is None else _number(b)
            one = (b if _number(b) is None else a).index
            return ((scale_index(one, number),),) * 2 if one is not None and number is not None else ((), ())
        case (("floordiv" | "mod"), (a, b)):
            number, one = _number(b), a.index
            if one is None or number is None or number < 1:
                return (), ()
            return ((floor_div if op == "floordiv" else modulo)(one, number),), (
                (floor_div if op == "floordiv" else modulo)(one, number),
            )
        case "min", (a, b) if a.least and b.least:
            return tuple(dict.fromkeys(a.least + b.least)), ()
        case "max", (a, b) if a.largest and b.largest:
            return (), tuple(dict.fromkeys(a.largest + b.largest))
    return (), ()


def _number(operand: Operand) -> int | None:
    index = operand.index
    return index.constant if isinstance(index, Affine) and not index.terms else None
