"""Lookups that succeed unless the compiler contradicts itself. A failure names what is missing, and where."""

from __future__ import annotations

from collections.abc import Hashable, Iterable
from typing import NoReturn, TypeVar

T = TypeVar("T")
Key = TypeVar("Key", bound=Hashable)
Value = TypeVar("Value")


def expect(items: Iterable[T], what: str, where: object) -> T:
    """The next of some items.

    >>> expect((x for x in box.axes if x.name == "i"), "axis i", box)

    Raises:
        AssertionError: there is none; `next` would raise StopIteration, which ends the caller's generators.
    """
    for item in items:
        return item
    raise AssertionError(f"expected {what} in {where}")


class Known(dict[Key, Value]):
    """A dict in which every key that is looked up must be.

    >>> Known(i=4, j=8)["k"]
    AssertionError: expected k among i, j
    """

    def __missing__(self, key: Key) -> NoReturn:
        raise AssertionError(f"expected {key} among {', '.join(map(str, self)) or 'no keys'}")
