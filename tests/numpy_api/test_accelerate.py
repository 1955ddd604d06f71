"""NumPy's routines, replaced and restored."""

from __future__ import annotations

import os
import threading
from typing import Any

import numpy as np
import pytest

import tilejit as tj
from tests.tools.oracle import run_python
from tilejit.copies.sizes import SIZES

NAMES = (
    *("copyto", "ascontiguousarray", "asfortranarray", "concatenate", "stack", "pad"),
    *("take", "put", "take_along_axis", "put_along_axis"),
)


def routines() -> list[Any]:
    return [getattr(np, name) for name in NAMES]


def test_swaps_and_restores() -> None:
    before = routines()
    with tj.accelerate():
        assert all(a is not b for a, b in zip(before, routines(), strict=True))
        with tj.accelerate():
            inner = routines()
        assert inner == routines()
    assert all(a is b for a, b in zip(before, routines(), strict=True))


def test_text_signatures_survive() -> None:
    """Functions written in C have text signatures behind NumPy's dispatcher."""
    text = np.concatenate.__wrapped__.__text_signature__
    with tj.accelerate():
        assert np.concatenate.__wrapped__.__text_signature__ == text


def test_restores_after_an_exception() -> None:
    before = routines()
    with pytest.raises(ValueError, match="must match exactly"), tj.accelerate():
        np.concatenate([np.zeros((300, 100)), np.zeros((300, 90))])
    assert before == routines()


def test_replacements_by_others_are_kept() -> None:
    original = np.pad

    def others(*args: Any, **kwargs: Any) -> Any:
        return original(*args, **kwargs)

    try:
        with tj.accelerate():
            np.pad = others
        assert np.pad is others
    finally:
        np.pad = original


def test_threads_share_the_swap() -> None:
    """Blocks overlap in time. NumPy's routines are restored after the last one."""
    before = routines()
    started, leave = threading.Barrier(3), threading.Event()
    wrong: list[BaseException] = []
    x = np.arange(90000, dtype=np.float32).reshape(300, 300)

    def work() -> None:
        try:
            with tj.accelerate():
                started.wait(10)
                for _ in range(20):
                    assert (np.ascontiguousarray(x.T) == x.T).all()
                    assert (np.concatenate([x.T, x]) == [*x.T, *x]).all()
                leave.wait(10)
        except BaseException as error:
            wrong.append(error)

    threads = [threading.Thread(target=work) for _ in range(2)]
    for thread in threads:
        thread.start()
    started.wait(10)
    assert np.pad is not before[5]
    leave.set()
    for thread in threads:
        thread.join(30)
    assert not wrong
    assert before == routines()


def test_permanent_and_smallest() -> None:
    swapped = tj.accelerate(permanent=True, smallest=0)
    try:
        assert np.ascontiguousarray(np.eye(3).T).tolist() == np.eye(3).tolist()
    finally:
        swapped.__exit__(None, None, None)
    with pytest.raises(ValueError, match="negative"):
        tj.accelerate(smallest=-1)
    with pytest.raises(TypeError, match="number of elements"):
        tj.accelerate(smallest="0")  # type: ignore[arg-type]


def test_array_functions_of_other_classes_are_called() -> None:
    """An object with __array_function__ handles the call itself, with NumPy's own routine."""

    class Duck:
        def __array_function__(self, func: Any, types: Any, args: Any, kwargs: Any) -> Any:
            return func

    before = np.concatenate
    with tj.accelerate():
        assert np.concatenate([Duck(), Duck()]) is before
        assert np.pad(Duck(), 1) is not np.pad


def test_signatures_are_numpys() -> None:
    import inspect

    with tj.accelerate():
        assert np.pad.__name__ == "pad"
        assert inspect.signature(np.stack).parameters.keys() >= {"arrays", "axis", "out"}


