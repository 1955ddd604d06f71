"""Schedules of kernels as text: every one that is accepted leaves the bytes of the function."""

from __future__ import annotations

import re
import warnings
from functools import lru_cache
from typing import Any

import hypothesis.strategies as st
import numpy as np
import pytest
from hypothesis import given, settings

import tilejit as tj
from tests.kernels.test_virtual_vector_sizes import eight_loops
from tests.tools.extent import examples
from tests.tools.guard import Guarded
from tests.tools.loop_schedules import random_schedule

A = np.random.default_rng(0).random((70, 45)).astype(np.float32)


def transposed(a, c):
    for i in range(a.shape[0]):
        for j in range(a.shape[1]):
            c[j, i] = a[i, j] * 2


def total(a, c):
    for k in range(a.shape[0]):
        c[0] += a[k]


def called(schedule: str) -> Any:
    kernel, c = tj.kernel(transposed, schedule=schedule, verify=True), np.zeros((45, 70), np.float32)
    kernel(A, c)
    np.testing.assert_array_equal(c, A.T * 2)
    return kernel


@pytest.mark.parametrize("lanes", ["i=8", "j=64", "i=16, j=16", "i=64, j=32", "i=3, j=5", "i=1, j=16"])
def test_the_named_loops_run_as_lanes(lanes: str) -> None:
    assert called(f"Vectorize({lanes})").schedule.startswith(f"schedule  Vectorize({lanes}), Tail(")


@pytest.mark.parametrize("tail", ["mask", "scalar", "shift"])
def test_tails(tail: str) -> None:
    text = f'Vectorize(i=16, j=16), Tail("j", "{tail}")'
    assert text in called(text).schedule


def two_nests(a, b, c):
    for i in range(a.shape[0]):
        b[i] = a[i] * 2
    for k in range(a.shape[0]):
        c[k] = c[k] + 1


def twice(a, c):
    for i in range(a.shape[0]):
        for j in range(a.shape[1]):
            c[i, j] = a[i, j] * 2


@pytest.mark.parametrize("specialize", ["structure", "sizes"])
@pytest.mark.parametrize("tail", ["shift", "clamp", "mask", "scalar", "assume_divisible"])
@pytest.mark.parametrize("columns", [16, 32, 48, 80, 96, 160])
def test_super_vectors_fill_a_loop_whose_tiles_do_not(columns: int, tail: str, specialize: Any) -> None:
    a = np.arange(8.0 * columns).reshape(8, columns)
    for at_end in (False, True):
        room = Guarded(a.nbytes)
        c = room.place(a.nbytes, at_end=at_end).view(a.dtype).reshape(a.shape)
        schedule = f'Tile("j", 32), Vectorize(j=16), Tail("j", "{tail}")'
        tj.kernel(twice, schedule=schedule, specialize=specialize)(a, c)
        np.testing.assert_array_equal(c, a * 2)
        assert room.untouched()


def test_each_nest_has_a_tail_of_its_own() -> None:
    """Iterations that read what they store may not run twice, so they are masked or scalar."""
    kernel, (a, b, c) = tj.kernel(two_nests, tail="shift"), np.zeros((3, 100), np.float32)
    kernel(a, b, c)
    assert 'Tail("i", "shift")' in kernel.schedule
    assert re.search(r'Tail\("k", "(mask|scalar)"\)', kernel.schedule)


def summed(a, c):
    s = np.float32(0)
    for i in range(a.shape[0]):
        for j in range(a.shape[1]):
            s += a[i, j]
        c[0, i] = s


def scanned(a, c):
    for i in range(a.shape[0]):
        s = a[i, 0]
        for j in range(a.shape[1]):
            s += a[i, j]
            c[j, i] = s


def uneven(a, c):
    for i in range(a.shape[0]):
        c[0, i] = a[i, 0] + 1
        for j in range(1, a.shape[1]):
            c[j, i] = a[i, j] * 3
    for i in range(a.shape[1]):
        c[i, 0] = c[i, 0] + 1


def triangular(a, c):
    for i in range(a.shape[1]):
        for j in range(i):
            c[j, i] = a[i, j] + a[j, i]


