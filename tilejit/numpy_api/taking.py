"""numpy.take."""

from __future__ import annotations

from typing import Any, Literal

from numpy.typing import ArrayLike

from codegen import check_threads
from tilejit.arrays.array_likes import as_numpy
from tilejit.arrays.memory import Array
from tilejit.arrays.numpy_originals import numpy_take
from tilejit.copies.sizes import is_handled
from tilejit.numpy_api.results import duplicate


def take(
    a: ArrayLike,
    indices: ArrayLike,
    axis: int | None = None,
    out: Array | None = None,
    mode: Literal["raise", "wrap", "clip"] = "raise",
    *,
    threads: int | None = None,
) -> Any:
    """Elements, or whole slices along an axis, by their numbers: numpy.take, only faster.

    >>> tilejit.take(x.T, [2, 0, 2], axis=0)

    All arguments as in NumPy. NumPy takes from C order, and brings an array of any other order into it first;
    that copy is the part that is faster here. threads: a number, or None to let the size decide.

    Raises:
        IndexError: an index is out of range, and mode is "raise".
        KernelError: threads is less than one.
    """
    if threads is not None:
        check_threads(threads)
    given = as_numpy(a)
    if is_handled(given) and not given.flags.c_contiguous:
        straight = duplicate(given, threads=threads)
        given = given if straight is None else straight
    return numpy_take(given, indices, axis, out, mode)
