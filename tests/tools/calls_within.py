"""Python code that runs during a direct call and frees everything that the call is reading.

`python -m tests.tools.calls_within NAME` runs one case, because a bug here ends the process.
"""

from __future__ import annotations

import ctypes
import gc
import sys
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from functools import cache
from importlib import import_module
from itertools import cycle
from typing import Any

import numpy as np

import tilejit as tj

Array = np.ndarray[Any, Any]

COUNT = 100
OTHERS = 10
"""More kinds of calls than native code answers for one object."""
LARGE = 1 << 18
"""Elements of calls that release the GIL for long enough for others to run."""


def scaled(a, b, by):  # type: ignore[no-untyped-def]
    return a * by + b


@tj.kernel
def scale(a, b, by):  # type: ignore[no-untyped-def]
    for i in range(a.shape[0]):
        b[i] = a[i] * by


EXPRESSION = tj.elementwise(scaled)
_counts = cycle(range(1, 8 * OTHERS))


def numbers(count: int) -> tuple[Array, Array]:
    x = np.arange(count, dtype=np.float32)
    return x, x[::-1].copy()


def learn(direct: Any, *arguments: Any) -> None:
    """Call it until native code answers such calls."""
    for _ in range(40):
        direct(*arguments)


def forget(direct: Any) -> None:
    """Make native code answer other calls instead."""
    for _ in range(OTHERS):
        learn(direct, *numbers(next(_counts)), 0.5)


def right(a: Array, b: Array, by: float) -> None:
    """Compute, and compare with NumPy."""
    got, want = EXPRESSION(a, b, by), a * np.float32(by) + b
    assert type(got) is np.ndarray
    assert got.tobytes() == want.tobytes()


class _Handler(ctypes.Structure):
    """PyDataMem_Handler of numpy/ndarraytypes.h."""

    _fields_ = (
        ("name", ctypes.c_char * 127),
        ("version", ctypes.c_uint8),
        ("context", ctypes.c_void_p),
        ("malloc", ctypes.c_void_p),
        ("others", ctypes.c_void_p * 2),
        ("free", ctypes.c_void_p),
    )


_MALLOC = ctypes.PYFUNCTYPE(ctypes.c_void_p, ctypes.c_void_p, ctypes.c_size_t)
_FREE = ctypes.PYFUNCTYPE(None, ctypes.c_void_p, ctypes.c_void_p, ctypes.c_size_t)
_SET_HANDLER, _CAPSULE = 304, b"mem_handler"
"""PyDataMem_SetHandler in the table of NumPy's C API, and the name of its argument."""


def on_memory(asked: Callable[[int], bool]) -> Callable[[], None]:
    """Let NumPy ask a function whether memory of some size is available, in this thread.

    Returns a function that undoes that. Freed memory is overwritten at once, so reading it is detected.
    """
    try:
        core = import_module("numpy._core._multiarray_umath")
    except ImportError:  # NumPy 1
        core = import_module("numpy.core._multiarray_umath")
    new, pointer = ctypes.pythonapi.PyCapsule_New, ctypes.pythonapi.PyCapsule_GetPointer
    new.argtypes, new.restype = [ctypes.c_void_p, ctypes.c_char_p, ctypes.c_void_p], ctypes.py_object
    pointer.argtypes, pointer.restype = [ctypes.py_object, ctypes.c_char_p], ctypes.c_void_p
    place = pointer(core._ARRAY_API, None) + _SET_HANDLER * ctypes.sizeof(ctypes.c_void_p)
    set_handler = ctypes.PYFUNCTYPE(ctypes.py_object, ctypes.py_object)(
        ctypes.c_void_p.from_address(place).value
    )
    memset = ctypes.memset

    def malloc(context: Any, size: int) -> Any:
        return numpys_malloc(context, size) if asked(size) else None

    def free(context: Any, at: int, size: int) -> None:
        memset(at, 0xFF, size)
        numpys_free(context, at, size)

    ours, called = _Handler(), (_MALLOC(malloc), _FREE(free))
    before = set_handler(new(ctypes.addressof(ours), _CAPSULE, None))
    ctypes.pointer(ours)[0] = _Handler.from_address(pointer(before, _CAPSULE))
    numpys_malloc, numpys_free = _MALLOC(ours.malloc), _FREE(ours.free)
    ours.malloc, ours.free = (ctypes.cast(function, ctypes.c_void_p).value for function in called)
    for kept in (
        ours,
        called,
    ):  # kept forever: the last arrays free their memory with it at exit
        ctypes.pythonapi.Py_IncRef(ctypes.py_object(kept))
    return lambda: (set_handler(before), None)[1]


