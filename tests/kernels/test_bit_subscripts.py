"""Subscripts and bounds with &, |, ^, ~, << and >>: swizzles, packed digits, and random expressions."""

from __future__ import annotations

import random
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import tilejit as tj
from tests.codegen.passes.random_nests import compiled
from tests.conftest import SEED
from tests.tools.extent import examples, few_by_default
from tests.tools.guard import Guarded


def swizzled(y, x):
    for i in range(x.shape[0]):
        for j in range(x.shape[1]):
            y[i, j ^ (i & 7)] = x[i, j]


def swizzled_roots(y, x):
    for i in range(x.shape[0]):
        for j in range(x.shape[1]):
            y[i, j ^ (i & 7)] = np.cbrt(x[i, j]) + 1


def unswizzled(y, x):
    for i in range(y.shape[0]):
        for j in range(y.shape[1]):
            y[i, j] = x[i, j ^ (i & 7)]


def unswizzled_roots(y, x):
    for i in range(y.shape[0]):
        for j in range(y.shape[1]):
            y[i, j] = np.cbrt(x[i, j ^ (i & 7)])


def in_place(y, x):
    for i in range(y.shape[0]):
        for j in range(y.shape[1]):
            y[i, j ^ (i & 3)] = np.cbrt(y[i, j ^ (i & 3)]) + x[i, j]


def neighbors(y, x):
    for i in range(x.shape[0]):
        for j in range(x.shape[1]):
            y[i, j] = np.cbrt(x[i, j ^ 1]) * (j & 3)


def halves(y, x):
    for i in range(y.shape[0]):
        for j in range(y.shape[1]):
            y[i, j] = x[i >> 1, j >> 1]


def low_bits(y, x):
    for i in range(y.shape[0]):
        for j in range(y.shape[1] & ~7):
            for k in range(i & 7):
                y[i, (j & -8) | k] += x[i & 3, j & 15]


KERNELS = (swizzled, swizzled_roots, unswizzled, unswizzled_roots, in_place, neighbors, halves, low_bits)
SIZES = ("auto", 16, 256, (8, 32))
TAILS = ("mask", "scalar", "shift")


def arguments(dtype: str, shape: tuple[int, int]) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(SEED)
    y, x = (rng.integers(0, 9, shape).astype(dtype) for _ in range(2))
    return y, x


@pytest.mark.parametrize(
    ("function", "size", "tail", "dtype"),
    few_by_default(
        [
            (f, size, TAILS[(m + n) % 3], ("f4", "f8")[(m + n) % 2])
            for m, f in enumerate(KERNELS)
            for n, size in enumerate(SIZES)
        ],
        6,
    ),
)
def test_kernels_agree_with_python(function: Callable[..., None], size: Any, tail: str, dtype: str) -> None:
    """Functions take each size, with the tails and dtypes in turn."""
    kernel = tj.kernel(function, virtual_vector_size=size, tail=tail)
    for shape in ((8, 16), (13, 40), (3, 72), (0, 8)):
        mine, x = arguments(dtype, shape)
        theirs = mine.copy()
        kernel(mine, x)
        function(theirs, x)
        np.testing.assert_allclose(mine, theirs, rtol=1e-6)


@pytest.mark.full
@pytest.mark.parametrize("dtype", ["?", "u1", "i2", "f2", "u4", "i8"])
def test_dtypes(dtype: str) -> None:
    for function in (swizzled, unswizzled, halves):
        mine, x = arguments(dtype, (9, 24))
        theirs = mine.copy()
        tj.kernel(function)(mine, x)
        function(theirs, x)
        np.testing.assert_array_equal(mine, theirs)


def test_the_inverse_of_a_swizzle() -> None:
    x = np.arange(16 * 64.0).reshape(16, 64)
    packed, back = np.zeros_like(x), np.zeros_like(x)
    tj.kernel(swizzled)(packed, x)
    tj.kernel(unswizzled)(back, packed)
    np.testing.assert_array_equal(back, x)
    assert not np.array_equal(packed, x)


def test_reports_say_why() -> None:
    """Lanes scatter a swizzle where they pay off. Copies run element by element, which is faster."""
    given = arguments("f4", (16, 64))
    report = tj.kernel(swizzled_roots).specialize(*given).report()
    assert "loop j: vectorized" in report
    assert "y[i, j ^ (i % 8)] scattered" in report
    assert "x[i, j ^ (i % 8)] gathered" in tj.kernel(unswizzled_roots).specialize(*given).report()
    assert "not-profitable" in tj.kernel(swizzled).specialize(*given).report()


