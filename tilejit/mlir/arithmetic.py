"""Express arith and math operations on numbers in the kernel IR's operations."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from codegen import FLOAT_FUNCTIONS, Const, Op, Value
from tilejit.mlir.places import Unsupported

DIRECT = {
    **dict.fromkeys(("arith.addf", "arith.addi"), "add"),
    **dict.fromkeys(("arith.subf", "arith.subi"), "sub"),
    **dict.fromkeys(("arith.mulf", "arith.muli"), "mul"),
    "arith.divf": "div",
    "arith.negf": "neg",
    "arith.floordivsi": "floordiv",
    **dict.fromkeys(("arith.maximumf", "arith.maxsi"), "max"),
    **dict.fromkeys(("arith.minimumf", "arith.minsi"), "min"),
    "arith.andi": "and",
    "arith.ori": "or",
    "arith.xori": "xor",
    "arith.shli": "shl",
    "arith.shrsi": "shr",
    "arith.select": "select",
    **dict.fromkeys(
        ("arith.extf", "arith.truncf", "arith.trunci", "arith.sitofp", "arith.fptosi", "arith.extsi"), "cast"
    ),
    **dict.fromkeys(("arith.extui", "arith.uitofp", "arith.index_cast"), "cast"),
    **dict.fromkeys(("math.absf", "math.absi"), "abs"),
    "math.powf": "pow",
    "math.roundeven": "rint",
    **{
        f"math.{name}": name
        for name in (*FLOAT_FUNCTIONS, "floor", "ceil", "trunc")
        if name not in ("rint", "hypot")
    },
}
"""The equivalent operation of the kernel IR."""

UNSIGNED = {
    "arith.divui": "floordiv",
    "arith.remui": "mod",
    "arith.maxui": "max",
    "arith.minui": "min",
    "arith.shrui": "shr",
}
"""Operations that interpret signless integers as unsigned."""

ON_BITS = {"add": "xor", "sub": "xor", "mul": "and"}
"""Arithmetic of i1, which is modulo 2."""

UNSIGNED_ON_BITS = {"arith.maxui": "or", "arith.minui": "and"}
"""The minimum and maximum of i1 as unsigned numbers."""

INTEGER_PREDICATES = ("eq", "ne", "slt", "sle", "sgt", "sge", "ult", "ule", "ugt", "uge")
FLOAT_PREDICATES = (
    *("false", "oeq", "ogt", "oge", "olt", "ole", "one", "ord"),
    *("ueq", "ugt", "uge", "ult", "ule", "une", "uno", "true"),
)
"""The predicates in MLIR's order."""

NEGATED = {"ugt": "le", "uge": "lt", "ult": "ge", "ule": "gt"}
"""The comparison whose negation gives one that is also true for unordered operands."""


def arithmetic(name: str, operands: Sequence[Value], dtype: str, predicate: int = 0) -> Value:
    """The result of an operation on its operands.

    arith.addf of f32 -> add    arith.divui of i32 -> cast(floordiv(cast u32, cast u32))

    Raises:
        Unsupported: kernels have no such operation.
    """
    first = operands[0]
    if name == "arith.cmpi":
        return _compare_integers(INTEGER_PREDICATES[predicate], first, operands[1])
    if name == "arith.cmpf":
        return _compare_floats(FLOAT_PREDICATES[predicate], first, operands[1])
    if dtype == "i1" and name in UNSIGNED_ON_BITS:
        return Op(UNSIGNED_ON_BITS[name], tuple(operands), dtype)
    if name in UNSIGNED:
        return cast(Op(UNSIGNED[name], tuple(map(unsigned, operands)), unsigned_of(dtype)), dtype)
    if name in COMPOSED:
        return COMPOSED[name](operands, dtype)
    if name not in DIRECT:
        raise Unsupported(f"{name} is not supported", "use supported arith and math operations")
    operation = DIRECT[name]
    if dtype == "i1":
        if operation in ("floordiv", "max", "min", "shl", "shr"):
            raise Unsupported(f"{name} of i1 is not supported", "write arith.andi, arith.ori or arith.xori")
        operation = ON_BITS.get(operation, operation)
    if operation == "cast":
        return _convert(name, first, dtype)
    return Op(operation, tuple(operands), dtype)


def cast(value: Value, dtype: str) -> Value:
    """A value in another dtype; the value itself if it has that dtype."""
    return value if value.dtype == dtype else Op("cast", (value,), dtype)


def unsigned_of(dtype: str) -> str:
    """The unsigned dtype with an integer's width; 8 bits for one bit."""
    return "u8" if dtype == "i1" else dtype.replace("i", "u")


def unsigned(value: Value) -> Value:
    """The unsigned number with an integer's bits.

    -1 i8 -> 255 u8    cast(x u8, i8) -> x
    """
    dtype = unsigned_of(value.dtype)
    if isinstance(value, Const) and value.dtype != "i1":
        return Const(int(value.value) % (1 << int(dtype[1:])), dtype)
    held = held_unsigned(value)
    return cast(value, dtype) if held is None else held


