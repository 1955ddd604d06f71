"""Vector operations: which lanes are read and written, and the values of the others."""

from __future__ import annotations

import numpy as np
import pytest

pytest.importorskip("tilejit.mlir", reason="the extra mlir is not installed", exc_type=ImportError)

from codegen.support.errors import KernelError, KernelIndexError
from tests.tools.guard import Guarded
from tilejit import mlir

both = pytest.mark.parametrize("interpreted", [True, False])


def function(body: str, arguments: str = "%A: memref<?xf32>, %C: memref<?xf32>, %n: index") -> str:
    """A function of straight-line code."""
    return f"func.func @f({arguments}) {{\n{body}\n  return\n}}\n"


def arrays(size: int = 20, filled: int = 20) -> tuple[np.ndarray, np.ndarray]:  # type: ignore[type-arg]
    return np.arange(size, dtype=np.float32), np.full(filled, -1, np.float32)


COPY = """
  %pad = arith.constant 7.0 : f32
  %x = vector.transfer_read %A[%n], %pad : memref<?xf32>, vector<8xf32>
  vector.transfer_write %x, %C[%n] : vector<8xf32>, memref<?xf32>"""


@both
@pytest.mark.parametrize("n", [0, 5, 13, 19, 20, 33])
def test_lanes_past_the_end_of_arrays(n: int, interpreted: bool) -> None:
    """Reads return the padding there. Writes do not touch memory."""
    a, c = arrays(16)
    mlir.run(function(COPY), "f", a, c, n, interpreted=interpreted)
    source = np.concatenate([a, np.full(40, 7, np.float32)])
    expected = np.full(60, -1, np.float32)
    expected[n : n + 8] = source[n : n + 8]
    assert np.array_equal(c, expected[:20])


MASKED = """
  %k = arith.constant {count} : index
  %pad = arith.constant 7.0 : f32
  %m = vector.create_mask %k : vector<8xi1>
  %x = vector.transfer_read %A[%n], %pad, %m : memref<?xf32>, vector<8xf32>
  vector.transfer_write %x, %C[%n] : vector<8xf32>, memref<?xf32>
  %i = arith.addi %n, %n : index
  vector.transfer_write %x, %C[%i], %m : vector<8xf32>, memref<?xf32>"""


@both
@pytest.mark.parametrize("count", [-3, 0, 1, 5, 8, 100])
def test_masks_of_first_lanes(count: int, interpreted: bool) -> None:
    """Negative counts mean no lanes, and counts above the size mean all."""
    a, c = arrays()
    mlir.run(function(MASKED.replace("{count}", str(count))), "f", a, c, 6, interpreted=interpreted)
    active = np.arange(8) < count
    x = np.where(active, a[6:14], np.float32(7))
    expected = np.full(20, -1, np.float32)
    expected[6:14] = x
    expected[12:20][active] = x[active]
    assert np.array_equal(c, expected)


COMPUTED = """
  %pad = arith.constant 7.0 : f32
  %five = arith.constant dense<5.0> : vector<8xf32>
  %x = vector.transfer_read %A[%n], %pad : memref<?xf32>, vector<8xf32>
  %p = arith.cmpf ogt, %x, %five : vector<8xf32>
  %y = vector.transfer_read %A[%n], %pad, %p : memref<?xf32>, vector<8xf32>
  %z = arith.select %p, %y, %five : vector<8xi1>, vector<8xf32>
  vector.transfer_write %z, %C[%n], %p : vector<8xf32>, memref<?xf32>"""


@both
def test_masks_that_are_computed(interpreted: bool) -> None:
    a, c = arrays(12)
    mlir.run(function(COMPUTED), "f", a, c, 3, interpreted=interpreted)
    expected = np.full(20, -1, np.float32)
    expected[6:11] = [6, 7, 8, 9, 10]
    assert np.array_equal(c[:11], expected[:11])


@both
def test_reads_come_before_writes_if_arrays_overlap(interpreted: bool) -> None:
    """A vector holds what was read, even if a write goes to the same memory, one element further."""
    x = np.arange(20, dtype=np.float32)
    mlir.run(function(COPY), "f", x[:16], x[1:17], 2, interpreted=interpreted)
    expected = np.arange(20, dtype=np.float32)
    expected[3:11] = np.arange(2, 10)
    assert np.array_equal(x, expected)


