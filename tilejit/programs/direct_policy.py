"""When calls get a native fast path: one policy for copies, routines, kernels and expressions.

An entry for such calls takes 0.2 ms to create, and the code that reads entries takes 10 ms to load, once in a
process. An object has at most 8 entries, so entries of many kinds of calls replace each other.

| calls of | get an entry | because | |---|---|---| | a plan from `plan_copy` | before the first one | plans
exist to be called often | | NumPy's routines, and plans behind them | at call DIRECT_FROM, or soon after |
most processes make few calls | | packs, unpacks, relayouts, tiles | at the second like it, then now and then
| layouts recur | | kernels and expressions | at call LOOPS_FROM of a kind, then now and then | compiling took
longer already |
"""

from __future__ import annotations

from typing import Any

from numpy import ndarray

DIRECT_FROM = 1024
"""The number of a routine's call, and its multiples, that get an entry. That saves 1 us per call."""

SOON_FROM = 24
"""Once the code for entries is loaded, every n-th call gets one if it is like the n-th call before it.

If calls of many kinds alternate, few get entries that soon. Calls of 2, 3, 4, 6 or 8 alternating kinds do.
"""

LOOPS_FROM = 2
"""The number of the call of a kernel or an expression, with similar arguments, that gets an entry."""

LOOPS_AGAIN = 32
"""Every n-th of these calls gets an entry again, because others may have replaced it."""


PLANS_UNTIL = 9
"""Calls of a plan from the second to this one get an entry, and then every LOOPS_AGAIN-th."""


def is_repeated(calls: int) -> bool:
    """Whether the last of that many calls of a plan, answered by Python, gets an entry."""
    return 2 <= calls <= PLANS_UNTIL or calls % LOOPS_AGAIN == 0


def kind_of(args: tuple[Any, ...]) -> tuple[Any, ...]:
    """The key that calls of a routine share if one entry may answer them."""
    return tuple((x.shape, x.strides, x.dtype.num) if type(x) is ndarray else id(x) for x in args)
