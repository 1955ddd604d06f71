"""MLIR's spelling of dtypes, types, numbers, index expressions and operations."""

from __future__ import annotations

import struct
from collections.abc import Callable, Sequence

from codegen.ir.element_types import bits_of
from codegen.ir.index import (
    BIT_SIGNS,
    Affine,
    Bitwise,
    FloorDiv,
    Greatest,
    Index,
    Least,
    Mod,
    Quotient,
    Sum,
    Times,
)
from codegen.ir.nodes import ArrayArg
from codegen.ir.values import VectorShape

FLOAT_BINARY = {
    "add": "arith.addf", "sub": "arith.subf", "mul": "arith.mulf", "div": "arith.divf", "min": "arith.minf",
    "max": "arith.maxf", "pow": "math.powf", "atan2": "math.atan2", "copysign": "math.copysign",
}  # fmt: skip
INT_BINARY = {
    "add": "arith.addi", "sub": "arith.subi", "mul": "arith.muli", "and": "arith.andi", "or": "arith.ori",
    "xor": "arith.xori", "shl": "arith.shli", "pow": "math.ipowi",
}  # fmt: skip
SIGNED = {
    "div": "arith.divsi", "floordiv": "arith.floordivsi", "min": "arith.minsi", "max": "arith.maxsi",
    "shr": "arith.shrsi",
}  # fmt: skip
UNSIGNED = {
    "div": "arith.divui", "floordiv": "arith.divui", "mod": "arith.remui", "min": "arith.minui",
    "max": "arith.maxui", "shr": "arith.shrui",
}  # fmt: skip
UNARY = {
    "neg": "arith.negf", "abs": "math.absf", "sqrt": "math.sqrt", "exp": "math.exp", "exp2": "math.exp2",
    "expm1": "math.expm1", "log": "math.log", "log2": "math.log2", "log10": "math.log10",
    "log1p": "math.log1p", "sin": "math.sin", "cos": "math.cos", "tan": "math.tan", "atan": "math.atan",
    "tanh": "math.tanh", "cbrt": "math.cbrt", "floor": "math.floor", "ceil": "math.ceil",
    "trunc": "math.trunc", "rint": "math.roundeven",
}  # fmt: skip
COMPARE_FLOAT = {"eq": "oeq", "ne": "une", "lt": "olt", "le": "ole", "gt": "ogt", "ge": "oge"}
NON_FINITE = {"f16": ("0x7C00", "0xFC00", "0x7E00"), "bf16": ("0x7F80", "0xFF80", "0x7FC0"),
              "f32": ("0x7F800000", "0xFF800000", "0x7FC00000")}  # fmt: skip


def is_float(dtype: str) -> bool:
    """Whether a dtype is floating-point; bf16 is."""
    return dtype[0] == "f" or dtype == "bf16"


def mlir_element(dtype: str) -> str:
    """The MLIR element type; MLIR integers are signless: u8 -> i8, bits8 -> i8."""
    if dtype.startswith("bits"):
        return f"i{dtype.removeprefix('bits')}"
    return f"i{dtype[1:]}" if dtype[0] == "u" else dtype


def mlir_type(dtype: str, shape: VectorShape = ()) -> str:
    """The MLIR type: f32, () -> f32    f32, (32, 256) -> vector<32x256xf32>"""
    return f"vector<{'x'.join(map(str, (*shape, mlir_element(dtype))))}>" if shape else mlir_element(dtype)


def mlir_memref(array: ArrayArg) -> str:
    """The memref type of an array: all extents and all strides other than 1 are dynamic."""
    extents = "".join("?x" for _ in range(array.rank))
    layout = ""
    if array.order == "F" and array.rank > 1:
        layout = f", strided<[{', '.join(['1', *['?'] * (array.rank - 1)])}]>"
    if array.order == "" and array.rank:
        layout = f", {strided(array.rank)}"
    return f"memref<{extents}{mlir_element(array.dtype)}{layout}>"


def strided(rank: int) -> str:
    """The layout of an array whose strides are all dynamic."""
    return f"strided<[{', '.join(['?'] * rank)}], offset: ?>"


def number(value: int | float | bool, dtype: str) -> str:
    """A number of a dtype: 1, f32 -> 1.0    inf, f32 -> 0x7F800000    1, i1 -> true"""
    if dtype == "i1":
        return "true" if value else "false"
    if not is_float(dtype):
        return str(int(value))
    real = float(value)
    if real != real or real in (float("inf"), float("-inf")):
        if dtype == "f64":
            return f"0x{struct.pack('>d', real).hex().upper()}"
        return NON_FINITE[dtype][2 if real != real else int(real < 0)]
    mantissa, e, exponent = repr(real).partition("e")
    return f"{mantissa}{'' if '.' in mantissa else '.0'}{e}{exponent}"


