"""Plans: valid and invalid arguments, overlap, threads, and that they keep no array alive."""

from __future__ import annotations

import copy
import gc
import pickle
import weakref
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from subprocess import run
from sys import executable
from typing import Any

import ml_dtypes
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.lib.stride_tricks import as_strided

import tilejit as tj
from tests.tools.oracle import environment, run_python
from tests.tools.strategies import Pick, extents
from tilejit.arrays import memory
from tilejit.arrays.memory import address, empty
from tilejit.arrays.strided import OVERLAP_WORK, broadcast_strides, overlaps_itself, span

Array = np.ndarray[Any, Any]


def pair(rows: int = 70, columns: int = 90, dtype: Any = np.float32) -> tuple[Array, Array]:
    """A destination, and a source that is a transpose."""
    src = np.random.default_rng(0).integers(0, 100, (columns, rows)).astype(dtype).T
    return np.zeros((rows, columns), dtype), src


@pytest.mark.parametrize("threads", [None, 1, 2])
@pytest.mark.parametrize("dtype", ["u1", "f4", "c16", "V3", ">i4"])
def test_a_plan_copies(dtype: str, threads: int | None) -> None:
    dst, src = pair()
    dst, src = (
        a.astype("u1").view("V1").astype("V3") if dtype == "V3" else a.astype(dtype) for a in (dst, src)
    )
    plan = tj.plan_copy(dst, src, threads=threads)
    plan(dst, src)
    assert dst.tobytes() == src.tobytes()
    again, other = np.zeros_like(dst), src[::1].copy(order="K")
    plan(again, other)
    assert again.tobytes() == other.tobytes()


@pytest.mark.full
@pytest.mark.parametrize(
    ("target", "source"),
    [
        ("f4", "f8"),
        ("f8", "f4"),
        ("i8", "i2"),
        ("f4", "i4"),
        (">f8", "<f8"),
        ("O", "f4"),
        (ml_dtypes.bfloat16, "f4"),
    ],
)
@pytest.mark.parametrize("threads", [1, 2])
def test_a_plan_converts(target: Any, source: Any, threads: int) -> None:
    _, src = pair(dtype=source)
    dst, wanted = np.zeros(src.shape, target), np.zeros(src.shape, target)
    np.copyto(wanted, src)
    tj.plan_copy(dst, src, threads=threads)(dst, src)
    assert dst.tolist() == wanted.tolist()


def test_a_plan_broadcasts() -> None:
    dst, row = np.zeros((30, 40, 50), np.uint16), np.arange(50, dtype=np.uint16)
    tj.plan_copy(dst, row)(dst, row)
    assert (dst == row).all()


def test_plans_warn_as_numpy_does() -> None:
    dst, src = np.zeros((70, 90), np.float32), np.full((70, 90), 1e300)
    plan = tj.plan_copy(dst, src)
    with pytest.warns(RuntimeWarning, match="overflow encountered in cast"):
        plan(dst, src)
    with np.errstate(over="raise"), pytest.raises(FloatingPointError):
        plan(dst, src)
    plan(dst, np.ones_like(src))
    assert (dst == 1).all()


WRONG = {
    "shape of dst": (lambda d, s: (d[:-1], s), r"dst has shape \(69, 90\), not \(70, 90\)"),
    "shape of src": (lambda d, s: (d, s[:-1]), r"src has shape \(69, 90\), not \(70, 90\)"),
    "dtype of dst": (lambda d, s: (d.view(np.int32), s), "dst is int32, not float32"),
    "dtype of src": (lambda d, s: (d, s.view(np.int32)), "src is int32, not float32"),
    "byte order": (lambda d, s: (d, s.view(">f4")), "src is >f4, not float32"),
    "strides of dst": (lambda d, s: (np.asfortranarray(d), s), r"dst has strides \(4, 280\), not \(360, 4\)"),
    "strides of src": (lambda d, s: (d, s.copy()), r"src has strides \(360, 4\), not \(4, 280\)"),
}


@pytest.mark.parametrize("name", WRONG)
def test_wrong_arrays_are_refused(name: str) -> None:
    change, text = WRONG[name]
    dst, src = pair()
    plan = tj.plan_copy(dst, src)
    changed = change(dst, src)
    with pytest.raises(ValueError, match=text):
        plan(*changed)
    assert not dst.any()


