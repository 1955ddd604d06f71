"""Values computed once: lock-free lazy attributes, and caches with a bounded number of entries.

Before Python 3.12, `functools.cached_property` has one lock for all instances. A child forked while another
thread holds that lock waits forever. `lazy` has no lock: two threads may both compute a value, and the first
result is kept.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Generic, TypeVar, overload

T = TypeVar("T")
Key = TypeVar("Key")
Value = TypeVar("Value")

MOST_BOUND = 1024
"""Default maximum number of entries. A full cache drops all of them."""


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


def remember(cache: dict[Key, Value], key: Key, value: Value, most: int | None = None) -> Value:
    """Store a value in a cache that holds at most `most` entries (default: MOST_BOUND), and return it."""
    if len(cache) >= (MOST_BOUND if most is None else most) and key not in cache:
        cache.clear()
    cache[key] = value
    return value
