"""Names of the digits of an index: i for the elements of a tile, tile_i for the tiles."""

from __future__ import annotations

from collections.abc import Sequence

LETTERS = "ijklmnpq"
"""The indices of arrays of up to eight dimensions."""


def index_name(dims: Sequence[int]) -> str:
    """The index along a dimension, or along several that are one.

    (1,) -> j    (0, 1) -> ij    (9,) -> i9    () -> unit: tiles of more dimensions than the array has
    """
    return "unit" if not dims else "".join(LETTERS[d] if d < len(LETTERS) else f"i{d}" for d in dims)


def digit_names(dims: Sequence[int], levels: int) -> tuple[str, ...]:
    """The names of the digits of an index, innermost first.

    (0,), 1 -> i    (0,), 2 -> i, tile_i    (0,), 4 -> i, subtile2_i, subtile_i, tile_i
    """
    index = index_name(dims)
    outer = ["tile", "subtile", *(f"subtile{k}" for k in range(2, levels))]
    return index, *(f"{word}_{index}" for word in reversed(outer[: levels - 1]))
