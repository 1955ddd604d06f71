"""Bounds and dividends beyond 64 bits: kernels compute with wrapped numbers, so such calls are refused."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import tilejit as tj
from tests.tools.guard import Guarded


def filled_from(y, n):
    for _ in range(2):
        for j in range(n * 4, 10):
            y[j] = 1.0


def filled_down(y, n):
    for _ in range(2):
        for j in range(4, n * 4, -1):
            y[j] = 1.0


def divided(y, n):
    for i in range(4):
        y[(n * 4) // 2**61 + i] = 1.0


def divided_by_loop(y, n):
    for i in range(4 + n * 0):
        y[(i * 2**61) // (3 * 2**60)] = 1.0


def remainder(y, n):
    for i in range(4):
        y[(n * 4) % 3 + i] = 1.0


def filled_to_quotient(y, n):
    for i in range(4):
        for j in range((n * 4 + i) // 2**61):
            y[j] = 1.0


def combined(y, n):
    for i in range(4):
        y[((n * 4) ^ i) >> 3] = 1.0


def combined_with_number(y, n):
    for i in range(n >> 58):
        y[(i * 2**61) | 1] = 1.0


def masked_and_divided(y, n):
    for i in range(4):
        y[((n * 4 + i) & ~7) // 5] = 1.0


@pytest.mark.parametrize(
    ("function", "number"),
    [
        (filled_from, 2**62),
        (filled_from, -(2**62)),
        (filled_down, -(2**62)),
        (divided, 2**61),
        (remainder, 2**61),
        (filled_to_quotient, 2**61),
        (combined, 2**62),
        (combined_with_number, 2**62),
        (masked_and_divided, 2**62),
    ],
)
def test_numbers_that_wrap_around_are_refused(function: Callable[..., None], number: int) -> None:
    """No call computes a bound or a dividend of more than 64 bits, in which nothing would be proven."""
    room = Guarded(64)
    for size in (3, 16):
        for at_end in (True, False):
            y = room.place(4 * size, at_end=at_end).view("f4")
            before = y.copy()
            with pytest.raises(IndexError, match="may leave the array"):
                tj.kernel(function)(y, number)
            np.testing.assert_array_equal(y, before)
            assert room.untouched()


def test_dividends_of_loops_must_fit() -> None:
    """The subscripts of Python are 0, 0, 1 and 2; for one iteration more, the dividend has 65 bits."""
    y = np.zeros(8, "f4")
    tj.kernel(divided_by_loop)(y, 0)
    np.testing.assert_array_equal(np.flatnonzero(y), [0, 1, 2])

    def longer(y):
        for i in range(5):
            y[(i * 2**61) // (3 * 2**60)] = 1.0

    with pytest.raises(IndexError, match="may leave the array"):
        tj.kernel(longer)(y)


def test_bits_of_wrapped_numbers_are_the_lowest_bits() -> None:
    """Sums, products and bits wrap around, and a mask takes what all numbers of bits agree in."""

    def low_bits(y, n):
        for i in range(9):
            y[((i << 61) | (n * 8 + i)) & 15] += 1.0

    for n in (0, 2**60, 2**62 - 1):
        mine, theirs = np.zeros(16), np.zeros(16)
        tj.kernel(low_bits)(mine, n)
        low_bits(theirs, n)
        np.testing.assert_array_equal(mine, theirs)


def test_large_numbers_that_fit_still_run() -> None:
    def clipped(y, n):
        for i in range(min(n, y.shape[0])):
            y[(n - i) // 2**61] += 1.0

    y = np.zeros(4, "f4")
    tj.kernel(clipped)(y, 2**63 - 1)
    np.testing.assert_array_equal(y, [0, 0, 0, 4])


def test_negated_quotients_and_remainders() -> None:
    """Python's -i // 2 is not -(i // 2): elements of one byte have subscripts without a factor."""

    def folded(y, x):
        for i in range(8):
            y[3 - i // 2] += x[i]
            y[2 - i % 3] += x[i]

    x, room = np.arange(8, dtype=np.uint8), Guarded(4)
    for at_end in (True, False):
        y, expected = room.place(4, at_end=at_end), np.zeros(4, np.uint8)
        y[:] = 0
        tj.kernel(folded)(y, x)
        folded(expected, x)
        np.testing.assert_array_equal(y, expected)
        assert room.untouched()


def shifted_far(a, c, n):
    for i in range(n, n + a.shape[0]):
        c[i - n] = a[i - n]


@pytest.mark.parametrize(
    "options", [{"schedule": 'Tile("i", 1073741824)'}, {"virtual_vector_size": 1024}, {}], ids=str
)
def test_tiles_never_end_beyond_64_bits(options: dict[str, Any]) -> None:
    """The end of a tile may be far beyond the end of its loop."""
    a, c = np.arange(40), np.zeros(40, np.int64)
    kernel = tj.kernel(shifted_far, **options)
    for n in (2**63 - 50, 2**62 + 1):
        with pytest.raises(tj.KernelIndexError, match="may leave the array"):
            kernel(a, c, n)
    assert not c.any()
    kernel(a, c, 2**62 - 100)
    np.testing.assert_array_equal(c, a)
