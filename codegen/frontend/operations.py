"""Operations on operands: their dtype as in NumPy, folded constants, index expressions."""

from __future__ import annotations

import operator
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from itertools import product
from typing import Any

from codegen.frontend.comparisons import swapped, within
from codegen.frontend.index_arithmetic import both, bounded, scaled
from codegen.frontend.operands import (
    BITS,
    Operand,
    cast_operand,
    check_depth,
    convert_operand,
    for_each_side,
    holds,
    indexed,
    leaves,
    literal_operand,
    refused,
)
from codegen.frontend.powers import known_power
from codegen.ir import dtypes
from codegen.ir.index import Index, depends_on_elements, scale_index
from codegen.ir.integer_operators import bitwise, floor_div, inverted, modulo, number_in
from codegen.ir.values import Const, Op, Value
from codegen.support.errors import KernelError, PowerError


def apply_op(op: str, *operands: Operand) -> Operand:
    """An IR operation on operands, typed as NumPy types scalars.

    add(2*i, 1) -> the index expression 2*i + 1    mul(f32, weak 2.0) -> Op("mul", …, "f32")
    lt(i32, weak 2**40) -> le(i32, 2**31 - 1), equivalent to NumPy's comparison

    Raises:
        KernelError: it is undefined for these dtypes, or Python itself raises on these numbers.
    """
    check_depth(operands)
    if any(operand.choice for operand in operands):
        common = _computed_in(op, operands)
        if common is None:
            return _for_each_side(op, operands)
        operands = tuple(x if x.choice is None else cast_operand(x, common) for x in operands)
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


def _is_negative(operand: Operand) -> bool:
    return isinstance(operand.value, Const) and operand.value.value < 0


def _for_each_side(op: str, operands: tuple[Operand, ...]) -> Operand:
    """The operation for each dtype that the operands may have.

    Index expressions, and minima and maxima of them, stay bounds of loops.
    """
    made = for_each_side(partial(apply_op, op), *operands)
    if op in dtypes.COMPARISONS:
        value = _compared_alike(op, *operands)
        return made if value is None else replace(made, value=value)
    least, largest = map(bounded, _ends(op, operands))
    return replace(made, least=least, largest=largest)


def _compared_alike(op: str, one: Operand, two: Operand) -> Value | None:
    """A comparison with a constant in one dtype that holds all numbers exactly; None for others."""
    x, number = (one, two) if one.choice else (two, one)
    dtype = x.value.dtype
    numbers = (*leaves(x), *((number,) if dtypes.is_float(dtype) else ()))
    if number.literal is None or not all(holds(dtype, each) for each in numbers):
        return None
    held = Operand(dtype, x.value)
    return apply_op(op, *((held, number) if x is one else (number, held))).value


def splits(op: str, operands: tuple[Operand, ...]) -> bool:
    """Whether apply_op computes once for each dtype that an operand may have."""
    return any(x.choice for x in operands) and _computed_in(op, operands) is None


def _computed_in(op: str, operands: tuple[Operand, ...]) -> str | None:
    """The dtype to which the operands are converted, if it is the same for all dtypes that they may have.

    (x if c else 2.0) * y, with x and y of f32 -> "f32"    -(x if c else 2), with x of u8 -> None
    """
    kinds = {_kind(op, each) for each in product(*map(leaves, operands))}
    return kinds.pop()[1] if len(kinds) == 1 else None


def _kind(op: str, operands: tuple[Operand, ...]) -> tuple[str, str]:
    """How a result is computed, and the dtype to which the operands are converted."""
    given = [operand.dtype for operand in operands]
    found = dtypes.result_type(op, given)
    if op not in dtypes.COMPARISONS:
        exponent = operands[1].literal if op == "pow" else ""
        return f"{found} {exponent}", dtypes.operand_type(op, given)
    new_op, fitting = _within(op, *operands)
    common = _compared_in(fitting)
    return f"{found} {new_op} {_mixed_signs(common, fitting)}", common


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
        if bits > BITS:
            raise KernelError(f"a number of more than {BITS} bits is too large")
    if op == "not":
        numbers = [int(n) if isinstance(n, bool) else n for n in numbers]
    try:
        return literal_operand(_FOLDED[op](*numbers))
    except (ArithmeticError, TypeError, ValueError) as error:
        raise KernelError(refused(error)) from None


SHIFTS = 62
"""Index expressions are shifted by smaller numbers, so that 64 bits hold the power of two."""


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
        case (("floordiv" | "mod" | "shl" | "shr"), (a, b)):
            number, one = _number(b), a.index
            if one is None or number is None:
                return (), ()
            if op in ("shl", "shr"):
                number = 1 << number if 0 <= number < SHIFTS else 0
            if number < 1:
                return (), ()
            made = {"mod": modulo, "shl": scale_index}.get(op, floor_div)(one, number)
            return (made,), (made,)
        case (("and" | "or" | "xor") as name, (a, b)) if a.index is not None and b.index is not None:
            made = bitwise(name, a.index, b.index)
            return (made,), (made,)
        case "not", (a,) if a.index is not None and a.dtype[0] != "u":
            return (inverted(a.index),), (inverted(a.index),)
        case "min", (a, b) if a.least and b.least:
            return tuple(dict.fromkeys(a.least + b.least)), ()
        case "max", (a, b) if a.largest and b.largest:
            return (), tuple(dict.fromkeys(a.largest + b.largest))
    return (), ()


def _number(operand: Operand) -> int | None:
    return None if operand.index is None else number_in(operand.index)