@both
def test_vectors_do_not_change_after_a_read(interpreted: bool) -> None:
    """A later write to the array does not change the vector."""
    body = """
  %pad = arith.constant 7.0 : f32
  %one = arith.constant dense<1.0> : vector<8xf32>
  %x = vector.transfer_read %A[%n], %pad : memref<?xf32>, vector<8xf32>
  %y = arith.addf %x, %one : vector<8xf32>
  vector.transfer_write %y, %A[%n] : vector<8xf32>, memref<?xf32>
  %z = arith.addf %x, %y : vector<8xf32>
  vector.transfer_write %z, %C[%n] : vector<8xf32>, memref<?xf32>"""
    a, c = arrays()
    mlir.run(function(body), "f", a, c, 4, interpreted=interpreted)
    before = np.arange(4, 12, dtype=np.float32)
    assert np.array_equal(a[4:12], before + 1)
    assert np.array_equal(c[4:12], 2 * before + 1)


PERMUTED = """
func.func @f(%A: memref<?x?xf32>, %C: memref<?x?xf32>, %i: index, %j: index) {
  %pad = arith.constant 7.0 : f32
  %p = arith.constant 3 : index
  %q = arith.constant 5 : index
  %m = vector.create_mask %p, %q : vector<8x4xi1>
  %x = vector.transfer_read %A[%i, %j], %pad, %m
    {permutation_map = affine_map<(d0, d1) -> (d1, d0)>} : memref<?x?xf32>, vector<4x8xf32>
  %t = vector.transpose %x, [1, 0] : vector<4x8xf32> to vector<8x4xf32>
  vector.transfer_write %t, %C[%j, %i] : vector<8x4xf32>, memref<?x?xf32>
  %b = vector.transfer_read %A[%i, %j], %pad
    {in_bounds = [true, false], permutation_map = affine_map<(d0, d1) -> (0, d1)>}
    : memref<?x?xf32>, vector<2x4xf32>
  vector.transfer_write %b, %C[%i, %j] : vector<2x4xf32>, memref<?x?xf32>
  return
}"""


@pytest.mark.full
@both
def test_permutation_maps(interpreted: bool) -> None:
    """Masks count the array's dimensions. A 0 repeats an element along a dimension of the vector."""
    a = np.arange(130, dtype=np.float32).reshape(10, 13)
    c = np.full((16, 16), -1, np.float32)
    mlir.run(PERMUTED, "f", a, c, 1, 2, interpreted=interpreted)
    x = np.full((4, 8), 7, np.float32)
    x[:4, :3] = a[1:4, 2:6].T
    expected = np.full((16, 16), -1, np.float32)
    expected[2:10, 1:5] = x.T
    expected[1:3, 2:6] = a[1, 2:6]
    assert np.array_equal(c, expected)


REDUCTIONS = {
    "add": ("i32", np.add.reduce), "mul": ("i32", np.multiply.reduce), "minsi": ("i32", min),
    "maxsi": ("i32", max), "minui": ("i32", lambda x: min(x.view(np.uint32)).view(np.int32)),
    "maxui": ("i32", lambda x: max(x.view(np.uint32)).view(np.int32)), "and": ("i32", np.bitwise_and.reduce),
    "or": ("i32", np.bitwise_or.reduce), "xor": ("i32", np.bitwise_xor.reduce),
    "minf": ("f32", min), "maxf": ("f32", max), "minimumf": ("f32", min), "maximumf": ("f32", max),
    "minnumf": ("f32", min), "maxnumf": ("f32", max),
}  # fmt: skip


