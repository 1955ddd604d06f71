"""The costs of operations on numbers at each CPU level, counted in the machine code."""

from __future__ import annotations

import re
from functools import cache
from hashlib import sha256

import pytest

from codegen.backend.build import assembly, build
from codegen.emit.abi import kernel_head
from codegen.emit.source import body_of
from codegen.ir.access_families import REGISTER_ACCESSES, AccessFamily
from codegen.ir.building import index_of
from codegen.ir.c_functions import C_FUNCTIONS
from codegen.ir.element_types import bits_of
from codegen.ir.families import CALL, FAMILIES, Family
from codegen.ir.index import index_symbol
from codegen.ir.nodes import BufferArg, Function, ScalarArg, Statement, Store
from codegen.ir.values import Load, Op, Step, Value
from codegen.passes.new_names import NewNames
from codegen.passes.python_names import name_for_python
from codegen.passes.transposed_registers import transposed
from codegen.schedule.choose_blocks import MOST_ROWS
from codegen.schedule.machine import REGISTERS
from codegen.simd.vector.math_library import best_vector_symbol
from codegen.support.cpu import LEVELS, level_named
from tests.codegen.simd.vector_cases import numpy_type

X86_MOVE = re.compile(r"v?k?mov(?!m)|push|pop|lea|ret|nop|vzeroupper")
NEON_MOVE = re.compile(r"ld|st|f?mov|adrp|ret|ins|dup|nop")
CALLED = re.compile(r"call|blr?\s")
HAS_LIBMVEC = all(best_vector_symbol("sse2", name, "f64", 2) for name in C_FUNCTIONS)


def loaded(name: str, dtype: str, lanes: int, offset: int = 0) -> Load:
    return Load(name, (index_of(offset),), dtype, (lanes,), steps=(numpy_type(dtype).itemsize,))


def one_operation(family: Family, dtype: str, made: str, lanes: int) -> Op:
    """The operation on one register of each operand, or on one number."""
    if family.spreads:
        number = Load("x", (index_of(0),), dtype)
        return Op(family.name, (number,)[: family.arity], made, (lanes,))
    given: tuple[Value, ...] = tuple(loaded(name, dtype, lanes) for name in "xyz")[: family.arity]
    given = (loaded("mask", "i1", lanes), *given[:2]) if family.name == "select" else given
    return Op(family.name, given, made, () if family.reduces else (lanes,))


def stored(value: Value, offset: int = 0) -> Store:
    steps = (numpy_type(value.dtype).itemsize,) if value.shape else ()
    return Store("out", (index_of(offset),), value, steps=steps)


def transposed_block(dtype: str, lanes: int) -> tuple[Statement, ...]:
    """Transpose a square block, which has as many registers as each register has lanes."""
    body: list[Statement] = []
    size = numpy_type(dtype).itemsize * lanes
    registers = tuple(loaded("x", dtype, lanes, k * size) for k in range(lanes))
    rows = transposed(registers, NewNames("cost"), body)
    return (*body, *(stored(row, k * size) for k, row in enumerate(rows)))


@cache
def computing(body: tuple[Statement, ...], level: str, call: int = CALL) -> int:
    """The instructions of a kernel that compute. A call counts as several."""
    name = f"cost_{sha256(repr(body).encode()).hexdigest()[:12]}"
    buffers = tuple(map(BufferArg, ("x", "y", "z", "mask", "out")))
    function = Function(name, (ScalarArg("step", "i64"),), body, buffers=buffers, summary="one operation")
    target, move = level_named(level), NEON_MOVE if level == "neon" else X86_MOVE
    source = f"{kernel_head(name)}\n{body_of(name_for_python(function))}"
    text = assembly(build(name, source, target).llvm_ir, target)
    lines = [line.strip() for line in text.splitlines() if re.match(r"\s+[a-z]", line)]
    return sum(call if CALLED.match(line) else 1 for line in lines if not move.match(line))


def most_per_register(family: Family, level: str) -> float:
    """The instructions that an operation adds to a copy of its first operand, for the most expensive type."""
    costs: list[float] = []
    for dtype, made in ((each, made) for each in family.dtypes for made in family.results or (each,)):
        lanes = REGISTERS[level][0] // max(numpy_type(each).itemsize for each in (dtype, made))
        lanes = min(lanes, MOST_ROWS) if family.name == "transpose" else lanes
        copied = computing((stored(loaded("x", made if family.spreads else dtype, lanes)),), level)
        if family.name == "transpose":
            costs.append((computing(transposed_block(dtype, lanes), level) - copied) / lanes)
        else:
            costs.append(computing((stored(one_operation(family, dtype, made, lanes)),), level) - copied)
    return max(costs)


@pytest.mark.full
@pytest.mark.parametrize("level", LEVELS)
@pytest.mark.parametrize("name", FAMILIES)
def test_costs(name: str, level: str) -> None:
    """At its levels, an operation costs at most what is declared. At the others it costs more."""
    family = FAMILIES[name]
    if name in C_FUNCTIONS and not HAS_LIBMVEC:
        pytest.skip("no libmvec here")
    assert (most_per_register(family, level) <= family.cost) == (level in family.levels)


def one_access(family: AccessFamily, dtype: str, lanes: int) -> Store:
    """A copy of a register by this access and a contiguous one."""
    steps: tuple[Step, ...] = (bits_of(dtype) // 8,)
    by_form: dict[str, tuple[Step, ...]] = {"step": (index_symbol("step"),), "offsets": (0,), "": steps}
    offsets = loaded("y", "i64", lanes) if family.apart == "offsets" else None
    read, written = (by_form[family.apart], steps) if family.reads else (steps, by_form[family.apart])
    load = Load("x", (index_of(0),), dtype, (lanes,), steps=read, offsets=offsets)
    return Store("out", (index_of(0),), load, steps=written, streamed=family.streams)


@pytest.mark.full
@pytest.mark.parametrize("level", LEVELS)
@pytest.mark.parametrize("family", REGISTER_ACCESSES, ids=lambda family: family.name)
def test_costs_of_accesses(family: AccessFamily, level: str) -> None:
    """Loads and stores of registers cost at most what is declared."""
    lanes = {dtype: REGISTERS[level][0] * 8 // bits_of(dtype) for dtype in family.dtypes}
    most = max(
        computing((one_access(family, dtype, lanes[dtype]),), level, call=1) for dtype in family.dtypes
    )
    assert (most <= family.cost) == (level in family.levels)
