"""The page "About Super Vectorization": seed 003."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import tilejit as tj
from tests.mlir.seed_texts import SEED, lines
from tests.mlir.texts import VECRED, VECTOR_ADD_2D


def add(a, b, c):
    for i in range(a.shape[0]):
        for j in range(a.shape[1]):
            c[i, j] = a[i, j] + b[i, j]


def transposed(a, c):
    for i in range(a.shape[0]):
        for j in range(a.shape[1]):
            c[j, i] = a[i, j]


def far(a, c):
    for i in range(16, a.shape[0]):
        c[i] = c[i - 16] + a[i]


def added(**options: Any) -> Any:
    """The kernel of `add` after a call whose result is checked."""
    a = np.arange(40 * 300, dtype=np.float32).reshape(40, 300)
    c = np.zeros_like(a)
    kernel = tj.kernel(add, **options)
    kernel(a, a, c)
    assert (c == 2 * a).all()
    return kernel


def called(function: Callable[..., Any], *arguments: Any, **options: Any) -> Any:
    """The kernel after a call that writes what Python writes."""
    ours, expected = ([x.copy() if isinstance(x, np.ndarray) else x for x in arguments] for _ in range(2))
    kernel = tj.kernel(function, **options)
    kernel(*ours)
    function(*expected)
    for x, y in zip(ours, expected, strict=True):
        np.testing.assert_allclose(x, y, rtol=1e-5)
    return kernel


def ones(*shape: int) -> Any:
    return np.ones(shape, np.float32)


@pytest.fixture
def mlir() -> Any:
    return pytest.importorskip("tilejit.mlir", reason="the extra mlir is not installed", exc_type=ImportError)


def wide(mlir: Any, text: str, **options: Any) -> str:
    """The text in super-vectors of 128, or with the given options."""
    printed: str = mlir.super_vectorize(text, **{"virtual_vector_size": 128} | options)
    return printed


# --- About super-vectorization ---


def test_one_compact_vector_type() -> None:
    """Loads, arithmetic and stores have one type, and each is one operation in the source."""
    text = str(added(virtual_vector_size=(4, 32)).vectorized)
    assert set(re.findall(r"vector<([^>]*)xf32>", text)) == {"4x32"}
    assert [text.count(op) for op in ("transfer_read", "arith.addf", "transfer_write")] == [2, 1, 1]


@pytest.mark.full
@pytest.mark.parametrize("size", [16, (2, 8)], ids=str)
def test_multiples_of_a_hardware_vector(size: Any) -> None:
    """vector<16xf32> and vector<2x8xf32> for registers of 8."""
    lanes = f"i={size[0]}, j={size[1]}" if isinstance(size, tuple) else f"j={size}"
    assert f"Vectorize({lanes})" in str(added(virtual_vector_size=size).report())


@pytest.mark.full
@pytest.mark.parametrize("size", [24, 20, 5, (3, 7)], ids=str)
def test_no_multiple_of_registers_is_needed(size: Any) -> None:
    """A super-vector consists of registers, the last of which may be partial."""
    shape = "x".join(map(str, size)) if isinstance(size, tuple) else size
    assert f"vector<{shape}xf32>" in str(added(virtual_vector_size=size).vectorized)


def test_vectorization_goes_by_super_vectors() -> None:
    """The step of a loop is the size of its super-vector."""
    text = str(added(virtual_vector_size=256).vectorized)
    assert "affine.for %j = 0 to %a_dim1 step 256 {" in text


@pytest.mark.parametrize(("size", "runs"), [(16, True), (32, False)])
def test_a_vector_type_is_a_slice_without_dependences(size: int, runs: bool) -> None:
    """Of a static size: 16 elements here, because an element depends on the 16th one before it."""
    report = str(called(far, ones(200), ones(200), virtual_vector_size=size).report())
    assert ("vectorized by 16" in report) == runs
    assert ("carried-dependence" in report) == (not runs)


def test_later_passes_keep_the_super_vector() -> None:
    """The source has both the loop over super-vectors and the registers."""
    kernel = added(virtual_vector_size=256)
    assert "vector<256xf32>" in str(kernel.vectorized)
    code = kernel.source.split('"""')[2]
    assert re.search(r"for \w+ in range\(0, \w+, 256\):", code)
    assert re.search(r"load_f32x\d+\(", code)