def straight(a, c):
    for j in range(a.shape[1] - 1, -1, -1):
        for i in range(0, a.shape[0], 2):
            c[j, i] = a[i, j] - a[i, 0]


def stencil(a, c):
    for j in range(1, c.shape[0]):
        for i in range(c.shape[1] - 1):
            c[j, i] = c[j - 1, i + 1] * 2 - a[i, j]


def siblings(a, c):
    for i in range(a.shape[0]):
        for j in range(a.shape[1]):
            c[j, i] = a[i, j]
        for k in range(a.shape[1]):
            c[k, i] = c[k, i] * 2


FUNCTIONS = (siblings, transposed, summed, scanned, uneven, triangular, straight, stencil)
OPTIONS: tuple[dict[str, Any], ...] = (
    *({}, {"virtual_vector_size": 100}, {"virtual_vector_size": (32, 64)}, {"tail": "shift"}),
    *({"virtual_vector_size": (4, 100), "tail": "scalar"}, {"virtual_vector_size": "2*hw"}),
    *({"vectorize_at": "after_tile"}, {"vectorize_at": "after_tile", "virtual_vector_size": (4, 64)}),
)


@pytest.mark.parametrize("options", OPTIONS, ids=str)
@pytest.mark.parametrize("function", FUNCTIONS, ids=lambda f: f.__name__)
def test_a_printed_schedule_is_read_again(function: Any, options: dict[str, Any]) -> None:
    """What is printed for options stands for the same source as text."""
    more = {"vectorize_reductions": True, "vectorize_scans": True}
    c = np.zeros((45, 70), np.float32)
    first = tj.kernel(function, **options, **more).specialize(A, c)
    text = first.directives
    if not text:
        assert function not in (transposed, uneven, siblings)
        return
    again = tj.kernel(function, schedule=text, **more).specialize(A, c)
    assert again.source == first.source
    assert again.schedule.startswith(f"schedule  {text} | ")
    assert text.replace("\n", " ") in " ".join(first.source.split())


def test_options_are_directives() -> None:
    """The options of the super-vectorizer stand for tiles and lanes."""
    for options, text in (
        ({"virtual_vector_size": (32, 256)}, 'Tile("i", 32, level="strip"), Tile("j", 256, level="strip"), '),
        ({"virtual_vector_size": 8, "vectorize_at": "after_tile"}, 'Tile("i", 32), Tile("j", 32), '),
    ):
        kernel = tj.kernel(transposed, **options).specialize(A, A.T.copy())
        assert kernel.schedule.startswith(f"schedule  {text}Vectorize(")


@lru_cache(8)
def rooms() -> tuple[Guarded, Guarded]:
    return Guarded(1 << 16), Guarded(1 << 16)


@settings(max_examples=examples(40, full=200), deadline=None)
@given(st.sampled_from(FUNCTIONS), st.sampled_from((None, 2, 3)), st.data())
def test_accepted_schedules_leave_the_bytes_of_the_function(
    function: Any, threads: int | None, data: st.DataObject
) -> None:
    """Integers are exact in any order. Guard pages catch accesses outside."""
    nests = [["i", "j"], ["j", "i"], ["i"], ["j"], ["i_1"]]
    text = random_schedule(nests, lambda count: data.draw(st.integers(0, count - 1)))
    parallel = threads if function is transposed else None
    kernel = tj.kernel(
        function, schedule=text, parallel=parallel, vectorize_reductions=True, vectorize_scans=True
    )
    rows, columns = data.draw(st.sampled_from([(45, 39), (70, 41), (33, 8), (41, 41)]))
    shape = max(rows, columns), min(rows, columns)
    placed = [room.place(4 * rows * columns, at_end=data.draw(st.booleans())).view("i4") for room in rooms()]
    a, c = placed[0].reshape(shape), placed[1].reshape(shape[::-1])
    a[...], c[...] = (np.arange(rows * columns, dtype=np.int32).reshape(x.shape) % 97 for x in (a, c))
    b, d = a.copy(), c.copy()
    try:
        kernel(a, c)
    except tj.ScheduleError:
        assert np.array_equal(c, d)
        return
    with np.errstate(all="ignore"), warnings.catch_warnings(action="ignore"):
        function(b, d)
    assert np.array_equal(c, d), text
    assert all(room.untouched() for room in rooms())