def test_other_objects_are_refused() -> None:
    class Pretender:
        shape, strides, dtype = (70, 90), (360, 4), np.dtype(np.float32)

    dst, src = pair()
    plan = tj.plan_copy(dst, src)
    for arguments in ((dst, src.tolist()), (Pretender(), src), (dst, Pretender()), (None, src)):
        with pytest.raises(TypeError, match="expected a NumPy array, got"):
            plan(*arguments)
        with pytest.raises(TypeError, match="expected a NumPy array, got"):
            tj.plan_copy(*arguments)


def test_read_only_destinations_are_refused() -> None:
    dst, src = pair()
    plan = tj.plan_copy(dst, src)
    dst.flags.writeable = False
    for call in (plan, tj.plan_copy):
        with pytest.raises(ValueError, match="read-only"):
            call(dst, src)
    src.flags.writeable = False
    plan(np.zeros_like(dst), src)


def test_impossible_plans_are_refused() -> None:
    with pytest.raises(
        ValueError, match=r"src of shape \(5, 4\) cannot be broadcast to dst of shape \(4, 5\)"
    ):
        tj.plan_copy(np.zeros((4, 5)), np.zeros((5, 4)))
    with pytest.raises(
        TypeError, match="float64 cannot be converted to int64 according to the rule 'same_kind'"
    ):
        tj.plan_copy(np.zeros(5, np.int64), np.zeros(5))


def test_strides_that_do_not_matter_are_ignored() -> None:
    """Dimensions of one, and arrays without elements, have strides that are never used."""
    dst, src = np.zeros((1, 90)), np.arange(90.0).reshape(1, 90)
    plan = tj.plan_copy(dst, src)
    odd = np.lib.stride_tricks.as_strided(np.ones(90), (1, 90), (12345, 8))
    plan(dst, odd)
    assert (dst == 1).all()
    nothing = np.zeros((0, 5))
    tj.plan_copy(nothing, nothing.T.copy().T)(nothing, nothing)


def test_an_equal_dtype_is_accepted() -> None:
    fields = [("a", "u2"), ("b", "u2")]
    dst, src = np.zeros((70, 90), fields), np.ones((90, 70), fields).T
    plan = tj.plan_copy(dst, src)
    other = np.zeros((70, 90), list(fields))
    plan(other, src)
    assert (other == src).all()


@pytest.mark.parametrize("threads", [1, 2])
@pytest.mark.parametrize("rows", [9, 90])
def test_overlap_is_exact(rows: int, threads: int) -> None:
    base = np.random.default_rng(0).integers(0, 1 << 30, (2 * rows, 2 * rows))
    dst, src = base[:rows, :rows], base[:rows, :rows].T
    plan = tj.plan_copy(dst, base[rows:, rows:].T, threads=threads)
    for place in (
        src,
        base[: 2 * rows, 1:][:rows, :rows].T,
        base[1:, :][:rows, :rows].T,
        base[rows:, rows:].T,
    ):
        wanted = place.copy()
        plan(dst, place)
        assert (dst == wanted).all()


@pytest.mark.parametrize("threads", [1, 2])
def test_overlap_that_is_hard_to_find_is_assumed(threads: int) -> None:
    """The search for a shared byte gives up, so the source is copied first. The arrays do overlap here."""
    base = np.random.default_rng(0).integers(0, 256, 83_253, np.uint8)
    dst = as_strided(base, (24, 24, 24), (728, 29, 1))
    src = as_strided(base[37:], (24, 24, 24), (650, 862, 2099))
    with pytest.raises(np.exceptions.TooHardError):
        np.shares_memory(dst, src, OVERLAP_WORK)
    wanted = src.copy()
    tj.plan_copy(dst, src, threads=threads)(dst, src)
    assert np.array_equal(dst, wanted)


