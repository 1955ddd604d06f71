"""The printed super-vector form, run by MLIR itself, writes what the scalar loops write."""

from __future__ import annotations

import shutil
import subprocess

import numpy as np
import pytest

pytest.importorskip("tilejit.mlir", reason="the extra mlir is not installed", exc_type=ImportError)

from tests.mlir.loops import LOOPS, SIZE, inputs
from tests.mlir.opt_texts import OPT
from tests.mlir.texts import VECTOR_ADD_2D
from tilejit import mlir

TOOLS = tuple(shutil.which(f"mlir-{name}-16") for name in ("opt", "cpu-runner"))
needs_mlir = pytest.mark.skipif(
    None in TOOLS, reason="mlir-cpu-runner-16 (Debian's mlir-16-tools) is not installed"
)

TO_LLVM = (
    *("-expand-strided-metadata", "-convert-vector-to-scf=full-unroll=true", "-lower-affine"),
    *("-convert-scf-to-cf", "-convert-vector-to-llvm", "-convert-math-to-llvm", "-convert-memref-to-llvm"),
    *("-convert-arith-to-llvm", "-convert-func-to-llvm", "-convert-cf-to-llvm"),
    "-reconcile-unrealized-casts",
)

MAIN = f"""
func.func @main() -> i32 {{
  %A = memref.alloc() : memref<{SIZE}xf32>
  %C = memref.alloc() : memref<{SIZE}xf32>
  %untouched = arith.constant -1.0 : f32
  affine.for %i = 0 to {SIZE} {{
    %k = affine.apply affine_map<(d0) -> ((d0 * 37) mod 101)>(%i)
    %n = arith.index_cast %k : index to i32
    %x = arith.sitofp %n : i32 to f32
    affine.store %x, %A[%i] : memref<{SIZE}xf32>
    affine.store %untouched, %C[%i] : memref<{SIZE}xf32>
  }}
  call @f(%A, %C) : (memref<{SIZE}xf32>, memref<{SIZE}xf32>) -> ()
  %zero = arith.constant 0 : i32
  %factor = arith.constant 31 : i32
  %sum = affine.for %i = 0 to {SIZE} iter_args(%h = %zero) -> (i32) {{
    %x = affine.load %C[%i] : memref<{SIZE}xf32>
    %n = arith.fptosi %x : f32 to i32
    %m = arith.muli %h, %factor : i32
    %s = arith.addi %m, %n : i32
    affine.yield %s : i32
  }}
  return %sum : i32
}}
"""


def checksum(c: np.ndarray) -> int:  # type: ignore[type-arg]
    """The result of @main: a polynomial of all elements, in 32 bits."""
    total = 0
    for element in c:
        total = (total * 31 + int(element)) & 0xFFFFFFFF
    return total - (1 << 32) if total >> 31 else total


def by_mlir(text: str, kind: str) -> str:
    """The result of a text's @main, lowered and run by MLIR."""
    opt, runner = map(str, TOOLS)
    lowered = subprocess.run(
        [opt, *TO_LLVM], input=text, capture_output=True, text=True, timeout=60, check=False
    )
    assert lowered.returncode == 0, lowered.stderr
    command = [runner, "-e", "main", f"-entry-point-result={kind}", "-O1"]
    done = subprocess.run(
        command, input=lowered.stdout, capture_output=True, text=True, timeout=60, check=False
    )
    assert done.returncode == 0, done.stderr
    return done.stdout.strip()


SIZES = {"16": 16, "4x8": (4, 8)}


@pytest.mark.full
@needs_mlir
@pytest.mark.parametrize("name", LOOPS)
def test_mlir_runs_the_printed_form(name: str) -> None:
    """MLIR's scalar loops, TileJIT's interpreted loops, and super-vectors run by MLIR agree everywhere."""
    a, c = inputs()
    mlir.run(LOOPS[name], "f", a, c, interpreted=True)
    expected = str(checksum(c))
    assert by_mlir(LOOPS[name] + MAIN, "i32") == expected
    wide = mlir.super_vectorize(LOOPS[name], virtual_vector_size=16, vectorize_reductions=True)
    if "arith.floordivsi" in wide:
        pytest.skip("MLIR 16 cannot lower floor division of vectors: -arith-expand makes wrong constants")
    assert by_mlir(wide + MAIN, "i32") == expected


@pytest.mark.full
@pytest.mark.parametrize("interpreted", [True, False])
@pytest.mark.parametrize("sizes", SIZES)
@pytest.mark.parametrize("name", LOOPS)
def test_super_vectors_write_what_the_loops_write(name: str, sizes: str, interpreted: bool) -> None:
    a, c = inputs()
    mlir.run(LOOPS[name], "f", a, c, interpreted=True)
    wide = inputs()
    options = {"virtual_vector_size": SIZES[sizes], "vectorize_reductions": sizes == "16"}
    mlir.run(LOOPS[name], "f", *wide, interpreted=interpreted, **options)
    assert np.array_equal(wide[1], c)
    assert np.array_equal(wide[0], a)


@needs_mlir
@pytest.mark.parametrize("sizes", [16, (4, 8)], ids=str)
def test_mlir_runs_the_seed(sizes: int | tuple[int, int]) -> None:
    """9.0 at [7,42] of arrays of 9x43, which are not multiples of the super-vector's sizes."""
    main = """
func.func @main() -> f32 {
  %m = arith.constant 9 : index
  %n = arith.constant 43 : index
  %r = call @vector_add_2d(%m, %n) : (index, index) -> f32
  return %r : f32
}
"""
    wide = mlir.super_vectorize(VECTOR_ADD_2D, virtual_vector_size=sizes)
    assert float(by_mlir(wide + main, "f32")) == 9.0


VECTORIZED = [name for name in OPT[16] if name.startswith("loop: ")]


@pytest.mark.full
@needs_mlir
@pytest.mark.parametrize("name", VECTORIZED)
def test_mlir_runs_its_own_text_as_tilejit_reads_it(name: str) -> None:
    """Right or wrong, MLIR's vectors write the same into %C as TileJIT's interpretation of them."""
    text = OPT[16][name]
    a, c = inputs()
    mlir.run(text, "f", a, c)
    within = text.rstrip().removesuffix("}") + MAIN + "}\n"
    assert by_mlir(within, "i32") == str(checksum(c))