def test_disjoint_bits_are_contiguous() -> None:
    """(i << 4) | k is 16*i + k, as k has four bits."""

    def joined(y, x):
        for i in range(x.shape[0]):
            for k in range(16):
                y[(i << 4) | k] = x[i, k ^ 0]

    kernel, x = tj.kernel(joined, virtual_vector_size=16), np.arange(48.0).reshape(3, 16)
    y = np.zeros(48)
    kernel(y, x)
    np.testing.assert_array_equal(y, x.ravel())
    assert "y[16*i + k] contiguous" in kernel.specialize(y, x).report()


def beside(y, x):
    for i in range(x.shape[0]):
        for j in range(x.shape[1]):
            y[i, (j ^ (i & 7)) + 1] = x[i, j]


def joined_bits(y, x):
    for i in range(x.shape[0]):
        for j in range(x.shape[1]):
            y[i, ((j >> 3) << 3) | (~j & 7)] = x[i, j]


@pytest.mark.parametrize(
    ("function", "shape", "columns"),
    [(swizzled, (8, 16), 16), (swizzled, (2, 15), 15), (beside, (8, 16), 17), (joined_bits, (3, 13), 16)],
)
@pytest.mark.parametrize("size", ["auto", 16, (8, 32)])
def test_one_column_less_is_refused(
    function: Callable[..., None], shape: tuple[int, int], columns: int, size: Any
) -> None:
    """Between guard pages, with the columns that are needed and with one less; nothing is written then."""
    rows = shape[0]
    x, room = np.arange(float(rows * shape[1])).reshape(shape), Guarded(8 * rows * columns)
    kernel = tj.kernel(function, virtual_vector_size=size)
    if function is swizzled and shape[1] % 8:
        columns += 1  # (2, 15) has only the columns from 0 to 14, but 14 ^ 1 is 15
    for short in (0, 1):
        for at_end in (True, False):
            n = rows * (columns - short)
            y = room.place(8 * n, at_end=at_end).view(float).reshape(rows, columns - short)
            before = y.copy()
            if short:
                with pytest.raises(IndexError, match="may leave the array: subscript 1 reaches"):
                    kernel(y, x)
                assert before.tobytes() == y.tobytes()
            else:
                kernel(y, x)
                expected = before.copy()
                function(expected, x)
                np.testing.assert_array_equal(y, expected)
            assert room.untouched()


def test_negative_numbers() -> None:
    """Python's bits of negative numbers: ones without end, and >> rounds down."""

    def folded(y, n):
        for i in range(-9, 9):
            y[i & 7, 0] += 1
            y[(i >> 2) + 3, 1] += 1
            y[(i | -4) + 4, 2] += 1
            y[(i ^ n) & 15, 3] += 1
            y[~i + 9, 4] += 1

    for n in (-3, 0, 5, -(2**63), 2**63 - 1):
        mine, theirs = np.zeros((20, 5)), np.zeros((20, 5))
        tj.kernel(folded)(mine, n)
        folded(theirs, n)
        np.testing.assert_array_equal(mine, theirs)

    def below(y):
        for i in range(-1, 9):
            y[i | 8] = 1.0

    with pytest.raises(IndexError, match="reaches -1 to 15"):
        tj.kernel(below)(np.zeros(16))


def test_arguments_and_elements() -> None:
    """A mask may be an argument, and bits of elements are checked by the elements."""

    def hashed(y, idx, mask, shift):
        for i in range(len(idx)):
            y[(idx[i] ^ (idx[i] >> 3)) & mask] += 1
            y[(i + (mask << 1)) & mask] += 1

    kernel, idx = tj.kernel(hashed), np.array([9, -5, 1 << 40, -(1 << 62), 7])
    for mask in (0, 1, 5, 7):
        mine, theirs = np.zeros(8), np.zeros(8)
        kernel(mine, idx, mask, 3)
        hashed(theirs, idx, mask, 3)
        np.testing.assert_array_equal(mine, theirs)
    for mask in (8, -1, 1 << 40):
        y = np.zeros(8)
        with pytest.raises(IndexError):
            kernel(y, idx, mask, 3)
        assert not y.any()

    def crossed(y, idx):
        for i in range(len(idx)):
            y[idx[i] ^ 1] = i

    y = np.zeros(8)
    tj.kernel(crossed)(y, np.array([0, 7, 2]))
    np.testing.assert_array_equal(y, [0, 0, 0, 2, 0, 0, 1, 0])
    for wrong in (8, 9, 1 << 40, -9, -10):
        with pytest.raises(IndexError):
            tj.kernel(crossed)(y, np.array([0, wrong]))


