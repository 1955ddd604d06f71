"""Indices and arrays of a text."""

from __future__ import annotations

from codegen import Index, dataclass

INDEX = "i64"
"""An `index` is a 64-bit integer here."""


@dataclass(frozen=True, slots=True)
class MemRef:
    """An array in a function: its name, dtype, and the size of each dimension, a number or made of others."""

    name: str
    dtype: str
    sizes: tuple[Index, ...]