@pytest.mark.parametrize("kind", ["objects", "shared elements", "subclass"])
def test_plans_that_numpy_runs(kind: str) -> None:
    dst, src = pair(5, 6)
    if kind == "objects":
        dst = dst.astype(object)
    elif kind == "subclass":
        dst = np.ma.array(dst, mask=True)
    else:
        dst = np.lib.stride_tricks.as_strided(np.zeros(40, np.float32), (5, 6), (4, 4))
    plan = tj.plan_copy(dst, src)
    wanted = dst.copy()
    np.copyto(wanted, src)
    plan(dst, src)
    if kind != "shared elements":
        assert np.asarray(dst).tolist() == np.asarray(wanted).tolist()
        assert isinstance(dst, type(wanted))
    if kind != "subclass":
        assert plan.kernels == ()
        assert "numpy.copyto" in plan.report()


def test_report_and_kernels() -> None:
    dst, src = pair()
    plan = tj.plan_copy(dst, src)
    assert [k.name for k in plan.kernels] == [k.name for k in dict.fromkeys(plan.kernels)] != []
    text = plan.report()
    for part in ("float32[70, 90]", "(360, 4)", "(4, 280)", "schedule", plan.kernels[0].name):
        assert part in text
    assert repr(plan).startswith("<CopyPlan float32[70, 90]")


def test_four_threads_on_one_plan() -> None:
    dst, src = pair(200, 300)
    plan = tj.plan_copy(dst, src, threads=1)

    def work(k: int) -> bool:
        own, out = (src + k).T.copy().T, np.zeros_like(dst)
        for _ in range(50):
            out.fill(0)
            plan(out, own)
            if out.tobytes() != own.tobytes():
                return False
        return True

    with ThreadPoolExecutor(4) as pool:
        assert all(pool.map(work, range(8)))


def test_a_plan_keeps_no_array_alive() -> None:
    dst, src = pair()
    plan = tj.plan_copy(dst, src)
    plan(dst, src)
    gone = [weakref.ref(dst), weakref.ref(src)]
    del dst, src
    gc.collect()
    assert [r() for r in gone] == [None, None]
    junk = [np.ones((70, 90), np.float32) for _ in range(20)]
    dst, src = pair()
    plan(dst, src)
    assert (dst == src).all()
    assert all((j == 1).all() for j in junk)


COPY_LOADED = """
import pickle, sys
import ml_dtypes
import numpy as np
with open(sys.argv[1], "rb") as file:
    for plan, src, target in pickle.load(file):
        dst = np.zeros(src.shape, target)
        plan(dst, src)
        assert dst.tolist() == src.astype(target).tolist(), plan
"""


@pytest.mark.full
def test_plans_work_in_another_process(tmp_path: Path) -> None:
    """Kernels, with a table or without, and NumPy's copies. Addresses of this process are not pickled."""
    plans = []
    for target, source, keywords in (
        ("f4", "f4", {"threads": 1}),
        ("f4", "f4", {"threads": 2, "specialize": "sizes"}),
        (">f8", "f4", {}),
        (ml_dtypes.bfloat16, "f4", {}),
        ("O", "f4", {}),
    ):
        dst, src = pair(dtype=source)
        dst = dst.astype(target)
        plan = tj.plan_copy(dst, src, **keywords)
        plan(dst, src)
        plans.append((plan, src, dst.dtype))
    path = tmp_path / "plans"
    path.write_bytes(pickle.dumps(plans))
    done = run_python(COPY_LOADED, str(path), TILEJIT_THREADS="3")
    assert done.returncode == 0, done.stderr


def test_copies_of_a_plan_are_the_plan() -> None:
    dst, src = pair()
    plan = tj.plan_copy(dst, src)
    assert copy.copy(plan) is copy.deepcopy(plan) is plan


PUBLIC = ["asm", "directives", "kernels", "llvm", "nest", "reason", "report", "schedule", "source", "steps"]


def test_a_plan_cannot_run_without_checks() -> None:
    plan = tj.plan_copy(*pair())
    assert [name for name in dir(plan) if not name.startswith("_")] == PUBLIC
    with pytest.raises(tj.LayoutError, match="dst has shape"):
        plan(np.zeros(3), np.zeros(3))


def test_plans_need_no_numba() -> None:
    """A kernel in the store runs without the compiler."""
    code = (
        "import sys, numpy as np, tilejit as tj\n"
        "d, s = np.zeros((70, 90), np.float32), np.ones((90, 70), np.float32).T\n"
        "tj.plan_copy(d, s)(d, s)\n"
        "assert (d == 1).all()\n"
        "print('numba' in sys.modules)\n"
    )
    outputs = [
        run([executable, "-c", code], env=environment(), capture_output=True, text=True, check=True).stdout
        for _ in range(2)
    ]
    assert outputs[1].strip() == "False"


