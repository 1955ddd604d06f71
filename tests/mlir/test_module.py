"""Texts with several functions, not all of which kernels support."""

from __future__ import annotations

import random
import shutil
import subprocess

import numpy as np
import pytest

pytest.importorskip("tilejit.mlir", reason="the extra mlir is not installed", exc_type=ImportError)

from codegen.support.errors import KernelError
from tests.mlir.texts import VECRED, VECTOR_ADD_2D
from tilejit import mlir
from tilejit.mlir.spans import blanked, function_spans

MLIR_OPT = shutil.which("mlir-opt-16")

GOOD = """\
func.func @good(%A: memref<?xf32>, %n: index) {
  %one = arith.constant 1.0 : f32
  affine.for %i = 0 to %n {
    affine.store %one, %A[%i] : memref<?xf32>
  }
  return
}
"""

OTHERS = {
    "an operation xdsl doesn't read here": """\
func.func @other(%A: memref<4xf32>) -> i1 {
  %x = tensor.empty() : tensor<4xf32>
  %p = arith.constant true
  return %p : i1
}
""",
    "a call": """\
func.func @other(%A: memref<?xf32>, %n: index) {
  // } a comment with func @none() {
  func.call @good(%A, %n) : (memref<?xf32>, index) -> ()
  return
}
""",
    "a subscript that isn't affine": """\
func.func @other(%A: memref<4xf32>, %B: memref<4xindex>) -> f32 {
  %x = affine.load %B[0] : memref<4xindex>
  %z = arith.muli %x, %x : index
  %y = memref.load %A[%z] : memref<4xf32>
  return %y : f32
}
""",
    "a tensor": """\
func.func @other(%A: memref<4xf32>) attributes {note = "} func @none() {"} {
  %x = arith.constant dense<1.0> : tensor<4xf32>
  return
}
""",
}
SAME = "#same = affine_map<(d0) -> (d0)>\n"


@pytest.mark.parametrize("within", [False, True], ids=["alone", "in a module"])
@pytest.mark.parametrize("last", [False, True], ids=["first", "last"])
@pytest.mark.parametrize("name", OTHERS)
def test_a_function_is_refused_when_it_is_requested(name: str, last: bool, within: bool) -> None:
    """The other functions are read and run. It is copied unchanged to the super-vectorized text."""
    other = OTHERS[name]
    functions = GOOD + other if last else other + GOOD
    text = SAME + (f"module {{\n{functions}}}\n" if within else functions)
    module = mlir.parse(text)
    assert [p.name for p in module.programs] == ["good"]
    assert [*module.refused] == ["other"]
    a = np.zeros(9, np.float32)
    mlir.run(text, "good", a, 5, virtual_vector_size=4)
    assert a.tolist() == [1.0] * 5 + [0.0] * 4

    with pytest.raises(KernelError) as caught:
        mlir.run(text, "@other", a)
    assert str(caught.value) == module.refused["other"]
    _, place, caret, *_ = str(caught.value).split("\n")
    line = text.splitlines()[int(place.split()[1].rstrip(":")) - 1]
    assert line in other
    assert caret.strip() == "^"

    printed = mlir.super_vectorize(text, virtual_vector_size=4)
    assert other.strip() in printed
    assert "vector.transfer_write" in printed
    reported = mlir.super_vectorize(text, virtual_vector_size=4, report=True)
    assert f"// @other cannot be read: {module.refused['other'].splitlines()[0]}\n" in reported
    if MLIR_OPT is not None:
        done = subprocess.run([MLIR_OPT], input=reported, capture_output=True, text=True, check=False)
        assert done.returncode == 0, done.stderr
        assert done.stdout.count("func.func") == 2


def test_a_text_without_supported_functions_is_refused() -> None:
    first, second = OTHERS["a tensor"], OTHERS["a call"].replace("@other", "@third")
    with pytest.raises(KernelError, match="line 2: "):
        mlir.parse(first + second)
    with pytest.raises(KernelError, match="outside functions"):
        mlir.parse("%x = arith.constant 1 : i32\n" + GOOD + GOOD.replace("@good", "@again"))


def test_declarations_are_kept() -> None:
    text = "func.func private @cosine(f32) -> f32\n" + VECRED
    assert mlir.parse(text).refused == {}
    printed = mlir.super_vectorize(text, virtual_vector_size=8)
    assert printed.startswith("func.func private @cosine(f32) -> f32\n\nfunc.func @vecred")
    with pytest.raises(KernelError, match="@cosine has no body\n  write one"):
        mlir.run(text, "cosine", 1.0)


def test_spans_of_functions(seed: int) -> None:
    """Functions follow each other, whatever is between them. Blanks preserve lines and columns."""
    rng = random.Random(seed)
    pieces = [GOOD, VECRED, VECTOR_ADD_2D, *OTHERS.values()]
    between = ["", "\n", SAME, "// func @none() {\n", "!t = f32\n"]
    for _ in range(20):
        text, expected = rng.choice(between), []
        for piece in rng.choices(pieces, k=rng.randint(1, 6)):
            expected.append((len(text), piece.rstrip()))
            text += piece + rng.choice(between)
        spans = function_spans(text)
        assert [s.begin for s in spans] == [begin for begin, _ in expected]
        for span, (_, piece) in zip(spans, expected, strict=True):
            assert text[span.begin : span.end].startswith(piece)
        blank = blanked(text, spans)
        assert [len(line) for line in blank.splitlines()] == [len(line) for line in text.splitlines()]
        assert function_spans(blank) == ()


def test_a_function_with_a_missing_brace_ends_at_the_next_one() -> None:
    module = mlir.parse(GOOD.replace("@good", "@open").rstrip().removesuffix("}") + "\n" + VECRED)
    assert [p.name for p in module.programs] == ["vecred"]
    assert [*module.refused] == ["open"]
