"""Repeated calls, which native code answers: the same as first calls, and nothing is kept."""

from __future__ import annotations

import copy
import gc
import inspect
import pickle
import sys
import weakref
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import tilejit as tj
from codegen import LayoutError
from tests.tools.extent import examples
from tests.tools.guard import Guarded
from tests.tools.oracle import run_python
from tilejit.arrays.memory import address, empty

Array = np.ndarray[Any, Any]


def repeated(direct: Any, *args: Any, **keywords: Any) -> Any:
    """The object, after so many calls that native code answers such calls."""
    for _ in range(40):
        direct(*args, **keywords)
    return direct


def outcome(call: Callable[..., Any], *args: Any, **keywords: Any) -> tuple[Any, ...]:
    """The result of a call, or its exception."""
    try:
        found = call(*args, **keywords)
    except Exception as error:
        return type(error), str(error)
    return type(found), np.asarray(found).tobytes() if found is not None else None


def pair(rows: int = 16, columns: int = 16, dtype: Any = np.float32) -> tuple[Array, Array]:
    src = np.arange(rows * columns).astype(dtype).reshape(columns, rows).T
    return np.zeros((rows, columns), dtype), src


@pytest.mark.parametrize("size", [1, 3, 16, 300])
@pytest.mark.parametrize("dtype", ["u1", "i2", "f4", "f8", "c16", ">i4"])
def test_plans(dtype: str, size: int) -> None:
    """Small copies hold the GIL, larger ones release it."""
    dst, src = pair(size, size + 1, dtype)
    plan = tj.plan_copy(dst, src)
    for _ in range(3):
        dst[...] = 0
        assert plan(dst, src) is None
        assert (dst == src).all()


