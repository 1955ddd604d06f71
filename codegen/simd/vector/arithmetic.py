"""Vector operators and functions that need no library; each lane gets the same result as in NumPy.

Only the `fast_…` routines may reassociate, contract to fused multiply-adds and use reciprocals. They still
honor NaN and infinity. All other routines use no fast-math flags. Integers wrap. Undefined operations
(x // 0, shifts by too many bits) return NumPy's result, and nothing traps.
"""

from __future__ import annotations

import operator
from collections.abc import Iterator
from functools import partial
from typing import Any

from llvmlite import ir
from numba.core.errors import TypingError

from codegen.ir.dtypes import COMPARISONS
from codegen.ir.families import EVERY, FAMILIES, FLOATS, OWN_OF_F16, Family
from codegen.simd.register.intrinsics import routine
from codegen.simd.register.values import (
    IN_PLACE,
    MASK,
    NUMBA,
    Lanewise,
    bits_of,
    by_lanes,
    define_operator,
    is_signed,
    lane,
    lanes_of,
    like,
    llvm_function,
    number,
    row_by_row,
    same_shape,
    shape,
)
from codegen.simd.vector.division import floor_divided, modulo

FAST = ("reassoc", "contract", "arcp", "nsz")


def _arithmetic(name: str, flags: tuple[str, ...] = ()) -> Lanewise:
    """add, sub or mul. For booleans add is "or" and mul is "and", as in NumPy, which cannot subtract them."""

    def emit(builder: Any, dtype: str, a: Any, b: Any) -> Any:
        if dtype == MASK:
            return builder.or_(a, b) if name == "add" else builder.and_(a, b)
        if dtype in FLOATS:
            return getattr(builder, f"f{name}")(a, b, flags=flags)
        return getattr(builder, name)(a, b)

    return emit


def _divided(builder: Any, dtype: str, a: Any, b: Any, flags: tuple[str, ...] = ()) -> Any:
    return builder.fdiv(a, b, flags=flags)


def _bitwise(name: str) -> Lanewise:
    return lambda builder, dtype, a, b: getattr(builder, name)(a, b)


def _negated(builder: Any, dtype: str, a: Any) -> Any:
    return builder.fneg(a) if dtype in FLOATS else builder.sub(number(a.type, 0), a)


def _inverted(builder: Any, dtype: str, a: Any) -> Any:
    return builder.xor(a, number(a.type, -1 if dtype != MASK else 1))


def _compared(sign: str) -> Lanewise:
    """With a NaN operand only `!=` is true."""

    def emit(builder: Any, dtype: str, a: Any, b: Any) -> Any:
        if dtype in FLOATS:
            return (builder.fcmp_unordered if sign == "!=" else builder.fcmp_ordered)(sign, a, b)
        return (builder.icmp_signed if is_signed(dtype) else builder.icmp_unsigned)(sign, a, b)

    return emit


def _shifted_left(builder: Any, dtype: str, a: Any, b: Any) -> Any:
    """The result is 0 if the shift count is negative or at least the bit width."""
    fits = builder.icmp_unsigned("<", b, number(b.type, bits_of(dtype)))
    shifted = builder.shl(a, builder.select(fits, b, number(b.type, 0)))
    return builder.select(fits, shifted, number(a.type, 0))


def _shifted_right(builder: Any, dtype: str, a: Any, b: Any) -> Any:
    """Only the sign is left (0 or -1) if the shift count is negative or at least the bit width."""
    bits = bits_of(dtype)
    fits = builder.icmp_unsigned("<", b, number(b.type, bits))
    if is_signed(dtype):
        return builder.ashr(a, builder.select(fits, b, number(b.type, bits - 1)))
    shifted = builder.lshr(a, builder.select(fits, b, number(b.type, 0)))
    return builder.select(fits, shifted, number(a.type, 0))


def _absolute(builder: Any, dtype: str, a: Any) -> Any:
    if dtype in FLOATS:
        return llvm_function(builder, "llvm.fabs", a)
    if not is_signed(dtype):
        return a
    return builder.select(builder.icmp_signed("<", a, number(a.type, 0)), _negated(builder, dtype, a), a)


def extreme(sign: str, *, first: bool = False) -> Lanewise:
    """The minimum or maximum. If an operand is NaN, so is the result: a's NaN if both are.

    For -0.0 and 0.0 the result is b, as in NumPy's loops and minps, or a with `first`, as in NumPy's float16
    loops. On AArch64 NumPy uses instructions that order -0.0 below 0.0; kernels agree on every CPU.
    """
    sign += "=" * first

    def emit(builder: Any, dtype: str, a: Any, b: Any) -> Any:
        found = builder.select(_compared(sign)(builder, dtype, a, b), a, b)
        return builder.select(builder.fcmp_unordered("uno", a, a), a, found) if dtype in FLOATS else found

    return emit


