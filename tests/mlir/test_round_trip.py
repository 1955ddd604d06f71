"""Printed super-vector text, from TileJIT or MLIR's own pass, is read and does what it says."""

from __future__ import annotations

import shutil
from collections.abc import Iterable

import numpy as np
import pytest

pytest.importorskip("tilejit.mlir", reason="the extra mlir is not installed", exc_type=ImportError)

from codegen.support.errors import KernelError
from tests.mlir.loops import LOOPS, inputs
from tests.mlir.opt_cases import CASES, OptCase, modern
from tests.mlir.opt_texts import OPT, VERSIONS
from tests.mlir.test_mlir_opt import opt, passes
from tests.mlir.test_run import INTEGER_CASES
from tilejit import mlir
from tilejit.mlir.arithmetic import DIRECT, FLOAT_PREDICATES, INTEGER_PREDICATES

WRONG = [name.removeprefix("loop: ") for name in OPT[16] if name.startswith("loop: ")]
RIGHT = ("none at all", "a sum into an element", "sums of rows")
"""Loops that MLIR's pass vectorizes correctly."""


def printed(case: OptCase) -> str:
    return mlir.super_vectorize(
        case.text,
        virtual_vector_size=case.sizes,
        fastest_varying=case.fastest,
        vectorize_reductions=case.reductions,
    )


@pytest.mark.full
@pytest.mark.parametrize("case", CASES, ids=str)
def test_printed_text_agrees_with_the_scalar_loops(case: OptCase) -> None:
    checked = mlir.check(case.text, printed(case), sizes=SIZES.get(len(case.sizes), (1, 15, 70)))
    assert len(checked.cases) >= 1


SIZES = {1: (1, 63, 64, 131), 2: (1, 9, 31, 43), 3: (1, 9, 20)}


IN_TURN = [(case, VERSIONS[k % len(VERSIONS)]) for k, case in enumerate(CASES)]
"""The versions of MLIR differ in few texts, so cases take them in turn."""


@pytest.mark.full
@pytest.mark.parametrize(("case", "version"), IN_TURN, ids=str)
def test_mlirs_text_agrees_if_arrays_end_with_loops(case: OptCase, version: int) -> None:
    """MLIR's stores have no masks, so they continue to the end of the array."""
    text = OPT[version][case.name]
    if case.name in ENDS_ELSEWHERE:
        with pytest.raises(KernelError, match=r"differs in super-vectors with .*: \w+\[.*\] is "):
            mlir.check(case.text, text, sizes=SIZES[len(case.sizes)])
        return
    assert mlir.check(case.text, text, sizes=SIZES[len(case.sizes)]).cases


ENDS_ELSEWHERE = frozenset(case.name for case in CASES if "%n: index" in case.text and "store" in case.text)
"""Cases with arrays that may continue after their loops, for which MLIR's text stores too much."""


@pytest.mark.full
@pytest.mark.parametrize("sizes", [16, (4, 8)], ids=str)
@pytest.mark.parametrize("name", LOOPS)
def test_print_and_read(name: str, sizes: int | tuple[int, int]) -> None:
    """print(super_vectorize(f)), read back, writes what f writes. Printed again, it is the same text."""
    wide = mlir.super_vectorize(LOOPS[name], virtual_vector_size=sizes, vectorize_reductions=sizes == 16)
    expected = inputs()
    mlir.run(LOOPS[name], "f", *expected, interpreted=True)
    for interpreted in (True, False):
        found = inputs()
        mlir.run(wide, "f", *found, interpreted=interpreted)
        assert np.array_equal(found[0], expected[0])
        assert np.array_equal(found[1], expected[1])
    if "vector<" in wide:
        assert mlir.super_vectorize(wide, virtual_vector_size=sizes) == wide


@pytest.mark.full
@pytest.mark.parametrize("version", VERSIONS)
@pytest.mark.parametrize("name", WRONG)
def test_errors_of_mlirs_pass_are_found(name: str, version: int) -> None:
    """`check` says where the super-vectors of MLIR's pass differ from its loops."""
    if name in RIGHT:
        assert mlir.check(LOOPS[name], OPT[version][f"loop: {name}"]).cases
        return
    found = r"@f (differs in super-vectors with .* C\[\d+\] is |in super-vectors fails)"
    with pytest.raises(KernelError, match=found):
        mlir.check(LOOPS[name], OPT[version][f"loop: {name}"])


@pytest.mark.full
@pytest.mark.skipif(shutil.which("mlir-opt-16") is None, reason="mlir-opt-16 is not installed")
@pytest.mark.parametrize("case", CASES, ids=str)
def test_the_stored_texts_are_mlirs_output(case: OptCase) -> None:
    assert opt(modern(case.text), passes(case)).split() == OPT[16][case.name].split()


