"""The super-vector form beside that of MLIR's own pass, if mlir-opt is installed."""

from __future__ import annotations

import re
import shutil
import subprocess

import pytest

pytest.importorskip("tilejit.mlir", reason="the extra mlir is not installed", exc_type=ImportError)

from tests.mlir.opt_cases import CASES, OptCase, modern
from tests.mlir.test_run import INTEGER_CASES, binary
from tilejit import mlir
from tilejit.mlir.arithmetic import DIRECT, FLOAT_PREDICATES, INTEGER_PREDICATES

MLIR_OPT = shutil.which("mlir-opt-16")

pytestmark = pytest.mark.skipif(
    MLIR_OPT is None, reason="mlir-opt-16 (Debian's mlir-16-tools) is not installed"
)

TRANSFER = re.compile(r"vector\.transfer_(read|write) .*?(\{.*\})? : (.*)")


def opt(text: str, *options: str) -> str:
    """mlir-opt's output for a text."""
    done = subprocess.run(
        [str(MLIR_OPT), *options], input=text, capture_output=True, text=True, timeout=60, check=False
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


def structure(text: str) -> list[tuple[str, ...]]:
    """Loops by their steps, transfers by their vectors and maps, and masks of reductions, in order."""
    aliases = dict(re.findall(r"^(#\w+) = (affine_map<.*>)$", text, re.MULTILINE))
    found: list[tuple[str, ...]] = []
    for line in text.splitlines():
        if "affine.for" in line:
            step = re.search(r" step (\d+)", line)
            carried = re.search(r"-> \((.*)\) \{", line)
            found.append(("for", step[1] if step else "1", carried[1] if carried else ""))
        elif transfer := TRANSFER.search(line):
            kind, attributes, types = transfer.groups()
            shape = re.search(r"vector<[^>]*>", types)
            assert shape
            named = re.search(r"permutation_map = (#\w+|affine_map<.*?\)>)", attributes or "")
            found.append((kind, shape[0], aliases.get(named[1], named[1]) if named else ""))
        elif "arith.select" in line and re.search(r"vector<\d+xi1>", line):
            found.append(("select", line.rsplit(":", 1)[1].strip()))
        elif reduction := re.search(r"vector\.reduction <(\w+)>", line):
            found.append(("reduction", reduction[1]))
    return found


def passes(case: OptCase) -> str:
    sizes, fastest = (",".join(map(str, numbers)) for numbers in (case.sizes, case.fastest))
    return (
        f"--affine-super-vectorize=virtual-vector-size={sizes} test-fastest-varying={fastest} "
        f"vectorize-reductions={str(case.reductions).lower()}"
    )


@pytest.mark.full
@pytest.mark.parametrize("case", CASES, ids=str)
def test_the_structure_is_that_of_mlirs_pass(case: OptCase) -> None:
    """The same vector shapes, steps, permutation maps and masks of reductions; mlir-opt reads the text."""
    ours = mlir.super_vectorize(
        case.text,
        virtual_vector_size=case.sizes,
        fastest_varying=case.fastest,
        vectorize_reductions=case.reductions,
    )
    theirs = opt(modern(case.text), passes(case))
    assert structure(opt(ours)) == structure(theirs)


@pytest.mark.parametrize("case", CASES, ids=str)
def test_stores_are_masked_by_the_loop(case: OptCase) -> None:
    """MLIR's pass omits the mask at the end of an array.

    Here each store has one, unless no lane is left over.
    """
    ours = mlir.super_vectorize(case.text, virtual_vector_size=case.sizes, fastest_varying=case.fastest)
    stores = re.findall(r"transfer_write [^,]+, [^\]]+\](, %\w+)?", ours)
    assert all(bool(mask) != ("no lane left over" in case.name) for mask in stores)


NOT_IN_16 = {f"math.{name}" for name in ("asin", "acos", "sinh", "cosh", "asinh", "acosh", "atanh")}
"""Functions that MLIR has since version 17. For earlier versions, they are printed as tilejit operations."""


def of_one_operand(name: str, dtype: str) -> str:
    return binary("arith.addf", dtype).replace("arith.addf %x, %y", f"{name} %x")


def every_operation() -> list[str]:
    """A function for each operation, named @f0 and so on."""
    two = ("arith.addf", "arith.divf", "arith.maxnumf", "math.powf", "math.atan2", "math.copysign")
    texts = [binary(name, "i32") for name in INTEGER_CASES]
    texts += [binary(f"arith.{name}", "i64") for name in ("shli", "shrsi", "shrui")]
    texts += [binary(f"arith.cmpi {p},", dtype, "i1") for p in INTEGER_PREDICATES for dtype in ("i1", "i16")]
    texts += [binary(f"arith.cmpf {p},", "f64", "i1") for p in FLOAT_PREDICATES]
    texts += [binary(name, "f32") for name in two]
    several = {*two, *NOT_IN_16, "math.fma", "math.absi"}
    texts += [of_one_operand(n, "f32") for n in DIRECT if n.startswith("math.") and n not in several]
    return [text.replace("@f(", f"@f{k}(") for k, text in enumerate(texts)]


@pytest.mark.parametrize("size", [1, 16])
def test_mlir_reads_every_operation(size: int) -> None:
    texts = every_operation()
    printed = opt(mlir.super_vectorize("".join(texts), virtual_vector_size=size))
    assert printed.count("func.func") == len(texts) > 70
    assert printed.count("vector.transfer_write") == (len(texts) if size > 1 else 0)


SIGNATURE = """
func.func @f(%A: memref<8x4xf32>, %n: index, %k: i32) -> (index, memref<3x2xf32>, i32, memref<8x4xf32>) {
  %c1 = arith.constant 1 : index
  %B = memref.alloc() : memref<3x2xf32>
  %r = affine.for %i = 0 to %n iter_args(%a = %c1) -> (index) {
    %t = arith.addi %a, %i : index
    affine.yield %t : index
  }
  affine.for %i = 0 to 2 {
    %x = affine.load %A[%i, 0] : memref<8x4xf32>
    affine.store %x, %B[%i, 1] : memref<3x2xf32>
  }
  return %r, %B, %k, %A : index, memref<3x2xf32>, i32, memref<8x4xf32>
}
"""


def test_signatures_keep_their_types() -> None:
    """Sizes and index types of arguments and results are those of the text."""
    line = SIGNATURE.splitlines()[1]
    printed = mlir.super_vectorize(SIGNATURE, virtual_vector_size=4)
    assert printed.splitlines()[0] == line
    assert "vector<4xf32>" in opt(printed)
