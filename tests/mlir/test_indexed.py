"""Loaded integers as subscripts of memref.load and memref.store."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest

pytest.importorskip("tilejit.mlir", reason="the extra mlir is not installed", exc_type=ImportError)

import tilejit as tj
from tests.tools.guard import Guarded
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


@pytest.mark.full
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
        ("affine.for %l = 0 to %k { }", "not an affine index"),
        (
            "%p = affine.apply affine_map<(d0) -> (d0 + 1)>(%k)\n    %q = arith.addi %p, %c0 : index\n"
            "    affine.for %l = 0 to %q { }",
            "not an affine index",
        ),
        ("memref.store %j, %idx[%i] : memref<?xi32>", "idx is stored to, and its elements are subscripts"),
    ],
)
def test_unsupported_subscripts_are_refused(line: str, message: str) -> None:
    text = GATHER.replace("    affine.store", f"    {line}\n    affine.store")
    with pytest.raises(tj.KernelError, match=message):
        mlir.run(text, "gather", np.zeros(3, "f4"), np.zeros(3, "f4"), np.zeros(3, "i4"))


@pytest.mark.full
@pytest.mark.parametrize("text", [GATHER, ROWS, ADD_AT], ids=["gather", "rows", "add_at"])
def test_the_printed_form_is_read(text: str) -> None:
    wide = mlir.super_vectorize(text, virtual_vector_size=8)
    assert mlir.check(text, wide).tolerance == 0


def looked_up_at(name: str, *subscript: str) -> str:
    """A function that loads x[%at]. `subscript` computes %at from the loaded %k and the size %n of x."""
    lines = "\n    ".join(subscript)
    return f"""