def test_vectors_come_before_unrolling() -> None:
    """One operation in the vector form becomes several only when registers are chosen."""
    kernel = added(virtual_vector_size=256)
    assert str(kernel.vectorized).count("arith.addf") == 1
    assert len(re.findall(r"addps|fadd", kernel.asm)) > 3


def test_contiguity_is_found_along_the_fastest_varying_dimension() -> None:
    """It is found for each access in a nest of loops, rather than for consecutive statements as in SLP."""
    report = str(added(virtual_vector_size=16).report())
    assert "a[i, j] contiguous, b[i, j] contiguous, c[i, j] contiguous" in report


# --- Size of super-vectorization ---


@pytest.mark.parametrize("count", [1, 2, 4])
def test_multiples_of_the_hardware_vector(count: int) -> None:
    """CPU: vector<k . HW>."""
    assert lanes(added(virtual_vector_size=f"{count}*hw")) == [count * hardware_lanes()]


def lanes(kernel: Any) -> list[int]:
    """The shape of the super-vectors that a kernel's form loads and stores."""
    (shape,) = set(re.findall(r"vector<([\dx]+)xf32>, mem", str(kernel.vectorized)))
    return [int(extent) for extent in shape.split("x")]


def hardware_lanes() -> int:
    """The lanes of the register that a kernel masks."""
    source = added(virtual_vector_size=256, tail="mask").source
    return max(int(count) for count in re.findall(r"load_f32x(\d+)_first\(", source))


@pytest.mark.full
@pytest.mark.parametrize("counts", [(2, 2), (4, 1), (6, 4)], ids=str)
def test_multiples_of_cores_by_hardware_vectors(
    counts: tuple[int, int], monkeypatch: pytest.MonkeyPatch
) -> None:
    """CPU: vector<k' . cores x k . HW>, a loop for each."""
    monkeypatch.setattr("codegen.schedule.machine_size.usable_cores", lambda: 3)
    size = (f"{counts[0]}*cores", f"{counts[1]}*hw")
    expected = [counts[0] * 3, counts[1] * hardware_lanes()]
    assert lanes(added(virtual_vector_size=size)) == expected


def weighted(a, w, c):
    for i in range(a.shape[0]):
        for j in range(a.shape[1]):
            for k in range(a.shape[2]):
                c[i, j, k] = a[i, j, k] * w[k]


@pytest.mark.full
def test_multiples_of_sockets_by_cores_by_hardware_vectors(monkeypatch: pytest.MonkeyPatch) -> None:
    """CPU: vector<sockets x k' . cores x k . HW>, three loops."""
    monkeypatch.setattr("codegen.schedule.machine_size.usable_sockets", lambda: 2)
    monkeypatch.setattr("codegen.schedule.machine_size.usable_cores", lambda: 3)
    a = np.arange(8 * 9 * 70, dtype=np.float32).reshape(8, 9, 70)

    size = ("4*sockets", "3*cores", "2*hw")
    kernel = called(weighted, a, ones(70), np.zeros_like(a), virtual_vector_size=size)
    assert lanes(kernel) == [4 * 2, 3 * 3, 2 * hardware_lanes()]


@pytest.mark.full
@pytest.mark.parametrize(
    ("size", "shape"), [("2*warp", "64"), (("warp", 2), "32x2"), (("2*warp", 4), "64x4")], ids=str
)
def test_shapes_of_gpus(size: Any, shape: str) -> None:
    """vector<k . warp>, vector<k . warp x float2>, vector<k . warp x float4>; a warp is 32."""
    assert f"vector<{shape}xf32>" in str(added(virtual_vector_size=size).vectorized)