@both
@pytest.mark.parametrize("start", ["", ", %s"])
@pytest.mark.parametrize("kind", REDUCTIONS)
def test_reductions(kind: str, start: str, interpreted: bool) -> None:
    dtype, reduce = REDUCTIONS[kind]
    text = f"""
func.func @f(%v: vector<7x{dtype}>, %s: {dtype}) -> {dtype} {{
  %r = vector.reduction <{kind}>, %v{start} : vector<7x{dtype}> into {dtype}
  return %r : {dtype}
}}"""
    x = np.array([3, -5, 7, 2, 9, -1, 4]).astype(np.int32 if dtype == "i32" else np.float32)
    given = [*x, x.dtype.type(-8)] if start else [*x]
    expected = reduce(np.array(given, x.dtype))  # type: ignore[operator]
    assert mlir.run(text, "f", x, x.dtype.type(-8), interpreted=interpreted) == expected


SWAPPED = """
func.func @f(%v: vector<2x4xi32>, %n: index) -> (vector<2x4xi32>, vector<2x4xi32>, vector<4x2xi32>) {
  %w = arith.addi %v, %v : vector<2x4xi32>
  %t = vector.transpose %v, [1, 0] : vector<2x4xi32> to vector<4x2xi32>
  %r:3 = affine.for %i = 0 to %n iter_args(%a = %v, %b = %w, %c = %t)
      -> (vector<2x4xi32>, vector<2x4xi32>, vector<4x2xi32>) {
    %d = vector.transpose %c, [1, 0] : vector<4x2xi32> to vector<2x4xi32>
    %e = arith.addi %a, %d : vector<2x4xi32>
    %f = vector.transpose %b, [1, 0] : vector<2x4xi32> to vector<4x2xi32>
    affine.yield %b, %e, %f : vector<2x4xi32>, vector<2x4xi32>, vector<4x2xi32>
  }
  return %r#0, %r#1, %r#2 : vector<2x4xi32>, vector<2x4xi32>, vector<4x2xi32>
}"""


@pytest.mark.full
@both
@pytest.mark.parametrize("n", [0, 1, 2, 5])
def test_vectors_carried_by_loops(n: int, interpreted: bool) -> None:
    """All are updated at once, whichever of them an update reads, in any order of lanes."""
    v = np.arange(8, dtype=np.int32).reshape(2, 4)
    a, b, c = v, 2 * v, v.T
    for _ in range(n):
        a, b, c = b, a + c.T, b.T
    found = mlir.run(SWAPPED, "f", v, n, interpreted=interpreted)
    for x, y in zip(found, (a, b, c), strict=True):
        assert np.array_equal(x, y)


MADE = """
func.func @f(%x: i32, %n: index) -> (vector<2x3xi32>, vector<4xindex>, vector<4xi1>, vector<3xf32>) {
  %k = arith.constant dense<[0, 10, 20]> : vector<3xi32>
  %s = vector.splat %x : vector<3xi32>
  %t = arith.addi %k, %s : vector<3xi32>
  %b = vector.broadcast %t : vector<3xi32> to vector<2x3xi32>
  %i = vector.step : vector<4xindex>
  %m = vector.broadcast %n : index to vector<4xindex>
  %j = arith.muli %i, %m : vector<4xindex>
  %c = vector.constant_mask [3] : vector<4xi1>
  %l = arith.constant dense<[0.5, -1.0, 4.0]> : vector<3xf32>
  %u = ub.poison : vector<3xf32>
  %unused = ub.poison : index
  return %b, %j, %c, %l : vector<2x3xi32>, vector<4xindex>, vector<4xi1>, vector<3xf32>
}"""


@both
def test_vectors_made_without_memory(interpreted: bool) -> None:
    """Constants, splats, broadcasts, lane numbers and masks; vectors are returned."""
    b, j, c, listed = mlir.run(MADE, "f", 5, 3, interpreted=interpreted)
    assert b.tolist() == [[5, 15, 25]] * 2
    assert j.tolist() == [0, 3, 6, 9]
    assert c.tolist() == [True] * 3 + [False]
    assert listed.tolist() == [0.5, -1.0, 4.0]


