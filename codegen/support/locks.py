"""The single lock around compiling, loading and deferred imports.

A fork waits for it, so no child inherits it locked or sees a half-imported module.

Lock order: this lock first, Numba's second. A build takes Numba's lock while it holds this one
(`build._nothing_to_run`), and so does a fork. Code that compiles with Numba directly takes only Numba's lock
and waits for nobody. The reverse order must not happen: code that Numba runs while it compiles, such as the
body of an `overload`, must not request a kernel that is not compiled yet.
"""

from __future__ import annotations

import logging
import os
import sys
import threading
from typing import Any

compiler_lock = threading.RLock()
"""Held while a kernel is compiled or loaded, or while a call imports a module for the first time."""

# Before-fork handlers run in reverse order of registration, and Numba logs while it compiles. If logging
# registered after this module, a fork would take logging's lock first, then wait here for a thread that waits
# for logging's lock.
_REGISTERED_BEFORE = logging

_held_by_forks: tuple[Any, ...] = (compiler_lock,)
_held: tuple[Any, ...] = ()
"""The locks that the fork in progress holds."""


def hold_in_forks(lock: Any) -> None:
    """Make forks wait for another lock, after those that they already wait for."""
    global _held_by_forks
    with compiler_lock:
        _held_by_forks = (*_held_by_forks, lock)


def _before_fork() -> None:
    global _held
    pools_lock = _thread_pool_attribute("_global_shutdown_lock")
    compiler_lock.acquire()
    if pools_lock is None and _thread_pool_attribute("ThreadPoolExecutor"):
        # Python runs the before handlers that exist when a fork begins, but the after handlers that exist
        # when it ends. Thread pools were imported while this one waited: they would release a lock that they
        # never acquired.
        _thread_pool_attribute("_global_shutdown_lock").acquire()
    for lock in _held_by_forks[1:]:
        lock.acquire()
    _held = _held_by_forks


def _thread_pool_attribute(name: str) -> Any:
    """An attribute of the thread pool module; None if the module is not imported or lacks the attribute."""
    return getattr(sys.modules.get("concurrent.futures.thread"), name, None)


def _after_fork() -> None:
    for lock in reversed(_held):
        lock.release()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(before=_before_fork, after_in_parent=_after_fork, after_in_child=_after_fork)