def fragments(a, w, c):
    for i in range(a.shape[0]):
        for j in range(a.shape[1]):
            for k in range(a.shape[2]):
                for m in range(a.shape[3]):
                    c[i, j, k, m] = a[i, j, k, m] * w[k, m]


@pytest.mark.full
@pytest.mark.parametrize("count", [1, 2])
def test_shapes_of_tensor_cores(count: int) -> None:
    """GPU: vector<k . warp x 4 x 4x4>, four loops."""
    a = np.arange(70 * 5 * 4 * 6, dtype=np.float32).reshape(70, 5, 4, 6)
    size = (f"{count}*warp", 4, 4, 4)
    kernel = called(fragments, a, ones(4, 6), np.zeros_like(a), virtual_vector_size=size)
    assert f"vector<{32 * count}x4x4x4xf32>" in str(kernel.vectorized)


@pytest.mark.parametrize("size", [16, 256, (32, 256)], ids=str)
def test_loops_have_the_shape_and_registers_come_later(size: Any) -> None:
    """Loops and operations use super-vectors, and lowering turns them into hardware vectors."""
    kernel = added(virtual_vector_size=size, tail="mask")
    registers = {int(lanes) for lanes in re.findall(r"load_f32x(\d+)_first", kernel.source)}
    assert registers
    assert max(registers) <= 16
    shape = "x".join(map(str, size)) if isinstance(size, tuple) else size
    assert f"vector<{shape}xf32>" in str(kernel.vectorized)


# --- Transfer vector ---

READS = """
func.func @f(%A: memref<?xf32>, %C: memref<?xf32>, %n: index) {
  affine.for %i = 0 to %n {
    %x = affine.load %A[%i] : memref<?xf32>
    affine.store %x, %C[%i] : memref<?xf32>
  }
  return
}
"""


def test_loads_become_transfers(mlir: Any) -> None:
    """%v = vector.transfer_read A[%i] : memref<?xf32>, vector<128xf32>.

    The operation has a padding operand in MLIR, and in the seed's example of a reduction. It is printed. Text
    without it is also read.
    """
    text = wide(mlir, READS)
    line = r"vector\.transfer_read %A\[%i\], (%\w+) : memref<\?xf32>, vector<128xf32>"
    found = re.search(line, text)
    assert found is not None
    x, copied = np.random.default_rng(0).random(300, np.float32), np.zeros(300, np.float32)
    mlir.run(text.replace(f", {found[1]} : memref", " : memref"), "f", x, copied, 300)
    assert np.array_equal(copied, x)


# --- Where in a pipeline ---


def summed(a, c):
    s = np.float32(0)
    for i in tj.reduction(range(a.shape[0])):
        s += a[i]
    c[0] = s


def scanned(a, c):
    s = np.float32(0)
    for i in tj.scan(range(a.shape[0])):
        s += a[i]
        c[i] = s


def shifted(y, k):
    for i in tj.min_distance(range(y.shape[0] - k), 32):
        y[i + k] = 0.5 * y[i]


def shifted_twice(y):
    for i in tj.min_distance(range(y.shape[0] - 2), 2):
        for j in tj.min_distance(range(y.shape[1] - 16), 16):
            y[i + 2, j + 16] = 0.5 * y[i, j]


def in_parallel(y, k):
    for i in tj.parallel(range(y.shape[0] - k)):
        y[i + k] = 0.5 * y[i]


def in_lanes(y, k):
    for i in tj.vectorizable(range(y.shape[0] - k)):
        y[i + k] = 0.5 * y[i]


def unannotated(y, k):
    for i in range(y.shape[0] - k):
        y[i + k] = 0.5 * y[i]