def memory(*, given: bool) -> None:
    """Allocating a result runs Python code, which replaces the entries and calls the same expression."""
    a, b = numbers(COUNT)
    seen = []

    def asked(size: int) -> bool:
        if due and not seen and size == a.nbytes + 63:
            seen.append(size)
            learn(EXPRESSION, b, a, 3.0)
            right(b, a, 3.0)
            forget(EXPRESSION)
            return given
        return True

    undo, due = on_memory(asked), False
    try:
        learn(EXPRESSION, a, b, 2.0)
        due = True
        right(a, b, 2.0)
    finally:
        undo()
    assert seen, "no memory was requested for a result"


class Knot:
    """An object that only the garbage collector frees, and which then makes all the calls of the others."""

    times = 0

    def __init__(self) -> None:
        self.itself = self

    def __del__(self) -> None:
        Knot.times += 1
        right(*numbers(COUNT), 5.0)
        forget(EXPRESSION)
        forget(scale)
        _plan()


_dst, _src = np.zeros((16, 16), np.float32), np.arange(256, dtype=np.float32).reshape(16, 16).T


@cache
def _copies() -> Any:
    return tj.plan_copy(_dst, _src)


def _plan() -> None:
    _dst[...] = 0
    _copies()(_dst, _src)
    assert (_dst == _src).all()


def collected() -> None:
    """The collector runs at every allocation, also in calls that native code passes on to Python."""
    a, b = numbers(COUNT)
    _plan()  # created here, not in a finalizer
    threshold, undo = gc.get_threshold(), on_memory(lambda size: True)
    gc.set_threshold(1)
    try:
        for k in range(60):
            gc.disable()
            learn(EXPRESSION, a, b, 2.0)
            learn(scale, a, b.copy(), 2.0)
            other, out, want = a[: COUNT - k], np.zeros(COUNT - k, np.float32), a[: COUNT - k] * np.float32(2)
            Knot()
            gc.enable()
            if k % 4 == 0:
                right(a, b, 2.0)
            elif k % 4 == 1:
                right(other, b[: COUNT - k], 2.0)
            elif k % 4 == 2:
                scale(other, out, 2.0)
                assert (out == want).all()
            else:
                _plan()
    finally:
        gc.set_threshold(*threshold)
        undo()
    assert Knot.times > 30, Knot.times


def threads() -> None:
    """Calls that release the GIL, with separate arrays and numbers per thread, while entries are replaced."""
    sys.setswitchinterval(1e-5)
    dst, src = np.empty((512, 512), np.float32), np.empty((512, 512), np.float32)
    plan = tj.plan_copy(dst, src.T)

    def compute(seed: int) -> None:
        a, b = numbers(LARGE)
        a, by = a % (seed + 3), float(seed)
        mine, to = np.full((512, 512), seed, np.float32), np.zeros((512, 512), np.float32)
        for _ in range(60):
            right(a, b, by)
            to[...] = 0
            plan(to, mine.T)
            assert (to == seed).all()

    def disturb(_: int) -> None:
        for _ in range(40):
            forget(EXPRESSION)

    with ThreadPoolExecutor(4, initializer=on_memory, initargs=(lambda size: True,)) as pool:
        for done in [*(pool.submit(compute, k) for k in range(3)), pool.submit(disturb, 0)]:
            done.result()


CASES: dict[str, Callable[[], None]] = {
    "memory that is granted": lambda: memory(given=True),
    "memory that is refused": lambda: memory(given=False),
    "a finalizer": collected,
    "threads": threads,
}

if __name__ == "__main__":
    CASES[sys.argv[1]]()
