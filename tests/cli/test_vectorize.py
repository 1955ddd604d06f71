"""`tilejit vectorize`: MLIR files and Python files."""

from __future__ import annotations

import re
from pathlib import Path

import numpy as np
import pytest

from codegen.ir.nodes import ArrayArg, ScalarArg
from codegen.schedule.machine import machine
from tests.cli.running import child, fails, refuses, run
from tests.cli.test_streams import piped
from tests.mlir.texts import VECRED, VECTOR_ADD_2D
from tilejit.cli.python_functions import arguments_of, load

LOOPS = '''
"""Two functions; importing this file prints nothing."""
import math


def scale(A, C, s, n):
    for i in range(n):
        C[i] = A[i] * s


def rows(A: "f64[:, :]", C: "f64[:]"):
    for i in range(A.shape[0]):
        acc = 0.0
        for j in range(A.shape[1]):
            acc += math.cos(A[i, j])
        C[i] = acc
'''


@pytest.fixture
def files(tmp_path: Path) -> Path:
    (tmp_path / "add.mlir").write_text(VECTOR_ADD_2D)
    (tmp_path / "red.mlir").write_text(VECRED)
    (tmp_path / "loops.py").write_text(LOOPS)
    (tmp_path / "bad.mlir").write_text(VECRED.replace("arith.addf", "arith.frobnicate"))
    (tmp_path / "bad.py").write_text("import nothing_of_this_name\n")
    (tmp_path / "call.py").write_text("def f(A):\n    for i in range(9):\n        A[i] = open(i)\n")
    (tmp_path / "empty.py").write_text("x = 1\n")
    (tmp_path / "annotated.py").write_text("def f(A: 'float[:]'):\n    pass\n")
    (tmp_path / "loops.txt").write_text(LOOPS)
    return tmp_path


def test_an_mlir_file_is_vectorized(files: Path) -> None:
    pytest.importorskip("xdsl", reason="the extra mlir is not installed")
    arguments = ("--virtual-vector-size", "32,256", "--fastest-varying", "1,0")
    result = run("vectorize", files / "add.mlir", *arguments)
    assert result.exit_code == 0, result.output
    assert result.stdout.count("vector.transfer_write") == 3
    assert "vector<32x256xf32>" in result.stdout
    assert "// line 7, loop i0: vectorized by 32x256" not in result.stdout.split("func.func")[1]
    assert result.stdout.startswith("// line 7, loop i0: vectorized")


def test_without_masks(files: Path) -> None:
    """MLIR's pass prints no masks either. It is refused where a store might write too much."""
    pytest.importorskip("xdsl", reason="the extra mlir is not installed")
    result = run("vectorize", files / "add.mlir", "--masks", "none")
    assert result.exit_code == 0, result.output
    assert result.stdout.count("vector.transfer_write") == 3
    assert "create_mask" not in result.stdout
    (files / "some.mlir").write_text(
        "func.func @f(%A: memref<9xf32>, %x: f32) {\n  affine.for %i = 0 to 7 {\n"
        "    affine.store %x, %A[%i] : memref<9xf32>\n  }\n  return\n}\n"
    )
    assert "@f needs masks" in fails("vectorize", files / "some.mlir", "--masks", "none")
    assert "is not one of 'needed', 'none'" in refuses("vectorize", files / "add.mlir", "--masks", "all")
    assert "--masks and --check are for MLIR" in refuses("vectorize", files / "loops.py", "--masks", "none")


@pytest.mark.full
def test_check(files: Path) -> None:
    """It runs two files on the same arrays."""
    pytest.importorskip("xdsl", reason="the extra mlir is not installed")
    (files / "wide.mlir").write_text(run("vectorize", files / "add.mlir").stdout)
    result = run("vectorize", files / "add.mlir", "--check", files / "wide.mlir")
    assert result.exit_code == 0, result.output
    assert result.stdout.startswith("@vector_add_2d: ")
    assert result.stdout.endswith(" calls agree exactly\n")
    wrong = (files / "wide.mlir").read_text().replace("dense<1.0>", "dense<3.0>")
    (files / "wrong.mlir").write_text(wrong)
    assert "differs in super-vectors" in fails(
        "vectorize", files / "add.mlir", "--check", files / "wrong.mlir"
    )
    assert "bad.mlir: " in fails("vectorize", files / "add.mlir", "--check", files / "bad.mlir")