@pytest.mark.full
@pytest.mark.parametrize(
    ("function", "arguments"),
    [
        (summed, (ones(200), ones(1))),
        (scanned, (ones(200), ones(200))),
        (shifted, (ones(200), 50)),
        (in_parallel, (ones(200), 150)),
        (in_lanes, (ones(200), 150)),
    ],
    ids=["reduction", "scan", "distance", "parallel", "vectorizable"],
)
def test_pattern_1_annotations_of_loops(function: Callable[..., Any], arguments: Any) -> None:
    """The user declares parallel and vectorizable loops, reductions, scans and distances of dependences."""
    assert "vectorized by" not in str(called(unannotated, ones(200), 150, virtual_vector_size=16).report())
    assert "vectorized by 16" in str(called(function, *arguments, virtual_vector_size=16).report())


def test_pattern_1_annotations_of_memory() -> None:
    """Writes without aliases."""
    memory = np.arange(400, dtype=np.float32)

    def halved(x, y):
        for i in range(x.shape[0]):
            y[i] = 0.5 * x[i]

    kernel = tj.kernel(halved, virtual_vector_size=16, no_alias="y")
    kernel(memory[::2], memory[1::2])
    assert (memory[1::2] == np.arange(0, 200)).all()
    assert "no_alias promises" in str(kernel.report())


def test_pattern_1_permutations_by_construction() -> None:
    """Indirect writes go to different elements."""

    def scattered(x, y, idx):
        for i in range(x.shape[0]):
            y[tj.permutation(idx)[i]] = x[i]

    x, idx = np.arange(200, dtype=np.float32), np.random.default_rng(0).permutation(200)
    kernel = called(scattered, x, ones(200), idx, virtual_vector_size=16)
    assert "vectorized by 16" in str(kernel.report())


@pytest.mark.parametrize(("size", "lanes"), [((2, 16), "2x16"), ((2, 64), "2x64"), ((4, 64), "2x64")])
def test_pattern_1_vectors_of_distances(size: tuple[int, int], lanes: str) -> None:
    """There is one for each loop of a nest.

    A super-vector has no more iterations of a loop than that, where more would be wrong.
    """
    kernel = called(shifted_twice, ones(9, 200), virtual_vector_size=size)
    assert f"loop j: vectorized by {lanes}:" in str(kernel.report())


def test_pattern_2_dependence_analysis() -> None:
    """It decides which loops can be vectorized, and costs decide among those."""
    report = str(called(far, ones(200), ones(200), virtual_vector_size=64).report())
    assert "c[i] is written and c[i - 16] read in a later iteration" in report
    assert "loop i: scalar, other-loop-chosen: j run as lanes" in str(added(virtual_vector_size=16).report())


@pytest.mark.full
def test_benefit_vectors_are_protected_from_later_passes() -> None:
    """Tiling and threads leave the shape as it is."""
    for options in ({"parallel": 2}, {"vectorize_at": "after_tile"}, {"tail": "scalar"}, {"fastmath": True}):
        assert "vector<16xf32>" in str(added(virtual_vector_size=16, **options).vectorized)


def test_benefit_the_vector_type_keeps_its_information() -> None:
    """The shape of the vector, and the dimension of memory that each access goes along.

    Alignment is not part of it: arrays may begin at any element, and kernels rely on none.
    """
    text = str(called(transposed, ones(40, 50), ones(50, 40), virtual_vector_size=(16, 16)).vectorized)
    assert "vector<16x16xf32>" in text
    assert "permutation_map = affine_map<(d0, d1) -> (d1, d0)>" in text


@pytest.mark.full
@pytest.mark.parametrize("tail", ["mask", "scalar", "shift"])
def test_risk_a_every_later_pass_handles_vectors(tail: str) -> None:
    """Also for sizes and shapes that do not divide each other."""
    for size in (7, 100, (3, 50), (64, 512)):
        added(virtual_vector_size=size, tail=tail)


def test_risk_b_distances_become_coarse() -> None:
    """An early size forbids what a smaller one allows. The report names the dependence."""
    for size, code in ((8, "vectorized by 8"), (16, "vectorized by 16"), (17, "carried-dependence")):
        assert code in str(called(far, ones(200), ones(200), virtual_vector_size=size).report())


