"""MLIR functions on arrays."""

from __future__ import annotations

from functools import partial

import numpy as np
import pytest
from ml_dtypes import bfloat16

pytest.importorskip("tilejit.mlir", reason="the extra mlir is not installed", exc_type=ImportError)

import tilejit as tj
from codegen.support.errors import KernelError, KernelIndexError, KernelValueError
from tests.mlir.texts import VECRED, VECTOR_ADD_2D
from tilejit import mlir
from tilejit.mlir.arithmetic import FLOAT_PREDICATES

run = partial(mlir.run, interpreted=True)
"""The interpreter defines the meaning of operations, and kernels are compared with it."""

FORMS = [
    None,
    {"virtual_vector_size": 256},
    {"virtual_vector_size": (4, 8), "fastest_varying": (1, 0)},
]


@pytest.mark.parametrize("interpreted", [True, False])
@pytest.mark.parametrize("form", FORMS, ids=str)
def test_vector_add_2d(form: dict[str, object] | None, interpreted: bool) -> None:
    """(1 + 2) + 1 and (1 + 2) + 2 make 9, also if sizes are not multiples of the super-vector's."""
    result = mlir.run(VECTOR_ADD_2D, "vector_add_2d", 9, 43, interpreted=interpreted, **(form or {}))
    assert result == np.float32(9.0)


@pytest.mark.parametrize("interpreted", [True, False])
@pytest.mark.parametrize("form", [None, {"virtual_vector_size": 128, "vectorize_reductions": True}], ids=str)
def test_vecred(form: dict[str, object] | None, interpreted: bool) -> None:
    """Elements after the first 500 are ignored, although they are NaN."""
    x = np.linspace(-3, 3, 512, dtype=np.float32)
    x[500:] = np.nan
    total = mlir.run(VECRED, "vecred", x, interpreted=interpreted, **(form or {}))
    assert isinstance(total, np.float32)
    exact = np.cos(x[:500].astype(np.float64)).sum()
    # 500 sums of at most 500, each rounded once.
    assert abs(total - exact) <= 500 * 500 * np.finfo(np.float32).eps


def binary(operation: str, dtype: str, result: str | None = None) -> str:
    return f"""
func.func @f(%A: memref<?x{dtype}>, %B: memref<?x{dtype}>, %C: memref<?x{result or dtype}>, %n: index) {{
  affine.for %i = 0 to %n {{
    %x = affine.load %A[%i] : memref<?x{dtype}>
    %y = affine.load %B[%i] : memref<?x{dtype}>
    %z = {operation} %x, %y : {dtype}
    affine.store %z, %C[%i] : memref<?x{result or dtype}>
  }}
  return
}}"""


INTS = np.array([-128, -127, -7, -1, 0, 1, 3, 8, 127], np.int8)
FLOATS = np.array([-np.inf, -1.5, -0.0, 0.0, 2.25, np.inf, np.nan], np.float32)


def pairs(values: np.ndarray, second: np.ndarray | None = None) -> tuple[np.ndarray, np.ndarray]:  # type: ignore[type-arg]
    a, b = np.meshgrid(values, values if second is None else second)
    return np.ascontiguousarray(a.ravel()), np.ascontiguousarray(b.ravel())


def trunc_div(a: int, b: int) -> int:
    return abs(a) // abs(b) * (1 if (a < 0) == (b < 0) else -1)


