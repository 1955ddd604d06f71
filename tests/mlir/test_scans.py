"""Carried MLIR values that the loop also stores: scans, which run in super-vectors on request."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

pytest.importorskip("tilejit.mlir", reason="the extra mlir is not installed", exc_type=ImportError)

from tilejit import mlir

Combine = Callable[[Any, Any], Any]


def scan(operation: str, dtype: str, *, stored: str = "%t") -> str:
    """Y[i] = the combination of S and X[0] to X[i], or to X[i - 1] if %s is stored."""
    return f"""
func.func @scan(%X: memref<?x{dtype}>, %Y: memref<?x{dtype}>, %S: {dtype}, %n: index) -> {dtype} {{
  %r = affine.for %i = 0 to %n iter_args(%s = %S) -> ({dtype}) {{
    %x = affine.load %X[%i] : memref<?x{dtype}>
    %t = {operation} %s, %x : {dtype}
    affine.store {stored}, %Y[%i] : memref<?x{dtype}>
    affine.yield %t : {dtype}
  }}
  return %r : {dtype}
}}"""


SCANS: dict[str, tuple[str, Combine]] = {
    "arith.addi": ("i32", np.add),
    "arith.muli": ("i64", np.multiply),
    "arith.xori": ("i8", np.bitwise_xor),
    "arith.minsi": ("i16", np.minimum),
    "arith.maxsi": ("i32", np.maximum),
    "arith.minui": ("i16", lambda a, b: np.int16(np.minimum(np.uint16(a), np.uint16(b)))),
    "arith.maxui": ("i32", lambda a, b: np.int32(np.maximum(np.uint32(a), np.uint32(b)))),
    "arith.addf": ("f32", np.add),
    "arith.maximumf": ("f64", np.maximum),
}
NUMPY = {
    "i8": np.int8,
    "i16": np.int16,
    "i32": np.int32,
    "i64": np.int64,
    "f32": np.float32,
    "f64": np.float64,
}


@pytest.mark.parametrize("interpreted", [True, False])
@pytest.mark.parametrize("stored", ["%t", "%s"])
@pytest.mark.parametrize("operation", SCANS)
def test_scans_run_in_lanes(operation: str, stored: str, interpreted: bool) -> None:
    """Small integers: sums of floats are exact in any grouping, and products wrap around."""
    name, combine = SCANS[operation]
    dtype, text = NUMPY[name], scan(operation, name, stored=stored)
    for count in (0, 1, 31, 64, 100):
        x = np.random.default_rng(count).integers(-9, 9, 100).astype(dtype)
        y, start = np.full(100, 77, dtype), dtype(3)
        how = {"virtual_vector_size": 32, "vectorize_scans": True}
        last = mlir.run(text, "scan", x, y, start, count, interpreted=interpreted, **how)
        steps = [start]
        with np.errstate(over="ignore"):
            for each in x[:count]:
                steps.append(combine(steps[-1], each))
        assert last == steps[-1]
        assert y[:count].tolist() == (steps[1:] if stored == "%t" else steps[:-1])
        assert (y[count:] == 77).all()


def test_scans_run_in_lanes_on_request() -> None:
    text = scan("arith.addf", "f32")
    plain = mlir.super_vectorize(text, virtual_vector_size=32, vectorize_reductions=True, report=True)
    assert "scan-not-asked: s is scanned by add" in plain
    asked = mlir.super_vectorize(text, virtual_vector_size=32, vectorize_scans=True, report=True)
    assert "vectorized by 32" in asked
    assert "vector.scan <add>" in asked
    options = "virtual-vector-size=32"
    assert mlir.super_vectorize(text, options=options, vectorize_scans=True, report=True) == asked
    with pytest.raises(TypeError, match="vectorize_scans: expected True or False"):
        mlir.super_vectorize(text, virtual_vector_size=32, vectorize_scans=1)


def test_recurrences_stay_in_order() -> None:
    text = scan("arith.subf", "f32").replace("arith.subf %s, %x", "arith.subf %x, %s")
    with_scans = mlir.super_vectorize(text, virtual_vector_size=32, vectorize_scans=True, report=True)
    assert "carried-value" in with_scans
