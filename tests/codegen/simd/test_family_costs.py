"""What operations on numbers cost at each CPU level, counted in the machine code."""

from __future__ import annotations

import re
from functools import cache
from hashlib import sha256

import pytest

from codegen.backend.build import assembly, build
from codegen.emit import numbers
from codegen.emit.abi import kernel_head
from codegen.emit.source import body_of
from codegen.ir.building import index_of
from codegen.ir.c_functions import C_FUNCTIONS
from codegen.ir.families import CALL, FAMILIES, Family
from codegen.ir.nodes import BufferArg, Function, Load, Op, Store, Value
from codegen.schedule.machine import REGISTERS
from codegen.simd.vector.math_library import best_vector_symbol
from codegen.support.cpu import LEVELS, level_named
from tests.codegen.simd.vector_cases import numpy_type

X86_MOVE = re.compile(r"v?k?mov(?!m)|push|pop|lea|ret|nop|vzeroupper")
NEON_MOVE = re.compile(r"ld|st|f?mov|adrp|ret|ins|dup|nop")
CALLED = re.compile(r"call|blr?\s")
HAS_LIBMVEC = all(best_vector_symbol("sse2", name, "f64", 2) for name in C_FUNCTIONS)


def loaded(name: str, dtype: str, lanes: int) -> Load:
    return Load(name, (index_of(0),), dtype, (lanes,), steps=(numpy_type(dtype).itemsize,))


def one_operation(family: Family, dtype: str, lanes: int) -> Op:
    """The operation on one register of each operand."""
    given = tuple(loaded(name, dtype, lanes) for name in "xyz")[: family.arity]
    given = (loaded("mask", "i1", lanes), *given[:2]) if family.name == "select" else given
    return Op(family.name, given, family.result_dtype(dtype), () if family.reduces else (lanes,))


@cache
def computing(value: Value, level: str) -> int:
    """The instructions that compute, of a kernel that stores one value. A call counts as several."""
    steps = (numpy_type(value.dtype).itemsize,) if value.shape else ()
    store = Store("out", (index_of(0),), value, steps=steps)
    name = f"cost_{sha256(repr(value).encode()).hexdigest()[:12]}"
    buffers = tuple(map(BufferArg, ("x", "y", "z", "mask", "out")))
    function = Function(name, (), (store,), buffers=buffers, summary="one value")
    target, move = level_named(level), NEON_MOVE if level == "neon" else X86_MOVE
    source = f"{kernel_head(name)}\n{body_of(function, numbers)}"
    text = assembly(build(name, source, target).llvm_ir, target)
    lines = [line.strip() for line in text.splitlines() if re.match(r"\s+[a-z]", line)]
    return sum(CALL if CALLED.match(line) else 1 for line in lines if not move.match(line))


def most_per_register(family: Family, level: str) -> int:
    """What an operation adds to a copy of its first operand, for the most expensive element type."""
    costs = []
    for dtype in family.dtypes:
        lanes = REGISTERS[level][0] // numpy_type(dtype).itemsize
        copied = computing(loaded("x", dtype, lanes), level)
        costs.append(computing(one_operation(family, dtype, lanes), level) - copied)
    return max(costs)


@pytest.mark.share(21)
@pytest.mark.parametrize("level", LEVELS)
@pytest.mark.parametrize("name", FAMILIES)
def test_costs(name: str, level: str) -> None:
    """At its levels, an operation costs at most what is declared; at the others it costs more."""
    family = FAMILIES[name]
    if name in C_FUNCTIONS and not HAS_LIBMVEC:
        pytest.skip("no libmvec here")
    assert (most_per_register(family, level) <= family.cost) == (level in family.levels)
