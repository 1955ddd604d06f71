"""The axes and keywords of a reduction, interpreted as in NumPy."""

from __future__ import annotations

from operator import index
from typing import Any, TypeAlias

from codegen import KernelError, LayoutError, LayoutIndexError

Axes: TypeAlias = tuple[int, ...]
"""Dimensions counted from the first, in order, each once."""

_PARAMETERS = {
    "sum": ("axis", "dtype", "out", "keepdims", "initial", "where"),
    "mean": ("axis", "dtype", "out", "keepdims", "where"),
    "min": ("axis", "out", "keepdims", "initial", "where"),
}
_INSTEAD = {
    "out": "pass out= to the call",
    "initial": "combine the result with it",
    "where": "write np.where(mask, x, 0) for x",
}


def bound_arguments(name: str, args: tuple[Any, ...], keywords: dict[str, Any]) -> tuple[Any, Any, Any, bool]:
    """The arguments of a NumPy reduction: the array, axis, dtype, keepdims.

    Raises:
        KernelError: out, initial or where is given.
        TypeError: a keyword does not exist, or is given twice, or there are too many arguments.
    """
    parameters = _PARAMETERS.get(name, _PARAMETERS["min"])
    if len(args) > 1 + len(parameters):
        raise TypeError(f"{name} takes at most {1 + len(parameters)} arguments, got {len(args)}")
    given = dict(zip(parameters, args[1:], strict=False))
    for key, value in keywords.items():
        if key in given or key not in parameters:
            wrong = f"got {key} twice" if key in given else f"unexpected keyword {key}"
            raise TypeError(f"np.{name} of an expression: {wrong}")
        given[key] = value
    for key, instead in _INSTEAD.items():
        if given.get(key) is not None:
            raise KernelError(f"np.{name} of an expression does not support {key}=\n  {instead}")
    return args[0], given.get("axis"), given.get("dtype"), bool(given.get("keepdims"))


def read_axes(axis: Any, rank: int) -> Axes:
    """The dimensions of NumPy's axis=.

    None, 3 -> (0, 1, 2)    -1, 3 -> (2,)    (2, 0), 3 -> (0, 2)

    Raises:
        LayoutIndexError: a dimension does not exist, like NumPy's AxisError.
        LayoutError: a dimension is named twice.
        TypeError: a dimension is not an integer.
    """
    if axis is None:
        return tuple(range(rank))
    if not rank and axis in (0, -1):  # NumPy treats numbers as vectors of one element here
        return ()
    axes = [_dimension(each) for each in (axis if isinstance(axis, tuple) else (axis,))]
    for each in axes:
        if not -rank <= each < rank:
            raise LayoutIndexError(f"axis {each} is out of bounds for array of dimension {rank}")
    found = tuple(sorted(each % rank for each in axes))
    if len(set(found)) < len(found):
        raise LayoutError(f"duplicate value in 'axis': {axis!r}")
    return found


def _dimension(axis: Any) -> int:
    if isinstance(axis, bool):
        raise TypeError("expected an integer axis, got bool")
    return index(axis)


def kept_rank(rank: int, axes: Axes, keepdims: bool) -> int:
    """The number of remaining dimensions."""
    return rank if keepdims else rank - len(axes)


def kept_shape(shape: tuple[int, ...], axes: Axes, keepdims: bool) -> tuple[int, ...]:
    """The remaining shape: (3, 4, 5), (1,), True -> (3, 1, 5)"""
    if keepdims:
        return tuple(1 if d in axes else n for d, n in enumerate(shape))
    return tuple(n for d, n in enumerate(shape) if d not in axes)