def expression(index: Index, name: Callable[[str], str]) -> str:
    """An index expression in the affine dialect's syntax; `name` maps symbols to text.

    2*i - j + 3 -> i * 2 - j + 3

    MLIR has no syntax for bits, nor for a minimum or maximum inside another expression: min(i, n - 4).
    """
    match index:
        case Affine(constant, terms):
            text = _sum([(name(symbol), c) for symbol, c in terms])
            if not text:
                return str(constant)
            return f"{text} {'-' if constant < 0 else '+'} {abs(constant)}" if constant else text
        case FloorDiv(of, by):
            return f"({expression(of, name)}) floordiv {by}"
        case Mod(of, by):
            return f"({expression(of, name)}) mod {by}"
        case Bitwise(operator, left, right):
            sides = (_factor(expression(side, name)) for side in (left, right))
            return f" {BIT_SIGNS[operator]} ".join(sides)
        case Times(of, symbol):
            return f"{_factor(expression(of, name))} * {name(symbol)}"
        case Quotient(of, symbol):
            return f"{_factor(expression(of, name))} floordiv {name(symbol)}"
        case Least(several) | Greatest(several):
            which = "min" if isinstance(index, Least) else "max"
            return f"{which}({', '.join(expression(each, name) for each in several)})"
        case Sum(terms, rest):
            text = _sum([(_term(term, k, name), k) for term, k in terms])
            return text if rest == Affine() else f"{text} + {expression(rest, name)}"
        case _:
            raise AssertionError(f"print: no rule for {type(index).__name__}")


def _term(term: Index, k: int, name: Callable[[str], str]) -> str:
    """A part of a sum, before its factor."""
    text = expression(term, name)
    plain = isinstance(term, Least | Greatest) or (isinstance(term, Times) and k == 1)
    return text if plain else f"({text})"


def _factor(text: str) -> str:
    return f"({text})" if " " in text else text


def _sum(terms: Sequence[tuple[str, int]]) -> str:
    text = ""
    for name, c in terms:
        sign = ("-" if c < 0 else "") if not text else (" - " if c < 0 else " + ")
        text += f"{sign}{name}" + (f" * {abs(c)}" if abs(c) != 1 else "")
    return text


def binary(op: str, dtype: str) -> str | None:
    """The MLIR operation for a binary operation, or None if there is no single one."""
    if is_float(dtype):
        return FLOAT_BINARY.get(op)
    return INT_BINARY.get(op) or (UNSIGNED if dtype[0] == "u" or dtype == "i1" else SIGNED).get(op)


def compare(op: str, dtype: str) -> str:
    """The MLIR comparison with its predicate."""
    if is_float(dtype):
        return f"arith.cmpf {COMPARE_FLOAT[op]},"
    sign = "" if op in ("eq", "ne") else ("u" if dtype[0] == "u" or dtype == "i1" else "s")
    return f"arith.cmpi {sign}{op},"


def conversion(source: str, target: str) -> str | None:
    """The MLIR operation that converts between dtypes; None if both have the same MLIR type.

    One of them may be "index", the element type of index arrays.
    """
    if "index" in (source, target):
        return "arith.index_cast"
    if mlir_element(source) == mlir_element(target):
        return None
    unsigned = source[0] in "ub" or source == "i1"
    if is_float(source) and is_float(target):
        return "arith.extf" if width(source) < width(target) else "arith.truncf"
    if is_float(source):
        return "arith.fptoui" if target[0] == "u" else "arith.fptosi"
    if is_float(target):
        return "arith.uitofp" if unsigned else "arith.sitofp"
    if width(source) > width(target):
        return "arith.trunci"
    return "arith.extui" if unsigned else "arith.extsi"


def width(dtype: str) -> int:
    """Bits of an element in a register, where a boolean has one."""
    return 1 if dtype == "i1" else bits_of(dtype)


def reduction(combiner: str, dtype: str) -> str:
    """The kind of vector.reduction."""
    if combiner not in ("min", "max"):
        return combiner
    return combiner + ("f" if is_float(dtype) else "ui" if dtype[0] == "u" or dtype == "i1" else "si")
