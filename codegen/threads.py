"""A pool of threads of our own over kernels that release the GIL; no barrier inside a copy."""

from __future__ import annotations

import operator
import os
import threading
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor, wait
from functools import cache
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from codegen.errors import KernelError
from codegen.settings import settings

PARALLEL_BYTES = 1 << 20
"""Below this a copy stays on the thread that asked for it."""

_lock = threading.Lock()
_pools: dict[int, ThreadPoolExecutor] = {}


def run_parts(work: Callable[[int, int], None], parts: int) -> None:
    """work(k, parts) for every k, part 0 on the calling thread; the first error is raised at the end.

    Nothing returns before every part is done: kernels write to memory that the caller may free. A part
    that no thread can be had for runs here. A signal handler that raises meanwhile is heard at the end; one
    that raises between two steps of this function may still get out early, so `work` must hold on to the
    memory itself.
    """
    if parts <= 1:
        work(0, 1)
        return
    futures: list[Future[None]] = []
    errors: list[BaseException] = []
    here = [0]
    try:
        pool = _pool()
        for k in range(1, parts):
            futures.append(pool.submit(work, k, parts))
    except RuntimeError:  # no more threads, or the interpreter is on its way out
        here += range(1 + len(futures), parts)
    for k in here:
        try:
            work(k, parts)
        except BaseException as error:
            errors.append(error)
    while True:
        try:
            wait(futures)
            break
        except BaseException as error:
            errors.append(error)
    errors += [failed for f in futures if (failed := f.exception()) is not None]
    if errors:
        raise errors[0]


def thread_count(threads: int | None, size_bytes: int) -> int:
    """How many threads a copy of that size gets.

    Raises:
        TypeError: `threads` is no integer.
        KernelError: `threads` is less than one, or TILEJIT_THREADS is when it is asked for.
    """
    if threads is None:
        most = default_threads()  # asked for first: a wrong setting is an error of small copies too
        return 1 if size_bytes < PARALLEL_BYTES or in_dask_worker() else most
    if isinstance(threads, bool) or not hasattr(threads, "__index__"):
        raise TypeError(f"threads is a number of threads or None, not {type(threads).__name__}")
    try:
        count = operator.index(threads)
    except TypeError:  # arrays have __index__ too
        raise TypeError(f"threads is a number of threads or None, not {type(threads).__name__}") from None
    if count < 1:
        raise KernelError(f"threads={count}: a copy needs at least one thread")
    return min(count, 64)


@cache
def default_threads() -> int:
    """TILEJIT_THREADS, else the CPUs this process may use and its quota pays for.

    Raises:
        KernelError: TILEJIT_THREADS is no number of threads.
    """
    wanted = settings().threads
    if wanted:
        if not (wanted.isascii() and wanted.isdecimal()) or len(wanted) > 9 or int(wanted) < 1:
            raise KernelError(f"TILEJIT_THREADS={wanted} is no number of threads; set it to 1 or more")
        return min(int(wanted), 64)
    cpus = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    return max(1, min(cpus, _quota() or cpus, 64))


def _quota() -> int | None:
    """CPUs that the control group pays for, rounded up; None without a limit."""
    try:
        limit, period = Path("/sys/fs/cgroup/cpu.max").read_text().split()
        return None if limit == "max" else -(-int(limit) // int(period))
    except (OSError, ValueError):
        return None


def in_dask_worker() -> bool:
    """Whether this thread belongs to a dask worker, which has its own parallelism."""
    return (
        "dask" in threading.current_thread().name.lower()
        and "worker" in threading.current_thread().name.lower()
    )


def _pool() -> ThreadPoolExecutor:
    with _lock:
        pool = _pools.get(os.getpid())
        if pool is None:
            _pools.clear()
            pool = ThreadPoolExecutor(max_workers=64, thread_name_prefix="tilejit")
            _pools[os.getpid()] = pool
        return pool


_local = threading.local()


def scratch(size_bytes: int) -> NDArray[np.uint8]:
    """A buffer of this thread's own, aligned to lines; the next call may give the same memory.

    Hold it while its address is in use: a copy that a signal handler or a finalizer makes meanwhile may
    want a larger one, which takes its place here.
    """
    held = getattr(_local, "buffer", None)
    if held is None or len(held) < size_bytes + 64:
        held = _local.buffer = np.empty(size_bytes + 64, np.uint8)
    skipped = -held.ctypes.data % 64
    out: NDArray[np.uint8] = held[skipped : skipped + size_bytes]
    return out


def _after_fork() -> None:
    """A child has none of its parent's threads, and perhaps a lock that nobody will release."""
    global _lock
    _lock = threading.Lock()
    _pools.clear()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_after_fork)
