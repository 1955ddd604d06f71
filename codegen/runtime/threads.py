"""TileJIT's thread pool for kernels that release the GIL; no barrier inside a copy."""

from __future__ import annotations

import operator
import os
import sys
import threading
from collections.abc import Callable
from functools import cache
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from codegen.schedule.call_limits import BOUND_BY_MEMORY, LAST_CACHE_BYTES, PARALLEL_BYTES
from codegen.schedule.machine import machine
from codegen.support.caching import cached
from codegen.support.errors import KernelError, KernelValueError
from codegen.support.locks import compiler_lock
from codegen.support.settings import settings

if TYPE_CHECKING:
    from concurrent.futures import ThreadPoolExecutor

MOST_THREADS = 64
"""Most threads of one copy."""

_lock = threading.Lock()
_shared_pool: ThreadPoolExecutor | None = None


class _Shared:
    """Work in parts; only the first thread that takes a part does it.

    `owners` names the thread of each part that is taken. `dict.setdefault` is atomic: two threads never both
    become the owner, and a thread that a signal interrupts can look up whether it did.
    """

    __slots__ = ("done", "errors", "owners", "work")

    def __init__(self, work: Callable[[int, int], None], parts: int) -> None:
        self.work: Callable[[int, int], None] | None = work
        self.owners: dict[int, int] = {}
        self.done = [threading.Event() for _ in range(parts)]
        self.errors: list[BaseException] = []

    def take(self, part: int) -> None:
        """Do a part, unless another thread has taken it."""
        me, work = threading.get_ident(), self.work
        if self.owners.setdefault(part, me) != me or work is None:
            return
        try:
            work(part, len(self.done))
        except BaseException as error:
            self.errors.append(error)
        finally:
            self.done[part].set()


def run_parts(work: Callable[[int, int], None], parts: int) -> None:
    """Call work(k, parts) for every k, part 0 on the calling thread; raise the first error at the end.

    This returns only after every part is done, and no part begins later: kernels write to memory that the
    caller may free. The calling thread also runs the parts that no thread has begun when it finishes its own.
    An exception from a signal handler is raised at the end. One raised between two steps of this function may
    still escape early, so `work` must keep the memory referenced itself.
    """
    if parts <= 1:
        work(0, 1)
        return
    shared = _Shared(work, parts)
    try:
        _run_shared(shared)
    finally:
        shared.work = None  # entries left in the pool's queue then do nothing and hold no references
    if shared.errors:
        raise shared.errors[0]


def _run_shared(shared: _Shared) -> None:
    me, parts = threading.get_ident(), range(len(shared.done))
    try:
        _submit(shared)
    except BaseException as error:  # from a signal handler: parts may be running
        shared.errors.append(error)
    for k in parts:
        try:
            shared.take(k)
        except BaseException as error:
            shared.errors.append(error)
    for k in parts:
        while shared.owners.setdefault(k, me) != me and not shared.done[k].is_set():
            try:
                shared.done[k].wait()
            except BaseException as error:
                shared.errors.append(error)


def _submit(shared: _Shared) -> None:
    """Offer all parts but the first to the pool, which need not take any.

    An executor queues a task before it starts a thread for it, and leaves it queued if no thread can start.
    Such a pool is dropped together with its queue, and the parts of other copies run on their callers.
    """
    pool = _pool()
    try:
        for k in range(1, len(shared.done)):
            pool.submit(shared.take, k)
    except RuntimeError:  # no more threads, or the interpreter is shutting down
        _drop(pool)


def check_threads(threads: int | None) -> None:
    """Check `threads`, for calls that may turn out to need no threads.

    Raises:
        TypeError, KernelValueError, KernelError: as thread_count.
    """
    if threads is not None:
        thread_count(threads, 0)


