"""Gathers and scatters in kernels: subscripts that are elements of integer arrays."""

from __future__ import annotations

import re
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import tilejit as tj
from tests.codegen.simd.levels import AtLevels, turn
from tests.conftest import SEED
from tests.kernels.indexed import (
    CASES,
    Case,
    add_at,
    gather,
    gather_every_other,
    gather_twice,
    rows,
    scatter,
    scatter_apart,
)
from tests.tools.extent import few_by_default
from tests.tools.guard import Guarded

INTEGERS = ("i1", "u1", "i2", "u2", "i4", "u4", "i8", "u8")
TAILS = ("mask", "scalar", "shift")
DTYPES = ("?", "u1", "i2", "f2", "f4", "i8", "f8")


def arguments(case: Case, dtype: str, index: str, size: int = 67) -> tuple[np.ndarray, ...]:
    """y, x and idx, whose elements are valid for both, and negative where allowed."""
    rng = np.random.default_rng(SEED)
    shape = (size, size)[: case.rank]
    y, x = (rng.integers(0, 2 if dtype == "?" else 5, shape).astype(dtype) for _ in range(2))
    if case.apart:
        idx = rng.permutation(size)
    else:
        idx = rng.integers(0 if index[0] == "u" else 2 - size, size - 1, size)
    return y, x, idx.astype(index)


def same(kernel: Any, function: Any, *given: Any) -> None:
    """A kernel gives what the function gives, and leaves the same in all arrays."""
    mine, theirs = ([x.copy() if isinstance(x, np.ndarray) else x for x in given] for _ in range(2))
    with np.errstate(all="ignore"):
        expected = function(*theirs)
    result = kernel(*mine)
    assert result == expected
    for a, b in zip(mine, theirs, strict=True):
        np.testing.assert_array_equal(a, b)


@pytest.mark.parametrize("tail", TAILS)
@pytest.mark.parametrize("case", few_by_default(CASES, 5), ids=lambda case: case.name)
def test_kernels_agree_with_python(case: Case, tail: str) -> None:
    """Cases take each tail, with elements and indices of four and eight bytes in turn."""
    dtype, index = (("f4", "i4"), ("f8", "i8"))[(CASES.index(case) + TAILS.index(tail)) % 2]
    kernel = tj.kernel(virtual_vector_size=32, tail=tail)(case.function)
    for size in (3, 5, 16, 67):
        same(kernel, case.function, *arguments(case, dtype, index, size))


