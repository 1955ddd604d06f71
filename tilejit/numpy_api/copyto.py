"""numpy.copyto at memory speed."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy import ndarray
from numpy.typing import ArrayLike

from codegen import check_threads, compiler_lock, thread_count, threads_by_size
from tilejit.arrays.array_likes import as_numpy
from tilejit.arrays.memory import Array
from tilejit.arrays.numpy_originals import numpy_copyto
from tilejit.arrays.strided import minor_axis, slowness_of_copy, without_overlap
from tilejit.copies.plan import PLAIN_ARRAYS, cached_plan
from tilejit.copies.shortcuts import Shortcut, numpy_entry
from tilejit.copies.sizes import SIZES, numpy_is_as_fast
from tilejit.programs.moves import can_cast
from tilejit.programs.tuning import (
    AUTO,
    CASTINGS,
    DEFAULT,
    SAME_KIND,
    STRUCTURE,
    Casting,
    Specialize,
    Tune,
    Tuning,
    VectorSize,
    read_tuning,
)

if TYPE_CHECKING:
    from codegen import Entry


def copyto(
    dst: Array,
    src: ArrayLike,
    casting: Casting = SAME_KIND,
    where: ArrayLike = True,
    *,
    threads: int | None = None,
    virtual_vector_size: VectorSize = AUTO,
    schedule: str | None = None,
    specialize: Specialize = STRUCTURE,
    tune: Tune = False,
) -> Any:
    """Copy values from one array to another, like numpy.copyto but faster.

    >>> src = np.arange(6, dtype=np.float32).reshape(2, 3)
    >>> dst = np.zeros((3, 2), np.float32)
    >>> tilejit.copyto(dst, src.T)
    >>> dst
    array([[0., 3.],
           [1., 4.],
           [2., 5.]], dtype=float32)

    A copy touches no memory outside either array and writes nothing between the rows of `dst`. It may read up
    to 15 bytes past a row of `src`, but only inside the span of `src`, and ignores their values.

    Arrays that overlap are copied as if `src` had been copied first. NumPy 2.4.6 writes wrong elements for
    some one-dimensional overlaps, such as np.copyto(z[::2], z[:200_000]).

    Conversions warn as NumPy's do.

    NumPy itself makes the copy if the array is small or if no kernel can make it: object arrays, structured
    dtypes with holes, masked arrays, destinations whose elements share memory, rare conversions, and all
    conversions in which `where` is an array.

    Args:
        dst: the array to write to, of any strides and byte order.
        src: the values, which broadcast to the shape of `dst`.
        casting: NumPy's rule for conversions.
        where: a boolean array that broadcasts to the shape of `dst`; only elements where it is True are
            written.
        threads: the number of threads; None chooses it from the size.
        virtual_vector_size: the number of elements in a super-vector, which move together, rounded up to
            complete register blocks. In a transpose it is the number of rows and of columns. Elsewhere it
            counts elements in the order of the loops: part of a run, or several runs. A pair gives two
            sizes: the rows and columns of a transpose, or the iterations of the loops around a run and the
            elements of the run. Text such as "2*hw" and "l1/4" gives a size in terms of the machine. "auto"
            chooses. `explain` shows what a size became, and why if it is smaller than requested.
        schedule: directives for the largest part of the copy, instead of those that the compiler chooses, as
            `explain(dst, src).directives` has them: 'Tile("row", 96), Tile("column", 96), …'. The edges of a
            copy have schedules of their own. Every schedule copies the same bytes; one that no pass can obey
            is an error.
        specialize: "structure" shares kernels between shapes; "sizes" compiles one for this shape alone.
        tune: True measures a few kernels first and keeps the fastest; "live" does so on the first calls.

    Returns:
        None, unless the class of `dst` or `src` overrides the call with `__array_function__`.

    Raises:
        TypeError: `dst` is not an array, the conversion is forbidden, or a keyword has the wrong type.
        ValueError: `src` does not broadcast to the shape of `dst`, or `dst` is read-only.
        LayoutError: `virtual_vector_size`, `schedule`, `specialize` or `tune` has an invalid value.
        KernelValueError: `threads` is less than one.
    """
    tuning = DEFAULT
    defaults = virtual_vector_size is AUTO and specialize is STRUCTURE and tune is False
    if not defaults or schedule is not None:
        tuning = read_tuning(virtual_vector_size, specialize, tune, schedule)
    if threads is not None and (type(threads) is not int or threads < 1):
        check_threads(threads)
    if tuning is DEFAULT and type(dst) is ndarray:
        by_numpy = dst.size < SIZES.small_elements  # is_small, written out
        if not by_numpy and where is True:
            if casting is SAME_KIND:
                known = known_copy if threads is None else known_on_one_thread if threads == 1 else None
                if known is not None and known(dst, src) is None:
                    return None
            by_numpy = numpy_is_as_fast(dst, src)
        if by_numpy:
            if dst.ndim == 1 or type(src) is not ndarray or src.size == 1:  # else NumPy checks for overlaps
                src = without_overlap(dst, src)
            # NumPy takes 0.1 us to parse arguments that have their default values.
            if where is not True:
                return numpy_copyto(dst, src, casting, where)
            if casting is SAME_KIND:
                return numpy_copyto(dst, src)
            return numpy_copyto(dst, src, casting)
    source = _as_array(src)
    if not (
        where is True
        and source is not None
        and type(dst) in PLAIN_ARRAYS
        and dst.flags.writeable
        and _is_rule(casting)
        and (source.dtype is dst.dtype or can_cast(source.dtype, dst.dtype, casting))
    ):
        if _by_masked_stores(dst, src if source is None else source, casting, where):
            return None
        return numpy_copyto(dst, src if source is None else without_overlap(dst, source), casting, where)
    return (
        None
        if _by_kernel(dst, source, threads, tuning)
        else numpy_copyto(dst, without_overlap(dst, source), casting)
    )


def copy_plain(dst: Array, src: Array, threads: int | None = None) -> bool:
    """Copy src to dst and convert as needed, regardless of NumPy's casting rules.

    Returns False, with nothing written, if no kernel makes the copy. `dst` is writable.
    """
    if threads is None:
        if known_copy(dst, src) is None:
            return True
        if numpy_is_as_fast(dst, src):
            numpy_copyto(dst, src, "unsafe")
            return True
    return _by_kernel(dst, src, threads, DEFAULT)


def _entry_of_copy(threads: int | None, dst: Any, src: Any) -> Entry | None:
    """The native entry for copies like this one, if there is one."""
    if type(dst) is not ndarray or type(src) is not ndarray or not can_cast(src.dtype, dst.dtype, SAME_KIND):
        return None
    if threads_by_size(threads, dst.nbytes + src.nbytes, _slowness(dst, src)) > 1:
        return None
    plan = cached_plan(dst.shape, dst.strides, dst.dtype, src.shape, src.strides, src.dtype, 1)
    entry = plan._direct_entry(dst.dtype, src.dtype) if plan else None
    if entry is None and numpy_is_as_fast(dst, src):
        return numpy_entry(numpy_copyto, dst, src, disjoint=True)
    return entry


known_copy = Shortcut(partial(_entry_of_copy, None))
"""known_copy(dst, src) returns None if it has made the copy, under the rule "same_kind"."""

known_on_one_thread = Shortcut(partial(_entry_of_copy, 1))
"""The same for copies of any size that must stay on the calling thread."""


def _by_kernel(dst: Array, src: Array, threads: int | None, tuning: Tuning) -> bool:
    count = thread_count(threads, dst.nbytes + src.nbytes, _slowness(dst, src))
    layouts = dst.shape, dst.strides, dst.dtype, src.shape, src.strides, src.dtype
    # Looked up without the usual keywords, whose hash is computed in Python.
    plan = cached_plan(*layouts, count) if tuning is DEFAULT else cached_plan(*layouts, count, tuning)
    if plan is None:
        return False
    plan._run_again(dst, src)
    return True


def _by_masked_stores(dst: Any, src: Any, casting: Any, where: Any) -> bool:
    """Copy the elements that `where` selects; return whether a kernel has done it."""
    if not (
        type(where) is np.ndarray and type(dst) is np.ndarray and dst.flags.writeable and _is_rule(casting)
    ):
        return False
    with compiler_lock:  # imports the compiler of expressions, which few processes need
        from tilejit.numpy_api.masked import copy_where
    return copy_where(dst, src, casting, where)


def _is_rule(casting: Any) -> bool:
    """Whether it is one of NumPy's rules, as a plain string."""
    return type(casting) is str and casting in CASTINGS


def _as_array(src: Any) -> Array | None:
    """The source as a plain array, or None if NumPy has rules of its own for it."""
    if type(src) in PLAIN_ARRAYS:
        return src  # type: ignore[no-any-return]
    if isinstance(src, bool | int | float | complex) or hasattr(type(src), "__array_function__"):
        return None
    array = np.asanyarray(as_numpy(src))
    return array if type(array) in PLAIN_ARRAYS else None


def _slowness(dst: Array, src: Array) -> int:
    return slowness_of_copy(minor_axis(dst.shape, dst.strides), minor_axis(src.shape, src.strides))