def test_functions_that_cannot_be_read_are_copied_unchanged(files: Path) -> None:
    """A comment gives the reason, and the other functions are vectorized."""
    pytest.importorskip("xdsl", reason="the extra mlir is not installed")
    bad = (files / "bad.mlir").read_text().replace("@vecred", "@bad")
    (files / "both.mlir").write_text(bad + VECTOR_ADD_2D)
    result = run("vectorize", files / "both.mlir")
    assert result.exit_code == 0, result.output
    assert result.stdout.startswith(
        "// @bad cannot be read: arith.frobnicate is not supported\n//   line 6: %add"
    )
    assert bad.strip() in result.stdout
    assert "vector<256xf32>" in result.stdout
    assert result.stderr.startswith(
        f"tilejit: {files / 'both.mlir'}: @bad cannot be read: arith.frobnicate is not supported\n  line 6: "
    )


REFUSED = """
def calls(A):
    for i in range(9):
        A[i] = open(i)


def stores(y, x, k):
    for i in range(len(y)):
        k[i] = 0
        y[i] = x[k[i]]


def typed(A: "float[:]"):
    pass


def many(*A):
    pass
"""


def test_python_functions_that_cannot_be_read_are_named(files: Path) -> None:
    """The others are vectorized, and the command fails only if there are none."""
    path = files / "mixed.py"
    path.write_text(LOOPS + REFUSED)
    result = run("vectorize", path, "--virtual-vector-size", "64")
    assert result.exit_code == 0, result.output
    assert result.stdout.startswith(
        run("vectorize", files / "loops.py", "--virtual-vector-size", "64").stdout
    )
    causes = {
        "calls": "kernels cannot call open",
        "stores": "k is stored to, and its elements are subscripts",
        "typed": "typed: the annotation 'float[:]' of A is not a dtype",
        "many": "kernels take positional arguments only",
    }
    said = [line for line in result.stderr.splitlines() if line.startswith("tilejit: ")]
    for line, (name, cause) in zip(said, causes.items(), strict=True):
        assert line.startswith(f"tilejit: @{name} cannot be read: {cause}")
        assert f"\n// @{name} cannot be read: {cause}" in result.stdout
    rest = result.stdout.partition("// @calls")[2].splitlines()[1:]
    assert all(line.startswith("//") for line in rest if line)
    path.write_text(REFUSED)
    assert "kernels cannot call open" in fails("vectorize", path)


@pytest.mark.parametrize("file", ["add.mlir", "red.mlir", "loops.py"])
def test_options_of_mlirs_pass_in_one_string(file: str, files: Path) -> None:
    """The string may have the name of the pass, as for mlir-opt, or not."""
    if file.endswith(".mlir"):
        pytest.importorskip("xdsl", reason="the extra mlir is not installed")
    keywords = ("--virtual-vector-size", "64", "--fastest-varying", "0", "--reductions")
    expected = run("vectorize", files / file, *keywords)
    text = "virtual-vector-size=64 test-fastest-varying=0 vectorize-reductions=true"
    for options in (text, f'-affine-super-vectorize="{text}"'):
        result = run("vectorize", files / file, "--options", options)
        assert (result.exit_code, result.stdout) == (0, expected.stdout)
    assert "pass one or the other" in refuses("vectorize", files / file, "--options", text, "--reductions")


def test_scans_are_vectorized_on_request(tmp_path: Path) -> None:
    source = (
        "def f(a, y):\n    s = 0.0\n    for i in range(a.shape[0]):\n        s += a[i]\n        y[i] = s\n"
    )
    path = tmp_path / "scan.py"
    path.write_text(source)
    assert "scan-not-asked" in run("vectorize", path).stdout
    assert "vector.scan <add>" in run("vectorize", path, "--scans").stdout


def test_reductions_are_vectorized_on_request(files: Path) -> None:
    pytest.importorskip("xdsl", reason="the extra mlir is not installed")
    plain = run("vectorize", files / "red.mlir", "--virtual-vector-size", "128").stdout
    assert "reduction-not-asked" in plain
    assert "vector<" not in plain
    asked = run("vectorize", files / "red.mlir", "--virtual-vector-size", "128", "--reductions").stdout
    assert "vector.reduction <add>" in asked
    assert "vector.create_mask" in asked


def test_a_python_file_is_vectorized(files: Path) -> None:
    result = run("vectorize", files / "loops.py", "--virtual-vector-size", "64")
    assert result.exit_code == 0, result.output
    scale, rows = result.stdout.split("func.func")[1:]
    assert "vector<64xf32>" in scale
    assert "memref<?x?xf64>" in rows
    assert "%C: memref<?xf64" in rows