NUMBA_WITHIN = """
import sys
import numpy as np
import tilejit as tj

def check(call):
    assert call(), call
own = np.concatenate, np.take
check(lambda: "numba.np.arrayobj" not in sys.modules)
with tj.accelerate():
    {within}
    check(lambda: np.concatenate is not own[0] and np.take is not own[1])
check(lambda: "numba" in sys.modules)
check(lambda: (np.concatenate, np.take) == own)
check(lambda: not any(type(finder).__module__.startswith("tilejit") for finder in sys.meta_path))

import numba

def joined(a, b):
    return np.concatenate((a, b)), np.take(a, b), np.stack((a, b)), np.ascontiguousarray(a)

a, b = np.arange(3), np.arange(3)[::-1].copy()
found = numba.njit(joined)(a, b)
check(lambda: all((x == y).all() for x, y in zip(found, joined(a, b), strict=True)))
check(lambda: not type(numba.__spec__.loader).__module__.startswith("tilejit"))
"""


@pytest.mark.full
@pytest.mark.parametrize(
    "within",
    [
        "import numba",
        "import numba; numba.njit(lambda x: x + 1)(2)",
        "check(lambda: (np.ascontiguousarray(np.ones((300, 500)).T) == 1).all())",
    ],
)
def test_numba_recognizes_numpys_routines(within: str) -> None:
    """Imported, or used, only inside the block: by a user, or for a kernel that is in no store."""
    done = run_python(NUMBA_WITHIN.format(within=within), TILEJIT_NO_CACHE="1")
    assert done.returncode == 0, done.stderr


@pytest.mark.parametrize("leave", [(0, 1, 2), (2, 1, 0), (1, 0, 2), (1, 2, 0)])
def test_blocks_end_in_any_order(leave: tuple[int, ...]) -> None:
    """The most recently entered open block sets the threshold. After the last one, everything is restored."""
    before = SIZES.small_elements
    asked = (0, None, 5)
    blocks = [tj.accelerate(smallest=smallest) for smallest in asked]
    for block in blocks:
        block.__enter__()
    left = dict(enumerate(asked))
    for k in leave:
        expected = [n for n in left.values() if n is not None] or [before]
        assert SIZES.small_elements == expected[-1]
        blocks[k].__exit__(None, None, None)
        del left[k]
    assert SIZES.small_elements == before


FORKED = """
import os, signal, threading, warnings
import numpy as np
import tilejit as tj

signal.alarm(60)
warnings.simplefilter("ignore")
stop = False

def toggle():
    while not stop:
        with tj.accelerate(smallest=5):
            pass

thread = threading.Thread(target=toggle)
thread.start()
codes = []
for _ in range(300):
    child = os.fork()
    if child == 0:
        signal.alarm(10)
        with tj.accelerate():
            pass
        os._exit(0)
    codes.append(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))
    if codes[-1]:
        break
stop = True
thread.join()
print(sum(map(abs, codes)))
"""


@pytest.mark.full
@pytest.mark.skipif(not hasattr(os, "fork"), reason="no forks")
def test_children_forked_while_another_thread_swaps() -> None:
    """A fork waits for the lock, so no child inherits it locked."""
    done = run_python(FORKED)
    assert done.stdout.strip() == "0", done.stderr


def test_take_of_tensors() -> None:
    torch: Any = pytest.importorskip("torch", reason="torch is not installed")
    tensor = torch.arange(60000.0).reshape(200, 300).T
    theirs = np.take(tensor, np.array([1, 0]), 0)
    with tj.accelerate():
        ours = np.take(tensor, np.array([1, 0]), 0)
    assert type(ours) is type(theirs)
    assert (np.asarray(ours) == np.asarray(theirs)).all()


@pytest.mark.parametrize("side", [3, 300])
def test_copies_of_objects_with_an_array_function(side: int) -> None:
    class Duck:
        def __array_function__(self, func: Any, types: Any, args: Any, kwargs: Any) -> Any:
            return func.__name__

    class Own(np.ndarray[Any, Any]):
        def __array_function__(self, func: Any, types: Any, args: Any, kwargs: Any) -> Any:
            return func.__name__

    x = np.zeros((side, side))
    for other in (Duck(), x.view(Own)):
        assert tj.copy(other) == "copy"
        assert tj.copyto(x, other) == "copyto"
        assert tj.copyto(other, x) == "copyto"
        assert tj.copyto(x, other, "unsafe", np.True_) == "copyto"
    assert tj.copyto(x, x.copy()) is None