@pytest.mark.full
@pytest.mark.parametrize("index_bounds", ["check", "mask"])
def test_large_unsigned_elements_are_refused(index_bounds: str) -> None:
    """Subscripts of 64 bits are signed, so bits and remainders of larger numbers would be wrong."""

    def hashed(y, h):
        for i in range(len(h)):
            y[int(h[i]) & 7] += 1
            y[int(h[i]) % 5] += 1

    kernel, small = tj.kernel(hashed, index_bounds=index_bounds), np.array([9, 2**63 - 1, 0], np.uint64)
    for _ in range(4):
        mine, theirs = np.zeros(8), np.zeros(8)
        kernel(mine, small)
        hashed(theirs, small)
        np.testing.assert_array_equal(mine, theirs)
        y = np.zeros(8)
        with pytest.raises(IndexError, match=r"h\[i\] may be 9223372036854775811.* have 63 bits"):
            kernel(y, np.array([9, 2**63 + 3], np.uint64))
        assert not y.any()


def test_bounds() -> None:
    def triangles(y, n):
        for i in range(n >> 1):
            for j in range(i & 3, (i | 3) + 1):
                y[i, j] += 1
        for i in range((n & 6) ^ 6, 8):
            y[i, 0] -= 1

    for n in range(0, 14):
        mine, theirs = np.zeros((8, 8)), np.zeros((8, 8))
        tj.kernel(triangles)(mine, n)
        triangles(theirs, n)
        np.testing.assert_array_equal(mine, theirs)
    with pytest.raises(IndexError, match="subscript 0 reaches 0 to 8"):
        tj.kernel(triangles)(np.zeros((8, 8)), 18)


class Expressions:
    """Random texts of index expressions of i, j and n."""

    def __init__(self, seed: int) -> None:
        self.random = random.Random(seed)

    def text(self, depth: int = 0) -> str:
        one = self.random
        if depth == 3 or one.random() < 0.2:
            return one.choice(("i", "j", "n", "i", "j", str(one.randint(-9, 20))))
        part, kind = self.text(depth + 1), one.randrange(9)
        if kind < 4:
            return f"({part} {one.choice('&|^^')} {self.text(depth + 1)})"
        if kind < 6:
            return f"({part} {one.choice(('<<', '>>'))} {one.randint(0, 3)})"
        if kind < 7:
            return f"({part} {one.choice(('//', '%', '*'))} {one.randint(1, 9)})"
        return f"~{part}" if kind < 8 else f"({part} {one.choice('+-')} {self.text(depth + 1)})"


def test_random_expressions_agree_with_python() -> None:
    """Stores at random subscripts: the same as in Python, or refused; always refused if Python leaves y."""
    expressions, accepted, inside = Expressions(SEED), 0, 0
    for number in range(examples(25, full=125)):
        text = expressions.text()
        scale = expressions.random.choice((1, 3, 8))
        size, n = expressions.random.choice(("auto", 8, (4, 8))), expressions.random.randint(-9, 20)
        low, high = expressions.random.randint(-5, 2), expressions.random.randint(3, 17)
        source = (
            f"def drawn(y, x, n):\n    for i in range({low}, {high}):\n"
            f"        for j in range({scale}, x.shape[0]):\n"
            f"            y[{text}] = np.cbrt(x[j]) + i\n"
        )
        function = compiled(source)
        at = [eval(text, {"i": i, "j": j, "n": n}) for i in range(low, high) for j in range(scale, 12)]
        if max(at) == min(at) < 0:
            continue  # Negative constants count from the end.
        extent = max(at) + 1 if 0 <= max(at) < 1000 else 40
        x, room = np.arange(12.0), Guarded(8 * extent)
        for short in (0, 1):
            extent -= short
            if not extent:
                break
            y = room.place(8 * extent, at_end=bool(number % 2)).view(float)
            y[:] = -1
            theirs = y.copy()
            fits = min(at) >= 0 and max(at) < extent
            inside += fits
            try:
                tj.kernel(function, virtual_vector_size=size)(y, x, n)
            except IndexError:
                assert (y == -1).all()
                continue
            finally:
                assert room.untouched()
            assert fits, source
            accepted += 1
            function(theirs, x, n)
            np.testing.assert_allclose(y, theirs, rtol=1e-12, err_msg=source)
    assert accepted > inside / 2
