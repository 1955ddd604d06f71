"""Calls of routines that come often, answered by machine code: a kernel's, or NumPy's own."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from numpy import ndarray

from codegen import Direct, compiler_lock, is_direct, on_clear
from tilejit.arrays.strided import span

if TYPE_CHECKING:
    from codegen import Entry

DIRECT_FROM = 1024
"""From this time on what is called again and again is called directly.

That saves 1 us. To load the code for it takes 10 ms, once in a process, and to build it as long as a kernel.
"""

SOON_FROM = 24
"""Once that code is there, a call like the one so many times before is learnt, each such time.

Entries take 0.2 ms to make and are few: where calls of many kinds take turns, few are learnt so soon. Calls
of 2, 3, 4, 6 or 8 kinds in turns meet themselves.
"""


class Shortcut(Direct):
    """What machine code has learnt of a routine's calls; it gives the routine's answer, or itself.

    >>> answer = shortcut(x)
    >>> if answer is not shortcut:
    ...     return answer

    Of the calls that it does not know each DIRECT_FROM-th is learnt, if `entry_for` has an entry for it: what
    comes often comes up soon. Each SOON_FROM-th is learnt if it is like the last of these. What it knows are
    layouts of arrays, as they were when that was decided.
    """

    __slots__ = ("__weakref__", "_asked", "_entry_for", "_last_asked")

    _last_asked: tuple[Any, ...] | None

    def __init__(self, entry_for: Callable[..., Entry | None]) -> None:
        self._entry_for = entry_for
        self.forget()
        _every.append(self)
        on_clear(self, Shortcut.forget)

    def __call__(self, *args: Any) -> Any:
        """The way of calls that machine code does not answer."""
        self._asked += 1
        if self._asked % DIRECT_FROM == 0:
            self._answer_directly(self._entry_for(*args))
        elif self._asked % SOON_FROM == 0 and is_direct(Shortcut):
            before, self._last_asked = self._last_asked, _sort_of(args)
            if before == self._last_asked:
                self._answer_directly(self._entry_for(*args))
        return self

    _in_python = __call__

    def forget(self) -> None:
        """Know no call any more."""
        self._asked, self._last_asked = 0, None
        self._answer_none_directly()


def _sort_of(args: tuple[Any, ...]) -> tuple[Any, ...]:
    """What calls have in common that one entry may answer."""
    return tuple((x.shape, x.strides, x.dtype.num) if type(x) is ndarray else id(x) for x in args)


_every: list[Shortcut] = []
"""Each belongs to a module, and lives as long."""


def forget_all() -> None:
    """Have every shortcut learn anew: thresholds have changed by which it was decided who makes a copy."""
    for shortcut in _every:
        shortcut.forget()


def passed_on(numpys: Callable[..., Any], *args: Any, apart: bool = False) -> Entry:
    """The entry for calls that NumPy's routine answers: arrays of such layouts, else the very arguments.

    apart: the first argument, which is written, and the second must not reach into each other.
    """
    with compiler_lock:  # most processes make no call often enough
        from codegen import ArrayArgument, Disjoint, Entry, PassedThrough, SameArgument
    arguments = tuple(
        ArrayArgument(x.dtype, x.shape, x.strides, written=False) if type(x) is ndarray else SameArgument(x)
        for x in args
    )
    if not apart:
        return Entry(arguments, (), (), returns=PassedThrough(numpys))
    (low, stop), (src_low, src_stop) = (span(x.shape, x.strides, x.itemsize) for x in args[:2])
    return Entry(
        arguments, (Disjoint(1, 0, src_low - stop, src_stop - low),), (), returns=PassedThrough(numpys)
    )