func.func @{name}(%y: memref<?xf32>, %x: memref<?xf32>, %idx: memref<?xi64>) {{
  %c0 = arith.constant 0 : index
  %n = memref.dim %x, %c0 : memref<?xf32>
  %m = memref.dim %y, %c0 : memref<?xf32>
  affine.for %i = 0 to %m {{
    %j = affine.load %idx[%i] : memref<?xi64>
    %k = arith.index_cast %j : i64 to index
    {lines}
    %v = memref.load %x[%at] : memref<?xf32>
    affine.store %v, %y[%i] : memref<?xf32>
  }}
  return
}}
"""


FROM_END = looked_up_at(
    "from_end",
    "%below = arith.cmpi slt, %k, %c0 : index",
    "%more = arith.addi %n, %k : index",
    "%at = arith.select %below, %more, %k : index",
)


@pytest.mark.full
@pytest.mark.parametrize("interpreted", [False, True])
def test_subscripts_that_count_from_the_end(interpreted: bool) -> None:
    rng = np.random.default_rng(3)
    x, idx = rng.random(50).astype("f4"), rng.integers(-50, 50, 37)
    wide = mlir.super_vectorize(FROM_END, virtual_vector_size=8)
    assert "vector.gather %x" in wide
    assert mlir.check(FROM_END, wide).tolerance == 0
    for text in (FROM_END, wide):
        y = np.zeros(37, "f4")
        mlir.run(text, "from_end", y, x, idx, interpreted=interpreted)
        np.testing.assert_array_equal(y, x[idx])
        for wrong in (-51, 50, 2**63 - 1, -(2**63)):
            message = None if interpreted else f"is {wrong}; expected -50 to 49"
            with pytest.raises(IndexError, match=message):
                mlir.run(text, "from_end", y, x, np.full(37, wrong), interpreted=interpreted)


@pytest.mark.parametrize(
    ("line", "other"),
    [
        ("%n = memref.dim %x, %c0 : memref<?xf32>", "%n = memref.dim %y, %c0 : memref<?xf32>"),
        ("%v = memref.load %x[%at]", "%up = arith.addi %at, %n : index\n    %v = memref.load %x[%up]"),
        ("%v = memref.load %x[%at]", "%up = affine.apply affine_map<(d0) -> (d0 mod 4)>(%at)\n"
         "    %v = memref.load %x[%up]"),
    ],
)  # fmt: skip
def test_indices_that_count_from_the_end_of_another_array_are_refused(line: str, other: str) -> None:
    """Calls only check indices that count from the end of the array itself."""
    text = FROM_END.replace(line, other)
    assert text != FROM_END
    with pytest.raises(tj.KernelError, match="moves into an array has another use"):
        mlir.parse(text)


@pytest.mark.parametrize(
    "change",
    [
        ("slt", "sle"),
        ("%below, %more, %k", "%below, %k, %more"),
        ("%c0 : index\n    %more", "%n : index\n    %more"),
    ],
)
def test_other_selections_are_not_subscripts(change: tuple[str, str]) -> None:
    text = FROM_END.replace(*change)
    assert text != FROM_END
    with pytest.raises(tj.KernelError, match="not an affine index"):
        mlir.parse(text)


INSIDE = looked_up_at(
    "inside",
    "%fits = arith.cmpi ult, %k, %n : index",
    "%at = arith.select %fits, %k, %c0 : index",
)


@pytest.mark.full
@pytest.mark.parametrize("interpreted", [False, True])
def test_subscripts_that_are_0_if_they_are_outside(interpreted: bool) -> None:
    rng = np.random.default_rng(5)
    x, idx = rng.random(50).astype("f4"), rng.integers(-70, 120, 37)
    idx[:4] = -1, 50, 2**63 - 1, -(2**63)
    wide = mlir.super_vectorize(INSIDE, virtual_vector_size=8)
    assert "vector.gather %x" in wide
    assert mlir.check(INSIDE, wide).tolerance == 0
    for text in (INSIDE, wide):
        y = np.zeros(37, "f4")
        mlir.run(text, "inside", y, x, idx, interpreted=interpreted)
        np.testing.assert_array_equal(y, x[np.where((idx >= 0) & (idx < 50), idx, 0)])


@pytest.mark.parametrize(
    ("line", "other"),
    [
        ("%n = memref.dim %x, %c0 : memref<?xf32>", "%n = memref.dim %y, %c0 : memref<?xf32>"),
        ("%v = memref.load %x[%at]", "%up = arith.addi %at, %n : index\n    %v = memref.load %x[%up]"),
    ],
)
def test_indices_valid_for_another_array_are_refused(line: str, other: str) -> None:
    """They may be outside the array that they are subscripts of."""
    text = INSIDE.replace(line, other)
    assert text != INSIDE
    with pytest.raises(tj.KernelError, match="moves into an array has another use"):
        mlir.parse(text)


@pytest.mark.parametrize(
    "change", [("ult", "slt"), ("ult", "ule"), ("%k, %c0 :", "%c0, %k :"), ("%k, %c0 :", "%k, %n :")]
)
def test_other_tests_are_not_masks(change: tuple[str, str]) -> None:
    text = INSIDE.replace(*change)
    assert text != INSIDE
    with pytest.raises(tj.KernelError, match="not an affine index"):
        mlir.parse(text)


def looked_up(x, idx, y):  # type: ignore[no-untyped-def]
    for i in range(y.shape[0]):
        y[i] = x[idx[i]] * 2


def looked_up_twice(x, idx, y):  # type: ignore[no-untyped-def]
    for i in range(y.shape[0]):
        y[i] = x[idx[idx[i]]] + 1


def in_columns(x, idx, y):  # type: ignore[no-untyped-def]
    for i in range(y.shape[0]):
        y[i] = x[i, idx[i]]


def put_in_order(x, idx, y):  # type: ignore[no-untyped-def]
    for i in range(x.shape[0]):
        y[idx[i]] = x[i]


def put_apart(x, idx, y):  # type: ignore[no-untyped-def]
    for i in range(x.shape[0]):
        y[tj.permutation(idx)[i]] = x[i]


@pytest.mark.full
@pytest.mark.parametrize("dtype", ["i8", "i4", "u2"])
@pytest.mark.parametrize("python", [looked_up, looked_up_twice, in_columns, put_in_order, put_apart])
def test_printed_masked_kernels_are_read_back(python: Callable[..., None], dtype: str) -> None:
    """With index_bounds="mask", lanes outside load 0 or store nothing."""
    rng = np.random.default_rng(6)
    x = rng.random((40, 9) if python is in_columns else 40).astype("f4")
    idx = rng.permutation(np.arange(-60, 60))[:40]
    idx[:2] = 2**15 - 1, -(2**15)
    idx = idx.astype("i8").astype(dtype)
    wanted, y = np.zeros(40, "f4"), np.zeros(40, "f4")
    kernel = tj.kernel(python, index_bounds="mask", virtual_vector_size=8)
    kernel(x, idx, wanted)
    for text in (str(kernel.vectorized), mlir.super_vectorize(str(kernel.vectorized), virtual_vector_size=8)):
        for interpreted in (False, True):
            y[:] = 0
            mlir.run(text, python.__name__, x, idx, y, interpreted=interpreted)
            np.testing.assert_array_equal(y, wanted)


def test_masked_text_reads_nothing_outside() -> None:
    guarded = Guarded(4 * 50)
    text = mlir.super_vectorize(INSIDE, virtual_vector_size=8)
    for at_end in (False, True):
        x = guarded.place(4 * 50, at_end=at_end).view("f4")
        x[:] = np.arange(50)
        idx, y = np.array([-1, 50, 51, -50, 2**40, 7, -(2**63), 49] * 5), np.zeros(40, "f4")
        mlir.run(text, "inside", y, x, idx)
        np.testing.assert_array_equal(y, [0, 0, 0, 0, 0, 7, 0, 49] * 5)
        assert guarded.untouched()


def test_gathered_indices_need_the_same_mask() -> None:
    """Under another mask, lanes would have indices that were not loaded."""
    text = """
