"""Attributes worked out once, without a lock.

`functools.cached_property` has one lock for all instances before Python 3.12; a child forked while another
thread held it would wait for ever. Two threads may work the same value out here; the first one stays.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Generic, TypeVar, overload

T = TypeVar("T")


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