@pytest.mark.full
@pytest.mark.parametrize("side", [16, 32, 200])
def test_plans_with_a_scratch_buffer(side: int) -> None:
    """The plan owns the buffer, because its calls hold the GIL."""
    src = np.random.default_rng(side).integers(0, 255, (16, side * side // 4), np.uint8)
    dst = np.zeros(src.shape[::-1], np.uint8)
    plan = tj.plan_copy(dst, src.T)
    assert plan(dst, src.T) is None
    assert (dst == src.T).all()
    with ThreadPoolExecutor(4) as pool:
        made = [np.zeros_like(dst) for _ in range(64)]
        list(pool.map(lambda to: plan(to, src.T), made))
    assert all((to == dst).all() for to in made)


@pytest.mark.parametrize("shape", [(), (0,), (3, 0)])
def test_plans_of_empty_and_one_element_arrays(shape: tuple[int, ...]) -> None:
    dst, src = np.zeros(shape), np.ones(shape)
    plan = tj.plan_copy(dst, src)
    plan(dst, src)
    assert (dst == src).all()


class Other(np.ndarray):  # type: ignore[type-arg]
    pass


def read_only(array: Array) -> Array:
    array = array.view()
    array.flags.writeable = False
    return array


def memmap(array: Array, file: Path) -> Array:
    mapped = np.memmap(file, array.dtype, "w+", shape=array.shape)
    mapped[...] = array
    return mapped


ARGUMENTS: dict[str, Callable[[Array, Array], tuple[Any, ...]]] = {
    "as planned": lambda d, s: (d, s),
    "none": lambda d, s: (),
    "one": lambda d, s: (d,),
    "three": lambda d, s: (d, s, s),
    "None": lambda d, s: (None, s),
    "a list": lambda d, s: (d, s.tolist()),
    "a number": lambda d, s: (d, 3),
    "a dtype": lambda d, s: (d.dtype, s),
    "class of dst": lambda d, s: (d.view(Other), s),
    "class of src": lambda d, s: (d, s.view(Other)),
    "read-only dst": lambda d, s: (read_only(d), s),
    "read-only src": lambda d, s: (d, read_only(s)),
    "shape of dst": lambda d, s: (d[:-1], s),
    "shape of src": lambda d, s: (d, s[:, :-1]),
    "rank": lambda d, s: (d[None], s),
    "dtype": lambda d, s: (d.view(np.int32), s),
    "byte order": lambda d, s: (d, s.view(">f4")),
    "an equal dtype": lambda d, s: (d, s.view(np.dtype("f4", metadata={"a": 1}))),
    "strides of dst": lambda d, s: (np.asfortranarray(d), s),
    "strides of src": lambda d, s: (d, s.copy()),
    "turned round": lambda d, s: (d, s[::-1]),
    "itself": lambda d, s: (d, d.T),
    "one line on": lambda d, s: (whole(d)[:-1].reshape(d.shape), whole(d)[1:].reshape(d.shape).T),
    "not aligned": lambda d, s: (np.frombuffer(bytearray(4 * 256 + 1), "f4", 256, 1).reshape(16, 16), s),
}


def whole(dst: Array) -> Array:
    return np.arange(dst.size + 1, dtype=dst.dtype)


@pytest.mark.parametrize("name", ARGUMENTS)
def test_repeated_calls_accept_and_refuse_the_same_arguments(name: str) -> None:
    dst, src = pair()
    plan = tj.plan_copy(dst, src)
    first, later = ARGUMENTS[name](dst.copy(), src), ARGUMENTS[name](dst.copy(), src)
    found = outcome(plan, *first)
    repeated(plan, dst.copy(), src)
    assert outcome(plan, *later) == found
    if first and isinstance(first[0], np.ndarray):
        assert (first[0] == later[0]).all()


def test_plans_accept_keyword_arguments() -> None:
    dst, src = pair()
    plan = tj.plan_copy(dst, src)
    plan(src=src, dst=dst)
    assert (dst == src).all()
    assert outcome(plan, dst, source=src)[0] is TypeError
    assert "copyto" in (plan.__call__.__doc__ or "")
    assert list(inspect.signature(plan).parameters) == ["dst", "src"]
    add = repeated(tj.elementwise(lambda a, b: a + b), *numbers())
    assert "out" in inspect.signature(type(add).__call__).parameters


def test_a_subclass_may_override_calls() -> None:
    class Counted(tj.elementwise(abs).__class__):  # type: ignore[misc]
        calls = 0

        def __call__(self, *args: Any, **keywords: Any) -> Any:
            self.calls += 1
            return super().__call__(*args, **keywords)

    plain = tj.elementwise(lambda a, b: a + b)
    counted = Counted(plain.python, plain.options)
    a, b = numbers()
    for _ in range(40):
        assert (counted(a, b) == a + b).all()
    assert counted.calls == 40


def test_memory_mapped_arrays(tmp_path: Path) -> None:
    dst, src = pair()
    plan = tj.plan_copy(dst, src)
    mapped = memmap(dst, tmp_path / "array")
    plan(mapped, src)
    assert (mapped == src).all()


@pytest.mark.parametrize("at_end", [False, True])
def test_plans_stay_in_their_memory(at_end: bool) -> None:
    """Between guard pages."""
    dst, src = pair(13, 17)
    plan = tj.plan_copy(dst, src)
    sides = [Guarded(dst.nbytes) for _ in range(2)]
    to, at = (x.place(dst.nbytes, at_end=at_end).view(np.float32) for x in sides)
    to, at = to.reshape(13, 17), at.reshape(17, 13).T
    at[...] = src
    repeated(plan, to, at)
    assert (to == src).all()
    assert sides[0].untouched()


OFFSETS = st.integers(0, 24)
VIEWS: dict[str, Callable[[Array, int], Array]] = {
    "line": lambda m, at: m[at : at + 24],
    "every second": lambda m, at: m[at : at + 48 : 2],
    "backwards": lambda m, at: m[at + 23 : at - 1 if at else None : -1],
    "matrix": lambda m, at: m[at : at + 24].reshape(4, 6),
    "turned": lambda m, at: m[at : at + 24].reshape(6, 4).T,
    "one row": lambda m, at: m[at : at + 6].reshape(1, 6),
    "read-only": lambda m, at: read_only(m[at : at + 24]),
    "wide": lambda m, at: m[at // 2 * 2 : at // 2 * 2 + 48].view(np.float64),
}
EXPRESSION = tj.elementwise(lambda a, b: a * 2 + b)
PAIRS = st.tuples(st.sampled_from(list(VIEWS)), OFFSETS)


@pytest.mark.full
@given(st.lists(st.tuples(PAIRS, PAIRS, PAIRS), min_size=1, max_size=4))
@settings(max_examples=examples(5, full=50))
def test_repeated_expressions_give_the_same_as_new_ones(picks: list[Any]) -> None:
    """Views of one block of memory that overlap arbitrarily, read and written in place or not."""
    for pick in picks * 3:
        ours, theirs = (np.arange(80, dtype=np.float32) for _ in range(2))
        found = []
        for memory, call in ((ours, EXPRESSION), (theirs, tj.elementwise(EXPRESSION.python))):
            a, b, out = (VIEWS[name](memory, at) for name, at in pick)
            found.append(outcome(call, a, b, out=out))
        assert found[0] == found[1]
        assert (ours == theirs).all()


def test_a_read_only_out_is_refused_by_every_call() -> None:
    a, b = numbers()
    out, add = np.zeros_like(a), tj.elementwise(lambda a, b: a + b)
    for _ in range(40):
        with pytest.raises(LayoutError, match=r"^out is read-only\n  pass a writable array$"):
            add(a, b, out=read_only(out))
        assert not out.any()
        add(a, b, out=out)
        assert (out == a + b).all()
        out[:] = 0


def numbers(count: int = 100, dtype: Any = np.float32) -> tuple[Array, Array]:
    x = np.arange(count).astype(dtype)
    return x, x + 1


def test_later_results_are_like_the_first() -> None:
    a, b = numbers()
    add = tj.elementwise(lambda a, b: a + b)
    theirs = add(a, b)
    ours = repeated(add, a, b)(a, b)
    assert ours.tobytes() == theirs.tobytes()
    assert ours.flags.num == theirs.flags.num
    assert (ours.dtype, ours.shape, ours.strides) == (theirs.dtype, theirs.shape, theirs.strides)
    assert address(ours) % 64 == 0
    assert ours.base.nbytes == theirs.base.nbytes == ours.nbytes + 63
    assert ours.base.flags.owndata
    assert sys.getrefcount(ours) == sys.getrefcount(theirs)
    assert sys.getrefcount(ours.base) == sys.getrefcount(theirs.base)


@pytest.mark.parametrize("shape", [(1,), (5, 1, 7), (2, 3, 4, 5)])
def test_new_results_of_all_shapes(shape: tuple[int, ...]) -> None:
    a = np.random.default_rng(0).random(shape)
    twice = repeated(tj.elementwise(lambda a: a * 2), a)
    found = twice(a)
    assert (found == a * 2).all()
    assert found.flags.num == empty(shape, a.dtype).flags.num


@pytest.mark.full
@pytest.mark.parametrize("dtype", ["f4", "f8", "i4", "u1", "?"])
@pytest.mark.parametrize("reduce", [np.sum, np.min, np.max, np.mean])
def test_numbers_are_returned(reduce: Any, dtype: str) -> None:
    x = (np.arange(100) % 7).astype(dtype)
    whole = tj.elementwise(lambda x: reduce(x))
    theirs = whole(x)
    ours = repeated(whole, x)(x)
    assert type(ours) is type(theirs)
    assert ours == theirs


@pytest.mark.full
def test_kernels() -> None:
    @tj.kernel
    def scale(x, y, by, times):  # type: ignore[no-untyped-def]
        for i in range(x.shape[0]):
            y[i] = x[i] * by + times

    x, y = numbers(50, np.float64)
    repeated(scale, x, y, 2.5, 3)
    for by, times in ((2.5, 3), (0.5, 3), (0.5, 4), (np.float64(0.25), 3), (True, False), (2, 1.5)):
        scale(x, y, by, times)
        assert (y == x * by + times).all()
    y.flags.writeable = False
    again = tj.kernel(scale.python)
    assert outcome(scale, x, y, 2.5, 3) == outcome(again, x, y, 2.5, 3)
    assert outcome(scale, x) == outcome(again, x)


def test_reports_describe_the_last_call() -> None:
    add = tj.elementwise(lambda a, b: a + b)
    pairs = [numbers(100, dtype) for dtype in (np.float32, np.float64, np.int16)]
    sources = []
    for a, b in pairs:
        repeated(add, a, b)
        sources.append(add.source)
    assert len(set(sources)) == 3
    for (a, b), source in zip(pairs, sources, strict=True):
        add(a, b)
        assert add.source == source


def test_many_layouts_take_turns() -> None:
    add = tj.elementwise(lambda a, b: a + b)
    for _ in range(3):
        for count in range(1, 25):
            a, b = numbers(count)
            assert (add(a, b) == a + b).all()


CALLS: dict[str, Callable[[], tuple[Any, tuple[Any, ...], dict[str, Any]]]] = {
    "plan": lambda: (tj.plan_copy(*pair()), pair(), {}),
    "larger plan": lambda: (tj.plan_copy(*pair(90, 90)), pair(90, 90), {}),
    "expression": lambda: (tj.elementwise(lambda a, b: a + b), numbers(), {"out": numbers()[0]}),
    "new result": lambda: (tj.elementwise(lambda a, b: a + b), numbers(), {}),
    "larger result": lambda: (tj.elementwise(lambda a, b: a + b), numbers(9000), {}),
    "sum": lambda: (tj.elementwise(lambda a: np.sum(a)), (numbers()[0],), {}),
    "with a float": lambda: (tj.elementwise(lambda a, b: a * b), (numbers()[0], 2.5), {}),
}


@pytest.mark.full
@pytest.mark.parametrize("name", CALLS)
def test_reference_counts_stay(name: str) -> None:
    """After calls that native code answers, and after others."""
    direct, args, keywords = CALLS[name]()
    repeated(direct, *args, **keywords)
    objects = [direct, *args, *keywords.values(), None, np.dtype(np.float32), np.dtype(np.uint8), np.ndarray]
    for arguments in (args, (*args[:-1], None)):
        outcome(direct, *arguments, **keywords)
        gc.collect()
        before = [sys.getrefcount(x) for x in objects]
        for _ in range(1000):
            outcome(direct, *arguments, **keywords)
        gc.collect()
        after = [sys.getrefcount(x) for x in objects]
        assert max(abs(a - b) for a, b in zip(before, after, strict=True)) < 50


@pytest.mark.full
@pytest.mark.parametrize("name", CALLS)
def test_memory_stays_flat(name: str) -> None:
    direct, args, keywords = CALLS[name]()
    repeated(direct, *args, **keywords)
    gc.collect()
    before = sys.getallocatedblocks()
    for _ in range(examples(5_000, full=100_000)):
        direct(*args, **keywords)
    assert sys.getallocatedblocks() - before < 500


@pytest.mark.full
def test_unused_arrays_and_objects_are_freed() -> None:
    dst, src = pair()
    plan = tj.plan_copy(dst, src)
    plan(dst, src)
    gone = [weakref.ref(dst), weakref.ref(src)]
    del dst, src
    assert [ref() for ref in gone] == [None, None]
    a, b = numbers()
    add = repeated(tj.elementwise(lambda a, b: a + b), a, b)
    gone = [weakref.ref(a), weakref.ref(b), weakref.ref(add)]
    del a, b, add
    gc.collect()
    assert [ref() for ref in gone] == [None, None, None]


def test_threads_call_at_once() -> None:
    """One plan, one expression that learns layouts meanwhile, and larger ones that release the GIL."""
    small, large = tj.plan_copy(*pair()), tj.plan_copy(*pair(200, 200))
    add = tj.elementwise(lambda a, b: a + b)

    def work(seed: int) -> bool:
        right = True
        for k in range(300):
            for plan, size in ((small, 16), (large, 200)):
                dst, src = pair(size, size)
                src += np.float32(seed)
                plan(dst, src)
                right &= bool((dst == src).all())
            a, b = numbers(1 + (seed + k) % 20 + 9000 * (k % 2))
            right &= bool((add(a, b) == a + b).all())
        return right

    with ThreadPoolExecutor(4) as pool:
        assert all(pool.map(work, range(4)))


def test_copies_and_pickles() -> None:
    dst, src = pair()
    plan = tj.plan_copy(dst, src)
    assert copy.copy(plan) is plan
    again = pickle.loads(pickle.dumps(plan))
    again(dst, src)
    assert (dst == src).all()
    a, b = numbers()
    add = repeated(tj.elementwise(lambda a, b: a + b), a, b)
    twin = copy.copy(add)
    assert (twin(a, b) == a + b).all()
    assert (add(a, b) == a + b).all()


def test_an_uninitialized_plan_does_not_crash() -> None:
    """Whatever is asked of it."""
    plan = object.__new__(type(tj.plan_copy(*pair())))
    with pytest.raises((SystemError, AttributeError)):
        plan(*pair())


PROGRAM = """
import atexit, sys
import numpy as np
import tilejit as tj

src = np.arange(256, dtype=np.float32).reshape(16, 16).T
dst = np.zeros((16, 16), np.float32)
plan = tj.plan_copy(dst, src)

def check():
    dst[...] = 0
    plan(dst, src)
    assert (dst == src).all()

class Late:
    def __del__(self):
        check()

check()
late = Late()
atexit.register(check)
print("numba" in sys.modules)
"""


@pytest.mark.full
@pytest.mark.parametrize(("variables", "printed"), [({}, "False"), ({"TILEJIT_NO_CACHE": "1"}, "True")])
def test_calls_until_the_process_ends(variables: dict[str, str], printed: str) -> None:
    """A process with a warm store needs no Numba. One without a store builds everything itself."""
    tj.plan_copy(*pair())
    done = run_python(PROGRAM, **variables)
    assert (done.returncode, done.stderr, done.stdout.split()) == (0, "", [printed])


def test_a_forked_child_answers_calls() -> None:
    code = (
        "import os\nif os.fork() == 0:\n    check(); os._exit(0)\n"
        "print(os.waitstatus_to_exitcode(os.wait()[1]))"
    )
    done = run_python(PROGRAM + code)
    assert done.stdout.split()[-1] == "0", done.stderr


@pytest.mark.full
def test_each_thread_sees_the_program_of_its_last_call() -> None:
    """Direct calls and calls from Python, with layouts that threads share. Entries are replaced meanwhile."""
    double, halve = tj.elementwise(lambda a: a * 2), tj.kernel(halved)
    kinds = [np.dtype(code) for code in ("f4", "f8", "i4", "i8", "u4", "u8")]
    arrays = [np.ones((6, 8), dtype) for dtype in kinds]
    views = [*arrays, *(x.T for x in arrays), *(x[:, ::2] for x in arrays)]
    failures: list[str] = []

    def work(seed: int) -> None:
        rng = np.random.default_rng(seed)
        for _ in range(1500):
            x = views[rng.integers(len(views))] if rng.random() < 0.3 else views[seed]
            double(x)
            halve(x)
            for made in (double.program, halve.program):
                shown = made.function.arguments[0]
                if shown.dtype != f"{x.dtype.kind}{8 * x.itemsize}":
                    failures.append(f"{shown.dtype} for {x.dtype}")

    with ThreadPoolExecutor(8) as pool:
        list(pool.map(work, range(8)))
    assert not failures


def halved(a):  # type: ignore[no-untyped-def]
    for i in range(a.shape[0]):
        for j in range(a.shape[1]):
            a[i, j] = a[i, j] - a[i, j]


def test_a_thread_without_a_call_has_no_program() -> None:
    double = tj.elementwise(lambda a: a * 2)
    for _ in range(4):
        double(np.ones(5, np.float32))
    assert double.report()
    with ThreadPoolExecutor(1) as pool, pytest.raises(tj.KernelError, match="in this thread"):
        pool.submit(double.report).result()