def _plain(name: str) -> Lanewise:
    """An LLVM function on floats that every level supports or the C library computes exactly."""
    return lambda builder, dtype, *operands: llvm_function(builder, name, *operands)


def halved(builder: Any, value: Any, combine: Any) -> Any:
    """Reduce all lanes to one number: combine the lower half with the upper half until one lane is left."""
    while lanes_of(value) > 1:
        half = lanes_of(value) // 2
        low, high = (_lanes(builder, value, start, half) for start in (0, half))
        value = combine(low, high)
    return value


def _lanes(builder: Any, value: Any, start: int, count: int) -> Any:
    if count == 1:
        return lane(builder, value, start)
    mask = ir.Constant(ir.VectorType(ir.IntType(32), count), list(range(start, start + count)))
    return builder.shuffle_vector(value, value, mask)


def _reduction(family: Family) -> Any:
    """`reduce_add(v)`: a Numba number of the vector's dtype."""
    name, emit = family.routine, EMITS[family.name.removeprefix("reduce_")]

    def rule(kind: Any) -> Any:
        dtype, _ = same_shape(name, [kind], family.dtypes)

        def reduce(builder: Any, value: Any) -> Any:
            return halved(builder, value, partial(emit, builder, dtype))

        return NUMBA[dtype](kind), reduce

    return routine(name, 1, rule)


def _select() -> Any:
    """`select(mask, a, b)`: a where the mask is set, else b."""

    def rule(mask: Any, a: Any, b: Any) -> Any:
        dtype, lanes = same_shape("select", (a, b), EVERY)
        if shape(mask) != (MASK, lanes):
            raise TypingError(f"select: expected a mask of {lanes} lanes, got {mask}")
        return like(a, dtype, lanes)(mask, a, b), lambda builder, *values: builder.select(*values)

    return routine("select", 3, row_by_row(rule))


EMITS: dict[str, Lanewise] = {
    "add": _arithmetic("add"),
    "sub": _arithmetic("sub"),
    "mul": _arithmetic("mul"),
    "div": _divided,
    "and": _bitwise("and_"),
    "or": _bitwise("or_"),
    "xor": _bitwise("xor"),
    "shl": _shifted_left,
    "shr": _shifted_right,
    "neg": _negated,
    "not": _inverted,
    **{name: _compared(FAMILIES[name].routine) for name in COMPARISONS},
    "min": extreme("<"),
    "max": extreme(">"),
    "floordiv": floor_divided,
    "mod": modulo,
    "abs": _absolute,
    "sqrt": _plain("llvm.sqrt"),
    "floor": _plain("llvm.floor"),
    "ceil": _plain("llvm.ceil"),
    "trunc": _plain("llvm.trunc"),
    "rint": _plain("llvm.rint"),
    "copysign": _plain("llvm.copysign"),
    "fma": _plain("llvm.fma"),
    "fast_add": _arithmetic("add", FAST),
    "fast_sub": _arithmetic("sub", FAST),
    "fast_mul": _arithmetic("mul", FAST),
    "fast_div": partial(_divided, flags=FAST),
}
"""The builder of each family whose lanes are computed without a library."""

_FUNCTIONS = {
    "neg": operator.neg, "not": operator.invert, "add": operator.add, "sub": operator.sub,
    "mul": operator.mul, "div": operator.truediv, "and": operator.and_, "or": operator.or_,
    "xor": operator.xor, "shl": operator.lshift, "shr": operator.rshift,
    **{name: getattr(operator, name) for name in COMPARISONS},
}  # fmt: skip
"""Python's function for each operator."""

for _name, _symbol in _FUNCTIONS.items():
    _family = FAMILIES[_name]
    for _each in (_symbol, *([IN_PLACE[_symbol]] if _symbol in IN_PLACE else [])):
        define_operator(_each, _family.arity, EMITS[_name], _family.dtypes, mask=_family.results == (MASK,))


def _routines() -> Iterator[tuple[str, Any]]:
    for family in FAMILIES.values():
        if family.name.startswith("reduce_"):
            yield family.routine, _reduction(family)
        elif family.name in EMITS and not family.is_operator:
            yield family.routine, by_lanes(family.routine, family.arity, EMITS[family.name], family.dtypes)
    for name, own in OWN_OF_F16.items():
        yield own, by_lanes(own, 2, extreme("<" if name == "min" else ">", first=True), ("f32",))
    yield "select", _select()


NAMED = dict(_routines())
"""The routines of this module by their names in kernels."""
