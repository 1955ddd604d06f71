"""Values that are computed once: attributes without a lock, and caches with a bounded number of entries.

`functools.cached_property` has one lock for all instances before Python 3.12. A child that is forked while
another thread holds that lock waits forever. `lazy` has no lock: two threads may compute a value, and the
first one stays.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Generic, TypeVar, overload

T = TypeVar("T")
Key = TypeVar("Key")
Value = TypeVar("Value")

MOST_BOUND = 1024
"""The default limit of entries. A full cache forgets all of them."""


class lazy(Generic[T]):  # noqa: N801 - used as a decorator, like property
    """A property whose value is kept in the instance's dict, frozen dataclasses included."""

    def __init__(self, work_out: Callable[[Any], T]) -> None:
        self._work_out = work_out
        self.__doc__ = work_out.__doc__

    def __set_name__(self, owner: type, name: str) -> None:
        self._name = name

    @overload
    def __get__(self, instance: None, owner: type) -> lazy[T]: ...

    @overload
    def __get__(self, instance: object, owner: type) -> T: ...

    def __get__(self, instance: object | None, owner: type) -> T | lazy[T]:
        if instance is None:
            return self
        kept: T = vars(instance).setdefault(self._name, self._work_out(instance))
        return kept


def remember(cache: dict[Key, Value], key: Key, value: Value, most: int | None = None) -> Value:
    """Store a value in a cache that holds at most `most` entries (default: MOST_BOUND), and return it."""
    if len(cache) >= (MOST_BOUND if most is None else most) and key not in cache:
        cache.clear()
    cache[key] = value
    return value