@pytest.mark.full
@pytest.mark.parametrize(
    ("dtype", "index"),
    [(dtype, index) for n, dtype in enumerate(DTYPES) for index in INTEGERS[n % 2 :: 2]],
)
def test_dtypes(dtype: str, index: str) -> None:
    """Dtypes of elements and of indices, each gathered and scattered in turn."""
    case = CASES[(DTYPES.index(dtype) // 2 + INTEGERS.index(index) // 2) % 2 * 8]
    same(tj.kernel(virtual_vector_size=16)(case.function), case.function, *arguments(case, dtype, index))


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_reports_say_gathered_scattered_or_why_not(case: Case) -> None:
    kernel = tj.kernel(virtual_vector_size=16)(case.function).specialize(*arguments(case, "f4", "i4"))
    assert case.lanes in kernel.report()
    assert "elements of idx are subscripts: calls check them" in kernel.report()
    verbs = {"gathered": "gather_f32x", "scattered": "scatter_f32x"}
    for word, verb in verbs.items():
        assert (word in case.lanes) <= (verb in kernel.source), kernel.source
    assert not case.lanes.startswith("scalar") or "scatter_f32x" not in kernel.source
    assert "vector.gather" in kernel.vectorized or "gathered" not in case.lanes


@pytest.mark.full
@given(st.data())
@settings(max_examples=60)
def test_any_indices(data: Any) -> None:
    """If Python raises, the kernel raises before anything is written. Otherwise the results are the same."""
    case = data.draw(st.sampled_from([case for case in CASES if not case.apart and case.rank == 1]))
    kernel = KERNELS[case.name]
    n = data.draw(st.integers(0, 40))
    y, x = np.arange(n, dtype="f4"), np.arange(n, 0, -1, dtype="f4")
    dtype = np.dtype(data.draw(st.sampled_from(["i1", "u1", "i4", "u4", "i8", "u8"])))
    info = np.iinfo(dtype)
    inside = st.integers(max(info.min, -n), max(n - 1, 0))
    value = st.one_of(inside, inside, inside, st.integers(info.min, info.max))
    idx = np.array(data.draw(st.lists(value, min_size=n, max_size=n)), dtype)
    mine, theirs = y.copy(), y.copy()
    try:
        case.function(theirs, x, idx)
    except IndexError:
        with pytest.raises(IndexError):
            kernel(mine, x, idx)
        np.testing.assert_array_equal(mine, y)
        return
    kernel(mine, x, idx)
    np.testing.assert_array_equal(mine, theirs)


KERNELS = {case.name: tj.kernel(virtual_vector_size=16)(case.function) for case in CASES}

HOSTILE = (
    ("i4", [0, 1, 9], "idx[2] is 9; expected -9 to 8"),
    ("i4", [0, -10, 1], "idx[1] is -10; expected -9 to 8"),
    ("i4", [-(2**31), 0, 0], f"idx[0] is {-(2**31)}; expected"),
    ("i8", [0, 2**63 - 1, 0], f"idx[1] is {2**63 - 1}; expected"),
    ("i8", [0, -(2**63), 0], f"idx[1] is {-(2**63)}; expected"),
    ("u4", [0, 2**32 - 1, 0], f"idx[1] is {2**32 - 1}; expected 0 to 8"),
    ("u8", [0, 2**64 - 1, 0], f"idx[1] is {2**64 - 1}; expected 0 to 8"),
    ("i1", [0, 0, -128], "idx[2] is -128"),
)


@pytest.mark.full
@pytest.mark.parametrize("function", [gather, scatter, add_at, scatter_apart], ids=lambda f: f.__name__)
@pytest.mark.parametrize(("dtype", "indices", "text"), HOSTILE)
def test_hostile_indices(function: Any, dtype: str, indices: list[int], text: str) -> None:
    """The error names the array, the position and the value, and nothing is written.

    Masks skip such indices.
    """
    rooms = [Guarded(4096) for _ in range(3)]
    n = len(indices) if function is gather else 9
    y = rooms[0].place(4 * n, at_end=True).view("f4")
    x = rooms[1].place(36, at_end=True).view("f4")
    idx = rooms[2].place(len(indices) * np.dtype(dtype).itemsize, at_end=True).view(dtype)
    y[...], x[...], idx[...] = 7, np.arange(1, 10), indices
    with pytest.raises(tj.KernelError, match=re.escape(text)) as error:
        tj.kernel(virtual_vector_size=16)(function)(y, x, idx)
    assert isinstance(error.value, IndexError)
    assert (y == 7).all()
    tj.kernel(virtual_vector_size=16, index_bounds="mask")(function)(y, x, idx)
    wanted = np.full(n, 7, "f4")
    for i, k in enumerate(indices):
        if -9 <= k < 9:
            wanted[i if function is gather else k] = (
                x[k] if function is gather else x[i] + wanted[k] if function is add_at else x[i]
            )
        elif function is gather:
            wanted[i] = 0
    np.testing.assert_array_equal(y, wanted)
    assert all(room.untouched() for room in rooms)


@pytest.mark.full
@pytest.mark.parametrize("case", [case for case in CASES if case.rank == 1], ids=lambda case: case.name)
def test_masks_skip_indices_outside(case: Case) -> None:
    """If no index is outside, masks change nothing. Masks skip empty arrays entirely."""
    kernel = tj.kernel(virtual_vector_size=16, index_bounds="mask")(case.function)
    same(kernel, case.function, *arguments(case, "f4", "i4"))
    y, _, idx = arguments(case, "f4", "i4")
    nothing = np.zeros(0, "f4")
    if case.name in ("gather", "gather_named", "gather_twice", "gather_half"):
        kernel(y, nothing, idx)
        assert not y.any()
    if case.name == "gather_twice":
        with pytest.raises(IndexError):
            kernel(y, y.copy(), idx[:0])


def test_masks_at_both_ends() -> None:
    """The first and the last valid subscript, and their neighbors outside."""
    idx, x = np.array([-10, -9, -1, 0, 8, 9]), np.arange(1.0, 10.0)
    y = np.full(6, 7.0)
    tj.kernel(virtual_vector_size=8, index_bounds="mask")(gather)(y, x, idx)
    assert list(y) == [0, 1, 9, 1, 9, 0]
    into = np.zeros(9)
    tj.kernel(index_bounds="mask")(add_at)(into, np.arange(1.0, 7.0), idx)
    assert list(into) == [6, 0, 0, 0, 0, 0, 0, 0, 8]


def test_masked_scatters_to_an_empty_array_store_nothing() -> None:
    kernel = tj.kernel(index_bounds="mask")(scatter)
    kernel(np.zeros(0, "f4"), np.ones(3, "f4"), np.arange(3))
    with pytest.raises(IndexError, match=re.escape("idx[0] is 0; the array has no elements there")):
        tj.kernel(scatter)(np.zeros(0, "f4"), np.ones(3, "f4"), np.arange(3))


def test_index_arrays_themselves_are_checked() -> None:
    with pytest.raises(IndexError, match="idx"):
        tj.kernel(gather)(np.zeros(4), np.zeros(4), np.zeros(3, int))


def test_an_index_of_indices_out_of_range_is_named() -> None:
    y, x = np.zeros(4), np.zeros(4)
    with pytest.raises(IndexError, match=re.escape("idx[idx[i]] in the loop of line")):
        tj.kernel(gather_twice)(y, x, np.array([0, 4, 1, 2]))
    two = np.array([0, 3, 1, 2])

    @tj.kernel
    def apart(y, x, a, b):
        for i in range(len(y)):
            y[i] = x[a[b[i]]]

    with pytest.raises(IndexError, match=re.escape("a[1] is 4; expected -4 to 3")):
        apart(y, x, np.array([0, 4, 1, 2]), two[::-1].copy())


def test_unused_elements_may_be_invalid() -> None:
    """Outside the range, between steps, and outside a triangle."""
    x = np.arange(8.0)
    idx = np.array([99, 1, -99, 2, 99, 3, 99, 4])
    y = np.zeros(8)
    tj.kernel(gather_every_other)(y, x, idx)
    assert list(y[::2]) == [1, 2, 3, 4]
    idx = np.array([1, 2, 99, 99])
    tj.kernel(gather)(y[:2], x, idx)

    @tj.kernel
    def lower(y, x, idx):
        for i in range(y.shape[0]):
            for j in range(i):
                y[i, j] = x[idx[i - j - 1], j]

    y, x = np.zeros((3, 3)), np.arange(9.0).reshape(3, 3)
    same(lower, lower.python, y, x, np.array([1, 2, 99]))


def test_rows_without_elements_need_no_valid_index() -> None:
    """The inner loop never runs, so the row is not read."""
    same(tj.kernel(rows), rows, np.zeros((3, 0)), np.zeros((2, 0)), np.zeros(0, int))


@pytest.mark.parametrize("index_bounds", ["check", "mask"])
def test_subscripts_must_not_change_during_a_call(index_bounds: str) -> None:
    """An array that the kernel writes is not an index array, and shares no memory with one."""
    kernel = tj.kernel(index_bounds=index_bounds, no_alias=True)(gather)
    room = np.arange(20)
    with pytest.raises(ValueError, match="idx holds subscripts and shares memory with y"):
        kernel(room[:10], np.arange(30), room[5:15])
    with pytest.raises(ValueError, match="shares memory"):
        kernel(room, np.arange(30), room)
    np.testing.assert_array_equal(room, np.arange(20))
    kernel(room[:10], np.arange(30), room[10:])
    np.testing.assert_array_equal(room[:10], np.arange(10, 20))

    def invert(idx):
        for i in range(len(idx)):
            idx[idx[i]] = i

    with pytest.raises(tj.KernelError, match="idx is stored to, and its elements are subscripts"):
        tj.kernel(index_bounds=index_bounds)(invert)(np.arange(4))


@pytest.mark.full
def test_arrays_that_share_memory_run_in_order() -> None:
    """x and y are one array, or overlap."""
    for function in (gather, scatter, add_at):
        kernel = tj.kernel(virtual_vector_size=8)(function)
        idx = np.random.default_rng(SEED).integers(0, 20, 20)
        for shift in (0, 1, -1):
            mine, theirs = np.arange(30.0), np.arange(30.0)
            for run, room in ((kernel, mine), (function, theirs)):
                run(room[5:25], room[5 + shift : 25 + shift], idx)
            np.testing.assert_array_equal(mine, theirs)


def test_a_permutation_is_checked_on_request() -> None:
    """Elements must differ. Negative ones count from the end."""
    kernel, y, x = tj.kernel(scatter_apart), np.zeros(4), np.arange(4.0)
    kernel(y, x, np.array([0, 1, 1, 2]))  # a broken promise gives some result
    kernel = tj.kernel(verify=True)(scatter_apart)
    kernel(y, x, np.array([3, 0, -3, 2]))
    with pytest.raises(ValueError, match=re.escape("idx[1] and idx[2] are both 1, but tilejit.permutation")):
        kernel(y, x, np.array([0, 1, 1, 2]))
    with pytest.raises(ValueError, match=re.escape("idx[0] and idx[3] are both 3")):
        kernel(y, x, np.array([3, 0, 1, -1]))


def test_narrow_indices_must_be_converted_before_arithmetic() -> None:
    """idx[i] + 1 would wrap around in the dtype of idx."""

    def refused(y, x, idx):
        for i in range(len(y)):
            y[i] = x[idx[i] + 1]

    with pytest.raises(tj.KernelError, match=re.escape("x[int(idx[i]) + 1]")):
        tj.kernel(refused).specialize(np.zeros(3), np.zeros(9), np.zeros(3, "i4"))
    same(tj.kernel(refused), refused, np.zeros(3), np.arange(9.0), np.array([1, -5, 7]))


@pytest.mark.full
def test_sums_of_gathered_elements() -> None:
    def total(x, idx):
        s = 0.0
        for i in range(len(idx)):
            s += x[idx[i]]
        return s

    rng = np.random.default_rng(SEED)
    for n in (0, 3, 64, 101):
        given = rng.integers(0, 9, 50).astype("f8"), rng.integers(-50, 50, n)
        same(tj.kernel(virtual_vector_size=16, vectorize_reductions=True)(total), total, *given)
        same(tj.kernel(index_bounds="mask", vectorize_reductions=True)(total), total, *given)


@pytest.mark.full
def test_strided_arrays_and_fortran_order() -> None:
    rng = np.random.default_rng(SEED)
    for case in CASES:
        y, x, idx = arguments(case, "f4", "i4", 33)
        wide = np.zeros(66, "i4")
        wide[::2] = idx
        kernel = tj.kernel(virtual_vector_size=8)(case.function)
        same(kernel, case.function, y, x, wide[::2])
        if case.rank == 2:
            same(kernel, case.function, np.asfortranarray(y), x, idx)
            same(kernel, case.function, y, np.asfortranarray(x), idx[::-1])
        else:
            same(kernel, case.function, y, np.repeat(x, 3)[::3], idx)
    del rng


@pytest.mark.full
@pytest.mark.parametrize("size", [(4, 8), (2, 16)])
@pytest.mark.parametrize("case", [case for case in CASES if case.rank == 2], ids=lambda case: case.name)
def test_two_dimensions(case: Case, size: tuple[int, int]) -> None:
    kernel = tj.kernel(virtual_vector_size=size)(case.function)
    same(kernel, case.function, *arguments(case, "f4", "i4", 37))
    tiled = tj.kernel(virtual_vector_size=8, vectorize_at="after_tile")(case.function)
    same(tiled, case.function, *arguments(case, "f4", "i4", 37))


def running(y, x, idx):
    s = 0.0
    for i in range(len(y)):
        s += x[idx[i]]
        y[tj.permutation(idx)[i]] = s


def diagonal(y, x, idx):
    for i in range(len(y)):
        y[i] = x[idx[i] % 7, i] + x[(idx[i] + i) // 3, idx[i]]


def conditional(y, x, idx):
    for i in range(len(y)):
        if idx[i] >= 0:
            y[i] = x[idx[i], 0]
        else:
            y[i] = -1


def table(y, x, idx):
    for i in range(x.shape[0]):
        for j in range(x.shape[1]):
            x[i, j] = y[idx[j]] + y[idx[idx[i] // 2]]


@pytest.mark.full
@pytest.mark.parametrize("bounds", ["check", "mask"])
@pytest.mark.parametrize("size", [8, 256, (4, 4)])
@pytest.mark.parametrize("function", [running, diagonal, conditional, table], ids=lambda f: f.__name__)
def test_scans_diagonals_conditions_tables(function: Any, size: Any, bounds: str) -> None:
    rng = np.random.default_rng(SEED)
    kernel = tj.kernel(virtual_vector_size=size, index_bounds=bounds, vectorize_scans=True)(function)
    x = np.arange(31.0) if function is running else rng.random((31, 31))
    same(kernel, function, np.arange(31.0), x, rng.permutation(31))


def by_table(y, x, at):
    for i in range(y.shape[0]):
        for j in range(y.shape[1]):
            y[i, j] = x[at[j, i]]


def put_by_table(y, x, at):
    for i in range(x.shape[0]):
        for j in range(x.shape[1]):
            y[tj.permutation(at)[i, j]] = x[i, j]


def by_a_number(y, x, at):
    for i in range(len(y)):
        y[i] = x[at[()]] + x[int(at[()]) - 1]


@pytest.mark.full
@pytest.mark.parametrize("bounds", ["check", "mask"])
@pytest.mark.parametrize("size", [8, (4, 4), (16, 16)])
def test_arrays_of_indices_have_any_rank(size: Any, bounds: str) -> None:
    """A table that is read by columns is transposed in registers."""
    rng = np.random.default_rng(SEED)
    options = {"virtual_vector_size": size, "index_bounds": bounds, "verify": True}
    at = rng.integers(-50, 50, (37, 19)).astype("i4")
    same(tj.kernel(**options)(by_table), by_table, np.zeros((19, 37), "f4"), np.arange(50, dtype="f4"), at)
    at = rng.permutation(19 * 37).reshape(19, 37)
    kernel, x = tj.kernel(**options)(put_by_table), rng.random((19, 37))
    same(kernel, put_by_table, np.zeros(19 * 37), x, at)
    at[3, 4] = at[11, 5]
    with pytest.raises(ValueError, match=re.escape("at[3, 4] and at[11, 5] are both")):
        kernel(np.zeros(19 * 37), x, at)
    same(tj.kernel(**options)(by_a_number), by_a_number, np.zeros(9), rng.random(4), np.array(0))


@pytest.mark.full
def test_sizes_as_literals_and_threads() -> None:
    for case in CASES:
        if case.name in ("gather", "scatter_apart", "rows", "add_at"):
            given = arguments(case, "f4", "i8")
            same(tj.kernel(specialize="sizes", index_bounds="mask")(case.function), case.function, *given)
            if case.name != "add_at":
                same(tj.kernel(parallel=2)(case.function), case.function, *given)


def test_options_are_checked() -> None:
    with pytest.raises(tj.KernelError, match="index_bounds: unknown value 'wrap'"):
        tj.kernel(index_bounds="wrap")
    assert tj.permutation(gather) is gather


def at_lower_levels(level: str) -> AtLevels:
    agree = [f"test_kernels_agree_with_python[{c.name}-{TAILS[n % 3]}]" for n, c in enumerate(CASES)]
    agree += [f"test_dtypes[{d}-{i}]" for n, d in enumerate(DTYPES) for i in INTEGERS[n % 2 :: 2]]
    chosen = turn(agree, level)
    return AtLevels(__file__, [*chosen, "test_hostile_indices"], len(chosen) + 4 * len(HOSTILE))