@pytest.mark.parametrize(
    ("dtype", "bits", "number"),
    [
        ("f32", "0xFF800000", -np.inf),
        ("f16", "0x3C00", 1),
        ("bf16", "0x3F80", 1),
        ("f64", "0x7FF0000000000000", np.inf),
    ],
)
def test_constants_by_their_bits(dtype: str, bits: str, number: float) -> None:
    """MLIR prints infinities this way, which are the start values of maxima."""
    text = f"""
func.func @f() -> vector<2x{dtype}> {{
  %x = arith.constant dense<{bits}> : vector<2x{dtype}>
  return %x : vector<2x{dtype}>
}}"""
    assert mlir.run(text, "f", interpreted=True).tolist() == [number] * 2
    with pytest.raises(KernelError, match=f"{dtype} has "):
        mlir.parse(text.replace("0x", "0xFFFFFFFF0"))


UNDER_A_TEST = """
func.func @f(%A: memref<?xf32>, %C: memref<?xf32>, %n: index) -> vector<4xf32> {
  %pad = arith.constant 7.0 : f32
  %x = vector.transfer_read %A[%n], %pad : memref<?xf32>, vector<4xf32>
  %r = affine.if affine_set<(d0) : (d0 - 3 >= 0)>(%n) -> vector<4xf32> {
    vector.transfer_write %x, %C[%n] : vector<4xf32>, memref<?xf32>
    affine.yield %x : vector<4xf32>
  } else {
    %y = arith.negf %x : vector<4xf32>
    affine.yield %y : vector<4xf32>
  }
  return %r : vector<4xf32>
}"""


@both
@pytest.mark.parametrize("n", [2, 3])
def test_vectors_under_a_test(n: int, interpreted: bool) -> None:
    a, c = arrays()
    r = mlir.run(UNDER_A_TEST, "f", a, c, n, interpreted=interpreted)
    assert r.tolist() == [x if n == 3 else -x for x in range(n, n + 4)]
    assert c.tolist()[3:7] == ([3, 4, 5, 6] if n == 3 else [-1] * 4)


WHOLE = {
    "transfer_read": """
  %pad = arith.constant 7.0 : f32
  %x = vector.transfer_read %A[%n], %pad {in_bounds = [true]} : memref<?xf32>, vector<8xf32>""",
    "transfer_write": """
  %x = arith.constant dense<1.0> : vector<8xf32>
  vector.transfer_write %x, %C[%n] {in_bounds = [true]} : vector<8xf32>, memref<?xf32>""",
    "load": "  %x = vector.load %A[%n] : memref<?xf32>, vector<8xf32>",
    "store": """
  %x = arith.constant dense<1.0> : vector<8xf32>
  vector.store %x, %C[%n] : memref<?xf32>, vector<8xf32>""",
    "masked load": """
  %m = arith.constant dense<[true, false, true, true, true, true, true, false]> : vector<8xi1>
  %o = arith.constant dense<1.0> : vector<8xf32>
  %x = vector.maskedload %A[%n], %m, %o : memref<?xf32>, vector<8xi1>, vector<8xf32> into vector<8xf32>""",
    "gather": """
  %k = arith.constant dense<[0, 1, 2, 3, 4, 5, 6, 7]> : vector<8xi64>
  %m = vector.constant_mask [8] : vector<8xi1>
  %o = arith.constant dense<1.0> : vector<8xf32>
  %x = vector.gather %A[%n] [%k], %m, %o
    : memref<?xf32>, vector<8xi64>, vector<8xi1>, vector<8xf32> into vector<8xf32>""",
}


@both
@pytest.mark.parametrize("name", WHOLE)
def test_promised_bounds_are_proven(name: str, interpreted: bool) -> None:
    """Lanes that are declared to be inside an array are proven to be, before anything runs."""
    text = function(WHOLE[name] + "\n  vector.transfer_write %x, %C[%n] : vector<8xf32>, memref<?xf32>")
    a, c = arrays()
    mlir.run(text, "f", a, c, 12, interpreted=interpreted)
    assert (c[12:] != -1).any()
    for n in (13, 20, -1):
        before = c.copy()
        with pytest.raises(KernelIndexError if not interpreted else KernelError):
            mlir.run(text, "f", a, c, n)
        assert np.array_equal(c, before)


