"""What completion offers shells on Tab, and which word a mistyped one probably meant."""

from __future__ import annotations

import os
import shutil
import subprocess
from pathlib import Path

import numpy as np
import pytest
from safetensors.numpy import save_file
from typer.testing import CliRunner

import tilejit
from tests.cli.running import COMMAND, child, refuses, run
from tests.tools.oracle import environment, run_python
from tilejit.cli import app


def asked(words: str) -> dict[str, str]:
    """The variables by which bash asks what it may offer for the last word."""
    return {"_TILEJIT_COMPLETE": "complete_bash", "COMP_WORDS": words, "COMP_CWORD": str(words.count(" "))}


@pytest.fixture
def model(tmp_path: Path) -> Path:
    save_file({"w.1": np.ones(3), "w.2": np.ones(3), "b": np.ones(3)}, tmp_path / "m.safetensors")
    return tmp_path


@pytest.mark.full
@pytest.mark.parametrize(
    ("words", "offered"),
    [
        ("tilejit p", ["pack"]),
        ("tilejit cache w", ["warm"]),
        ("tilejit pack --res", ["--resume"]),
        ("tilejit pack x y --layout tpu-d", ["tpu-doc"]),
        ("tilejit relayout x y --layout tpu", ["tpu", "tpu-doc", "tpu-int4"]),
        ("tilejit show f32[3,5] --layout col32", ["col32", "col32_2r_4r4"]),
        ("tilejit view f32[3,5] --layout C", ["C"]),
        ("tilejit show f32[3,5] --layout blis-a m", ["mr="]),
        ("tilejit pack x y --layout blis-a m", ["mr="]),
        ("tilejit formats tenstorrent-t", ["tenstorrent-tiles", "tenstorrent-tile"]),
        ("tilejit cache warm crout", ["crouton"]),
        ("tilejit explain C crout", ["crouton"]),
        ("tilejit explain C x --stage s", ["schedule", "source"]),
        ("tilejit pack x y --dtype bf", ["bf16"]),
        ("tilejit pack m.safetensors y --tensor w", ["w.1", "w.2"]),
        ("tilejit pack none.safetensors y --tensor w", []),
        ("tilejit show m.safetensors w", ["w.1", "w.2"]),
        ("tilejit view . b", ["b"]),
        ("tilejit show m.safetensors b w", []),
        ("tilejit show m.safetensors b --layout blis-a m", ["mr="]),
        ("tilejit pack m.", []),  # bash itself offers files
    ],
)
def test_completions_for_bash(
    words: str, offered: list[str], model: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(model)
    result = CliRunner().invoke(app, prog_name="tilejit", env=asked(words))
    assert (result.stdout.split(), result.stderr) == (offered, "")


@pytest.mark.full
@pytest.mark.parametrize(
    ("words", "never"),
    [
        ("tilejit cache ", "numba numpy rich"),
        ("tilejit pack x y --layout ", "numba llvmlite rich safetensors"),
    ],
)
def test_completion_imports_little(words: str, never: str) -> None:
    code = f"""
import sys
from tilejit.cli import main
try:
    main()
finally:
    print(*({set(never.split())!r} & set(sys.modules)), sep="")
"""
    done = run_python(code, timeout=60, **asked(words))
    offered = {*done.stdout.split()}
    assert done.stderr == ""
    assert not {*never.split()} & offered
    assert {"warm", "tpu"} & offered


@pytest.mark.skipif(not shutil.which("bash"), reason="bash is not here")
def test_bash_runs_the_script(tmp_path: Path) -> None:
    script = child("--version", _TILEJIT_COMPLETE="source_bash").stdout
    tool = tmp_path / "tilejit"
    tool.write_text(f"#!/bin/sh\nexec {COMMAND[0]} -c '{COMMAND[2]}' \"$@\"\n")
    tool.chmod(0o755)
    ask = f"""{script}
COMP_WORDS=(tilejit cache w); COMP_CWORD=2
$(complete -p tilejit | sed 's/.*-F \\([^ ]*\\).*/\\1/') tilejit
echo "${{COMPREPLY[@]}}"
"""
    path = f"{tmp_path}{os.pathsep}{os.environ.get('PATH', '')}"
    done = subprocess.run(
        ["bash", "--norc", "-c", ask], env=environment(PATH=path), capture_output=True, text=True, check=False
    )
    assert done.stdout == "warm\n", done.stderr


def test_completion_can_be_installed_and_shown() -> None:
    text = run("--help").stdout
    assert "--install-completion" in text
    assert "--show-completion" in text


def test_the_version() -> None:
    for option in ("-V", "--version"):
        assert run(option).stdout == f"tilejit {tilejit.__version__}\n"


@pytest.mark.parametrize(
    ("arguments", "meant"),
    [
        (("pcak",), "did you mean pack?"),
        (("cache", "wram"), "did you mean warm?"),
        (("show", "--jsn", "x"), "did you mean --json?"),
        (("explain", "C", "f32[3,4]", "--stage", "soruce"), "did you mean source?"),
        (("formats", "tenstorent"), "write 'tenstorrent'"),
        (("cache", "warm", "blis-aa"), "write 'blis-a'"),
        (("xyzzy",), "tilejit --help lists"),
        (("convert",), "tilejit --help lists"),
        (("show", "--layers", "x"), "tilejit show --help lists"),
        (("cache", "xyzzy"), "tilejit cache --help lists"),
        (("show", "--xyzzy", "x"), "tilejit show --help lists"),
    ],
    ids=str,
)
def test_mistyped_words_are_corrected(arguments: tuple[str, ...], meant: str) -> None:
    assert meant in refuses(*arguments)


def test_help_lists_exit_codes() -> None:
    codes = run("--help").stdout.partition("Exit codes:\n")[2].partition("\n\n")[0]
    for code in ("0 ", "1 ", "2 ", "130", "143, 129"):
        assert f"\n  {code}" in f"\n{codes}"
    assert "Exit codes" not in run("pack", "--help").stdout