def test_addresses() -> None:
    base = np.zeros((5, 6, 7), ">i2")
    for a in (base, base[::-1, 2:], base[3:3], np.zeros(()), base.view(np.recarray), base[..., 3].T):
        assert address(a) == a.__array_interface__["data"][0]


@pytest.mark.full
@pytest.mark.parametrize(
    "size", [0, 1, 63, 4096, memory.HUGE_BYTES - 1, memory.HUGE_BYTES, memory.HUGE_BYTES + 5]
)
def test_fresh_arrays_start_on_a_line(size: int) -> None:
    a = empty((size,), np.uint8)
    assert a.shape == (size,)
    assert a.flags.writeable
    assert a.flags.c_contiguous
    assert address(a) % memory.LINE_BYTES == 0
    view = a[1:]
    del a
    gc.collect()
    view[...] = 7
    assert (view == 7).all()


@pytest.mark.full
def test_fresh_arrays_of_any_dtype() -> None:
    for dtype in ("f4", ">c16", "V3", ml_dtypes.int4, "i4,f8", "O", "V0"):
        for shape in ((), (3, 4), (0, 5), (300, 200, 100)):
            a = empty(shape, dtype)
            assert (a.shape, a.dtype) == (shape, np.empty(0, dtype).dtype)
            assert a.strides == np.empty(shape, a.dtype).strides or 0 in shape
            assert a.dtype.hasobject or a.dtype.itemsize == 0 or address(a) % 64 == 0


@pytest.mark.parametrize("shape", [(1 << 46,), (1 << 62,), (1 << 70,), (1 << 40, 1 << 40)])
def test_arrays_too_large_for_memory_are_refused(shape: tuple[int, ...]) -> None:
    with pytest.raises(tj.TilejitError, match="no memory for an array of") as refused:
        empty(shape, np.float64)
    assert isinstance(refused.value, MemoryError)


@given(st.data())
def test_spans_and_sharing(data: Any) -> None:
    """The numbers alone, against NumPy's bounds and an array of counters."""
    pick: Pick = lambda low, high: data.draw(st.integers(low, high))  # noqa: E731
    dims = extents(pick, 200)
    steps = tuple(pick(-20, 20) for _ in dims)
    low, stop = span(dims, steps, 2)
    room = np.zeros(stop - low, np.uint8)
    if 0 in dims:
        assert (low, stop) == (0, 0)
        return
    offsets = np.zeros(1, np.int64)
    for n, s in zip(dims, steps, strict=True):
        offsets = (offsets[:, None] + np.arange(n) * s).ravel()
    assert (offsets.min(), offsets.max() + 2) == (low, stop)
    np.add.at(room, np.concatenate([offsets, offsets + 1]) - low, 1)
    if room.max() > 1 and offsets.size * 2 < 255:
        assert overlaps_itself(dims, steps, 2)


@pytest.mark.parametrize(
    "have", [(), (1,), (5,), (3, 5), (1, 5), (3, 1), (1, 1, 3, 5), (2, 3, 5), (1, 4), (0,), (1, 0)]
)
@pytest.mark.parametrize("want", [(), (1,), (5,), (3, 5), (2, 3, 5), (0,), (3, 0)])
def test_broadcasting_is_numpys(have: tuple[int, ...], want: tuple[int, ...]) -> None:
    a = np.zeros(have, np.uint16)
    ours = broadcast_strides(have, a.strides, want)
    try:
        np.copyto(np.zeros(want, np.uint16), a)
    except ValueError:
        assert ours is None
        return
    assert ours is not None
    whole = np.broadcast_to(a.reshape(have[max(0, len(have) - len(want)) :]), want)
    assert all(x == y for n, x, y in zip(want, ours, whole.strides, strict=True) if n > 1)


def test_strides_beyond_any_memory_are_planned_like_others() -> None:
    """Their spans exceed every machine word."""
    far = as_strided(np.zeros(16), (3,), (2**62,))
    assert str(2**62) in str(tj.plan_copy(far, np.zeros(3)))
    assert str(2**62) in str(tj.plan_copy(np.zeros(3), far))
