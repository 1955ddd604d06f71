"""Every operation on numbers against its meaning: each family, element type and CPU level of this machine."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache
from hashlib import sha256
from itertools import product

import numpy as np
import pytest

from codegen.backend.object_loader import load_object
from codegen.emit.abi import kernel_head
from codegen.emit.source import body_of
from codegen.ir.access_families import ACCESSES, PLACES
from codegen.ir.building import index_of, times
from codegen.ir.c_functions import C_FUNCTIONS
from codegen.ir.families import FAMILIES, FLOATS, MOST_LANES, Family
from codegen.ir.nodes import BufferArg, For, Function, Statement, Store
from codegen.ir.routines import MADE, NUMBERS, SIZED, UNTYPED, Routine, is_routine, name_of, routine_named
from codegen.ir.values import Load, Op, VectorShape
from codegen.runtime.float_flags import ALL_FLAGS, CLEAR_FLAGS, FLAGS_SUPPORTED, TEST_FLAGS
from codegen.runtime.kernel import KERNEL_PROTOTYPES
from codegen.simd.routines import bound_routines
from codegen.support.cpu import host_levels, level_named
from codegen.support.errors import KernelError
from tests.codegen.simd.instruction_cases import SmallKernel
from tests.codegen.simd.objects import object_code
from tests.codegen.simd.test_vector_math import assert_close, inputs
from tests.codegen.simd.vector_cases import Array, assert_same, numpy_type, operands

LANES = (1, 16)
COUNT = 1024
"""Elements of each operand."""


@cache
def small_kernel(family: Family, lanes: int) -> SmallKernel:
    """For each element type of operands and results a loop over the operands, one loop after another."""
    body = tuple(loop(family, dtype, made, lanes) for dtype, made in types_of(family))
    names = [f"{name}_{dtype}" for dtype in family.dtypes for name in ("x", "y", "z", "mask")]
    buffers = [*names, *(f"out_{dtype}_{made}" for dtype, made in types_of(family))]
    digest = sha256(repr((family.name, lanes)).encode()).hexdigest()[:12]
    function = Function(
        f"family_{digest}", (), body, buffers=tuple(map(BufferArg, buffers)), summary=family.name
    )
    return SmallKernel(function.name, f"{kernel_head(function.name)}\n{body_of(function)}")


def types_of(family: Family) -> tuple[tuple[str, str], ...]:
    """The element types of the operands and of the result."""
    return tuple((dtype, made) for dtype in family.dtypes for made in family.results or (dtype,))


def loop(family: Family, dtype: str, made: str, lanes: int) -> Statement:
    """out[i] = operation(x[i], y[i], z[i]), or out[i] = its single result for each register."""

    def load(name: str, kind: str) -> Load:
        size, shape = numpy_type(kind).itemsize, () if family.spreads else (lanes,)
        return Load(f"{name}_{dtype}", (times("i", size),), kind, shape, steps=(size,) if shape else ())

    given = tuple(load(name, dtype) for name in "xyz")
    given = (load("mask", "i1"), *given[:2]) if family.name == "select" else given[: family.arity]
    size = numpy_type(made).itemsize
    value = Op(family.name, given, made, () if family.reduces else (lanes,))
    steps = () if family.reduces else (size,)
    store = Store(f"out_{dtype}_{made}", (times("i", size),), value, steps=steps)
    return For("i", (index_of(0),), (index_of(COUNT),), lanes, (store,))


def arguments(family: Family, dtype: str) -> tuple[Array, Array, Array, Array]:
    """Special and random values for which the operation is defined."""
    x, y = operands(dtype)
    if family.name in C_FUNCTIONS and dtype in FLOATS:
        x, y = (each[-COUNT:] for each in inputs(family.name, dtype))
    elif family.max_ulp and dtype in FLOATS:
        x, y = (np.random.default_rng(5).normal(size=(2, COUNT)) + 3).astype(x.dtype)
    elif family.name == "pow":
        y = y & y.dtype.type(7)
    elif family.reduces and dtype in FLOATS and family.name not in ("reduce_min", "reduce_max"):
        x = np.random.default_rng(5).choice([1, 2, -1], COUNT, p=[0.8, 0.1, 0.1]).astype(x.dtype)
    elif dtype in FLOATS and not family.reduces:
        x = np.concatenate([x[:-1], signaling(dtype)])
    mask = np.random.default_rng(6).integers(0, 2, COUNT).astype(np.bool_)
    return x, y, np.roll(y, 3), mask


def signaling(dtype: str) -> Array:
    """One signaling NaN. Only moves of bits leave the flags alone."""
    if dtype == "f32":
        return np.array([0x7F80_0001], np.uint32).view(np.float32)
    return np.array([0x7FF0_0000_0000_0001], np.uint64).view(np.float64)


def expected(family: Family, made: str, lanes: int, given: Sequence[Array]) -> Array:
    x, y, z, mask = given
    with np.errstate(all="ignore"):
        if family.spreads:
            numbers = ([each][: family.arity] for each in x[::lanes])
            return np.concatenate([family.meaning(number, made, (lanes,)) for number in numbers])
        if family.reduces:
            return np.array([family.meaning([row], made) for row in x.reshape(-1, lanes)])
        if family.crosses:
            rows = zip(*(each.reshape(-1, lanes) for each in given[: family.arity]), strict=True)
            return np.concatenate([family.meaning(row, made, (lanes,)) for row in rows])
        chosen = [mask, x, y] if family.name == "select" else [x, y, z][: family.arity]
        return np.asarray(family.meaning(chosen, made))


@pytest.mark.full
@pytest.mark.parametrize("level", host_levels())
@pytest.mark.parametrize("name", sorted(name for name, each in FAMILIES.items() if each.rows != "must"))
def test_each_family(name: str, level: str) -> None:
    """In registers and lane by lane. No undeclared flag is set; SSE2 needs all declared ones.

    `test_vector_transposes.py` tests those of blocks.
    """
    family, raised = FAMILIES[name], 0
    for lanes in LANES:
        kernel = small_kernel(family, lanes)
        given = {dtype: arguments(family, dtype) for dtype in family.dtypes}
        out = {types: np.zeros(COUNT, numpy_type(types[1])) for types in types_of(family)}
        buffers = [*(each for dtype in family.dtypes for each in given[dtype]), *out.values()]
        table = np.array([each.ctypes.data for each in buffers], np.int64)
        run = KERNEL_PROTOTYPES[False](load_object(kernel.name, object_code(kernel, level_named(level))))
        if CLEAR_FLAGS:
            CLEAR_FLAGS(ALL_FLAGS)
        run(table.ctypes.data, 0, 0, 0, 0)
        raised |= TEST_FLAGS(ALL_FLAGS) if TEST_FLAGS else 0
        for (dtype, made), found in out.items():
            got = found[::lanes] if family.reduces else found
            check(family, dtype, made, lanes, given[dtype], got)
    assert not raised or family.sets_flags
    if FLAGS_SUPPORTED and level == "sse2" and not (family.max_ulp or family.reduces):
        assert raised or not family.sets_flags


def check(family: Family, dtype: str, made: str, lanes: int, given: Sequence[Array], got: Array) -> None:
    if family.name in C_FUNCTIONS and dtype in FLOATS:
        assert_close(family.name, dtype, lanes, given[0], given[1], got)
        return
    wanted = expected(family, made, lanes, given)
    if family.max_ulp and dtype in FLOATS:
        assert (abs(got - wanted) <= family.max_ulp * np.spacing(abs(wanted))).all(), dtype
        return
    zeros = not family.name.endswith(
        ("min", "max")
    )  # NumPy's array loops and its scalars order zeros differently
    assert_same(got, wanted, f"{family.name} of {dtype}x{lanes} as {made}", zeros=zeros)


def declared() -> list[Routine]:
    """The routines of every family, element type, form and place, for some shapes."""
    names = dict.fromkeys((*(each.name for each in ACCESSES), *MADE, *NUMBERS, *SIZED, "first"))
    types = dict.fromkeys(("", *(dtype for each in ACCESSES for dtype in each.dtypes)))
    shapes: tuple[VectorShape, ...] = ((), (1,), (16,), (4, 4), (3, 8))
    every = product(names, types, shapes, ("", "first", "where"), (*PLACES,))
    found = (Routine(*each) for each in every)
    return [*map(Routine, sorted(UNTYPED)), *(routine for routine in found if routine.exists)]


DECLARED = declared()


def test_routines_are_found_by_name() -> None:
    """Each declared routine is found by its name, and no other name is."""
    for routine in DECLARED:
        assert routine_named(routine.name) == routine
    assert len({routine.name for routine in DECLARED}) == len(DECLARED)
    assert routine_named(name_of("load", "bf16", (8,), "first")) == Routine("load", "bf16", (8,), "first")
    assert name_of("store", "f16", (4,), "where") == "store_f32x4_as_f16_where"
    assert name_of("load", "bf16", (16, 8)) == "load_bf16_as_f32x16x8"
    assert name_of("stream", "u16", (8, 32), "first", "at") == "stream_u16x8x32_first_at"
    for other in (
        "load_f32x0",
        "load_f32x8x4x2",
        "load_f32x4x4_first",
        "load_f32x4_each",
        "load_u128_at",
        "gather_f32x4x4",
        "splat_f32x3",
        "repeated_f32x8x4",
        f"load_f32x{2 * MOST_LANES}",
        "store_q7x2",
        "stream_f32x2",
        "range",
        "splat_bf16x2",
    ):
        assert not is_routine(other)
    with pytest.raises(KernelError, match="the routine splat_f32x3 does not exist"):
        name_of("splat", "f32", (3,))


@pytest.mark.parametrize(
    "name",
    [
        *(
            "load_u32x16x8",
            "load_u32x16x8_each",
            "store_u512x4x1_at",
            "stream_u8x4x64_at_low",
            "prefetch_u8x64",
        ),
        *("store_u8x16x64_first", "stream_u16x8x32_first_at", "arguments_3", "addresses_12", "stack_3072"),
    ],
)
def test_accesses_are_distinguished_from_other_names(name: str) -> None:
    found = routine_named(name)
    assert found is not None
    assert found.name == name
    for other in (
        f"{name}_",
        f"_{name}",
        f"{name}x",
        name.replace("_", "__", 1),
        name.replace("_", "_0", 1),
        name[1:],
    ):
        assert routine_named(other) is None, other


@pytest.mark.parametrize("family", sorted({routine.family for routine in DECLARED}))
def test_each_declared_routine_is_bound(family: str) -> None:
    names = [routine.name for routine in DECLARED if routine.family == family]
    assert set(bound_routines(names)) == set(names)
