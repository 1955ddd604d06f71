"""Every access of numbers, vectors and blocks against its meaning: what the interpreter loads and stores."""

from __future__ import annotations

from functools import cache
from hashlib import sha256
from itertools import product
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from codegen.backend.object_loader import load_object
from codegen.emit.source import source_of
from codegen.ir.access_families import ACCESSES, ELEMENT_ACCESSES, MOVED, PREFETCH, AccessFamily
from codegen.ir.buffers import Buffer
from codegen.ir.building import index_of, plus, times
from codegen.ir.dtypes import stored_dtype
from codegen.ir.element_types import bits_of
from codegen.ir.index import index_symbol
from codegen.ir.interpreter import interpret
from codegen.ir.lines import LINE_BYTES
from codegen.ir.nodes import BufferArg, Compare, For, Function, If, ScalarArg, Statement, Store
from codegen.ir.values import Load, Op, Step, VectorShape
from codegen.runtime.float_flags import ALL_FLAGS, CLEAR_FLAGS, TEST_FLAGS
from codegen.runtime.kernel import KERNEL_PROTOTYPES
from codegen.support.cpu import CpuLevel, cpu_level, host_levels, level_named
from tests.codegen.simd.instruction_cases import SmallKernel
from tests.codegen.simd.objects import object_code
from tests.conftest import SEED

SHAPES: tuple[tuple[VectorShape, ...], ...] = (((),), ((1,), (3,), (16,)), ((3, 4),))
"""The shapes of elements, vectors and blocks."""

ROUNDS = 2
LIVE = (0, 5, 2)
"""The lanes of vectors, or rows of blocks, of the forms that access only the first ones."""

APART = 3
"""Elements from one strided lane to the next."""

PITCH = 32
"""Elements from one row of a block to the next."""

ROOM = 128
"""Elements of each buffer."""


@cache
def small_kernel(family: AccessFamily, form: str, rank: int, unit: int) -> tuple[SmallKernel, Function]:
    """A kernel whose argument `chosen` selects one of the cases whose sides are addressed in that unit.

    Compiling a kernel for each case takes longer than running its loop.
    """
    body = tuple(
        If(
            (Compare(index_symbol("chosen"), "eq", index_of(number)),),
            (loop(family, dtype, shape, form),),
        )
        for number, (dtype, shape) in enumerate(cases_of(family, form, rank, unit))
    )
    buffers = BufferArg("src", unit), BufferArg("dst", unit), BufferArg("offsets"), BufferArg("mask")
    name = f"access_{sha256(repr((family, form, rank, unit)).encode()).hexdigest()[:12]}"
    arguments = ScalarArg("step", "i64"), ScalarArg("chosen", "i64")
    function = Function(name, arguments, body, buffers=buffers, summary=f"{family.name} {form}")
    return SmallKernel(name, source_of(function)), function


def cases_of(family: AccessFamily, form: str, rank: int, unit: int) -> list[tuple[str, VectorShape]]:
    """The element types and shapes that a family takes, of elements addressed in that unit."""
    return [
        (dtype, shape)
        for dtype, shape in product(family.dtypes, SHAPES[rank])
        if unit_of(dtype) == unit and family.takes(dtype, shape, form)
    ]


def unit_of(dtype: str) -> int:
    """Elements of less than a byte are addressed in bits."""
    return 1 if bits_of(dtype) < 8 else 8


