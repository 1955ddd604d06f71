"""The one lock around compiling, loading and late imports; a fork waits for it, so that no child inherits it
taken, or a module half imported.

Where two locks are taken, this one is first and Numba's is second: a build takes Numba's while it holds this
one (`build._nothing_to_run`), and so does a fork. Whoever compiles with Numba directly takes Numba's alone,
and waits for nobody. What must not be is the other order: code that Numba runs while it compiles, such as
the body of an `overload`, must not call for a kernel that is not compiled yet.
"""

from __future__ import annotations

import logging
import os
import sys
import threading
from typing import Any

compiler_lock = threading.RLock()
"""Held while a kernel is built or loaded, or a module is imported that a call needs for the first time."""

# Handlers before a fork run in reverse order. Numba logs while it compiles: were logging registered behind
# us, a fork would take its lock first and then wait here for a thread that waits for it.
_REGISTERED_BEFORE = logging

_held_by_forks: tuple[Any, ...] = (compiler_lock,)
_held: tuple[Any, ...] = ()
"""What the fork that is under way has taken."""


def hold_in_forks(lock: Any) -> None:
    """Have forks wait for a lock, too, after those that they wait for already."""
    global _held_by_forks
    with compiler_lock:
        _held_by_forks = (*_held_by_forks, lock)


def _before_fork() -> None:
    global _held
    known = _of_pools("_global_shutdown_lock")
    compiler_lock.acquire()
    if known is None and _of_pools("ThreadPoolExecutor"):
        # Python runs the handlers that there are when a fork begins, and then all that there are behind it.
        # Pools were imported while we waited here: they would release what they did not acquire.
        _of_pools("_global_shutdown_lock").acquire()
    for lock in _held_by_forks[1:]:
        lock.acquire()
    _held = _held_by_forks


def _of_pools(name: str) -> Any:
    """What the module of thread pools has of that name; None before."""
    return getattr(sys.modules.get("concurrent.futures.thread"), name, None)


def _after_fork() -> None:
    for lock in reversed(_held):
        lock.release()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(before=_before_fork, after_in_parent=_after_fork, after_in_child=_after_fork)
