"""The option string of MLIR's pass: what it means, and which errors match mlir-opt's."""

from __future__ import annotations

import shutil
import subprocess

import pytest

from codegen.support.errors import KernelValueError
from tilejit.kernels.pass_options import PassOptions, read_pass_options

MLIR_OPT = shutil.which("mlir-opt-16")

OPTIONS = {
    "virtual-vector-size=256": PassOptions((256,)),
    "virtual-vector-size=256 test-fastest-varying=0": PassOptions((256,), (0,)),
    "virtual-vector-size=32,256 test-fastest-varying=1,0": PassOptions((32, 256), (1, 0)),
    "test-fastest-varying=0 vectorize-reductions virtual-vector-size=128": PassOptions((128,), (0,), True),
    "virtual-vector-size=128 vectorize-reductions=true": PassOptions((128,), None, True),
    "virtual-vector-size=128  vectorize-reductions=1 ": PassOptions((128,), None, True),
    "virtual-vector-size=128 vectorize-reductions=false": PassOptions((128,)),
}

NAMED = {
    '-affine-super-vectorize="virtual-vector-size=256 test-fastest-varying=0"': PassOptions((256,), (0,)),
    "--affine-super-vectorize=virtual-vector-size=8": PassOptions((8,)),
    "affine-super-vectorize='virtual-vector-size=8'": PassOptions((8,)),
    '-affine-super-vectorize="virtual-vector-size=8 test-fastest-varying=0 \\\nvectorize-reductions=true"': (
        PassOptions((8,), (0,), True)
    ),
    "virtual-vector-size=8 \\ vectorize-reductions=true": PassOptions((8,), None, True),
}

WRONG = {
    "virtual-vector-size=many": "expected a list of numbers, got 'many'",
    "virtual-vector-size=32;256": "expected a list of numbers, got '32;256'",
    "virtual-vector-size=8 vectorize-reductions=perhaps": "expected true or false, got 'perhaps'",
    "virtual-vector-size=8 tail=mask": "'tail=mask' is not an option of affine-super-vectorize",
    "virtual vector size 8": "'virtual' is not an option",
}
REFUSED_HERE = {
    "": "the options have no virtual-vector-size",
    "vectorize-reductions": "the options have no virtual-vector-size",
    "virtual-vector-size=8 virtual-vector-size=16": "is given twice",
}


@pytest.mark.parametrize("text", [*OPTIONS, *NAMED])
def test_options(text: str) -> None:
    assert read_pass_options(text) == {**OPTIONS, **NAMED}[text]


@pytest.mark.parametrize("text", [*WRONG, *REFUSED_HERE])
def test_errors(text: str) -> None:
    with pytest.raises(KernelValueError) as caught:
        read_pass_options(text)
    cause, advice = str(caught.value).split("\n")
    assert {**WRONG, **REFUSED_HERE}[text] in cause
    assert advice == "  write virtual-vector-size=32,256 test-fastest-varying=1,0 vectorize-reductions"


def test_strings_only() -> None:
    with pytest.raises(TypeError, match="options: expected a str such as"):
        read_pass_options(256)  # type: ignore[arg-type]


@pytest.mark.skipif(MLIR_OPT is None, reason="mlir-opt-16 (Debian's mlir-16-tools) is not installed")
@pytest.mark.parametrize("text", [*OPTIONS, *WRONG])
def test_as_mlir_opt(text: str) -> None:
    """mlir-opt accepts the same strings."""
    command = [str(MLIR_OPT), f"--affine-super-vectorize={text}"]
    done = subprocess.run(command, input="module {\n}\n", capture_output=True, text=True, check=False)
    assert (done.returncode == 0) == (text in OPTIONS), done.stderr


def test_sizes_in_terms_of_the_machine() -> None:
    """Only TileJIT supports these; mlir-opt accepts only numbers."""
    assert read_pass_options("virtual-vector-size=2*hw") == PassOptions(("2*hw",))
    assert read_pass_options("virtual-vector-size=cores,l1/4 test-fastest-varying=1,0") == PassOptions(
        ("cores", "l1/4"), (1, 0)
    )