def test_pattern_3_transfers_recover_contiguity() -> None:
    """If the order of the loops opposes memory, the transfer transposes.

    TileJIT reorders loops only as `schedule=` says, and tiles are its only scheduling. So places 3 and 5,
    after rescheduling, are places 2 and 4 here. TileJIT has no counterpart to VPLAN, which is place 6.
    """
    kernel = called(transposed, ones(40, 50), ones(50, 40), virtual_vector_size=(16, 16))
    assert "blocks transposed in registers" in str(kernel.report())


def test_patterns_4_and_5_after_tiling() -> None:
    """Tiles first, then super-vectors inside them."""
    kernel = added(virtual_vector_size=16, vectorize_at="after_tile")
    assert "affine.for %i_tile = 0 to %a_dim0 step 32" in str(kernel.vectorized)
    assert 'Tile("i", 32), Tile("j", 32), Vectorize(j=16)' in str(kernel.report())


@pytest.mark.full
@pytest.mark.parametrize("tail", ["mask", "scalar", "shift"])
def test_tiles_need_not_be_full(tail: str) -> None:
    """40 x 300 is not a multiple of 32 x 32."""
    added(virtual_vector_size=16, vectorize_at="after_tile", tail=tail)


# --- Matching and rewrite algorithm ---


def imperfect(a, b, c):
    for i in range(a.shape[0]):
        c[i] = 0
        for j in range(a.shape[1]):
            b[i, j] = a[i, j] * 2
        for k in range(a.shape[1]):
            a[i, k] = b[i, k] + 1


def test_step_1_patterns_match_imperfect_nests() -> None:
    """Every loop that matches is found, wherever it is in the tree."""
    report = str(called(imperfect, ones(9, 50), ones(9, 50), ones(9), virtual_vector_size=16).report())
    assert report.count("vectorized by 16") == 2


def test_step_1a_loops_are_annotated_or_proven() -> None:
    """A reduction without an annotation does not count."""

    def plain(a, c):
        s = np.float32(0)
        for i in range(a.shape[0]):
            s += a[i]
        c[0] = s

    report = str(called(plain, ones(200), ones(1), virtual_vector_size=16).report())
    assert "vectorized by" not in report
    assert "vectorized by 16" in str(called(summed, ones(200), ones(1), virtual_vector_size=16).report())


@pytest.mark.parametrize(
    ("fastest", "loop", "load"),
    [
        (0, "i", "a[i, j] along dimension 0 (memory dimension 1, not 0), c[j, i] contiguous"),
        (1, "j", "a[i, j] contiguous (memory dimension 0, not 1), c[j, i] along dimension 0"),
    ],
)
def test_step_1b_accesses_go_along_the_given_dimension(fastest: int, loop: str, load: str) -> None:
    """`fastest_varying` counts from the innermost.

    In the seed, every load and store goes along it. Here stores decide which loop does, and the report names
    the loads that go along another dimension, which are transposed or gathered.
    """
    options: Any = {"virtual_vector_size": 16, "fastest_varying": fastest}
    report = called(transposed, ones(40, 50), ones(50, 40), **options).report()
    assert re.search(rf"loop {loop}: vectorized by 16: {re.escape(load)}$", report, re.MULTILINE)
    same = added(**options).report()
    assert f"loop {'ji'[fastest]}: vectorized by 16" in same
    assert "(memory dimension" not in same


def test_step_2_profit() -> None:
    """If two loops are legal, the one with contiguous accesses is chosen, and the report says so.

    In the seed, the profit also depends on how many loops could be fused. TileJIT fuses no loops.
    """

    def down(a, c):
        for j in range(a.shape[1]):
            for i in range(a.shape[0]):
                c[i, j] = a[i, j] + 1

    report = str(called(down, ones(40, 50), ones(40, 50), virtual_vector_size=16).report())
    assert re.search(r"loop j: vectorized by 16", report)


