"""Read a NumPy basic index as a box of the array: its starts, steps and extents."""

from __future__ import annotations

from typing import Any

from numpy import bool_

from codegen import LayoutIndexError
from tilejit.arrays.memory import MAX_RANK


def is_element(key: Any, shape: tuple[int, ...]) -> bool:
    """Whether a key that `box_of_key` reads names one element by an integer for each dimension."""
    parts = key if isinstance(key, tuple) else (key,)
    return len(parts) == len(shape) and all(hasattr(p, "__index__") for p in parts)


def hashable_key(key: Any) -> tuple[Any, ...] | None:
    """A key of plain integers, slices, `...` and None, with tuples instead of slices; None for other keys.

    (2, slice(1, None, 2)) -> (2, (1, None, 2))    (True, 2) -> None
    """
    out: list[Any] = []
    for part in key if type(key) is tuple else (key,):
        if type(part) is slice:
            start, stop, step = part.start, part.stop, part.step
            if not (
                (start is None or type(start) is int)
                and (stop is None or type(stop) is int)
                and (step is None or type(step) is int)
            ):
                return None
            out.append((start, stop, step))
        elif type(part) is int or part is None or part is Ellipsis:
            out.append(part)
        else:
            return None
    return tuple(out)


def box_of_key(
    key: Any, shape: tuple[int, ...]
) -> tuple[tuple[int, ...], tuple[int, ...], tuple[int, ...], tuple[int, ...]]:
    """Return (starts, steps, extents, shape of the result) of a NumPy basic index.

    (2, slice(1, None, 2)), (3, 5) -> (2, 1), (1, 2), (1, 2), (2,)

    Raises:
        LayoutIndexError: the key is out of bounds, has too many parts, or adds too many dimensions.
        TypeError: the key contains anything other than integers, slices, `...` and None.
    """
    parts = list(key) if isinstance(key, tuple) else [key]
    ellipses = [k for k, p in enumerate(parts) if p is Ellipsis]
    given = sum(p is not None and p is not Ellipsis for p in parts)
    if len(ellipses) > 1:
        raise LayoutIndexError("an index can have only one ellipsis")
    if given > len(shape):
        raise LayoutIndexError(f"expected at most {len(shape)} indices, got {given}")
    missing = [slice(None)] * (len(shape) - given)
    at = ellipses[0] if ellipses else len(parts)
    parts = parts[:at] + missing + parts[at + 1 :]
    starts: list[int] = []
    steps: list[int] = []
    extents: list[int] = []
    kept: list[int] = []
    for part in parts:
        if part is None:
            kept.append(1)
            continue
        size = shape[len(starts)]
        if isinstance(part, slice):
            try:
                start, stop, step = part.indices(size)
            except ValueError as error:
                raise LayoutIndexError(f"the slice {part}: {error}") from error
            count = len(range(start, stop, step))
            kept.append(count)
        else:
            start, step, count = _whole_number(part, size, len(starts)), 1, 1
        starts.append(start if count else 0)
        steps.append(step if count > 1 else 1)  # an unused step may exceed 64 bits
        extents.append(count)
    if len(kept) > MAX_RANK:
        raise LayoutIndexError(
            f"the result would have {len(kept)} dimensions\n  NumPy arrays have at most {MAX_RANK}"
        )
    return tuple(starts), tuple(steps), tuple(extents), tuple(kept)


def _whole_number(part: Any, size: int, dimension: int) -> int:
    if isinstance(part, bool | bool_) or not hasattr(part, "__index__"):
        raise _not_basic(part)
    try:
        index = int(part.__index__())
    except TypeError as error:
        raise _not_basic(part) from error
    if not -size <= index < size:
        raise LayoutIndexError(f"index {index} lies outside dimension {dimension}, which has {size} elements")
    return index % size


def _not_basic(part: Any) -> TypeError:
    return TypeError(
        f"expected integers and slices as an index of a tiled array, got {type(part).__name__}\n"
        "  tilejit.gather_tiles takes tiles by their numbers; np.asarray(t)[...] takes any index"
    )
