"""The examples at the end of `--help` run as printed, in a folder with the files they name."""

from __future__ import annotations

import shlex
import shutil
from importlib.util import find_spec
from pathlib import Path

import numpy as np
import pytest
from safetensors.numpy import save_file

from tests.cli.running import SHELL, in_shell, run, warm_little
from tilejit.cli.examples import EXAMPLES

ADD_MLIR = """func.func @add(%A: memref<?x?xf32>, %m: index, %n: index) {
  affine.for %i = 0 to %m {
    affine.for %j = 0 to %n {
      %a = affine.load %A[%i, %j] : memref<?x?xf32>
      affine.store %a, %A[%i, %j] : memref<?x?xf32>
    }
  }
  return
}
"""
ADD_PYTHON = """def add(a: "f32[:, :]", b: "f32[:, :]"):
    for i in range(a.shape[0]):
        for j in range(a.shape[1]):
            a[i, j] = a[i, j] + b[i, j]
"""
RULES = """[[rule]]
tensors = ".*norm.*"
skip = true
"""


def examples(command: str, columns: int = 80) -> list[str]:
    """The commands in the last section of the help."""
    text = run(*command.split()[1:], "--help", columns=columns).stdout
    joined = text.partition("\nExamples:\n")[2].replace(" \\\n", " ")
    return [" ".join(line.split()) for line in joined.splitlines() if line and "  # " not in line]


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The files that examples name, and those that one example writes and others read."""
    path = tmp_path_factory.mktemp("examples")
    x = np.arange(100 * 300, dtype=np.float32).reshape(100, 300)
    np.save(path / "x.npy", x)
    (path / "dump.bin").write_bytes(bytes(8 * 128 * 2))
    tensors = {"w": x, "norm": x[:, :1].copy()}
    save_file(tensors, path / "model.safetensors")
    (path / "model").mkdir()
    save_file(tensors, path / "model" / "model.safetensors")
    for name, text in (("rules.toml", RULES), ("add.mlir", ADD_MLIR), ("add.py", ADD_PYTHON)):
        (path / name).write_text(text)
    for source, target in (("x.npy", "y.npy"), ("model.safetensors", "packed.safetensors")):
        assert run("pack", str(path / source), str(path / target), "--layout", "tpu").exit_code == 0
    return path


@pytest.mark.full
@pytest.mark.parametrize("command", EXAMPLES)
def test_the_examples_run(command: str, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(folder)
    warm_little(monkeypatch)
    monkeypatch.setattr("codegen.backend.store.KernelStore.clear", lambda self: 0)  # other tests use it
    found = examples(command)
    assert found == [" ".join(example.split()) for _, example in EXAMPLES[command]]
    for example in found:
        if "add.mlir" in example and not find_spec("xdsl"):
            continue
        if any(word in SHELL for word in shlex.split(example)):
            if not shutil.which("sh"):
                continue
            done = in_shell(example, folder)
            assert (done.returncode, done.stderr.count("Error")) == (0, 0), done.stderr
            continue
        result = run(*_quicker(shlex.split(example))[1:])
        assert result.exit_code == 0, (example, result.output)
    if command == "tilejit unpack":
        for name in ("x2.npy", "x3.npy"):
            assert (folder / name).read_bytes() == (folder / "x.npy").read_bytes()


def _quicker(words: list[str]) -> list[str]:
    return [*words, "--mib", "1"] if words[1] == "demo" else words


@pytest.mark.full
@pytest.mark.parametrize("command", EXAMPLES)
def test_examples_do_not_depend_on_the_width_of_the_terminal(command: str) -> None:
    assert examples(command, 40) == examples(command, 80)