REWRITTEN = """
func.func @f(%A: memref<?x?xf32>, %B: memref<?xf32>, %C: memref<?x?xf32>, %s: f32, %m: index, %n: index) {
  %one = arith.constant 1.0 : f32
  affine.for %i = 0 to %m {
    affine.for %j = 0 to %n {
      %x = affine.load %A[%i, %j] : memref<?x?xf32>
      %b = affine.load %B[%i] : memref<?xf32>
      %y = arith.mulf %x, %s : f32
      %z = arith.addf %y, %one : f32
      %w = arith.addf %z, %b : f32
      affine.store %w, %C[%i, %j] : memref<?x?xf32>
    }
  }
  return
}
"""


def test_step_3_loops_become_coarse(mlir: Any) -> None:
    """Their steps are multiplied by the size."""
    assert re.search(r"affine\.for %j = 0 to %n step 128", wide(mlir, REWRITTEN))
    stepped = READS.replace("0 to %n", "0 to %n step 3")
    assert re.search(r"step 384", wide(mlir, stepped))


def test_step_3_visits_operations_in_topological_order(mlir: Any) -> None:
    """Every operand is vectorized before the operation that uses it."""
    defined: set[str] = set()
    for line in wide(mlir, REWRITTEN).splitlines():
        result, _, rest = line.strip().partition(" = ")
        if rest.startswith("arith."):
            assert defined.issuperset(re.findall(r"%[\w.]+", rest)), line
        if "vector<128xf32>" in rest:
            defined.add(result)


@pytest.mark.parametrize(
    "pattern",
    [
        r"vector\.transfer_read %A\[%i, %j\], %\w+ : memref<\?x\?xf32>, vector<128xf32>",
        r"vector\.transfer_write %\w+, %C\[%i, %j\].* : vector<128xf32>, memref<\?x\?xf32>",
        r"arith\.constant dense<1\.0> : vector<128xf32>",
        r"vector\.(broadcast|splat) %s : (f32 to )?vector<128xf32>",
        r"arith\.mulf %\w+, %\w+ : vector<128xf32>",
    ],
    ids=["loads", "stores", "constants", "uniform operands", "the rest"],
)
def test_step_3a_each_kind_of_operation_has_a_vector_form(mlir: Any, pattern: str) -> None:
    """Transfers, splats, broadcasts, and the same operation on vectors."""
    assert re.search(pattern, wide(mlir, REWRITTEN))


def test_step_3a_iter_args_are_vectors(mlir: Any) -> None:
    """So are a loop's operands and results."""
    text = wide(mlir, VECRED, vectorize_reductions=True)
    assert re.search(r"iter_args\(%[\w.]+ = %[\w.]+\) -> \(vector<128xf32>\)", text)
    assert "affine.yield" in text


CARRIED = READS.replace("affine.store %x, %C[%i]", "affine.store %x, %A[%i + 1]")


def test_step_3b_all_or_nothing(mlir: Any) -> None:
    """The scalar loop disappears if everything in it is vectorized, and otherwise stays."""
    assert "affine.load" not in wide(mlir, READS)
    assert "vector" not in wide(mlir, CARRIED)
    assert "affine.load" in wide(mlir, CARRIED)


def test_step_3c_vectors_are_not_vectorized_again(mlir: Any) -> None:
    """A text with vectors is unchanged."""
    once = wide(mlir, READS)
    assert wide(mlir, once).strip() == once.strip()


# --- Example ---


def test_the_scalar_example_runs(mlir: Any) -> None:
    """1 + 2, plus 1 and plus 2, added: 9 at [7, 42]."""
    assert mlir.run(VECTOR_ADD_2D, "vector_add_2d", 64, 512) == np.float32(9)


@pytest.mark.parametrize("name", ["256", "32x256"])
def test_the_examples_are_printed_line_by_line(mlir: Any, name: str) -> None:
    """With the option strings of the seed: the innermost loop, then both.

    Four spellings are current: reads have a padding, splats are dense<1.0>, a load is memref.load, and
    arguments keep their names.
    """
    text, expected, options = SEED[name]
    printed = mlir.super_vectorize(text, options=options, masks="none")
    assert lines(printed, padding=False) == lines(expected)