INDEXED = """
import tilejit as tj


def twice(y, x, a, b):
    for i in range(len(y)):
        y[i] = x[a[b[i]]]


def put(y, x, p):
    for i in range(len(p)):
        y[tj.permutation(p)[i]] = x[i]


def named(y, x, idx):
    for i in range(len(y)):
        j = idx[i]
        y[i] = x[j]


def reverse(y, x):
    for i in range(y.shape[0]):
        y[i] = x[x.shape[0] - 1 - i]
"""


def test_arrays_of_subscripts_have_integer_dtypes(tmp_path: Path) -> None:
    """Without an annotation they are i64. Arrays whose sizes are used in subscripts are not."""
    (tmp_path / "indexed.py").write_text(INDEXED)
    result = run("vectorize", tmp_path / "indexed.py", "--virtual-vector-size", "16")
    assert result.exit_code == 0, result.output
    heads = [line for line in result.stdout.splitlines() if line.startswith("func.func")]
    integers = [re.findall(r"%(\w+): memref<\?xi64>", head) for head in heads]
    assert integers == [["a", "b"], ["p"], ["idx"], []]
    assert result.stdout.count("vectorized by 16") == 4


READ_BACK = (
    INDEXED
    + """

def narrow(y, x, idx: "i8[:]"):
    for i in range(len(y)):
        y[i] = x[int(idx[i]) + 1]


def unsigned(y, x, idx: "u16[:]"):
    for i in range(len(y)):
        y[i] = x[idx[i]]


def add_at(y, x, idx):
    for i in range(len(x)):
        y[idx[i]] += x[i]


def rows(y: "f32[:, :]", x: "f32[:, :]", idx):
    for i in range(y.shape[0]):
        for j in range(y.shape[1]):
            y[i, j] = x[idx[i], j]


def pairs(y, x: "f32[:, :]", a, b):
    for i in range(len(y)):
        y[i] = x[a[i], b[i]]


def every_other(y, x, idx):
    for i in range(len(y)):
        y[i] = x[idx[2 * i]]
"""
)


