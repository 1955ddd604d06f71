"""Promises about arrays and loops: what they allow, how reports name them, how verify mode checks them."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import tilejit as tj
from tests.tools.guard import Guarded
from tests.tools.oracle import run_python


def halve(x, y):
    for i in range(x.shape[0]):
        y[i] = 0.5 * x[i]


def overlapping(count: int = 200) -> tuple[Any, Any]:
    """y[i] is x[i + 1], so the loop in order halves again what it wrote."""
    memory = np.full(count + 1, 64.0)
    return memory[:-1], memory[1:]


def test_arrays_that_overlap_run_in_order_unless_promised_apart() -> None:
    x, y = overlapping()
    tj.kernel(halve)(x, y)
    assert (y[:4] == [32, 16, 8, 4]).all()
    x, y = overlapping()
    tj.kernel(halve, no_alias="y")(x, y)
    assert (y[:2] == 32).all(), "the promise is broken, and lanes read before they write"


def test_interleaved_arrays_run_in_lanes_under_a_promise() -> None:
    """They share no element. Reports name the promise that is trusted."""
    memory = np.arange(200.0)
    kernel = tj.kernel(halve, no_alias=("x", "y"))
    kernel(memory[::2], memory[1::2])
    np.testing.assert_array_equal(memory[1::2], np.arange(0.0, 100.0))
    assert "no_alias promises that x and y share no memory" in kernel.report()
    assert "no_alias" not in tj.kernel(halve).specialize(memory, memory).report()


@pytest.mark.parametrize("no_alias", [True, "x", ("y",), ["x", "y"]])
def test_verify_names_arrays_that_share_memory(no_alias: Any) -> None:
    kernel = tj.kernel(halve, no_alias=no_alias, verify=True)
    for _ in range(50):  # native code does not answer such calls
        kernel(np.ones(200), np.ones(200))
    x, y = overlapping()
    with pytest.raises(tj.KernelValueError, match="x and y share memory, but no_alias promises"):
        kernel(x, y)
    assert (y == 64).all()
    with pytest.raises(tj.TilejitError, match="x and y share memory"):
        kernel(x, x)
    kernel(x[::2], x[1::2])


def three(x, y, z):
    for i in range(x.shape[0]):
        y[i] = x[i] + 1
        z[i] = x[i] + 2


def test_a_promise_covers_the_named_arrays_only() -> None:
    kernel = tj.kernel(three, no_alias="z", verify=True)
    x, y = overlapping()
    kernel(x, y, np.ones(200))
    assert (y[:4] == [65, 66, 67, 68]).all()
    with pytest.raises(tj.KernelValueError, match="x and z share memory"):
        kernel(x, np.ones(200), y)


@pytest.mark.parametrize("wrong", ["q", ("x", "n")])
def test_promises_are_about_arrays(wrong: Any) -> None:
    with pytest.raises(
        tj.KernelValueError, match=r"no_alias has .[qn]., which is not an array of halve\n.*x, y"
    ):
        tj.kernel(halve, no_alias=wrong)(np.ones(3), np.ones(3))


@pytest.mark.parametrize("wrong", [3, None, (1,), {"x"}])
def test_promises_are_names(wrong: Any) -> None:
    with pytest.raises(TypeError, match="no_alias: expected True, False or names of arrays"):
        tj.kernel(halve, no_alias=wrong)


def delayed(y, k):
    for i in tj.min_distance(range(y.shape[0] - k), 8):
        y[i + k] = 0.5 * y[i] + 1


def delayed_in_order(y, k):
    for i in range(y.shape[0] - k):
        y[i + k] = 0.5 * y[i] + 1


@pytest.mark.parametrize("size", ["auto", 4, 8, 9, 64])
def test_loops_run_in_as_many_lanes_as_promised(size: Any) -> None:
    """Dependence analysis knows nothing about k. With at least the promised distance, lanes are exact."""
    kernel = tj.kernel(delayed, virtual_vector_size=size)
    for k in (8, 9, 20, 64):
        y, expected = np.arange(300, dtype=np.float32), np.arange(300, dtype=np.float32)
        kernel(y, k)
        delayed(expected, k)
        np.testing.assert_array_equal(y, expected)
    lanes = 4 if size == 4 else 8
    assert f"loop i: vectorized by {lanes}:" in kernel.report()
    assert (
        "min_distance(8) rules out that y[i + k] is written and y[i] read in a later iteration"
        in kernel.report()
    )
    assert "carried-dependence" in tj.kernel(delayed_in_order).specialize(y, 8).report()


def independent(x, y):
    for i in tj.min_distance(range(x.shape[0]), 3):
        y[i] = x[i] + 1


def test_an_unneeded_promise_does_not_limit_lanes() -> None:
    kernel = tj.kernel(independent, virtual_vector_size=64).specialize(np.ones(9), np.ones(9))
    assert "vectorized by 64" in kernel.report()
    assert "rules out" not in kernel.report()


def shifted(y, p, q):
    for i in tj.min_distance(range(y.shape[0] - p), 2):
        for j in tj.min_distance(range(y.shape[1] - q), 8):
            y[i + p, j + q] = 0.5 * y[i, j]


def shifted_diagonally(y):
    for i in tj.min_distance(range(y.shape[0] - 2), 2):
        for j in tj.min_distance(range(y.shape[1] - 8), 8):
            y[i + 2, j + 8] = 0.5 * y[i, j]


def shifted_along_rows(y, q):
    for i in tj.min_distance(range(y.shape[0]), 2):
        for j in tj.min_distance(range(y.shape[1] - q), 8):
            y[i, j + q] = 0.5 * y[i, j]


@pytest.mark.parametrize(
    ("function", "given", "size", "lanes"),
    [
        (shifted, (2, 8), (4, 32), "2x8"),
        (shifted, (3, 0), (2, 32), "2x8"),
        (shifted_diagonally, (), (4, 32), "2x32"),
        (shifted_diagonally, (), (2, 32), "2x32"),
        (shifted_diagonally, (), (4, 8), "4x8"),
        (shifted_along_rows, (8,), (4, 32), "4x8"),
    ],
)
def test_nests_run_in_as_many_lanes_as_the_distances_of_their_loops_allow(
    function: Any, given: Any, size: Any, lanes: str
) -> None:
    """Loops are limited if the size would be wrong otherwise, outer ones first."""
    y, expected = (np.arange(20 * 90, dtype=np.float32).reshape(20, 90) for _ in range(2))
    kernel = tj.kernel(function, virtual_vector_size=size, verify=True)
    kernel(y, *given)
    function(expected, *given)
    np.testing.assert_array_equal(y, expected)
    assert f"loop j: vectorized by {lanes}:" in kernel.report()


def test_reports_name_the_super_vectors_that_run() -> None:
    for size, named in (
        ((4, 32), " | less than 4x32 as min_distance promises no more | strips"),
        ((2, 8), " | strips"),
    ):
        kernel = tj.kernel(shifted, virtual_vector_size=size).specialize(np.ones((20, 90)), 2, 8)
        assert "Vectorize(i=2, j=8), Tail(" in kernel.report()
        assert f'"){named}' in kernel.report()


def shifted_by_one(y):
    for i in tj.min_distance(range(y.shape[0] - 1), 2):
        for j in range(y.shape[1] - 1):
            y[i + 1, j + 1] = 0.5 * y[i, j]


def test_a_promise_that_only_lanes_of_two_loops_need_is_reported() -> None:
    """A super-vector of one column runs rows in order, but one of several columns needs the promise."""
    needed = "min_distance(2) rules out that y[i + 1, j + 1] is written and y[i, j] read"
    for size, needs in (((2, 8), True), ((2, 1), False)):
        kernel = tj.kernel(shifted_by_one, virtual_vector_size=size).specialize(np.ones((9, 9)))
        assert (needed in kernel.report()) == needs


@pytest.mark.parametrize("k", [1, 3, 7])
def test_a_broken_distance_stays_in_the_array(k: int) -> None:
    memory = Guarded(1 << 12)
    kernel = tj.kernel(delayed)
    for count in (8, 17, 100):
        for at_end in (False, True):
            y = memory.place(4 * count, at_end=at_end).view(np.float32)
            y[:] = 1
            kernel(y, k)
            assert memory.untouched()


def test_verify_names_iterations_that_depend_on_each_other() -> None:
    kernel = tj.kernel(delayed, verify=True)
    y, expected = np.ones(50), np.ones(50)
    kernel(y, 8)
    delayed(expected, 8)
    np.testing.assert_array_equal(y, expected)
    before = y.copy()
    with pytest.raises(tj.TilejitError, match=r"iterations 0 and 3 of i access y\[3\].*nearer than 8"):
        kernel(y, 3)
    np.testing.assert_array_equal(y, before)


def every_second(x, y, k):
    for j in range(2):
        for i in tj.min_distance(range(0, x.shape[0] - 2 * k, 2), 4):
            y[i + 2 * k] = y[i] + x[i] + j


def test_distances_count_iterations_of_one_run_of_a_loop() -> None:
    """Another run of a loop may touch the same elements, and the step does not matter."""
    kernel = tj.kernel(every_second, verify=True)
    x, y = np.arange(40.0), np.zeros(40)
    kernel(x, y, 4)
    with pytest.raises(tj.KernelValueError, match=r"iterations 0 and 6 of i access y\[6\]"):
        kernel(x, y, 3)


def counted(y, idx):
    for i in tj.min_distance(range(idx.shape[0]), 4):
        y[idx[i]] += 1


def test_scatters_run_in_lanes_up_to_a_distance() -> None:
    """No two of four consecutive indices are the same. Indices outside are still refused."""
    idx = np.arange(1000) * 7 % 16
    for verify in (False, True):
        kernel = tj.kernel(counted, verify=verify)
        y = np.zeros(16, np.int64)
        kernel(y, idx)
        np.testing.assert_array_equal(y, np.bincount(idx))
        assert "vectorized by 4:" in kernel.report()
        with pytest.raises(tj.KernelIndexError):
            kernel(y, np.where(idx == 3, 16, idx))
    with pytest.raises(tj.KernelValueError, match=r"iterations 0 and 2 of i access y\[0\]"):
        kernel(np.zeros(16, np.int64), np.arange(1000) % 2)


def moved(x, y, k):
    for i in tj.parallel(range(x.shape[0] - k)):
        for j in range(x.shape[1]):
            y[i + k, j] = x[i, j] + y[i + k, j]


def moved_plainly(x, y, k):
    for i in range(x.shape[0] - k):
        for j in range(x.shape[1]):
            y[i + k, j] = x[i, j] + y[i + k, j]


@pytest.mark.full
@pytest.mark.parametrize(("function", "options"), [(moved, {}), (moved_plainly, {"parallel": 2})])
def test_verify_names_parallel_iterations_that_depend_on_each_other(function: Any, options: Any) -> None:
    """An element that an iteration reads and writes is its own. x and y may be one array."""
    kernel = tj.kernel(function, verify=True, **options)
    x, y, wanted = np.ones((20, 3)), np.ones((20, 3)), np.ones((20, 3))
    kernel(x, y, 4)
    function(x, wanted, 4)
    np.testing.assert_array_equal(y, wanted)
    before = y.copy()
    with pytest.raises(tj.KernelValueError, match=r"iterations 0 and 4 of i access x\[4, 0\], but parallel"):
        kernel(y, y, 4)
    np.testing.assert_array_equal(y, before)
    kernel(y, y, 20)
    tj.kernel(function, **options)(y, y, 4)  # not verified: one of the possible results


def read_behind(y, k):
    for i in tj.vectorizable(range(k, y.shape[0])):
        y[i] = 0.5 * y[i - k]


@pytest.mark.parametrize("size", [8, 64])
def test_vectorizable_loops_run_in_lanes_of_any_size_on_one_thread(size: int) -> None:
    kernel = tj.kernel(read_behind, virtual_vector_size=size, verify=True)
    y, expected = np.arange(200, dtype=np.float32), np.arange(200, dtype=np.float32)
    kernel(y, 100)
    read_behind(expected, 100)
    np.testing.assert_array_equal(y, expected)
    assert f"loop i: vectorized by {size}:" in kernel.report()
    assert "vectorizable rules out that y[i] is written and y[i - k] read" in kernel.report()
    assert "one thread" in kernel.report()
    with pytest.raises(
        tj.KernelValueError, match=r"iterations 3 and 6 of i .* but vectorizable .*\n  remove it"
    ):
        kernel(np.arange(200, dtype=np.float32), 3)


def test_vectorizable_loops_carry_no_values() -> None:
    def last(x, y):
        s = 0.0
        for i in tj.vectorizable(range(x.shape[0])):
            y[i] = s
            s = x[i]

    with pytest.raises(tj.KernelError, match=r"s is carried .* so the loop is not vectorizable"):
        tj.kernel(last)(np.ones(3), np.ones(3))


def summed_up(x, y):
    for i in tj.parallel(range(x.shape[0])):
        y[0] += x[i]


def test_parallel_sums_in_memory_break_the_promise() -> None:
    with pytest.raises(tj.KernelValueError, match=r"iterations 0 and 1 of i access y\[0\].*\n.*remove it"):
        tj.kernel(summed_up, verify=True)(np.ones(5), np.zeros(1))


def test_expressions_promise_nothing() -> None:
    """Their loops are derived, and verify mode does not interpret them."""
    run = tj.elementwise(lambda x: x + 1)
    run(np.ones(100))
    assert not run.program.verifies


def undistanced(y, k):
    for i in tj.min_distance(range(y.shape[0]), k):
        y[i] = 1


@pytest.mark.parametrize("distance", [0, -3, True, 2.5, 1 << 40])
def test_distances_must_be_literals_of_at_least_one(distance: Any) -> None:
    def looped(y):
        for i in tj.min_distance(range(y.shape[0]), distance):
            y[i] = 1

    for function, given in ((looped, (np.ones(3),)), (undistanced, (np.ones(3), 2))):
        with pytest.raises(tj.KernelError, match="expected a distance of at least 1 iteration"):
            tj.kernel(function)(*given)


VERIFIED = """
import numpy as np, tilejit as tj
from tests.kernels.test_promises import delayed, halve, overlapping
for function, given, options in ((halve, overlapping(), {"no_alias": True}), (delayed, (np.ones(50), 3), {})):
    try:
        tj.kernel(function, **options)(*given)
    except tj.TilejitError as error:
        print(type(error).__name__)
"""


@pytest.mark.full
@pytest.mark.parametrize(("verify", "printed"), [("1", "KernelValueError\n" * 2), ("0", "")])
def test_an_environment_variable_verifies_all_promises(verify: str, printed: str) -> None:
    done = run_python(VERIFIED, TILEJIT_VERIFY=verify)
    assert (done.stdout, done.returncode) == (printed, 0), done.stderr