@pytest.mark.parametrize(("name", "steps"), [("256", {"256"}), ("32x256", {"32", "256"})])
def test_which_loops_of_the_examples_are_vectorized(mlir: Any, name: str, steps: set[str]) -> None:
    """The innermost ones; and the outer ones, each with its own size."""
    text, _, options = SEED[name]
    printed = mlir.super_vectorize(text, options=options, masks="none")
    assert set(re.findall(r"step (\d+)", printed)) == steps
    assert set(re.findall(r"vector<([\dx]+)xf32>", printed)) == {name}


@pytest.mark.full
@pytest.mark.parametrize("name", ["256", "32x256"])
def test_the_printed_examples_run(mlir: Any, name: str) -> None:
    """They give the same as the scalar text, for sizes that divide the extents and others."""
    for sizes in ((64, 512), (9, 43)):
        assert mlir.run(SEED[name][1], "vector_add_2d", *sizes) == np.float32(9)


# --- Reduction ---

COMBINED = """
func.func @f(%A: memref<?xTYPE>, %n: index) -> TYPE {
  %zero = arith.constant ZERO : TYPE
  %r = affine.for %i = 0 to %n iter_args(%s = %zero) -> (TYPE) {
    %x = affine.load %A[%i] : memref<?xTYPE>
    %y = arith.OP %s, %x : TYPE
    affine.yield %y : TYPE
  }
  return %r : TYPE
}
"""
NESTED = """
func.func @f(%A: memref<?x?xf32>, %n: index, %m: index) -> f32 {
  %zero = arith.constant 0.0 : f32
  %r = affine.for %i = 0 to %n iter_args(%s = %zero) -> (f32) {
    %q = affine.for %j = 0 to %m iter_args(%t = %s) -> (f32) {
      %x = affine.load %A[%i, %j] : memref<?x?xf32>
      %y = arith.addf %t, %x : f32
      affine.yield %y : f32
    }
    affine.yield %q : f32
  }
  return %r : f32
}
"""
KINDS = {
    **dict.fromkeys(("addf", "mulf", "maximumf", "minimumf"), ("f32", "0.0")),
    **dict.fromkeys(("addi", "muli", "maxsi", "minsi", "maxui", "minui", "andi", "ori"), ("i32", "0")),
}


@pytest.mark.parametrize("op", KINDS)
def test_supported_kinds_of_reductions(mlir: Any, op: str) -> None:
    """Condition 1."""
    dtype, zero = KINDS[op]
    text = COMBINED.replace("TYPE", dtype).replace("ZERO", zero).replace("OP", op)
    assert "vector.reduction <" in wide(mlir, text, vectorize_reductions=True)


def test_reductions_have_one_dimension(mlir: Any) -> None:
    """Condition 2: two sizes leave the loops unchanged, and the report gives the reason."""
    text = wide(mlir, NESTED, vectorize_reductions=True)
    assert "vector.reduction <" in text
    options = {"virtual_vector_size": (32, 128), "vectorize_reductions": True}
    text = wide(mlir, NESTED, report=True, **options)
    assert "reduction-not-1-d" in text
    assert "vector<" not in text


def test_reductions_with_other_steps_run_in_lanes_too(mlir: Any) -> None:
    """Condition 3 of the seed is step 1. Other steps run in lanes as well, with the same sum."""
    text = VECRED.replace("0 to 500", "0 to 500 step 4")
    assert "vector.reduction <add>" in wide(mlir, text, vectorize_reductions=True)
    x = np.random.default_rng(0).random(512, np.float32)
    found = mlir.run(text, "vecred", x, virtual_vector_size=16, vectorize_reductions=True)
    assert found == pytest.approx(np.cos(x[:500:4].astype(float)).sum(), rel=1e-6)