@cached(16)
def parallel_bytes(slowness: int) -> int:
    """Bytes read and written from which a call with this slowness gets several threads."""
    cache = min(machine().last_cache_bytes or LAST_CACHE_BYTES, LAST_CACHE_BYTES)
    return max(PARALLEL_BYTES, 5 * cache // (4 * slowness))


def thread_count(threads: int | None, size_bytes: int, slowness: int = BOUND_BY_MEMORY) -> int:
    """How many threads a copy of that size gets; one in a dask task, unless `threads` says otherwise.

    slowness  its time in multiples of memcpy's

    Raises:
        TypeError: `threads` is not an integer.
        KernelValueError: `threads` is less than one.
        KernelError: TILEJIT_THREADS, where it applies, is not a number of threads.
    """
    count = threads_by_size(threads, size_bytes, slowness)
    return 1 if threads is None and count > 1 and in_dask_worker() else count


def threads_by_size(threads: int | None, size_bytes: int, slowness: int = BOUND_BY_MEMORY) -> int:
    """The threads of a call outside dask, for callers that store it and check `in_dask_worker` on each call.

    Raises:
        TypeError, KernelValueError, KernelError: as thread_count.
    """
    if threads is None:
        most = default_threads()  # read first: an invalid setting is an error for small copies too
        return 1 if size_bytes < parallel_bytes(slowness) else most
    if type(threads) is int and 0 < threads <= MOST_THREADS:
        return threads
    if isinstance(threads, bool) or not hasattr(threads, "__index__"):
        raise TypeError(f"threads: expected a number of threads or None, got {type(threads).__name__}")
    try:
        count = operator.index(threads)
    except TypeError:  # arrays have __index__ too
        raise TypeError(
            f"threads: expected a number of threads or None, got {type(threads).__name__}"
        ) from None
    if count < 1:
        raise KernelValueError(f"threads={count}: a copy needs at least one thread")
    return min(count, MOST_THREADS)


@cache
def default_threads() -> int:
    """TILEJIT_THREADS, else the number of CPUs that this process may use within its quota.

    Raises:
        KernelError: TILEJIT_THREADS is not a number of threads.
    """
    wanted = settings().threads
    if wanted:
        if not (wanted.isascii() and wanted.isdecimal()) or len(wanted) > 9 or int(wanted) < 1:
            raise KernelError(f"TILEJIT_THREADS={wanted} is not a number of threads; set it to 1 or more")
        return min(int(wanted), MOST_THREADS)
    cpus = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    return max(1, min(cpus, _quota() or cpus, MOST_THREADS))


def _quota() -> int | None:
    """CPUs in the control group's quota, rounded up; None without a limit."""
    try:
        with open("/sys/fs/cgroup/cpu.max", encoding="utf-8") as file:
            limit, period = file.read().split()
        return None if limit == "max" else -(-int(limit) // int(period))
    except (OSError, ValueError):
        return None


def in_dask_worker() -> bool:
    """Whether this thread runs a dask task; dask has its own parallelism.

    Thread names do not tell: dask's pools use the default names of executors, or names of tasks.
    """
    state = getattr(sys.modules.get("distributed.worker"), "thread_state", None)
    return hasattr(state, "key") or hasattr(state, "executor") or _called_by_dask()


def _called_by_dask() -> bool:
    """Whether this thread or process runs a task from dask.local, whatever pool it belongs to.

    The synchronous scheduler runs tasks on the calling thread, where the outermost dask function is another.
    """
    if "dask.local" not in sys.modules:
        return False
    frame, outermost = sys._getframe().f_back, ""
    while frame:
        if frame.f_globals.get("__name__") == "dask.local":
            outermost = frame.f_code.co_name
        frame = frame.f_back
    return outermost in ("batch_execute_tasks", "execute_task")


def _pool() -> ThreadPoolExecutor:
    global _shared_pool
    if _shared_pool is None:
        with compiler_lock:
            from concurrent.futures import ThreadPoolExecutor
    with _lock:
        if _shared_pool is None:
            _shared_pool = ThreadPoolExecutor(max_workers=MOST_THREADS, thread_name_prefix="tilejit")
        return _shared_pool


def _drop(pool: ThreadPoolExecutor) -> None:
    """Drop a pool that cannot start threads; its threads finish what they have begun."""
    global _shared_pool
    with _lock:
        if _shared_pool is pool:
            _shared_pool = None
    pool.shutdown(wait=False, cancel_futures=True)


_local = threading.local()


def scratch(size_bytes: int) -> NDArray[np.uint8]:
    """This thread's own buffer, line-aligned; the next call may return the same memory.

    Keep it referenced while its address is in use: a copy in a signal handler or a finalizer may meanwhile
    need a larger buffer, which replaces it here.
    """
    held = getattr(_local, "buffer", None)
    if held is None or len(held) < size_bytes + 64:
        held = _local.buffer = np.empty(size_bytes + 64, np.uint8)
    skipped = -held.ctypes.data % 64
    out: NDArray[np.uint8] = held[skipped : skipped + size_bytes]
    return out


def _after_fork() -> None:
    """Reset the pool: a child has none of its parent's threads, and perhaps a lock that nobody releases."""
    global _lock, _shared_pool
    _lock, _shared_pool = threading.Lock(), None


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_after_fork)
