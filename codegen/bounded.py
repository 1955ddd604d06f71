"""Caches that never grow beyond a number of entries, for keys that functions with `lru_cache` cannot have."""

from __future__ import annotations

from typing import TypeVar

MOST_BOUND = 1024
"""Entries of a cache; past it all are forgotten, and worked out anew."""

Key = TypeVar("Key")
Value = TypeVar("Value")


def remember(cache: dict[Key, Value], key: Key, value: Value, most: int | None = None) -> Value:
    """Put a value into a cache, which never has more than `most` of them, or MOST_BOUND; the value."""
    if len(cache) >= (MOST_BOUND if most is None else most) and key not in cache:
        cache.clear()
    cache[key] = value
    return value
