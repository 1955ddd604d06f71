"""Values computed once: lock-free lazy attributes, patterns, and bounded caches that `clear_caches` empties.

Before Python 3.12, `functools.cached_property` has one lock for all instances. A child forked while another
thread holds that lock waits forever. `lazy` has no lock: two threads may both compute a value, and the first
result is kept.
"""

from __future__ import annotations

import re
import threading
from collections.abc import Callable
from functools import cache, lru_cache
from typing import TYPE_CHECKING, Any, Generic, Protocol, TypeVar, cast, overload
from weakref import WeakKeyDictionary

from codegen.support.locks import hold_in_forks

if TYPE_CHECKING:
    from functools import _lru_cache_wrapper

T = TypeVar("T")
Key = TypeVar("Key")
Value = TypeVar("Value")
_Asked = TypeVar("_Asked", contravariant=True)
_Found = TypeVar("_Found", covariant=True)

MOST_BOUND = 1024
"""Default maximum number of entries. A full cache drops all of them."""

_lock = threading.RLock()
"""Held while a cache changes; reentrant, because garbage collection may run anything meanwhile."""
hold_in_forks(_lock)

_clears: WeakKeyDictionary[Any, Callable[[Any], object]] = WeakKeyDictionary()
"""Everything that `clear_caches` empties, and how."""


class lazy(Generic[T]):  # noqa: N801 - used as a decorator, like property
    """A property that caches its value in the instance's dict; it also works on frozen dataclasses."""

    def __init__(self, compute: Callable[[Any], T]) -> None:
        self._compute = compute
        self.__doc__ = compute.__doc__

    def __set_name__(self, owner: type, name: str) -> None:
        self._name = name

    @overload
    def __get__(self, instance: None, owner: type) -> lazy[T]: ...

    @overload
    def __get__(self, instance: object, owner: type) -> T: ...

    def __get__(self, instance: object | None, owner: type) -> T | lazy[T]:
        if instance is None:
            return self
        kept: T = vars(instance).setdefault(self._name, self._compute(instance))
        return kept


class _Get(Protocol[_Asked, _Found]):
    """The lookup methods of a dict."""

    @overload
    def __call__(self, key: _Asked, /) -> _Found | None: ...

    @overload
    def __call__(self, key: _Asked, default: T, /) -> _Found | T: ...


class Cache(Generic[Key, Value]):
    """A mapping of at most `most` entries (default: MOST_BOUND), which `clear_caches` empties.

    >>> plans = Cache()
    >>> plan = plans.get(key) or plans.keep(key, compute(key))

    `get` is a dict's own method and takes no lock. Threads may both compute a value; all get a correct one.
    """

    __slots__ = ("__weakref__", "_held", "_most", "get")

    get: _Get[Key, Value]

    def __init__(self, most: int | None = None) -> None:
        self._most = MOST_BOUND if most is None else most
        self._held: dict[Key, Value] = {}
        self.get = cast("Any", self._held.get)
        on_clear(self, Cache.clear)

    def __len__(self) -> int:
        return len(self._held)

    def keep(self, key: Key, value: Value) -> Value:
        """Store a value, and return it; a full cache drops all others."""
        dropped: list[object] = []  # destroyed after the lock is released
        with _lock:
            if len(self._held) >= self._most and key not in self._held:
                dropped += self._held.items()
                self._held.clear()
            self._held[key] = value
        return value

    def clear(self) -> None:
        """Drop all entries."""
        with _lock:
            dropped = list(self._held.items())
            self._held.clear()
        del dropped


def cached(most: int) -> Callable[[Callable[..., T]], _lru_cache_wrapper[T]]:
    """`functools.lru_cache` of at most `most` results, which `clear_caches` empties.

    >>> @cached(256)
    ... def parsed(text): ...
    """

    def wrap(function: Callable[..., T]) -> _lru_cache_wrapper[T]:
        kept = lru_cache(maxsize=most)(function)
        on_clear(kept, type(kept).cache_clear)
        return kept

    return wrap


def lazy_pattern(text: str, flags: int = 0) -> Callable[[], re.Pattern[str]]:
    """A regular expression that is compiled on first use.

    >>> _NUMBER = lazy_pattern("[0-9]+")
    >>> _NUMBER().fullmatch("12")

    Python takes 0.1 to 0.5 ms to compile one. The modules that a first copy imports have a dozen, and few
    copies use any of them.
    """

    @cache
    def pattern() -> re.Pattern[str]:
        return re.compile(text, flags)

    return pattern


def on_clear(owner: T, clear: Callable[[T], object]) -> None:
    """Make `clear_caches` call `clear(owner)` as long as the owner lives."""
    with _lock:
        _clears[owner] = clear


def clear_caches() -> None:
    """Empty every cache of the process. Machine code stays loaded."""
    with _lock:
        owners = list(_clears.items())
    for owner, clear in owners:
        clear(owner)
