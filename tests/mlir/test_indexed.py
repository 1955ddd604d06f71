"""Loaded integers as subscripts of memref.load and memref.store."""

from __future__ import annotations

import numpy as np
import pytest

import tilejit as tj
from tilejit import mlir

GATHER = """
func.func @gather(%y: memref<?xf32>, %x: memref<?xf32>, %idx: memref<?xi32>) {
  %c0 = arith.constant 0 : index
  %n = memref.dim %y, %c0 : memref<?xf32>
  affine.for %i = 0 to %n {
    %j = affine.load %idx[%i] : memref<?xi32>
    %k = arith.index_cast %j : i32 to index
    %v = memref.load %x[%k] : memref<?xf32>
    affine.store %v, %y[%i] : memref<?xf32>
  }
  return
}
"""

ROWS = """
func.func @rows(%y: memref<?x?xf64>, %x: memref<?x?xf64>, %idx: memref<?xindex>) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %m = memref.dim %y, %c0 : memref<?x?xf64>
  %n = memref.dim %y, %c1 : memref<?x?xf64>
  affine.for %i = 0 to %m {
    %r = memref.load %idx[%i] : memref<?xindex>
    %next = arith.addi %r, %c1 : index
    affine.for %j = 0 to %n {
      %v = memref.load %x[%next, %j] : memref<?x?xf64>
      memref.store %v, %y[%i, %j] : memref<?x?xf64>
    }
  }
  return
}
"""

ADD_AT = """
func.func @add_at(%y: memref<?xf32>, %x: memref<?xf32>, %idx: memref<?xi64>) {
  %c0 = arith.constant 0 : index
  %n = memref.dim %x, %c0 : memref<?xf32>
  affine.for %i = 0 to %n {
    %j = affine.load %idx[%i] : memref<?xi64>
    %k = arith.index_cast %j : i64 to index
    %old = memref.load %y[%k] : memref<?xf32>
    %v = affine.load %x[%i] : memref<?xf32>
    %new = arith.addf %old, %v : f32
    memref.store %new, %y[%k] : memref<?xf32>
  }
  return
}
"""


@pytest.mark.parametrize("sizes", [None, 8, 64])
@pytest.mark.parametrize("interpreted", [False, True])
def test_gathers(sizes: int | None, interpreted: bool) -> None:
    rng = np.random.default_rng(0)
    x, idx = rng.random(50).astype("f4"), rng.integers(0, 50, 37).astype("i4")
    y = np.zeros(37, "f4")
    mlir.run(GATHER, "gather", y, x, idx, virtual_vector_size=sizes, interpreted=interpreted)
    np.testing.assert_array_equal(y, x[idx])
    rows, wide = rng.integers(-1, 8, 7), rng.random((9, 21))
    out = np.zeros((7, 21))
    mlir.run(ROWS, "rows", out, wide, rows, virtual_vector_size=sizes, interpreted=interpreted)
    np.testing.assert_array_equal(out, wide[rows + 1])
    into, at = np.zeros(9, "f4"), rng.integers(0, 9, 37)
    mlir.run(ADD_AT, "add_at", into, y, at, virtual_vector_size=sizes, interpreted=interpreted)
    wanted = np.zeros(9, "f4")
    np.add.at(wanted, at, y)
    np.testing.assert_array_equal(into, wanted)


def test_subscripts_are_checked_and_do_not_count_from_the_end() -> None:
    y, x = np.zeros(3, "f4"), np.ones(5, "f4")
    for wrong in (-1, 5, 2**31 - 1, -(2**31)):
        with pytest.raises(IndexError, match=f"idx.1. is {wrong}; expected 0 to 4"):
            mlir.run(GATHER, "gather", y, x, np.array([0, wrong, 1], "i4"), virtual_vector_size=8)
    assert not y.any()


def test_the_printed_form_gathers() -> None:
    text = mlir.super_vectorize(GATHER, virtual_vector_size=8, report=True)
    assert "vector.gather %x" in str(text)
    assert "x[idx[i]] gathered" in str(text)


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ("affine.for %l = 0 to %k { }", "no affine index"),
        ("memref.store %j, %idx[%i] : memref<?xi32>", "idx is stored to, and its elements are subscripts"),
    ],
)
def test_what_is_refused(line: str, message: str) -> None:
    text = GATHER.replace("    affine.store", f"    {line}\n    affine.store")
    with pytest.raises(tj.KernelError, match=message):
        mlir.run(text, "gather", np.zeros(3, "f4"), np.zeros(3, "f4"), np.zeros(3, "i4"))


@pytest.mark.parametrize("name", ["gather", "rows", "add_at"])
def test_the_printed_form_is_read(name: str) -> None:
    text = {"gather": GATHER, "rows": ROWS, "add_at": ADD_AT}[name]
    wide = mlir.super_vectorize(text, virtual_vector_size=8)
    assert mlir.check(text, wide).tolerance == 0