def test_stream_stores_past_the_cache() -> None:
    kernel = called('Reorder("j", "i"), Vectorize(i=32), Stream("full")')
    assert "stream_" in kernel.source
    assert "stream_fence()" in kernel.source
    assert "stream_" not in called('Reorder("j", "i"), Vectorize(i=32)').source


@pytest.mark.parametrize("order", ['"i", "j"', '"j", "i"'])
def test_threads_share_only_the_loop_that_is_promised(order: str) -> None:
    kernel, c = tj.kernel(transposed, schedule=f"Reorder({order})", parallel=2), np.zeros((45, 70), "f4")
    kernel(A, c)
    assert kernel.directives.endswith(', Parallel("i")') == order.startswith('"i"')
    assert ("one thread" in kernel.schedule) == order.startswith('"j"')
    np.testing.assert_array_equal(c, A.T * 2)


@pytest.mark.parametrize("schedule", ['Parallel("i")', 'Tile("i", 8), Vectorize(j=8), Parallel("i_tile")'])
def test_a_schedule_names_the_loop_that_threads_share(schedule: str) -> None:
    """It does not replace the promise that iterations are independent."""
    for parallel in (2, True):
        kernel, c = tj.kernel(transposed, schedule=schedule, parallel=parallel), np.zeros((45, 70), "f4")
        kernel(A, c)
        np.testing.assert_array_equal(c, A.T * 2)
        assert kernel.directives.endswith(schedule.split(", ")[-1])
        again = tj.kernel(transposed, schedule=kernel.directives, parallel=parallel)
        again(A, c)
        assert again.directives == kernel.directives
    for refused in (None, False):
        with pytest.raises(tj.ScheduleError, match=r"a loop that is declared parallel.*\n.*\n.*\n.*=True"):
            tj.kernel(transposed, schedule=schedule, parallel=refused)(A, c)


def doubled(a, c):
    for i in range(a.shape[0] - 1):
        c[i] = a[i + 1] * 2


def test_arrays_that_are_the_same_run_in_the_order_of_the_loops() -> None:
    """The schedule is legal for separate arrays."""
    kernel, wanted = tj.kernel(doubled, schedule="Vectorize(i=16)"), np.arange(100.0)
    a = wanted.copy()
    doubled(wanted, wanted)
    kernel(a, a)
    np.testing.assert_array_equal(a, wanted)
    kernel = tj.kernel(shifted, schedule="Vectorize(i=16)")
    a, wanted = np.arange(100.0), np.arange(100.0)
    kernel(np.zeros(100), a)
    a[...] = wanted
    shifted(wanted, wanted)
    kernel(a, a)
    np.testing.assert_array_equal(a, wanted)


def shifted(a, c):
    for i in range(1, a.shape[0]):
        c[i] = a[i - 1] * 2


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("", "expected directives, got none"),
        ("Vectorize(i=16", "expected directives, separated by commas"),
        ("i", "expected the call of a directive"),
        ("Vectorise(i=16)", "got Vectorise"),
        ("Vectorize(16)", "expected lanes for each loop"),
        ("Vectorize(i=0)", "a number of lanes for i, got 0"),
        ("Vectorize(i=8**2)", "expected a number, text, True, False or a tuple"),
        ("Vectorize(i=16), Tail(i)", "expected a number, text, True, False or a tuple"),
        ('Vectorize(i=16), Tail("i")', "Tail needs how"),
        ('Vectorize(i=16), Tail("i", "mask", 1, 2)', "Tail takes axis, how, sizes"),
        ('Vectorize(i=16), Tail("i", "narrow")', "expected a tail of shift, clamp, mask"),
        ('Tile("i", 4, count=3)', "Tile takes axis, size, level"),
        ('Tile("i", 0)', "expected tiles of 1 to"),
        ('Tile("i", 4, "panel")', "expected 'tile' or 'strip' for level of Tile"),
        ('Tile("i", 4), Tile("i", 8)', "one directive of a kind for each loop"),
        ("Reorder()", "Reorder needs loops"),
        ('Reorder("i", "i")', "one directive of a kind for each loop"),
        ("Vectorize(i=8), Vectorize(i=16)", "expected the same lanes of a loop everywhere"),
        ("Vectorize(i=2048, j=1024)", "expected at most 8 loops and 1048576 lanes"),
        ('Vectorize(i=8), Stream("headed")', r'expected Stream\("full"\) for a kernel'),
        ("Vectorize(i=8), Diagonal()", "for a kernel, got Diagonal"),
        ("x" * 2000, "2000 characters"),
    ],
)
def test_texts_that_are_no_schedule(text: str, problem: str) -> None:
    with pytest.raises(tj.ScheduleError, match=problem):
        tj.kernel(transposed, schedule=text)


