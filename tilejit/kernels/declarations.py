"""Declarations about loops and index arrays of kernels; each returns its argument."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TypeVar

from codegen import LOOP_MARK

Loop = TypeVar("Loop", bound=Iterable[int])
Indices = TypeVar("Indices")


def parallel(loop: Loop) -> Loop:
    """Declare that the iterations of a loop may run at the same time.

    >>> @tilejit.kernel
    ... def double(x, y):
    ...     for i in tilejit.parallel(range(len(x))):
    ...         y[i] = 2 * x[i]
    >>> y = np.zeros(3)
    >>> double(np.array([1.0, 2.0, 3.0]), y)
    >>> y
    array([2., 4., 6.])

    If the arrays are large, threads share the iterations of the outermost such loop. This is a promise: if
    iterations write what others read or write, the result is one of the possible results. Verify mode checks
    it. In plain Python, it has no effect.

    Args:
        loop: a range.

    Returns:
        The loop itself.
    """
    return loop


def vectorizable(loop: Loop) -> Loop:
    """Promise that the iterations of a loop are independent, so that super-vectors may hold any number.

    >>> @tilejit.kernel
    ... def decay(y, k):
    ...     for i in tilejit.vectorizable(range(k, len(y))):
    ...         y[i] = 0.5 * y[i - k]
    >>> y = np.ones(8)
    >>> decay(y, 4)
    >>> y[3:6]
    array([1. , 0.5, 0.5])

    Unlike with `tilejit.parallel`, threads do not share the iterations. If the promise is broken, values may
    be wrong, but all accesses stay inside the arrays. Verify mode checks it. In plain Python, it has no
    effect.

    Args:
        loop: a range.

    Returns:
        The loop itself.
    """
    return loop


def reduction(loop: Loop) -> Loop:
    """Declare that a loop may reduce its terms in any order.

    >>> @tilejit.kernel
    ... def total(x):
    ...     s = 0.0
    ...     for i in tilejit.reduction(range(len(x))):
    ...         s += x[i]
    ...     return s
    >>> float(total(np.arange(5.0)))
    10.0

    The loop then vectorizes even without `vectorize_reductions`. Floating-point sums round differently.
    In plain Python, this has no effect.

    Args:
        loop: a range.

    Returns:
        The loop itself.
    """
    return loop


def scan(loop: Loop) -> Loop:
    """Declare that a loop may regroup the terms of its scans.

    >>> @tilejit.kernel
    ... def running_sum(a, y):
    ...     s = 0.0
    ...     for i in tilejit.scan(range(len(a))):
    ...         s += a[i]
    ...         y[i] = s
    >>> y = np.zeros(4)
    >>> running_sum(np.arange(4.0), y)
    >>> y
    array([0., 1., 3., 6.])

    The loop then vectorizes even without `vectorize_scans`. Floating-point sums round differently. In
    plain Python, this has no effect.

    Args:
        loop: a range.

    Returns:
        The loop itself.
    """
    return loop


def min_distance(loop: Loop, distance: int) -> Loop:
    """Promise that dependent iterations are at least a distance apart.

    >>> @tilejit.kernel
    ... def decay(y, k):
    ...     for i in tilejit.min_distance(range(len(y) - k), 8):
    ...         y[i + k] = 0.5 * y[i]
    >>> y = np.ones(16)
    >>> decay(y, 8)
    >>> y[7:10]
    array([1. , 0.5, 0.5])

    That many iterations may then run at once, even if the compiler cannot prove them independent; here the
    promise is that `k` is at least 8. If it is broken, values may be wrong, but all accesses stay inside the
    arrays. Verify mode checks the promise. In plain Python, it has no effect.

    Args:
        loop: a range.
        distance: the number of iterations, at least 1: a literal or a global.

    Returns:
        The loop itself.
    """
    return loop


def permutation(array: Indices) -> Indices:
    """Promise that the elements of an array of subscripts are distinct.

    >>> @tilejit.kernel
    ... def scatter(y, idx, x):
    ...     for i in range(len(idx)):
    ...         y[tilejit.permutation(idx)[i]] = x[i]
    >>> y = np.zeros(3)
    >>> scatter(y, np.array([2, 0, 1]), np.array([1.0, 2.0, 3.0]))
    >>> y
    array([2., 3., 1.])

    Stores to `y` may then be vectorized in any order. Negative elements count from the end; the positions
    that they refer to must be distinct as well. Verify mode compares the elements in each call. In plain
    Python, this has no effect.

    Args:
        array: an array of integers, an argument of the kernel.

    Returns:
        The array itself.
    """
    return array


for _function in (parallel, vectorizable, reduction, scan, min_distance, permutation):
    setattr(_function, LOOP_MARK, _function.__name__)
