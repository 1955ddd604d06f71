"""Register-level operations on numbers, each declared once for all its element types and numbers of lanes.

An operation takes registers of `LANES` lanes, or single numbers. Its meaning is that of `operations.compute`,
lane by lane. Every CPU level has every operation: LLVM builds those that lack an instruction from others.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial, reduce
from types import MappingProxyType
from typing import Any

from codegen.ir.nodes import COMBINERS

SIGNED, UNSIGNED = ("i8", "i16", "i32", "i64"), ("u8", "u16", "u32", "u64")
INTEGERS, FLOATS = SIGNED + UNSIGNED, ("f32", "f64")
NUMBERS = INTEGERS + FLOATS
EVERY = ("i1", *NUMBERS)
BITWISE = ("i1", *INTEGERS)

MOST_LANES = 1024
"""Lanes of the widest register: super-vectors are split before they get here."""

LANES = tuple(1 << k for k in range(MOST_LANES.bit_length()))

MAX_ULP = 4
"""Largest error of the C library's functions in units in the last place, as glibc states for libmvec."""


@dataclass(frozen=True, slots=True)
class Family:
    """An operation on registers of one element type.

    Attributes:
        name: the name in `Op`.
        routine: what source has: the name of a routine, or an operator.
        arity: the number of operands.
        dtypes: the element types of the operands; those of a select are its second and third.
        result: the element type of the result; "" for that of the operands.
        is_operator: whether `routine` is one of Python's operators.
        reduces: whether the result is one number.
        sets_flags: whether it may set a floating-point status flag that NumPy reads, at some CPU level.
        max_ulp: the largest error of a result in units in the last place; 0 if results are exact.
    """

    name: str
    routine: str
    arity: int
    dtypes: tuple[str, ...]
    result: str = ""
    is_operator: bool = False
    reduces: bool = False
    sets_flags: bool = True
    max_ulp: int = 0

    def result_dtype(self, dtype: str) -> str:
        """The element type of the result of operands of an element type."""
        return self.result or dtype

    def meaning(self, operands: Sequence[Any], dtype: str) -> Any:
        """The result for arrays of lanes, or for numbers; `dtype` is that of the result."""
        from codegen.ir.operations import compute  # only interpreters need it, and the dtypes it imports

        if not self.reduces:
            return compute(self.name, operands, dtype)
        combine = partial(compute, self.name.removeprefix("reduce_"), dtype=dtype)
        return reduce(lambda a, b: combine([a, b]), operands[0])


def _families() -> list[Family]:
    found: list[Family] = []

    def declare(names: str, arity: int, dtypes: tuple[str, ...], **facts: Any) -> None:
        """Families by "name" or "name:routine", where these differ."""
        for each in names.split():
            name, _, routine = each.partition(":")
            found.append(Family(name, routine or name, arity, dtypes, **facts))

    declare("add:+ mul:*", 2, EVERY, is_operator=True)
    declare("sub:-", 2, NUMBERS, is_operator=True)
    declare("div:/", 2, FLOATS, is_operator=True)
    declare("and:& or:| xor:^", 2, BITWISE, is_operator=True, sets_flags=False)
    declare("shl:<<", 2, INTEGERS, is_operator=True)  # without variable shifts, LLVM multiplies floats
    declare("shr:>>", 2, INTEGERS, is_operator=True, sets_flags=False)
    declare("not:~", 1, BITWISE, is_operator=True, sets_flags=False)
    declare("neg:-", 1, NUMBERS, is_operator=True, sets_flags=False)
    declare("eq:== ne:!= lt:< le:<= gt:> ge:>=", 2, EVERY, is_operator=True, result="i1")
    declare("select", 3, EVERY, sets_flags=False)
    declare("min:minimum max:maximum", 2, EVERY)
    declare("floordiv mod:modulo", 2, NUMBERS)
    declare("abs", 1, EVERY, sets_flags=False)
    declare("sqrt floor ceil trunc rint", 1, FLOATS)
    declare("copysign", 2, FLOATS, sets_flags=False)
    declare("fma", 3, FLOATS)
    declare("fast_add fast_sub fast_mul", 2, NUMBERS, max_ulp=MAX_ULP)
    declare("fast_div", 2, FLOATS, max_ulp=MAX_ULP)
    declare("exp exp2 expm1 log log2 log10 log1p cbrt", 1, FLOATS, max_ulp=MAX_ULP)
    declare("sin cos tan asin acos atan sinh cosh tanh asinh acosh atanh", 1, FLOATS, max_ulp=MAX_ULP)
    declare("atan2 hypot", 2, FLOATS, max_ulp=MAX_ULP)
    declare("pow", 2, NUMBERS, max_ulp=MAX_ULP)
    declare("round_to_odd:round_to_odd_f32", 1, ("f64",), result="f32")
    for combiner in COMBINERS:
        of = BITWISE if combiner in ("and", "or", "xor") else EVERY if combiner in ("min", "max") else NUMBERS
        declare(f"reduce_{combiner}", 1, of, reduces=True)
    return found


FAMILIES = MappingProxyType({family.name: family for family in _families()})
"""All families, by the names of their operations."""

OWN_OF_F16 = MappingProxyType({"min": "minimum_f16", "max": "maximum_f16"})
"""The routines of operations that order signed zeros differently for f16, whose registers are f32."""

ROUNDINGS = MappingProxyType({"bf16": "round_to_bf16", "f16": "round_to_f16"})
"""The routines that cast registers of f32 to halves, which are held as f32."""