def test_a_mistake_has_a_caret() -> None:
    with pytest.raises(tj.ScheduleError) as error:
        tj.kernel(transposed, schedule="Vectorize(i=16), Tale(1)")
    _, line, caret, _ = str(error.value).splitlines()
    assert line[caret.index("^") :] == "Tale(1)"


def by_rows(a, c):
    for i in range(a.shape[0]):
        for j in range(a.shape[1]):
            c[0, i] += a[i, j]


REFUSED = [
    (transposed, "Vectorize(k=8)", "expected a loop over i, j, got k"),
    (transposed, "Vectorize(j=8, i=8)", r"expected outer loops before .* got Vectorize\(j=8, i=8\)"),
    (transposed, 'Vectorize(i=16), Tail("j", "mask")', 'expected a tail of i, got Tail\\("j"'),
    (transposed, 'Tile("j", 30), Vectorize(j=8)', "expected a multiple of 8 lanes"),
    (transposed, 'Tile("j", 30), Tile("j", 8, "strip")', "expected a multiple of the 8 of"),
    (transposed, 'Tile("j", 32), Reorder("i", "j")', "perfectly nested loops j_tile, i, j, got"),
    (transposed, 'Tile("j", 32), Reorder("i", "j", "j_tile")', "expected j_tile, j in this order"),
    (transposed, 'Vectorize(i=8), Parallel("j")', 'expected Parallel\\("i"\\), got'),
    (transposed, 'Tile("i", 8), Parallel("i")', 'expected Parallel\\("i_tile"\\), got'),
    (transposed, 'Tile("j", 8), Reorder("j_tile", "i", "j"), Parallel("i")', "threads cannot share these"),
    (triangular, 'Reorder("j", "i"), Parallel("j")', "order of the perfectly nested loops i, got"),
    (triangular, 'Tile("i", 4), Reorder("j", "i_tile", "i"), Parallel("i")', "nested loops i_tile, i, got"),
    (transposed, 'Vectorize(j=32), Stream("full")', "expected full rows that are only written"),
    (transposed, 'Reorder("j", "i"), Vectorize(i=32), Tail("i", "scalar"), Stream("full")', "no scalar tail"),
    (total, "Vectorize(k=8)", "reduction-not-asked"),
    (scanned, 'Reorder("j", "i")', "expected an order of the perfectly nested loops i, got"),
    (triangular, 'Reorder("j", "i")', "expected an order of the perfectly nested loops i, got"),
    (triangular, "Vectorize(i=8)", "bound-uses-index: the bound i of loop j uses i"),
    (uneven, 'Reorder("i", "j")', "perfectly nested loops i, got"),
    (summed, 'Tile("j", 8), Tile("j", 4, "strip"), Vectorize(j=4)', "carries a value, so it has one level"),
    (by_rows, 'Tile("i", 8), Tile("j", 8), Vectorize(j=8)', "a reduction in lanes, or a bound that is read"),
    (stencil, 'Reorder("i", "j")', r"order i, j would .*: c\[j, i\] is written and c\[j - 1, i \+ 1\] read"),
    (stencil, 'Tile("i", 8), Tile("j", 8)', "order j_tile, i_tile, j, i would change the result"),
    (stencil, "Vectorize(j=8)", "j cannot run as lanes, carried-dependence"),
    (stencil, 'Vectorize(i=8), Tail("i", "shift")', "iterations of i may not run twice"),
]


