"""Type checkers accept users' code (the tutorial and an annotated script), and find mistakes in it."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from pathlib import Path
from shutil import copyfile, which
from subprocess import PIPE, STDOUT, run
from sys import executable

import pytest

from tests.tools.oracle import environment

ROOT = Path(__file__).parents[1]
SCRIPT = ROOT / "tests" / "data" / "typed_script.py"
PYTHON = re.compile(r"^```python\n(.*?)^```$", re.DOTALL | re.MULTILINE)

REVEALED = """
import numpy as np
import tilejit as tj

@tj.kernel
def scale(a: np.ndarray, factor: float) -> None:
    for i in range(a.shape[0]):
        a[i] = a[i] * factor

@tj.elementwise(fastmath=True)
def twice(x: np.ndarray) -> np.generic:
    return x + x

a = np.zeros(3)
reveal_type(scale)
reveal_type(scale(a, 2.0))
reveal_type(twice)
reveal_type(tj.Shape.parse("f32[3]"))
reveal_type(tj.pack(a, "{0}").unpack())
"""

MISTAKES = """
import numpy as np
import tilejit as tj

@tj.kernel
def scale(a: np.ndarray, factor: float) -> None:
    for i in range(a.shape[0]):
        a[i] = a[i] * factor

a = np.zeros(3)
scale(a)  # wrong
scale(a, "2")  # wrong
tj.kernel(tail="masked")  # wrong
tj.elementwise(fast_math=True)  # wrong
tj.pack(a, "{0}", casting="same-kind")  # wrong
tj.pack(a, "{0}", specialize="shapes")  # wrong
tj.pack(a, "{0}", padding="zero")  # wrong
tj.pack(a, 3)  # wrong
tj.unpack(a, "f64[3]{0}", virtual_vector_size=2.5)  # wrong
tj.copyto(a, a, "always")  # wrong
tj.asarray(a, order="R")  # wrong
"""


def mypy(*files: Path) -> str:
    pytest.importorskip("mypy")
    flags = ("--strict", "--config-file=", "--follow-imports=silent", "--no-error-summary")
    cache = f"--cache-dir={ROOT / '.mypy_cache' / 'of-users'}"
    command = [executable, "-m", "mypy", *flags, cache, *map(str, files)]
    done = run(command, env=environment(MYPYPATH=str(ROOT)), stdout=PIPE, stderr=STDOUT, text=True)
    return done.stdout


def pyright(*files: Path) -> str:
    """pyright's errors, without warnings.

    The package from PyPI downloads the checker, if it is allowed to.
    """
    if which("pyright") is None:
        pytest.skip("pyright is not installed")
    settings = files[0].parent / "pyrightconfig.json"
    settings.write_text(json.dumps({"extraPaths": [str(ROOT)], "pythonVersion": "3.11"}))
    command = ["pyright", "--outputjson", "--pythonpath", executable, "-p", str(settings)]
    done = run(command, capture_output=True, text=True)
    try:
        found = json.loads(done.stdout)["generalDiagnostics"]
    except ValueError:
        pytest.skip(f"pyright does not run here: {done.stderr[-200:]}")
    shown = [x for x in found if x["severity"] in ("error", "information")]
    return "".join(f"{x['file']}:{x['range']['start']['line'] + 1}: {x['message']}\n" for x in shown)


@pytest.fixture
def users_code(tmp_path: Path) -> list[Path]:
    """The tutorial's code in one file, and the script."""
    tutorial = tmp_path / "tutorial.py"
    tutorial.write_text("\n".join(PYTHON.findall((ROOT / "docs" / "tutorial" / "start.md").read_text())))
    copyfile(SCRIPT, tmp_path / SCRIPT.name)
    return [tutorial, tmp_path / SCRIPT.name]


CHECKERS = pytest.mark.parametrize("check", [mypy, pyright])


@pytest.mark.full
@CHECKERS
def test_users_code_has_no_errors(check: Callable[..., str], users_code: list[Path]) -> None:
    assert check(*users_code) == ""


@pytest.mark.full
@CHECKERS
def test_signatures_survive_decoration(check: Callable[..., str], tmp_path: Path) -> None:
    path = tmp_path / "revealed.py"
    path.write_text(REVEALED)
    shown = [line for line in check(path).splitlines() if re.search("Revealed type|Type of", line)]
    assert len(shown) == 5, shown
    kernel, result, elementwise, shape, array = shown
    assert re.search(r"Kernel\[.*a: .*ndarray.*factor: .*float.*None\]", kernel)
    assert "None" in result
    assert re.search(r"Elementwise\[.*x: .*ndarray.*generic", elementwise)
    assert "Shape" in shape
    assert "Tuple" not in shape
    assert re.search("ndarray|NDArray", array)


@CHECKERS
def test_mistakes_are_found(check: Callable[..., str], tmp_path: Path) -> None:
    path = tmp_path / "mistakes.py"
    path.write_text(MISTAKES)
    wrong = {k for k, line in enumerate(MISTAKES.splitlines(), 1) if line.endswith("# wrong")}
    found = {int(n) for n in re.findall(r"mistakes\.py:(\d+):", check(path))}
    assert found == wrong


@pytest.mark.full
def test_the_script_runs(tmp_path: Path) -> None:
    done = run([executable, str(SCRIPT)], env=environment(), cwd=tmp_path, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert "minor_to_major names dimension 2" in done.stdout
