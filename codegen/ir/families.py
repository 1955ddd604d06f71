"""Register-level operations on numbers, each declared once for all its element types and numbers of lanes.

An operation takes registers of `LANES` lanes, or single numbers. `operations.compute` has its meaning lane by
lane; `operations.MADE` has the meanings of operations that make registers. A declaration also has the facts
that schedules and tests use. Tests compare flags, costs and levels with the machine code.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial, reduce
from types import MappingProxyType
from typing import Any, Literal

from codegen.ir.blocks import INTERLEAVED_ROWS
from codegen.ir.c_functions import C_FUNCTIONS
from codegen.ir.instruction import Facts
from codegen.ir.nodes import COMBINERS
from codegen.ir.prefix_steps import STEPS
from codegen.ir.values import VectorShape
from codegen.support.cpu import LEVELS
from codegen.support.dataclasses import dataclass

SIGNED, UNSIGNED = ("i8", "i16", "i32", "i64"), ("u8", "u16", "u32", "u64")
INTEGERS, FLOATS = SIGNED + UNSIGNED, ("f32", "f64")
NUMBERS = INTEGERS + FLOATS
EVERY = ("i1", *NUMBERS)
BITWISE = ("i1", *INTEGERS)

MOST_LANES = 1024
"""Lanes of the widest register: super-vectors are split before they get here."""

LANES = tuple(1 << k for k in range(MOST_LANES.bit_length()))

SHIFTS = ("avx512", "neon")
"""The CPU levels that shift each lane of at least 16 bits by a number of its own."""

MASKS = ("avx512",)
"""The CPU levels whose masks have one bit for each lane. One instruction converts them to bytes or back."""

SHUFFLES = ("avx512", "avx2", "neon")
"""The CPU levels with an instruction that puts 16 bytes in any order."""

ROUNDS = ("avx512", "avx2", "neon")
"""The CPU levels that round floats to integers, and multiply and add with one rounding."""

LIBMVEC = ("avx512", "avx2", "sse2")
"""The CPU levels for which the C library has functions on registers."""

CALL = 80
"""The cost of a call to the C library."""

MAX_ULP = 4
"""Largest error of the C library's functions in units in the last place, as glibc states for libmvec."""


@dataclass(frozen=True, slots=True)
class Family(Facts):
    """An operation on registers of one element type.

    The cost is what the operation adds to a copy of a register of its first operand. Masks are bytes in
    memory, and a call of the C library counts as `CALL`.

    Attributes:
        name: the name in `Op`.
        routine: what source has: the name of a routine, or an operator.
        arity: the number of operands.
        dtypes: the element types of the operands; those of a select are its second and third.
        results: the element types of the result; none for that of the operands.
        is_operator: whether `routine` is one of Python's operators.
        named_by: what the name of the routine also has: the lanes of the result, or its element type too.
        rows: whether a name of lanes may have rows as well, as blocks do, or must.
        spreads: whether the operand, if any, is one number.
        reduces: whether the result is one number.
        crosses: whether lanes of the result depend on other lanes of the operands.
        max_ulp: the largest error of a result in units in the last place; 0 if results are exact.
    """

    name: str
    routine: str
    arity: int
    dtypes: tuple[str, ...]
    results: tuple[str, ...] = ()
    is_operator: bool = False
    named_by: Literal["", "lanes", "dtype"] = ""
    rows: Literal["", "may", "must"] = ""
    spreads: bool = False
    reduces: bool = False
    crosses: bool = False
    max_ulp: int = 0

    def meaning(self, operands: Sequence[Any], dtype: str, shape: VectorShape = ()) -> Any:
        """The result for arrays of lanes, or for numbers; `dtype` and `shape` are those of the result."""
        from codegen.ir.operations import (  # only interpreters need it, and the dtypes it imports
            MADE,
            compute,
        )

        if self.name in MADE:
            return MADE[self.name](operands, dtype, shape)
        if not self.reduces:
            return compute(self.name, operands, dtype)
        combine = partial(compute, self.name.removeprefix("reduce_"), dtype=dtype)
        return reduce(lambda a, b: combine([a, b]), operands[0])