@pytest.mark.parametrize(("function", "schedule", "problem"), REFUSED)
def test_schedules_that_a_kernel_cannot_have(function: Any, schedule: str, problem: str) -> None:
    """The first call raises instead of running another schedule; a caret is under the directive."""
    a, c = (A[0], np.zeros(1, np.float32)) if function is total else (A, np.zeros((45, 70), np.float32))
    kernel = tj.kernel(function, schedule=schedule, vectorize_reductions=function is not total)
    with pytest.raises(tj.ScheduleError, match=problem) as error:
        kernel(a, c)
    assert not c.any()
    _, line, caret, *_ = str(error.value).splitlines()
    assert line[caret.index("^") :].startswith(("Tile", "Reorder", "Vectorize", "Tail", "Stream", "Parallel"))


@pytest.mark.parametrize(
    "tiles", ['Tile("i", 8), Reorder("j", "i_tile", "i")', 'Tile("j", 8)', 'Tile("i", 4)']
)
def test_tiles_that_keep_the_order_of_iterations_are_legal(tiles: str) -> None:
    (a, c), (b, d) = ((A.copy(), np.ones((45, 70), np.float32)) for _ in "ab")
    kernel = tj.kernel(stencil, schedule=tiles)
    kernel(a, c)
    stencil(b, d)
    assert c.tobytes() == d.tobytes()
    assert "_tile in range(" in kernel.source


def test_as_many_loops_as_python_has() -> None:
    levels = ", ".join(f'Tile("{x}", 8), Tile("{x}", 4, "strip")' for x in "ijkmnop")
    with pytest.raises(tj.ScheduleError, match="room for 18 loops"):
        tj.kernel(eight_loops, schedule=levels)(*(np.zeros((2,) * 8) for _ in range(3)))


def test_options_that_a_schedule_replaces() -> None:
    with pytest.raises(tj.KernelValueError, match="virtual_vector_size is part of the schedule"):
        tj.kernel(transposed, schedule="Vectorize(i=8)", virtual_vector_size=8)
    with pytest.raises(TypeError, match="schedule: expected a str"):
        tj.kernel(transposed, schedule=8)  # type: ignore[call-overload]


def like_tiles(a, c):
    for j_tile in range(a.shape[0]):
        for j in range(a.shape[1]):
            c[j_tile, j] = a[j_tile, j] * 2 + 1


def like_tiles_transposed(a, c):
    for i_strip in range(a.shape[0]):
        for i in range(a.shape[1]):
            c[i, i_strip] = a[i_strip, i] * 2 + 1


def repeated_like_tiles(a, c):
    for i_tile in range(3):
        for i in range(a.shape[1]):
            c[0, i] += a[0, i] + i_tile


@pytest.mark.parametrize("python", [like_tiles, like_tiles_transposed, repeated_like_tiles])
@pytest.mark.parametrize(
    "options",
    [
        {},
        {"virtual_vector_size": (32, 256)},
        {"vectorize_at": "after_tile"},
        {"vectorize_at": "after_tile", "virtual_vector_size": (2, 64)},
    ],
    ids=str,
)
def test_loops_that_have_the_names_of_tiles(python: Any, options: dict[str, Any]) -> None:
    a, transposes = np.resize(np.arange(97, dtype=np.int32), (70, 45)), python is like_tiles_transposed
    c = np.ones((45, 70) if transposes else (70, 45), np.int32)
    expected = c.copy()
    kernel = tj.kernel(python, **options)
    kernel(a, c)
    python(a, expected)
    np.testing.assert_array_equal(c, expected)
    if kernel.directives:
        again = np.ones_like(c)
        tj.kernel(python, schedule=kernel.directives)(a, again)
        np.testing.assert_array_equal(again, expected)