def loop(family: AccessFamily, dtype: str, shape: VectorShape, form: str) -> Statement:
    """Two iterations of dst[i] = src[i], of which the family accesses one side; both sides of a block."""
    bits, lanes = bits_of(dtype), shape[-1] if shape else 1
    is_moved = family in ELEMENT_ACCESSES or bits > 64
    kind, size = f"bits{bits}" if is_moved else dtype, max(bits // 8, 1)
    units = 1 if bits < 8 else size
    steps: tuple[Step, ...] = (PITCH * size, size)[-len(shape) :] if shape else ()
    by_form: dict[str, tuple[Step, ...]] = {"step": (index_symbol("step"),), "offsets": (0,), "": steps}
    chosen = (*steps[:-1], *by_form[family.apart][-1:])
    far = times("i", units * (APART if family.apart == "step" else 1))
    offsets = (
        Load("offsets", (times("i", 8),), "i64", shape, steps=(8,)) if family.apart == "offsets" else None
    )
    first = index_of(LIVE[len(shape)]) if form == "first" else None
    apart = (PITCH, 1)[-len(shape) :] if shape else ()
    mask = Load("mask", (times("i", 1),), "i1", shape, steps=apart) if form == "where" else None
    if family.reads:
        at = index_of(0) if offsets else far
        load = Load("src", (at,), kind, shape, steps=chosen, first=first, offsets=offsets)
        store = Store("dst", (times("i", units),), load, steps=steps)
        if family in ELEMENT_ACCESSES:
            store = Store("dst", (times("i", units),), Op("cast", (load,), kind))
    else:
        load = Load("src", (times("i", units),), kind, shape, steps=steps)
        value = Op("cast", (load,), kind) if family in ELEMENT_ACCESSES and family.name == "store" else load
        store = Store("dst", (far,), value, steps=chosen, first=first, where=mask, streamed=family.streams)
    return For("i", (index_of(0),), (index_of(ROUNDS * lanes),), lanes, (store,))


def elements(dtype: str, count: int) -> NDArray[np.uint8]:
    """Floats include zeros, infinities, NaN, subnormals and large values; other elements have any bits."""
    rng = np.random.default_rng((SEED, bits_of(dtype)))
    if dtype == "i1":
        return rng.integers(0, 2, count, np.uint8)
    if "f" not in dtype:
        return rng.integers(0, 256, count * max(bits_of(dtype) // 8, 1), np.uint8)
    numbers = rng.normal(size=count).astype(stored_dtype(dtype))
    special = np.array([0.0, -0.0, np.inf, -np.inf, np.nan, 1e-7, 6e4]).astype(stored_dtype(dtype))
    numbers[rng.permutation(count)[: len(special)]] = special
    return numbers.view(np.uint8)


def forms() -> list[tuple[AccessFamily, str, int]]:
    families = (family for family in ACCESSES if family != PREFETCH)
    every = ((each, form, rank) for each in families for rank, some in enumerate(each.forms) for form in some)
    return [each for each in every if "carried" not in each]


def aligned(size: int) -> NDArray[np.uint8]:
    room = np.zeros(size + 128, np.uint8)
    return room[-room.ctypes.data % 64 :][:size]


@pytest.mark.full
@pytest.mark.parametrize("level", host_levels())
@pytest.mark.parametrize(("family", "form", "rank"), forms(), ids=lambda x: getattr(x, "name", x))
def test_each_access(family: AccessFamily, form: str, rank: int, level: str) -> None:
    """The same bytes as the interpreter's, and no other byte. No undeclared flag is set."""
    for unit in sorted({unit_of(dtype) for dtype in family.dtypes}):
        check(family, form, rank, level, unit)


def check(family: AccessFamily, form: str, rank: int, level: str, unit: int) -> None:
    kernel, function = small_kernel(family, form, rank, unit)
    run = KERNEL_PROTOTYPES[False](load_object(kernel.name, object_code(kernel, level_named(level))))
    for chosen, (dtype, shape) in enumerate(cases_of(family, form, rank, unit)):
        rng = np.random.default_rng(SEED)
        src, dst = elements(dtype, ROOM), aligned(ROOM * max(bits_of(dtype) // 8, 1))
        dst[:] = 0xA5
        size = max(bits_of(dtype) // 8, 1)
        offsets = (rng.permutation(ROOM) * size).astype(np.int64)
        mask = rng.integers(0, 2, ROOM).astype(np.uint8)
        expected = dst.copy()
        given: dict[str, Any] = {"src": Buffer(src, unit), "dst": Buffer(expected, unit)}
        given |= {"offsets": Buffer(offsets.view(np.uint8)), "mask": Buffer(mask)}
        interpret(function, (APART * size, chosen), given)
        table = np.array([each.ctypes.data for each in (src, dst, offsets, mask)], np.int64)
        if unit == 1:
            table[:2] *= 8
        sizes = np.array([APART * size, chosen], np.int64)
        if CLEAR_FLAGS:
            CLEAR_FLAGS(ALL_FLAGS)
        run(table.ctypes.data, 0, sizes.ctypes.data, 0, 0)
        assert not (TEST_FLAGS and TEST_FLAGS(ALL_FLAGS)) or family.sets_flags
        assert np.array_equal(dst, expected), f"{family.name} {form} of {dtype}, {shape}"


@pytest.mark.full
@pytest.mark.parametrize("level", [cpu_level(), *map(level_named, host_levels())], ids=lambda x: x.name)
@pytest.mark.parametrize("dtype", MOVED)
def test_lines_that_rows_complete(dtype: str, level: CpuLevel) -> None:
    """The same bytes as the interpreter's, wherever rows begin. AVX-512 with and without VBMI are levels."""
    bits, rows, pitch = bits_of(dtype), 3, 300
    shape, steps = (rows, LINE_BYTES * 8 // bits), (LINE_BYTES, bits // 8)
    src, dst = times("i", LINE_BYTES * rows), plus(times("i", LINE_BYTES), "shift")
    carry = Load("carry", (index_of(0),), f"bits{bits}", shape, (0, 0), steps)
    value = Load("src", (src,), f"bits{bits}", shape, (0, 0), steps)
    store = Store("dst", (dst,), value, (0, 0), (pitch, bits // 8), streamed=True, carry=carry)
    body = For("i", (index_of(1),), (index_of(4),), 1, (store,))
    buffers = BufferArg("src"), BufferArg("dst"), BufferArg("carry")
    name = f"carried_{dtype}"
    function = Function(name, (ScalarArg("shift", "i64"),), (body,), buffers=buffers, summary="carried")
    made = object_code(SmallKernel(name, source_of(function)), level)
    run, rng = KERNEL_PROTOTYPES[False](load_object(name, made)), np.random.default_rng(SEED)
    for shift in range(LINE_BYTES):
        sides = [
            aligned(size) for size in (4 * LINE_BYTES * rows, rows * pitch + LINE_BYTES, LINE_BYTES * rows)
        ]
        for side in sides:
            side[:] = rng.integers(0, 256, len(side), np.uint8)
        wanted = [aligned_copy(side) for side in sides]
        given = {x.name: Buffer(y, 8, 0, 0) for x, y in zip(buffers, wanted, strict=True)}
        interpret(function, (shift,), given)
        table = np.array([side.ctypes.data for side in sides], np.int64)
        sizes = np.array([shift], np.int64)
        run(table.ctypes.data, 0, sizes.ctypes.data, 0, 0)
        assert all(map(np.array_equal, sides, wanted)), shift


def aligned_copy(of: NDArray[np.uint8]) -> NDArray[np.uint8]:
    made = aligned(len(of))
    made[:] = of
    return made