def _families() -> list[Family]:
    found: list[Family] = []
    types: tuple[str, ...]

    def declare(names: str, arity: int, dtypes: tuple[str, ...], **facts: Any) -> None:
        """Families by "name" or "name:routine", where these differ."""
        for each in names.split():
            name, _, routine = each.partition(":")
            found.append(Family(name, routine or name, arity, dtypes, **facts))

    declare("add:+", 2, EVERY, is_operator=True, sets_flags=True, cost=1)
    declare("mul:*", 2, EVERY, is_operator=True, sets_flags=True, cost=9)
    declare("sub:-", 2, NUMBERS, is_operator=True, sets_flags=True, cost=1)
    declare("div:/", 2, FLOATS, is_operator=True, sets_flags=True, cost=1)
    declare("and:& or:| xor:^", 2, BITWISE, is_operator=True, cost=2)
    # Without shifts of lanes by numbers of their own, LLVM multiplies floats.
    declare("shl:<<", 2, INTEGERS, is_operator=True, sets_flags=True, levels=SHIFTS, cost=7)
    declare("shr:>>", 2, INTEGERS, is_operator=True, levels=SHIFTS, cost=7)
    declare("not:~", 1, BITWISE, is_operator=True, cost=2)
    declare("neg:-", 1, NUMBERS, is_operator=True, cost=2)
    compared = "eq:== ne:!= lt:< le:<= gt:> ge:>="
    declare(compared, 2, EVERY, results=("i1",), is_operator=True, sets_flags=True, levels=MASKS, cost=2)
    declare("select", 3, EVERY, levels=MASKS, cost=2)
    declare("min:minimum max:maximum", 2, EVERY, sets_flags=True, cost=12)
    declare("floordiv mod:modulo", 2, NUMBERS, sets_flags=True, cost=17 * CALL)
    declare("abs", 1, EVERY, cost=4)
    declare("sqrt", 1, FLOATS, sets_flags=True, cost=1)
    declare("floor ceil trunc rint", 1, FLOATS, sets_flags=True, levels=ROUNDS, cost=1)
    declare("copysign", 2, FLOATS, cost=5)
    declare("fma", 3, FLOATS, sets_flags=True, levels=ROUNDS, cost=1)
    declare("fast_add fast_sub", 2, NUMBERS, sets_flags=True, max_ulp=MAX_ULP, cost=1)
    declare("fast_mul", 2, NUMBERS, sets_flags=True, max_ulp=MAX_ULP, cost=9)
    declare("fast_div", 2, FLOATS, sets_flags=True, max_ulp=MAX_ULP, cost=1)
    for name, arity in C_FUNCTIONS.items():
        types = NUMBERS if name == "pow" else FLOATS
        declare(name, arity, types, sets_flags=True, max_ulp=MAX_ULP, levels=LIBMVEC, cost=CALL + 1)
    declare("round_to_odd:round_to_odd_f32", 1, ("f64",), results=("f32",), sets_flags=True, cost=16)
    declare("cast", 1, EVERY, results=EVERY, named_by="dtype", rows="may", sets_flags=True, cost=23)
    declare("broadcast:splat", 1, EVERY, named_by="dtype", rows="may", spreads=True, cost=3)
    declare("iota", 0, NUMBERS, named_by="dtype", spreads=True, cost=1)
    declare("first", 1, ("i64",), results=("i1",), named_by="lanes", spreads=True, cost=7)
    declare("repeat:repeated", 1, EVERY, named_by="dtype", rows="must", cost=0)
    for count in INTERLEAVED_ROWS:
        declare(f"stack_{count}:stacked_{count}", count, EVERY, rows="must", cost=0)
    for row in range(max(INTERLEAVED_ROWS)):
        declare(f"row_{row}", 1, EVERY, rows="must", cost=0)
    declare("last", 1, EVERY, reduces=True, cost=2)
    declare("slide", 2, EVERY, crosses=True, cost=3)
    for half in STEPS:
        levels, cost = (SHUFFLES, 3) if half < 8 else (LEVELS, 2)  # of bytes; SSE2 unpacks these
        declare(f"below_{half}", 2, EVERY, crosses=True, levels=levels, cost=cost)
    for combiner in COMBINERS:
        types = BITWISE if combiner in ("and", "or", "xor") else NUMBERS
        types = EVERY if combiner in ("min", "max") else types
        declare(f"reduce_{combiner}", 1, types, reduces=True, sets_flags=True, cost=18)
    return found


FAMILIES = MappingProxyType({family.name: family for family in _families()})
"""All families, by the names of their operations."""

OWN_OF_F16 = MappingProxyType({"min": "minimum_f16", "max": "maximum_f16"})
"""The routines of operations that order signed zeros differently for f16, whose registers are f32."""

ROUNDINGS = MappingProxyType({"bf16": "round_to_bf16", "f16": "round_to_f16"})
"""The routines that cast registers of f32 to halves, which are held as f32."""
