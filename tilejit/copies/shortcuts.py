"""A native fast path for frequent calls of routines: a kernel, or NumPy's own routine."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from numpy import ndarray

from codegen import Direct, compiler_lock, is_direct, on_clear
from tilejit.arrays.strided import span
from tilejit.programs import direct_policy as policy

if TYPE_CHECKING:
    from codegen import Entry


class Shortcut(Direct):
    """The native fast path of a routine: it returns the routine's result, or itself for unknown calls.

    >>> answer = shortcut(x)
    >>> if answer is not shortcut:
    ...     return answer

    `direct_policy` decides which calls it learns, if `entry_for` has an entry for them. It identifies calls
    by the layouts of their arrays.
    """

    __slots__ = ("__weakref__", "_call_count", "_entry_for", "_last_kind")

    _last_kind: tuple[Any, ...] | None

    def __init__(self, entry_for: Callable[..., Entry | None]) -> None:
        self._entry_for = entry_for
        self.forget()
        _every.append(self)
        on_clear(self, Shortcut.forget)

    def __call__(self, *args: Any) -> Any:
        """Handle calls that native code does not answer."""
        self._call_count += 1
        if self._call_count % policy.DIRECT_FROM == 0:
            self._answer_directly(self._entry_for(*args))
        elif self._call_count % policy.SOON_FROM == 0 and is_direct(Shortcut):
            before, self._last_kind = self._last_kind, policy.kind_of(args)
            if before == self._last_kind:
                self._answer_directly(self._entry_for(*args))
        return self

    _in_python = __call__

    def forget(self) -> None:
        """Forget all calls."""
        self._call_count, self._last_kind = 0, None
        self._answer_none_directly()


_every: list[Shortcut] = []
"""Each belongs to a module and lives as long as the module."""


def forget_all() -> None:
    """Reset every shortcut after the thresholds of NumPy's copies change."""
    for shortcut in _every:
        shortcut.forget()


def numpy_entry(routine: Callable[..., Any], *args: Any, disjoint: bool = False) -> Entry:
    """The entry for calls that NumPy's routine answers: arrays of such layouts, or identical arguments.

    Args:
        routine: NumPy's routine.
        args: the arguments of such a call.
        disjoint: whether the first argument, which is written, must not overlap the second.
    """
    with compiler_lock:  # few processes repeat a call often enough
        from codegen import ArrayArgument, Disjoint, Entry, PassedThrough, SameArgument
    arguments = tuple(
        ArrayArgument(x.dtype, x.shape, x.strides, written=False) if type(x) is ndarray else SameArgument(x)
        for x in args
    )
    if not disjoint:
        return Entry(arguments, (), (), returns=PassedThrough(routine))
    (low, stop), (src_low, src_stop) = (span(x.shape, x.strides, x.itemsize) for x in args[:2])
    return Entry(
        arguments, (Disjoint(1, 0, src_low - stop, src_stop - low),), (), returns=PassedThrough(routine)
    )