INTEGER_CASES = {
    "arith.addi": lambda a, b: a + b,
    "arith.subi": lambda a, b: a - b,
    "arith.muli": lambda a, b: a * b,
    "arith.divsi": trunc_div,
    "arith.remsi": lambda a, b: a - b * trunc_div(a, b),
    "arith.floordivsi": lambda a, b: a // b,
    "arith.ceildivsi": lambda a, b: -(-a // b),
    "arith.divui": lambda a, b: (a % 256) // (b % 256),
    "arith.remui": lambda a, b: (a % 256) % (b % 256),
    "arith.ceildivui": lambda a, b: -(-(a % 256) // (b % 256)),
    "arith.maxui": lambda a, b: max(a % 256, b % 256),
    "arith.minui": lambda a, b: min(a % 256, b % 256),
    "arith.maxsi": max,
    "arith.minsi": min,
    "arith.andi": lambda a, b: a & b,
    "arith.ori": lambda a, b: a | b,
    "arith.xori": lambda a, b: a ^ b,
}


@pytest.mark.parametrize("operation", INTEGER_CASES)
def test_integers(operation: str) -> None:
    """8-bit integers wrap around. In MLIR, -128 / -1 and divisions by 0 have no result."""
    a, b = pairs(INTS, INTS[INTS != 0] if "div" in operation or "rem" in operation else None)
    keep = ~((a == -128) & (b == -1))
    a, b = a[keep], b[keep]
    c = np.zeros_like(a)
    run(binary(operation, "i8"), "f", a, b, c, a.size)
    exact = [INTEGER_CASES[operation](int(x), int(y)) for x, y in zip(a, b, strict=True)]
    assert c.tolist() == [(n + 128) % 256 - 128 for n in exact]


@pytest.mark.parametrize("operation", ["shli", "shrsi", "shrui"])
def test_shifts(operation: str) -> None:
    a, b = pairs(INTS, np.arange(8, dtype=np.int8))
    c = np.zeros_like(a)
    run(binary(f"arith.{operation}", "i8"), "f", a, b, c, a.size)
    exact = {
        "shli": lambda x, k: x << k,
        "shrsi": lambda x, k: x >> k,
        "shrui": lambda x, k: (x % 256) >> k,
    }[operation]
    assert c.tolist() == [(exact(int(x), int(k)) + 128) % 256 - 128 for x, k in zip(a, b, strict=True)]


INTEGER_COMPARISONS = {"eq": "==", "ne": "!=", "lt": "<", "le": "<=", "gt": ">", "ge": ">="}


@pytest.mark.parametrize(
    "predicate", ["eq", "ne", *(f"{s}{p}" for s in "su" for p in ("lt", "le", "gt", "ge"))]
)
@pytest.mark.parametrize("dtype", ["i8", "i1"])
def test_comparisons_of_integers(predicate: str, dtype: str) -> None:
    a, b = pairs(INTS if dtype == "i8" else np.array([False, True]))
    c = np.zeros(a.size, bool)
    run(binary(f"arith.cmpi {predicate},", dtype, "i1"), "f", a, b, c, a.size)
    sign = INTEGER_COMPARISONS[predicate if predicate in ("eq", "ne") else predicate[1:]]
    if predicate.startswith("u"):
        values = [(int(x) % 256, int(y) % 256) for x, y in zip(a, b, strict=True)]
    else:
        # As a signed number, the only bit of true is its sign.
        values = [
            (int(x), int(y)) if dtype == "i8" else (-int(x), -int(y)) for x, y in zip(a, b, strict=True)
        ]
    assert c.tolist() == [eval(f"{x} {sign} {y}") for x, y in values]


@pytest.mark.parametrize("predicate", FLOAT_PREDICATES)
def test_comparisons_of_floats(predicate: str) -> None:
    a, b = pairs(FLOATS)
    c = np.zeros(a.size, bool)
    run(binary(f"arith.cmpf {predicate},", "f32", "i1"), "f", a, b, c, a.size)
    unordered = np.isnan(a) | np.isnan(b)
    if predicate in ("true", "false", "ord", "uno"):
        exact = {
            "true": ~unordered | unordered,
            "false": unordered & ~unordered,
            "ord": ~unordered,
            "uno": unordered,
        }
        assert np.array_equal(c, exact[predicate])
        return
    compare = {"eq": np.equal, "gt": np.greater, "ge": np.greater_equal, "lt": np.less, "le": np.less_equal}
    compare["ne"] = np.not_equal
    held = compare[predicate[1:]](a, b)
    assert np.array_equal(c, held | unordered if predicate.startswith("u") else held & ~unordered)


@pytest.mark.parametrize(("operation", "numpy"), [
    ("arith.maximumf", np.maximum), ("arith.minimumf", np.minimum), ("arith.maxnumf", np.fmax),
    ("arith.minnumf", np.fmin), ("arith.divf", np.divide), ("math.copysign", np.copysign),
])  # fmt: skip
def test_floats(operation: str, numpy: np.ufunc) -> None:
    a, b = pairs(FLOATS)
    c = np.zeros_like(a)
    run(binary(operation, "f32"), "f", a, b, c, a.size)
    with np.errstate(all="ignore"):
        assert np.array_equal(c, numpy(a, b), equal_nan=True)


@pytest.mark.parametrize(("operation", "source", "target", "numpy"), [
    ("extui", "i8", "i32", lambda a: a.view(np.uint8).astype(np.int32)),
    ("extsi", "i8", "i32", lambda a: a.astype(np.int32)),
    ("uitofp", "i8", "f32", lambda a: a.view(np.uint8).astype(np.float32)),
    ("sitofp", "i8", "f32", lambda a: a.astype(np.float32)),
    ("trunci", "i8", "i1", lambda a: (a & 1).astype(bool)),
])  # fmt: skip
def test_conversions(operation: str, source: str, target: str, numpy: object) -> None:
    text = f"""
func.func @f(%A: memref<?x{source}>, %C: memref<?x{target}>, %n: index) {{
  affine.for %i = 0 to %n {{
    %x = affine.load %A[%i] : memref<?x{source}>
    %y = arith.{operation} %x : {source} to {target}
    affine.store %y, %C[%i] : memref<?x{target}>
  }}
  return
}}"""
    exact = numpy(INTS)  # type: ignore[operator]
    c = np.zeros_like(exact)
    run(text, "f", INTS, c, INTS.size)
    assert c.tolist() == exact.tolist()


UNSIGNED_REDUCTIONS = {
    "arith.maxui": lambda a, start: max(start, *a),
    "arith.minui": lambda a, start: min(start, *a),
}


@pytest.mark.parametrize("start", [-1, 0, 5])
@pytest.mark.parametrize("dtype", ["i1", "i8", "i32", "i64"])
@pytest.mark.parametrize("operation", UNSIGNED_REDUCTIONS)
@pytest.mark.parametrize("form", [{"interpreted": True}, {}, {"virtual_vector_size": 16}], ids=str)
def test_reductions_of_unsigned_numbers(
    form: dict[str, object], operation: str, dtype: str, start: int
) -> None:
    """The carried value goes through two loops, where -1 is the largest number."""
    text = f"""
func.func @f(%A: memref<?x?x{dtype}>, %start: {dtype}, %m: index, %n: index) -> {dtype} {{
  %r = affine.for %i = 0 to %m iter_args(%a = %start) -> ({dtype}) {{
    %s = affine.for %j = 0 to %n iter_args(%b = %a) -> ({dtype}) {{
      %x = affine.load %A[%i, %j] : memref<?x?x{dtype}>
      %t = {operation} %x, %b : {dtype}
      affine.yield %t : {dtype}
    }}
    affine.yield %s : {dtype}
  }}
  return %r : {dtype}
}}"""
    kind = np.dtype(bool if dtype == "i1" else f"u{dtype}".replace("ui", "uint"))
    a = np.random.default_rng(0).integers(0, 1 << 62, (5, 43)).astype(kind)
    given = np.array(start).astype(kind if dtype == "i1" else f"int{dtype[1:]}")[()]
    result = mlir.run(text, "f", a, given, 5, 43, **form, vectorize_reductions=True)
    exact = UNSIGNED_REDUCTIONS[operation](a.ravel().tolist(), int(given.view(kind)))
    assert result.view(kind) == exact
    wide = mlir.super_vectorize(text, virtual_vector_size=16, vectorize_reductions=True)
    assert "vector.reduction" in wide


SCALE = """
func.func @scale(%A: memref<?x4xbf16>, %s: bf16) -> memref<?x4xbf16> {
  %c0 = arith.constant 0 : index
  %n = memref.dim %A, %c0 : memref<?x4xbf16>
  %B = memref.alloc(%n) : memref<?x4xbf16>
  affine.for %i = 0 to %n {
    affine.for %j = 0 to 4 {
      %x = affine.load %A[%i, %j] : memref<?x4xbf16>
      %y = arith.mulf %x, %s : bf16
      affine.store %y, %B[%i, %j] : memref<?x4xbf16>
    }
  }
  return %B : memref<?x4xbf16>
}
"""


@pytest.mark.parametrize("interpreted", [True, False])
@pytest.mark.parametrize("make", [np.ascontiguousarray, np.asfortranarray, lambda a: np.repeat(a, 2, 0)[::2]])
def test_arrays_are_returned(make: object, interpreted: bool) -> None:
    a = make(np.arange(12).reshape(3, 4).astype(bfloat16))  # type: ignore[operator]
    b = mlir.run(SCALE, "scale", a, bfloat16(3), interpreted=interpreted)
    assert b.dtype == bfloat16
    assert np.array_equal(b, a * bfloat16(3))


ARGUMENTS = {
    "too few": ((np.zeros((3, 4), bfloat16),), KernelError, "expected 2 arguments, got 1"),
    "a dtype": ((np.zeros((3, 4), np.float32), 1.0), KernelValueError, "expected bfloat16, got float32"),
    "a rank": ((np.zeros(4, bfloat16), 1.0), KernelValueError, "expected 2 dimensions, got 1"),
    "a size": (
        (np.zeros((3, 5), bfloat16), 1.0),
        KernelValueError,
        r"expected the shape \?x4, got 3x5\n  pass an array of that shape",
    ),
    "no array": (([1.0], 1.0), TypeError, "expected an array, got list"),
    "no number": ((np.zeros((3, 4), bfloat16), "1"), TypeError, "expected one bfloat16, got str"),
}


@pytest.mark.parametrize("name", ARGUMENTS)
def test_arguments_are_checked(name: str) -> None:
    arguments, kind, words = ARGUMENTS[name]
    with pytest.raises(kind, match=words):
        run(SCALE, "scale", *arguments)


@pytest.mark.parametrize("interpreted", [True, False])
@pytest.mark.parametrize(
    ("sizes", "kind"),
    [((-1, 4), KernelValueError), ((1 << 62, 1 << 62), KernelValueError), ((1 << 40, 1 << 20), MemoryError)],
)
def test_impossible_allocations_are_refused(
    sizes: tuple[int, int], kind: type[Exception], interpreted: bool
) -> None:
    with pytest.raises(tj.TilejitError, match="allocates A") as refused:
        mlir.run(VECTOR_ADD_2D, "vector_add_2d", *sizes, interpreted=interpreted)
    assert isinstance(refused.value, kind)


@pytest.mark.parametrize("interpreted", [True, False])
def test_accesses_outside_an_array_are_refused(interpreted: bool) -> None:
    with pytest.raises(KernelIndexError):
        mlir.run(VECTOR_ADD_2D, "vector_add_2d", 2, 2, interpreted=interpreted)


@pytest.mark.parametrize("interpreted", [True, False])
def test_overlapping_arrays_run_like_the_scalar_loop(interpreted: bool) -> None:
    """The super-vector form assumes distinct arguments. These are one array, one element apart."""
    text = """
func.func @f(%A: memref<?xf32>, %B: memref<?xf32>, %n: index) {
  affine.for %i = 0 to %n {
    %x = affine.load %A[%i] : memref<?xf32>
    affine.store %x, %B[%i] : memref<?xf32>
  }
  return
}"""
    x = np.arange(9, dtype=np.float32)
    mlir.run(text, "f", x[:8], x[1:], 8, virtual_vector_size=4, interpreted=interpreted)
    assert np.array_equal(x, np.zeros(9))


def test_options_are_checked() -> None:
    for giant in (1 << 21, (1 << 11, 1 << 11), 10**5000):
        with pytest.raises(KernelError, match="more than 1048576 elements"):
            mlir.super_vectorize(VECRED, virtual_vector_size=giant)
    with pytest.raises(KernelError, match="virtual_vector_size is 0"):
        mlir.super_vectorize(VECRED, virtual_vector_size=0)
    with pytest.raises(KernelError, match="a different dimension for each size"):
        mlir.super_vectorize(VECRED, virtual_vector_size=(4, 4), fastest_varying=0)
    assert "vector<4xf32>" in mlir.super_vectorize(
        VECRED, virtual_vector_size=("4",), vectorize_reductions=True
    )
    with pytest.raises(KernelError, match=r"got 'auto'\n  auto\n  \^"):
        mlir.super_vectorize(VECRED, virtual_vector_size="auto")
    for wrong in (None, True, 4.0):
        with pytest.raises(TypeError, match="virtual_vector_size: expected a number"):
            mlir.super_vectorize(VECRED, virtual_vector_size=wrong)  # type: ignore[arg-type]
    with pytest.raises(TypeError, match="expected True, False or names of loop indices, got int"):
        mlir.super_vectorize(VECRED, virtual_vector_size=4, vectorize_reductions=0)  # type: ignore[arg-type]
    eight = mlir.super_vectorize(VECRED, virtual_vector_size=np.int64(8))  # type: ignore[arg-type]
    assert eight == mlir.super_vectorize(VECRED, virtual_vector_size=8)


@pytest.mark.full
def test_options_in_one_string() -> None:
    """In the form of the seeds for mlir-opt, with the same meaning as the keywords."""
    rows = "virtual-vector-size=32,256 test-fastest-varying=1,0"
    keywords = {"virtual_vector_size": (32, 256), "fastest_varying": (1, 0)}
    wide = mlir.super_vectorize(VECTOR_ADD_2D, options=rows)
    assert wide == mlir.super_vectorize(VECTOR_ADD_2D, **keywords)  # type: ignore[arg-type]
    assert mlir.run(VECTOR_ADD_2D, "vector_add_2d", 9, 43, options=rows) == np.float32(9.0)
    sums = (
        '-affine-super-vectorize="virtual-vector-size=128 test-fastest-varying=0 \\\n vectorize-reductions"'
    )
    reduced = mlir.super_vectorize(VECRED, options=sums)
    assert reduced == mlir.super_vectorize(VECRED, virtual_vector_size=128, vectorize_reductions=True)
    x = np.ones(512, np.float32)
    once = mlir.run(VECRED, "vecred", x, virtual_vector_size=128, vectorize_reductions=True)
    for interpreted in (True, False):
        again = mlir.run(VECRED, "vecred", x, options=sums, interpreted=interpreted)
        assert again == pytest.approx(once)
    with pytest.raises(TypeError, match="omit options="):
        mlir.super_vectorize(VECRED, options=sums, virtual_vector_size=4)
    with pytest.raises(KernelError, match="a different dimension for each size"):
        mlir.super_vectorize(VECRED, options="virtual-vector-size=4,4 test-fastest-varying=0")


@pytest.mark.parametrize("interpreted", [True, False])
def test_several_results(interpreted: bool) -> None:
    """An index, an array that the function allocates, a number and an argument."""
    text = """
func.func @f(%A: memref<4xf32>, %n: index, %s: f32) -> (index, memref<?xf32>, f32, memref<4xf32>) {
  %B = memref.alloc(%n) : memref<?xf32>
  %m = affine.apply affine_map<(d0) -> (d0 * 2 + 1)>(%n)
  affine.for %i = 0 to %n {
    affine.store %s, %B[%i] : memref<?xf32>
  }
  return %m, %B, %s, %A : index, memref<?xf32>, f32, memref<4xf32>
}"""
    a = np.zeros(4, np.float32)
    m, b, s, same = mlir.run(text, "f", a, 3, 1.5, interpreted=interpreted)
    assert (m, b.tolist(), s) == (7, [1.5] * 3, 1.5)
    assert same is a