@pytest.mark.full
@pytest.mark.parametrize("interpreted", [False, True])
def test_printed_gathers_are_read_back(tmp_path: Path, interpreted: bool) -> None:
    """The printed text does what the functions do, including indices that count from the end."""
    mlir = pytest.importorskip("tilejit.mlir", reason="the extra mlir is not installed", exc_type=ImportError)
    path = tmp_path / "indexed.py"
    path.write_text(READ_BACK)
    text = run("vectorize", path, "--virtual-vector-size", "16").stdout
    module, rng = load(path), np.random.default_rng(7)

    def floats(*shape: int) -> np.ndarray:
        return rng.random(shape, np.float32)

    n = 37
    idx, other = rng.integers(-50, 50, n), rng.integers(-n, n, n)
    calls: dict[str, tuple[np.ndarray, ...]] = {
        "twice": (floats(n), floats(50), idx, other),
        "put": (floats(50), floats(n), rng.permutation(n) - 20),
        "named": (floats(n), floats(50), idx),
        "reverse": (floats(n), floats(n)),
        "narrow": (floats(n), floats(50), (idx - 1).astype(np.int8)),
        "unsigned": (floats(n), floats(50_000), rng.integers(40_000, 50_000, n).astype(np.uint16)),
        "add_at": (floats(50), floats(n), idx),
        "rows": (floats(n, 19), floats(50, 23), idx),
        "pairs": (floats(n), floats(50, n), idx, other),
        "every_other": (floats(n // 2), floats(50), idx),
    }
    assert [program.name for program in mlir.parse(text).programs] == list(calls)
    scalar = run("vectorize", path, "--virtual-vector-size", "1").stdout
    assert mlir.check(scalar, text).functions == tuple(calls)
    for name, given in calls.items():
        expected, found = [[each.copy() for each in given] for _ in range(2)]
        getattr(module, name)(*expected)
        mlir.run(text, name, *found, interpreted=interpreted)
        for a, b in zip(expected, found, strict=True):
            np.testing.assert_array_equal(a, b, name)
    outside = np.zeros(n, np.float32), np.ones(50, np.float32), np.full(n, -51)
    with pytest.raises(IndexError, match=None if interpreted else "expected -50 to 49"):
        mlir.run(text, "named", *outside, interpreted=interpreted)


def test_python_with_another_dtype(files: Path) -> None:
    result = run("vectorize", files / "loops.py", "--dtype", "bf16")
    assert "vector<256xbf16>" in result.stdout


@pytest.mark.full
def test_standard_input_is_read(files: Path) -> None:
    """The result is the same as from a file, line numbers included."""
    of_file = child("vectorize", files / "loops.py").stdout
    code, out, error = piped("vectorize", "-", "--python", data=LOOPS.encode())
    assert (code, out.decode(), error) == (0, of_file, "")
    for text, said in {
        b"x = 1": "tilejit: standard input defines no function",
        b"def f(:": "tilejit: standard input cannot be run: SyntaxError",
        b"\0": "tilejit: standard input cannot be run: ",
        b"raise SystemExit(0)": "tilejit: standard input cannot be run: SystemExit: 0",
        b"def f(A):\n    for i in range(9):\n        A[i] = open(i)": "line 3",
    }.items():
        code, out, error = piped("vectorize", "-", "--python", data=text)
        assert (code, out) == (1, b"")
        assert said in error
    assert "--python is for standard input" in refuses("vectorize", files / "add.mlir", "--python")


@pytest.mark.full
def test_in_a_separate_process(files: Path) -> None:
    done = child("vectorize", files / "loops.py")
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout.startswith("// line ")


ERRORS = {
    ("bad.mlir",): "arith.frobnicate is not supported\n  line 6: %add",
    ("bad.py",): "cannot be run: ModuleNotFoundError",
    ("call.py",): "call.py",
    ("empty.py",): "defines no function",
    ("annotated.py",): "the annotation 'float[:]' of A is not a dtype",
    ("nothing.mlir",): "No such file",
    ("nothing.py",): "No such file",
    ("red.mlir", "--virtual-vector-size", "0"): "at least one element",
    ("loops.py", "--virtual-vector-size", "0"): "at least one element",
    ("loops.py", "--dtype", "f31"): "f31",
}
MISUSES = {
    ("loops.txt",): "is neither .mlir nor .py",
    ("red.mlir", "--virtual-vector-size", "many"): "is not a list of numbers",
    ("loops.py", "--options", "virtual-vector-size"): "expected a list of numbers, got ''",
}


@pytest.mark.parametrize("arguments", ERRORS, ids=" ".join)
def test_errors(arguments: tuple[str, ...], files: Path) -> None:
    if arguments[0].endswith(".mlir"):
        pytest.importorskip("xdsl", reason="the extra mlir is not installed")
    assert ERRORS[arguments] in fails("vectorize", files / arguments[0], *arguments[1:])


@pytest.mark.parametrize("arguments", MISUSES, ids=" ".join)
def test_usage_errors(arguments: tuple[str, ...], files: Path) -> None:
    assert MISUSES[arguments] in refuses("vectorize", files / arguments[0], *arguments[1:])


TYPED = """
def f(A, B: "bf16[:, :]", s, n, k: int, x: "i32", c=2):
    for i in range(n):
        A[i] = B[i, k] * s + x * c
"""


def test_parameters_are_typed_by_annotation_or_by_use(tmp_path: Path) -> None:
    (tmp_path / "typed.py").write_text(TYPED)
    assert arguments_of(load(tmp_path / "typed.py").f, "f16") == [
        ArrayArg("A", "f16", 1, "C"),
        ArrayArg("B", "bf16", 2, "C"),
        ScalarArg("s", "weak_float"),
        ScalarArg("n", "weak_int"),
        ScalarArg("k", "weak_int"),
        ScalarArg("x", "i32"),
    ]


def test_decorated_kernels_take_precedence_over_other_functions(tmp_path: Path) -> None:
    (tmp_path / "kernels.py").write_text(
        "from tilejit.kernels.kernel import kernel\n"
        "def helper():\n    return open('x')\n"
        "@kernel(virtual_vector_size=8)\n"
        "def copy(A, C):\n    for i in range(C.shape[0]):\n        C[i] = A[i]\n"
    )
    result = run("vectorize", tmp_path / "kernels.py", "--virtual-vector-size", "32")
    assert result.exit_code == 0, result.output
    assert result.stdout.count("func.func") == 1
    assert "vector<32xf32>" in result.stdout


def test_sizes_in_terms_of_the_machine(files: Path) -> None:
    lanes = machine().register_bytes // 4
    for arguments in (("--virtual-vector-size", "2*hw"), ("--options", "virtual-vector-size=2*hw")):
        result = run("vectorize", files / "loops.py", *arguments)
        assert result.exit_code == 0, result.output
        assert f"vector<{2 * lanes}xf32>" in result.stdout
    refused = run("vectorize", files / "loops.py", "--virtual-vector-size", "2*hw*")
    assert refused.exit_code != 0
