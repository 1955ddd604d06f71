"""Bugs in planning don't break a caller's copy: a plan that is right for any copy replaces the failed one."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from typing import TypeVar

from codegen.schedule.machine import machine
from codegen.support.callers import caller_stacklevel
from codegen.support.errors import FallbackWarning, TilejitError
from codegen.support.settings import settings

Plan = TypeVar("Plan")


def planned(plan: Callable[[], Plan], otherwise: Callable[[], Plan], copy: object) -> Plan:
    """What `plan` returns or, after a warning, what `otherwise` does if `plan` fails unexpectedly.

    Errors that TileJIT raises on purpose pass through, and so do errors for lack of memory. All errors do
    with TILEJIT_VERIFY.

    copy  a description of the copy, for the report
    """
    try:
        return plan()
    except (TilejitError, MemoryError):
        raise
    except Exception as error:
        if settings().verify:
            raise
        warnings.warn(
            f"planning a copy failed, so it runs by a simpler plan; its result is right, but it may be slow\n"
            f"  {type(error).__name__}: {error}\n  {copy}\n  {machine()}\n"
            "  this is a bug in TileJIT; please report these lines",
            FallbackWarning,
            stacklevel=caller_stacklevel(),
        )
    return otherwise()
