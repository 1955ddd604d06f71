"""When calls get a native fast path: one policy for copies, routines, kernels and expressions.

An entry for such calls takes 0.2 ms to make, and the code that reads entries 10 ms to load, once in a
process. An object has at most 8 entries, so calls of many kinds replace each other's.

| calls of | get an entry | because |
|---|---|---|
| a plan that `plan_copy` makes | before the first one | plans are made to be called often |
| NumPy's routines, and plans behind them | at call DIRECT_FROM, or soon | most processes make few calls |
| packs, unpacks, relayouts, tiles | at the second like it, then now and then | layouts come again and again |
| kernels and expressions | at call LOOPS_FROM of a kind, then now and then | compiling took longer already |
"""

from __future__ import annotations

from typing import Any

from numpy import ndarray

DIRECT_FROM = 1024
"""A routine's call of this number, and of its multiples, gets an entry. That saves 1 us per call."""

SOON_FROM = 24
"""Once the code for entries is loaded, every call of so many gets one if it is like the one so many before.

Where calls of many kinds take turns, few get entries so soon. Calls of 2, 3, 4, 6 or 8 kinds in turns meet
themselves.
"""

LOOPS_FROM = 2
"""The call of a kernel or an expression, with arguments alike, that gets an entry."""

LOOPS_AGAIN = 32
"""Every so many of these calls get an entry again, because others may have replaced theirs."""


PLANS_UNTIL = 9
"""The calls of a plan from the second to this one get an entry, and then every LOOPS_AGAIN."""


def is_repeated(calls: int) -> bool:
    """Whether the last of so many calls of a plan that Python answered gets an entry."""
    return 2 <= calls <= PLANS_UNTIL or calls % LOOPS_AGAIN == 0


def kind_of(args: tuple[Any, ...]) -> tuple[Any, ...]:
    """What calls of a routine have in common that one entry may answer."""
    return tuple((x.shape, x.strides, x.dtype.num) if type(x) is ndarray else id(x) for x in args)