def test_no_lane_leaves_guarded_memory() -> None:
    """Arrays at the end of a page: any access after them is a fault."""
    for size in (1, 7, 8, 9, 23):
        pages = Guarded(4096), Guarded(4096)
        a, c = (page.place(4 * size, at_end=True).view(np.float32) for page in pages)
        a[:] = np.arange(size)
        text = """
func.func @f(%A: memref<?xf32>, %C: memref<?xf32>) {
  affine.for %i = 0 to 24 step 8 {
    %pad = arith.constant 7.0 : f32
    %x = vector.transfer_read %A[%i], %pad : memref<?xf32>, vector<8xf32>
    %y = arith.addf %x, %x : vector<8xf32>
    vector.transfer_write %y, %C[%i] : vector<8xf32>, memref<?xf32>
  }
  return
}"""
        mlir.run(text, "f", a, c)
        assert np.array_equal(c, 2 * a)
        assert all(page.untouched() for page in pages)


def test_comments_report_how_vectors_run() -> None:
    """The text is unchanged. Comments say how lanes run."""
    text = function(COPY)
    assert mlir.super_vectorize(text, virtual_vector_size=4) == text
    lines = mlir.super_vectorize(text, virtual_vector_size=4, report=True).splitlines()
    assert lines[0] == "// @f has vectors and stays unchanged; it runs in super-vectors of 8"
    assert all("vectorized by 8" in line for line in lines[1:] if line.startswith("// line"))


BY_DATA = """
func.func @f(%X: memref<?xf32>, %Y: memref<?xf32>, %I: memref<?xi32>, %J: memref<?xi64>, %n: index) {
  %c0 = arith.constant 0 : index
  %z = arith.constant 0 : i32
  %zz = arith.constant 0 : i64
  %seven = arith.constant dense<7.0> : vector<8xf32>
  %one = arith.constant dense<1> : vector<8xi64>
  affine.for %i = 0 to %n step 8 {
    %left = affine.apply affine_map<(d0)[s0] -> (s0 - d0)>(%i)[%n]
    %m = vector.create_mask %left : vector<8xi1>
    %a = vector.transfer_read %I[%i], %z : memref<?xi32>, vector<8xi32>
    %b = arith.extsi %a : vector<8xi32> to vector<8xi64>
    %c = arith.addi %b, %one : vector<8xi64>
    %x = vector.gather %X[%c0] [%c], %m, %seven
      : memref<?xf32>, vector<8xi64>, vector<8xi1>, vector<8xf32> into vector<8xf32>
    %d = vector.transfer_read %J[%i], %zz : memref<?xi64>, vector<8xi64>
    vector.scatter %Y[%c0] [%d], %m, %x : memref<?xf32>, vector<8xi64>, vector<8xi1>, vector<8xf32>
  }
  return
}"""


@both
@pytest.mark.parametrize("n", [0, 1, 8, 21])
def test_gathers_and_scatters_by_indices_from_memory(n: int, interpreted: bool) -> None:
    """Indices are checked before anything is stored, and the last lane wins."""
    rng = np.random.default_rng(n)
    x, y = rng.random(30).astype(np.float32), np.full(25, -1, np.float32)
    i, j = rng.integers(-1, 29, n).astype(np.int32), rng.integers(0, 25, n)
    mlir.run(BY_DATA, "f", x, y, i, j, n, interpreted=interpreted)
    expected = np.full(25, -1, np.float32)
    for source, target in zip(i, j, strict=True):
        expected[target] = x[source + 1]
    assert np.array_equal(y, expected)
    if not n:
        return
    for wrong, at in ((29, i), (-2, i), (25, j), (-1, j)):
        kept, before = at[n // 2], y.copy()
        at[n // 2] = wrong
        with pytest.raises(KernelError):
            mlir.run(BY_DATA, "f", x, y, i, j, n, interpreted=False)
        assert np.array_equal(y, before)
        at[n // 2] = kept


def test_index_arrays_must_not_be_stored_to() -> None:
    with pytest.raises(KernelError, match="its elements are subscripts"):
        mlir.parse(BY_DATA.replace("vector.scatter %Y", "vector.transfer_write %a, %I[%i], %m : "
                   "vector<8xi32>, memref<?xi32>\n    vector.scatter %Y"))  # fmt: skip
