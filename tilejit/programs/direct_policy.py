"""When calls get a native fast path: one policy for copies, routines, kernels and expressions.

An entry for such calls takes 0.2 ms to create, and the code that reads entries takes 10 ms to load, once in a
process. An object has at most 8 entries, so entries of many kinds of calls replace each other.

- A plan from `plan_copy` gets an entry before its first call, because plans exist to be called often.
- NumPy's routines, and the plans behind them, get an entry at call DIRECT_FROM or soon after, because most
  processes make few calls.
- Packs, unpacks, relayouts and tiles get an entry at the second call of a kind and at intervals afterwards,
  because layouts recur.
- Kernels and expressions get an entry at call LOOPS_FROM of a kind and at intervals afterwards, because
  compiling already took longer.
"""

from __future__ import annotations

from typing import Any

from numpy import ndarray

DIRECT_FROM = 1024
"""Every call of a routine whose number is a multiple of this gets an entry, which saves 1 us per call."""

SOON_FROM = 24
"""Once the code for entries is loaded, every n-th call gets one if the n-th call before had the same kind.

Calls that alternate between 2, 3, 4, 6 or 8 kinds get entries this way; calls of many kinds rarely do.
"""

LOOPS_FROM = 2
"""The number of the call of a kernel or an expression with similar arguments that gets an entry."""

LOOPS_AGAIN = 32
"""Every n-th of these calls gets an entry again, because others may have replaced it."""

PLANS_UNTIL = 9
"""Calls of a plan from the second to this one get an entry, and then every LOOPS_AGAIN-th call."""


def is_repeated(calls: int) -> bool:
    """Whether the last of that many calls of a plan, answered by Python, gets an entry."""
    return 2 <= calls <= PLANS_UNTIL or calls % LOOPS_AGAIN == 0


def kind_of(args: tuple[Any, ...]) -> tuple[Any, ...]:
    """The key that calls of a routine share if one entry may answer them."""
    return tuple((x.shape, x.strides, x.dtype.num) if type(x) is ndarray else id(x) for x in args)
