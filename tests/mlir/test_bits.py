"""Bits of indices as MLIR text: arith.andi, ori, xori, shli and shrsi, printed and read back."""

from __future__ import annotations

import numpy as np
import pytest

pytest.importorskip("tilejit.mlir", reason="the extra mlir is not installed", exc_type=ImportError)

from codegen import ArrayArg, ScalarArg, read_function
from codegen.ir.printer import format_function
from codegen.pipeline.loops import vectorize_function
from codegen.support.errors import KernelError
from tilejit import mlir


def swizzled(y, x, n):
    for i in range(x.shape[0] >> 1):
        for j in range((x.shape[1] | 1) ^ 1):
            y[i, j ^ (i & 7)] = np.exp(x[(i << 1) | (n & 1), j ^ n]) + (i | 5)


ARGUMENTS = [ArrayArg("y", "f64", 2, "C"), ArrayArg("x", "f64", 2, "C"), ScalarArg("n", "weak_int")]


@pytest.mark.full
@pytest.mark.parametrize("sizes", [None, (4,), (16,), (2, 8)], ids=str)
@pytest.mark.parametrize("interpreted", [True, False])
def test_printed_text_is_read_back(sizes: tuple[int, ...] | None, interpreted: bool) -> None:
    function = read_function(swizzled).typed(ARGUMENTS)
    if sizes is not None:
        function = vectorize_function(function, sizes).function
    text = format_function(function)
    assert "arith.xori" in text
    assert "memref.load" in text or sizes
    x = np.random.default_rng(3).random((9, 17))
    y, expected = np.zeros((2, 9, 32))
    mlir.run(text, "swizzled", y, x, 3, interpreted=interpreted)
    for i in range(4):
        for j in range(16):
            expected[i, j ^ i] = np.exp(x[2 * i + 1, j ^ 3]) + (i | 5)
    np.testing.assert_allclose(y, expected, rtol=1e-6)


TEXT = """
func.func @f(%y: memref<?xindex>, %n: index) {
  %c1 = arith.constant 1 : index
  %c2 = arith.constant 2 : index
  %c5 = arith.constant 5 : index
  affine.for %i = 0 to %n {
    %a = arith.shli %i, %c2 : index
    %b = arith.ori %a, %c1 : index
    %c = arith.shrsi %b, %c1 : index
    %d = arith.xori %c, %c5 : index
    %e = arith.andi %d, %c5 : index
    memref.store %d, %y[%e] : memref<?xindex>
  }
  return
}
"""


def test_operations_of_indices() -> None:
    y, expected = np.zeros((2, 8), np.int64)
    mlir.run(TEXT, "f", y, 9)
    for i in range(9):
        bits = (i << 2 | 1) >> 1 ^ 5
        expected[bits & 5] = bits
    np.testing.assert_array_equal(y, expected)
    with pytest.raises(IndexError, match="may leave the array"):
        mlir.run(TEXT, "f", np.zeros(5, np.int64), 9)


LANES = """
func.func @f(%y: memref<8xindex>) {
  %c0 = arith.constant 0 : index
  %numbers = arith.constant dense<[0, 1, 2, 3, 4, 5, 6, 7]> : vector<8xindex>
  %mask = arith.constant dense<5> : vector<8xindex>
  %bits = arith.andi %numbers, %mask : vector<8xindex>
  vector.transfer_write %bits, %y[%c0] : vector<8xindex>, memref<8xindex>
  return
}
"""


def test_masks_of_lanes_need_not_be_the_lowest_bits() -> None:
    y = np.zeros(8, np.int64)
    mlir.run(LANES, "f", y)
    np.testing.assert_array_equal(y, np.arange(8) & 5)


def test_shifts_by_unknown_numbers_are_refused() -> None:
    with pytest.raises(KernelError, match="%e is not an affine index"):
        mlir.run(TEXT.replace("arith.shli %i, %c2", "arith.shli %c2, %i"), "f", np.zeros(8, np.int64), 9)