func.func @f(%y: memref<?xf32>, %x: memref<?xf32>, %a: memref<?xi64>, %b: memref<?xi64>, %n: index) {
  %c0 = arith.constant 0 : index
  %no = arith.constant dense<0> : vector<8xi64>
  %nothing = arith.constant dense<0.0> : vector<8xf32>
  %cst = arith.constant 0 : i64
  %all = arith.constant dense<true> : vector<8xi1>
  %some = vector.create_mask %n : vector<8xi1>
  %i = vector.transfer_read %b[%c0], %cst : memref<?xi64>, vector<8xi64>
  %j = vector.gather %a[%c0] [%i], %some, %no
    : memref<?xi64>, vector<8xi64>, vector<8xi1>, vector<8xi64> into vector<8xi64>
  %v = vector.gather %x[%c0] [%j], %some, %nothing
    : memref<?xf32>, vector<8xi64>, vector<8xi1>, vector<8xf32> into vector<8xf32>
  vector.transfer_write %v, %y[%c0] : vector<8xf32>, memref<?xf32>
  return
}
"""
    rng = np.random.default_rng(4)
    x, a, b = rng.random(50).astype("f4"), rng.integers(0, 50, 30), rng.integers(0, 30, 8)
    y = np.ones(8, "f4")
    mlir.run(text, "f", y, x, a, b, 5)
    np.testing.assert_array_equal(y, np.where(np.arange(8) < 5, x[a[b]], 0))
    with pytest.raises(tj.KernelError, match="computed from data"):
        mlir.parse(text.replace("[%j], %some", "[%j], %all"))


INDICES = """
func.func @indices(%C: memref<?xindex>, %A: memref<?xindex>, %D: memref<9xindex>, %n: index)
    -> (memref<?xindex>, index) {
  %B = memref.alloc(%n) : memref<?xindex>
  %zero = arith.constant 0 : index
  %two = arith.constant 2 : index
  %first = memref.load %D[%zero] : memref<9xindex>
  affine.store %two, %D[3] : memref<9xindex>
  %sum = affine.for %i = 0 to %n iter_args(%s = %zero) -> (index) {
    %a = affine.load %A[%i] : memref<?xindex>
    %b = affine.load %A[%i floordiv 2] : memref<?xindex>
    %c = arith.muli %a, %b : index
    affine.store %c, %C[%i] : memref<?xindex>
    affine.store %i, %B[%i] : memref<?xindex>
    %t = arith.addi %s, %a : index
    affine.yield %t : index
  }
  return %B, %sum : memref<?xindex>, index
}
"""


@pytest.mark.full
def test_arrays_of_indices_keep_their_type() -> None:
    """Arguments, allocations and results keep it. The numbers in between are cast."""
    wide = mlir.super_vectorize(INDICES, virtual_vector_size=8, vectorize_reductions=True)
    head = wide.partition("{")[0]
    assert head.split() == INDICES.partition("{")[0].split()
    assert "memref.alloc(%n) : memref<?xindex>" in wide
    assert "vector<8xindex>, memref<?xindex>" in wide
    assert "memref<?xi64" not in wide
    assert mlir.check(INDICES, wide).tolerance == 0
    rng = np.random.default_rng(6)
    given, d = rng.integers(-9, 9, 21), np.full(9, 5)
    for text in (INDICES, wide):
        out = np.zeros(21, np.int64)
        numbers, total = mlir.run(text, "indices", out, given, d, 21)
        np.testing.assert_array_equal(out, given * given[np.arange(21) // 2])
        np.testing.assert_array_equal(numbers, np.arange(21))
        assert total == given.sum()


def test_elements_of_index_arrays_are_used_directly_as_subscripts() -> None:
    wide = mlir.super_vectorize(ROWS, virtual_vector_size=8)
    assert "%idx: memref<?xindex>" in wide
    assert "memref<?xi64>" not in wide
    assert mlir.check(ROWS, wide).tolerance == 0


def test_arrays_of_subscripts_keep_their_sizes() -> None:
    wide = mlir.super_vectorize(ADD_AT.replace("?xi64>", "37xi64>"), virtual_vector_size=8)
    assert "memref.load %idx[%i] : memref<37xi64>" in wide
    assert "memref<?xi64>" not in wide