def held_unsigned(value: Value) -> Value | None:
    """The unsigned integer whose signed form this value is, if there is one: cast(x u8, i8) -> x."""
    match value:
        case Op("cast", (held,), dtype) if dtype != "i1" and held.dtype == unsigned_of(dtype):
            return held
    return None


def _convert(name: str, value: Value, dtype: str) -> Value:
    # For operations on signed integers, the bit of an i1 is its sign, so true is -1.
    if value.dtype == "i1" and name in ("arith.extsi", "arith.sitofp", "arith.index_cast"):
        return Op("neg", (cast(value, dtype),), dtype)
    if name in ("arith.extui", "arith.uitofp"):
        return cast(unsigned(value), dtype)
    if name == "arith.trunci" and dtype == "i1":
        one = Const(1, value.dtype)
        return Op("ne", (Op("and", (value, one), value.dtype), Const(0, value.dtype)), "i1")
    if name == "arith.fptosi" and dtype == "i1":
        raise Unsupported("arith.fptosi to i1 is not supported", "compare the number with arith.cmpf")
    return cast(value, dtype)


def _compare_integers(predicate: str, a: Value, b: Value) -> Value:
    if predicate in ("eq", "ne"):
        return _truth(predicate, a, b)
    if predicate.startswith("u") or a.dtype == "i1":
        # As signed numbers, true is less than false.
        pair = (b, a) if predicate.startswith("s") else (a, b)
        return _truth(predicate[1:], *map(unsigned, pair))
    return _truth(predicate[1:], a, b)


def _compare_floats(predicate: str, a: Value, b: Value) -> Value:
    if predicate in ("false", "true"):
        return Const(predicate == "true", "i1")
    ordered = _both(_truth("eq", a, a), _truth("eq", b, b))
    if predicate in ("ord", "uno"):
        return ordered if predicate == "ord" else _not(ordered)
    if predicate in NEGATED:
        return _not(_truth(NEGATED[predicate], a, b))
    if predicate == "one":
        return _both(ordered, _truth("ne", a, b))
    if predicate == "ueq":
        return Op("or", (_not(ordered), _truth("eq", a, b)), "i1")
    return _truth(predicate[1:], a, b)


def _truth(name: str, a: Value, b: Value) -> Value:
    return Op(name, (a, b), "i1")


def _both(a: Value, b: Value) -> Value:
    return Op("and", (a, b), "i1")


def _not(a: Value) -> Value:
    return Op("not", (a,), "i1")


def _divide_toward_zero(operands: Sequence[Value], dtype: str) -> Value:
    """Floor division, plus one if it is inexact and the signs differ."""
    a, b = operands
    zero = Const(0, dtype)
    down = Op("floordiv", (a, b), dtype)
    inexact = _truth("ne", Op("mul", (down, b), dtype), a)
    differ = Op("xor", (_truth("lt", a, zero), _truth("lt", b, zero)), "i1")
    return Op("select", (_both(inexact, differ), Op("add", (down, Const(1, dtype)), dtype), down), dtype)


def _remainder_toward_zero(operands: Sequence[Value], dtype: str) -> Value:
    a, b = operands
    return Op("sub", (a, Op("mul", (_divide_toward_zero(operands, dtype), b), dtype)), dtype)


def _divide_up(operands: Sequence[Value], dtype: str) -> Value:
    a, b = operands
    down = Op("floordiv", (a, b), dtype)
    inexact = _truth("ne", Op("mul", (down, b), dtype), a)
    return Op("select", (inexact, Op("add", (down, Const(1, dtype)), dtype), down), dtype)


def _divide_up_unsigned(operands: Sequence[Value], dtype: str) -> Value:
    return cast(_divide_up(tuple(map(unsigned, operands)), unsigned_of(dtype)), dtype)


def _number_of(extremum: str) -> Callable[[Sequence[Value], str], Value]:
    """maxnumf and minnumf: the other number if one is NaN."""

    def of(operands: Sequence[Value], dtype: str) -> Value:
        a, b = operands
        both = Op(extremum, (a, b), dtype)
        rest = Op("select", (_truth("ne", b, b), a, both), dtype)
        return Op("select", (_truth("ne", a, a), b, rest), dtype)

    return of


def _reciprocal_root(operands: Sequence[Value], dtype: str) -> Value:
    one = Const(1.0, dtype)
    return Op("div", (one, Op("sqrt", tuple(operands), dtype)), dtype)


def _to_unsigned(operands: Sequence[Value], dtype: str) -> Value:
    return cast(cast(operands[0], unsigned_of(dtype)), dtype)


COMPOSED: dict[str, Callable[[Sequence[Value], str], Value]] = {
    "arith.divsi": _divide_toward_zero,
    "arith.remsi": _remainder_toward_zero,
    "arith.ceildivsi": _divide_up,
    "arith.ceildivui": _divide_up_unsigned,
    "arith.maxnumf": _number_of("max"),
    "arith.minnumf": _number_of("min"),
    "arith.fptoui": _to_unsigned,
    "arith.index_castui": lambda operands, dtype: cast(unsigned(operands[0]), dtype),
    "math.rsqrt": _reciprocal_root,
}
"""Operations that are composed of several operations of the kernel IR."""
