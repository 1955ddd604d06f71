"""The one lock around compiling, loading and late imports; a fork waits for it, so that no child inherits it
taken, or a module half imported.
"""

from __future__ import annotations

import logging
import os
import threading

compiler_lock = threading.RLock()
"""Held while a kernel is built or loaded, or a module is imported that a call needs for the first time."""

# Handlers before a fork run in reverse order. Numba logs while it compiles: were logging registered behind
# us, a fork would take its lock first and then wait here for a thread that waits for it.
_REGISTERED_BEFORE = logging

if hasattr(os, "register_at_fork"):
    os.register_at_fork(
        before=compiler_lock.acquire,
        after_in_parent=compiler_lock.release,
        after_in_child=compiler_lock.release,
    )