def test_the_vector_of_a_loop_is_reduced_after_it(mlir: Any) -> None:
    """To a scalar."""
    text = wide(mlir, VECRED, vectorize_reductions=True)
    assert re.search(r"vector\.reduction <add>, %[\w.]+, %cst_0 : vector<128xf32> into f32", text)


def test_a_mask_keeps_garbage_out_of_the_accumulator(mlir: Any) -> None:
    """500 is not a multiple of 128.

    The last super-vector reads past the loop, and a mask drops those values.
    """
    text = wide(mlir, VECRED, vectorize_reductions=True)
    assert "vector.create_mask" in text
    assert "arith.select" in text
    x = np.random.default_rng(0).random(512, np.float32)
    x[500:] = np.nan
    found = mlir.run(VECRED, "vecred", x, virtual_vector_size=128, vectorize_reductions=True)
    assert found == pytest.approx(np.cos(x[:500].astype(float)).sum(), rel=1e-6)


def test_reductions_are_off_by_default(mlir: Any) -> None:
    """An option of the pass enables them; for kernels, an option or a loop's annotation does."""
    assert "vector" not in wide(mlir, VECRED)
    assert "vector<128xf32>" in wide(mlir, VECRED, vectorize_reductions=True)
    options = "virtual-vector-size=128 test-fastest-varying=0 vectorize-reductions=true"
    assert mlir.super_vectorize(VECRED, options=options) == wide(
        mlir, VECRED, vectorize_reductions=True, fastest_varying=0
    )


TWO_SUMS = """
func.func @sums(%A: memref<?xf32>, %n: index) -> (f32, f32) {
  %zero = arith.constant 0.0 : f32
  %a = affine.for %i = 0 to %n iter_args(%s = %zero) -> (f32) {
    %x = affine.load %A[%i] : memref<?xf32>
    %y = arith.addf %s, %x : f32
    affine.yield %y : f32
  }
  %b = affine.for %k = 0 to %n iter_args(%t = %zero) -> (f32) {
    %x = affine.load %A[%k] : memref<?xf32>
    %y = arith.addf %t, %x : f32
    affine.yield %y : f32
  }
  return %a, %b : f32, f32
}
"""


@pytest.mark.full
@pytest.mark.parametrize("loops", ["k", "%k", ("k",), ("i", "k")], ids=str)
def test_reductions_of_selected_loops(mlir: Any, loops: Any) -> None:
    """The seed's utility function gets a map from loops to reductions. Here loops are given by name."""
    text = wide(mlir, TWO_SUMS, vectorize_reductions=loops)
    assert text.count("vector.reduction <add>") == (2 if "i" in loops else 1)
    assert re.search(r"affine\.for %k = 0 to %n step 128", text)
    x = np.arange(200, dtype=np.float32)
    found = mlir.run(TWO_SUMS, "sums", x, 200, virtual_vector_size=128, vectorize_reductions=loops)
    assert found == (19900, 19900)
    with pytest.raises(tj.KernelError, match="no loop has the index %q\n  name one of %i, %k"):
        wide(mlir, TWO_SUMS, vectorize_reductions=("k", "q"))
    with pytest.raises(TypeError, match="True, False or names of loop indices, got int"):
        wide(mlir, TWO_SUMS, vectorize_reductions=1)


def test_the_example_of_a_reduction(mlir: Any) -> None:
    """The seed's option string gives the seed's text."""
    text, expected, options = SEED["128"]
    assert lines(mlir.super_vectorize(text, options=options, masks="none")) == lines(expected)


def test_the_mask_of_the_example_leaves_out_12_elements(mlir: Any) -> None:
    """Of 4 super-vectors of 128, the last has 116 elements."""
    _, expected, _ = SEED["128"]
    for garbage in (np.nan, 1e30):
        x = np.zeros(512, np.float32)
        x[500:] = garbage
        assert mlir.run(expected, "vecred", x) == 500
