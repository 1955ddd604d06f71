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
from tilejit.programs.tuning import AUTO, VectorSize


def take(
    a: ArrayLike,
    indices: ArrayLike,
    axis: int | None = None,
    out: Array | None = None,
    mode: Literal["raise", "wrap", "clip"] = "raise",
    *,
    threads: int | None = None,
    virtual_vector_size: VectorSize = AUTO,
) -> Any:
    """Take elements, or slices along an axis, by index, like numpy.take but faster.

    >>> x = np.arange(6).reshape(2, 3)
    >>> tilejit.take(x, [2, 0, 2], axis=1)
    array([[2, 0, 2],
           [5, 3, 5]])

    NumPy takes from arrays in C order and copies any other array into that order first. TileJIT speeds up
    that copy. With `virtual_vector_size`, a kernel takes the elements in super-vectors of that size: a gather
    by the indices, or the adjacent elements of each slice.

    Args:
        a: an array of any strides.
        indices: integers.
        axis: the axis that the indices count along; None takes from the flattened array.
        out: an array of the result's shape and dtype to write to. None allocates one.
        mode: how to handle an index out of range: "raise", "wrap" or "clip", as in NumPy.
        threads: the number of threads; None chooses it from the size.
        virtual_vector_size: elements that move at a time; see `tilejit.kernel`. If slices have fewer, it is
            their number of elements, rounded down to a power of two. "auto" leaves the elements to NumPy.

    Returns:
        `out`, or a new array in which the axis is replaced by the dimensions of `indices`.

    Raises:
        IndexError: an index is out of range, and `mode` is "raise".
        KernelValueError: `threads` is less than one.
        KernelError: `virtual_vector_size` is invalid.
        TypeError: with `virtual_vector_size`, `a` is not a plain NumPy array, or it holds objects.
    """
    if threads is not None:
        check_threads(threads)
    if virtual_vector_size is not AUTO:
        from tilejit.numpy_api.in_lanes import take_in_lanes  # few processes need it

        return take_in_lanes(a, indices, axis, out, mode, virtual_vector_size, threads)
    given = as_numpy(a)
    if is_handled(given) and not given.flags.c_contiguous:
        straight = duplicate(given, threads=threads)
        given = given if straight is None else straight
    return numpy_take(given, indices, axis, out, mode)
