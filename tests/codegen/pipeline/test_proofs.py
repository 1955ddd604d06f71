"""Every access of a lowered kernel is proven before it runs; unproven launches are refused."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from itertools import product
from random import Random

import numpy as np
import pytest

import tilejit as tj
from codegen import (
    ArrayArg,
    LoopKernel,
    check_bounds,
    index_arrays,
    loop_kernel,
    read_function,
    schedule_function,
    vectorize_function,
)
from codegen.analysis.buffer_bounds import check_buffers
from codegen.analysis.given import Given, Storage
from codegen.ir.dtypes import argument, numpy_dtype
from codegen.passes.name_loops import name_loops
from codegen.pipeline import loops, proofs
from codegen.pipeline.program import CopyProgram
from codegen.pipeline.proofs import given_of, given_of_calls, prove_launch, prove_loops
from codegen.pipeline.steps import reach_of
from codegen.runtime.copy_calls import TableCalls
from codegen.runtime.launch import Launch
from codegen.schedule.directives import Prefetch
from codegen.schedule.machine import described
from codegen.support.errors import KernelError, ScheduleError
from codegen.support.settings import settings
from tests.codegen.emit.golden_copies import COPIES, virtual
from tests.codegen.emit.golden_kernels import KERNELS, transposed
from tests.codegen.emit.golden_texts import SIZES
from tests.codegen.passes.random_nests import ARRAYS, nest
from tests.codegen.simd.cases import GROUPS, cases
from tests.tools.extent import few_by_default
from tests.tools.goldens import MACHINE
from tests.tools.loop_schedules import nests_of, random_schedule
from tilejit.copies.convert import program_of_pack
from tilejit.programs.compiled import array_element
from tilejit.programs.copy_programs import copy_program
from tilejit.programs.moves import move_for
from tilejit.programs.pack_programs import single_pass_unpack
from tilejit.programs.tuning import DEFAULT


@pytest.fixture(autouse=True)
def one_machine() -> Iterator[None]:
    """Schedules depend on the machine."""
    with described(MACHINE):
        yield


def launches_of(program: CopyProgram) -> Iterator[Launch]:
    """All launches, including those for misaligned destinations."""
    for launch in (*program.first, *program.launches):
        yield launch
        if launch.misaligned:
            yield launch.misaligned


@pytest.mark.parametrize("size", SIZES)
@pytest.mark.parametrize("name", COPIES)
def test_every_golden_copy_is_proven(name: str, size: str) -> None:
    with described(COPIES[name].machine):
        for launch in launches_of(COPIES[name].program(SIZES[size])):
            assert prove_launch(launch)


UNEVEN_PACKS = (
    "u16[1001,3001]{0,1:T(8,128)}",
    "f64[1001,3001]{0,1:T(8,128)}",
    "f32[500,3001]{0,1:T(8,128)}",
    "f64[500,3001]{0,1:T(8,128)}",
    "f32[1000,3001]{0,1:T(8,128)}",
    "u16[1001,3001]{0,1:T(16,128)}",
)
"""Layouts with partial tiles at the last rows and columns of an array."""


@pytest.mark.parametrize("text", UNEVEN_PACKS)
def test_packs_with_partial_tiles_are_proven(text: str) -> None:
    shape = tj.Shape.parse(text)
    array = virtual(shape.dimensions, shape.dtype)
    for program in (
        program_of_pack(array, shape),
        single_pass_unpack(shape, array.strides, array_element(shape), False, 1),
    ):
        for launch in launches_of(program):
            assert prove_launch(launch)


BACKWARDS = (
    ("u1", (39, 8, 552, 2), (0, 3, 2, 1), 2, -2),
    ("u2", (9, 8, 9, 16, 7), (4, 3, 2, 0, 1), 3, -1),
    ("u1", (39, 8, 555, 2), (0, 3, 2, 1), 2, -1),
    ("u2", (4, 300, 3), (2, 1, 0), 1, -2),
)
"""dtype, shape, permutation, and a dimension with its step. The first blocks are at the end of the source."""


@pytest.mark.parametrize(("dtype", "dims", "order", "dimension", "step"), BACKWARDS, ids=str)
def test_short_rows_that_are_read_backwards_are_proven(
    dtype: str, dims: tuple[int, ...], order: tuple[int, ...], dimension: int, step: int
) -> None:
    stored = [n * abs(step) if d == dimension else n for d, n in enumerate(dims)]
    key = tuple(slice(None, None, step if d == dimension else None) for d in range(len(dims)))
    array = np.zeros(stored, dtype)[key].transpose(order)
    move = move_for(array.dtype, array.dtype)
    assert move
    dense = np.empty(array.shape, dtype).strides
    program = copy_program(array.shape, dense, array.strides, move, 1, DEFAULT)
    assert isinstance(program, CopyProgram)
    for launch in launches_of(program):
        assert prove_launch(launch)
    for launch in boxes_of(program):
        check_that_each_byte_counts(launch)


@pytest.mark.parametrize("part", few_by_default(range(8), 1))
@pytest.mark.parametrize("group", GROUPS)
def test_every_case_is_proven(group: str, part: int) -> None:
    for case in cases(group)[part::8]:
        for launch in launches_of(case.program):
            assert prove_launch(launch), case.name


TAILS = ("mask", "scalar", "shift")
SHAPES = {
    "kernel_blend": {"b": (130,)},
    "kernel_blend_streamed": {"b": (130,)},
    "kernel_blend_in_tiles": {"b": (130,)},
    "kernel_blend_divisible": {"a": (101, 128), "b": (128,), "c": (101, 128)},
    "kernel_transposed": {"c": (130, 101)},
    "kernel_transposed_in_tiles": {"c": (130, 101)},
    "kernel_interleaved": {"c": (202,)},
    "kernel_deinterleaved": {"a": (303,), "c": (3, 101)},
    "kernel_stretched_shifted": {"a": (51,)},
}
"""The shapes of arrays that are not (101,) or (101, 130)."""


@pytest.mark.parametrize("size", [None, 64, (4, 32)])
@pytest.mark.parametrize("name", KERNELS)
def test_every_golden_kernel_is_proven(name: str, size: int | tuple[int, int] | None) -> None:
    """It needs all bytes of its arrays, and no others."""
    golden = KERNELS[name]
    with described(golden.machine):
        kernel: LoopKernel = getattr(golden.kernels(size), golden.form)
    shapes, strides = dict[str, tuple[int, ...]](), dict[str, tuple[int, ...]]()
    for array in kernel.function.arguments:
        assert isinstance(array, ArrayArg)
        shape = shapes[array.name] = SHAPES.get(name, {}).get(array.name, (101, 130)[: array.rank])
        strides[array.name] = np.empty(shape, numpy_dtype(array.dtype)).strides
    given = given_of_calls(kernel, shapes, strides, {})
    if "ids" in shapes:
        given = replace(given, elements={"ids": (-101, 100)})
    assert check_buffers(kernel.emitted.function, given)
    skipped = {("a", "low")} if name == "kernel_sum" else set[tuple[str, str]]()  # it begins at a[3]
    for array, which in sorted({*product(shapes, ("low", "stop"))} - skipped):
        with pytest.raises(KernelError, match=f"may leave {array}: expected bytes .*, got"):
            check_buffers(kernel.emitted.function, one_less(given, array, which))


@pytest.mark.parametrize("verify", [True, False])
def test_calls_are_proven_with_the_switch(verify: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    proven: list[int] = []
    monkeypatch.setattr(loops, "settings", lambda: replace(settings(), verify=verify))
    monkeypatch.setattr(proofs, "prove_loops", lambda *given: proven.append(prove_loops(*given)))
    kernel = tj.kernel(transposed)
    for shape in ((40, 30), (7, 3)):
        kernel(np.ones(shape, "f4"), np.ones(shape[::-1], "f4"))
    assert len(proven) == 2 * verify


@pytest.mark.parametrize("seed", few_by_default(range(1000), 40))
def test_random_kernels_are_proven(seed: int) -> None:
    """Loops in any order, in tiles and in super-vectors. Other tests have elements as subscripts."""
    random = Random(seed)
    drawn = nest(lambda count: random.randrange(count))
    given = list(zip([*ARRAYS, "n"], drawn.copied(), strict=True))
    function = name_loops(read_function(drawn.python).typed([argument(name, x) for name, x in given]))
    shapes, strides = ({name: getattr(x, what) for name, x in given[:-1]} for what in ("shape", "strides"))
    nests = nests_of(function)
    if index_arrays(function) or not nests:
        return
    check_bounds(function, shapes, {"n": drawn.n})
    try:
        made = schedule_function(function, random_schedule(nests, lambda count: random.randrange(count)))
    except ScheduleError:
        made = vectorize_function(function, (random.choice((4, 100, 256)),), tail=random.choice(TAILS))
    prove_loops(loop_kernel(made.function, made.directives), shapes, strides, {"n": drawn.n})


def in_reach(launch: Launch) -> Given:
    """The arguments of a launch if the storages end where the box does."""
    reach, units = reach_of(launch.step.box), 8 // launch.step.box.unit_bits
    given = given_of(launch)
    ends = {"src": (reach[0], reach[1]), "dst": (reach[2], reach[3])}
    storages = {
        name: Storage(low // units, -(-stop // units), given.storages[name].start)
        for name, (low, stop) in ends.items()
    }
    return replace(given, storages={**given.storages, **storages})


def one_less(given: Given, side: str, which: str) -> Given:
    """The same arguments, with one byte less at one end of a storage."""
    storage = given.storages[side]
    shorter = (
        replace(storage, low=storage.low + 1) if which == "low" else replace(storage, stop=storage.stop - 1)
    )
    return replace(given, storages={**given.storages, side: shorter})


def boxes_of(program: CopyProgram) -> Iterator[Launch]:
    """The launches that move one box."""
    for launch in launches_of(program):
        if not launch.step.joined and not isinstance(launch.calls, TableCalls):
            yield launch


def check_that_each_byte_counts(launch: Launch) -> None:
    """A box needs all bytes of its reach, and no others."""
    function, given = launch.step.kernel.function, in_reach(launch)
    if any(x.src_table for x in launch.step.nest.loops) and launch.step.nest.obeying(Prefetch):
        return
    check_buffers(function, given)
    for side in ("dst",) if launch.step.nest.fills else ("src", "dst"):
        for which in ("low", "stop"):
            with pytest.raises(KernelError, match=f"may leave {side}: expected b.* to .*, got"):
                check_buffers(function, one_less(given, side, which))


@pytest.mark.full
@pytest.mark.parametrize("name", COPIES)
def test_one_byte_less_is_refused_in_golden_copies(name: str) -> None:
    with described(COPIES[name].machine):
        for launch in boxes_of(COPIES[name].program()):
            check_that_each_byte_counts(launch)


@pytest.mark.parametrize("group", GROUPS)
def test_one_byte_less_is_refused(group: str) -> None:
    for case in cases(group)[::17]:
        for launch in boxes_of(case.program):
            check_that_each_byte_counts(launch)