def in_one_loop(operations: Iterable[str], dtype: str, result: str | None = None) -> str:
    """C_k[i] = the k-th operation on %x = A[i] and %y = B[i]."""
    result = result or dtype
    numbered = [*enumerate(operations)]
    outputs = ", ".join(f"%C_{k}: memref<?x{result}>" for k, _ in numbered)
    lines = "".join(
        f"""
    %z_{k} = {operation} : {dtype}
    affine.store %z_{k}, %C_{k}[%i] : memref<?x{result}>"""
        for k, operation in numbered
    )
    return f"""
func.func @f(%A: memref<?x{dtype}>, %B: memref<?x{dtype}>, {outputs}, %n: index) {{
  affine.for %i = 0 to %n {{
    %x = affine.load %A[%i] : memref<?x{dtype}>
    %y = affine.load %B[%i] : memref<?x{dtype}>{lines}
  }}
  return
}}"""


SEVERAL = {"math.powf", "math.atan2", "math.copysign", "math.fma", "math.absi"}
FUNCTIONS = [name for name in DIRECT if name.startswith("math.") and name not in SEVERAL]
BINARY = ("arith.addf", "arith.divf", "arith.maxnumf", "math.atan2")
OPERATIONS = {
    "integers": in_one_loop([f"{name} %x, %y" for name in INTEGER_CASES], "i32"),
    "shifts": in_one_loop([f"arith.{name} %x, %y" for name in ("shli", "shrsi", "shrui")], "i64"),
    **{
        f"comparisons of {d}": in_one_loop([f"arith.cmpi {p}, %x, %y" for p in INTEGER_PREDICATES], d, "i1")
        for d in ("i1", "i16")
    },
    "comparisons of f64": in_one_loop([f"arith.cmpf {p}, %x, %y" for p in FLOAT_PREDICATES], "f64", "i1"),
    "floats": in_one_loop([f"{name} %x, %y" for name in BINARY], "f32"),
    **{f"functions, {k}": in_one_loop([f"{name} %x" for name in FUNCTIONS[k::4]], "f32") for k in range(4)},
}
"""Operations of a kind share a loop."""


@pytest.mark.full
@pytest.mark.parametrize("name", OPERATIONS)
def test_every_operation_is_read_in_lanes(name: str) -> None:
    """Arithmetic on vectors gives the same as arithmetic on numbers."""
    text = OPERATIONS[name]
    wide = mlir.super_vectorize(text, virtual_vector_size=16)
    assert wide.count("vector.transfer_write") == text.count("affine.store")
    assert mlir.check(text, wide, sizes=(1, 16, 35)).tolerance <= 64 * 2**-23


def two_loops(load: str, store: str, arithmetic: str = "") -> str:
    """C[store] = f(A[load]) in two loops, over two-dimensional arrays."""
    return f"""
func.func @f(%A: memref<64x64xf32>, %C: memref<64x64xf32>, %m: index, %n: index) {{
  affine.for %i = 0 to 7 {{
    affine.for %j = 0 to 6 {{
      %x = affine.load %A[{load}] : memref<64x64xf32>
      {arithmetic}
      affine.store %x, %C[{store}] : memref<64x64xf32>
    }}
  }}
  return
}}"""


COSTLY = "".join(
    f"%{k} = math.sin %{k - 1 if k else 'x'} : f32\n      affine.store %{k}, %C[%i + {7 * k + 7}, %j] "
    ": memref<64x64xf32>\n      "
    for k in range(6)
)
FOREIGN = {
    "two lanes in one subscript, read": (two_loops("%i * 8 + %j, 3", "%i, %j"), "tilejit.transfer_read"),
    "two lanes in one subscript, written": (two_loops("%i, %j", "%i * 6 + %j, 3"), "tilejit.transfer_write"),
    "divided subscripts": (
        two_loops("%i floordiv 2, %j mod 4", "%i, %j", COSTLY),
        "tilejit.gather",
    ),
    "one divided subscript": (two_loops("3, %j floordiv 2", "%i, %j", COSTLY), "vector.gather"),
}


@pytest.mark.full
@pytest.mark.parametrize("interpreted", [True, False])
@pytest.mark.parametrize("name", FOREIGN)
def test_accesses_that_mlir_cannot_express(name: str, interpreted: bool) -> None:
    """They have TileJIT names, and are also read back."""
    text, operation = FOREIGN[name]
    wide = mlir.super_vectorize(text, virtual_vector_size=(4, 8))
    assert operation in wide
    a = np.random.default_rng(0).random((64, 64)).astype(np.float32)
    expected, found = np.zeros((64, 64), np.float32), np.zeros((64, 64), np.float32)
    mlir.run(text, "f", a, expected, 7, 6, interpreted=True)
    mlir.run(wide, "f", a, found, 7, 6, interpreted=interpreted)
    assert np.allclose(found, expected, rtol=1e-5)
    assert np.array_equal(found == 0, expected == 0)
