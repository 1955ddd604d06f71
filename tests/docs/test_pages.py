"""README.md, docs/ and CONTRIBUTING.md: their Python and commands run as written, with the output shown."""

from __future__ import annotations

import doctest
import os
import re
import shlex
import shutil
import tomllib
from collections.abc import Iterator
from contextlib import redirect_stdout
from dataclasses import dataclass
from importlib.util import find_spec
from io import StringIO
from pathlib import Path
from typing import Any

import pytest

from tests.cli.running import SHELL, in_shell, run, warm_little
from tests.tools.blocks import run_block

ROOT = Path(__file__).parents[2]
PAGES = sorted(
    p
    for p in (ROOT / "README.md", *(ROOT / "docs").rglob("*.md"))
    if re.search(r"^```(python|console)$", p.read_text(), re.MULTILINE)
)
FENCE = re.compile(
    r"^(?:<!-- needs: (?P<needs>.*?) -->\n)?(?:<!-- (?P<printed>printed) -->\n)?"
    r"```(?P<kind>\w*)\n(?P<text>.*?)^```$",
    re.DOTALL | re.MULTILINE,
)
PROGRAMS = ("pip install", "python -m", ".venv/bin/", "pytest", "ruff", "mypy", "mkdocs")
"""Commands that are checked, not run. `tilejit` is run."""
REQUIRED = "TILEJIT_REQUIRE_DOCS"
"""Set if no block may be skipped."""


@dataclass(frozen=True, slots=True)
class Block:
    """A block of a page. A printed one shows the output of the Python block before it."""

    kind: str
    text: str
    needs: tuple[str, ...]
    printed: bool = False


def blocks(path: Path) -> Iterator[Block]:
    for found in FENCE.finditer(path.read_text()):
        needs = tuple((found["needs"] or "").split())
        yield Block(found["kind"], found["text"], needs, bool(found["printed"]))


def name_of(path: Path) -> str:
    return str(path.relative_to(ROOT))


def missing(needs: tuple[str, ...]) -> list[str]:
    return [name for name in needs if not _there(name)]


def _there(name: str) -> bool:
    """For TileJIT's modules, whether the file exists: importing the package may need what is missing."""
    if name.startswith("tilejit."):
        return bool(list(ROOT.glob(f"{name.replace('.', '/')}*")))
    try:
        return find_spec(name) is not None
    except ModuleNotFoundError:
        return False


@pytest.mark.full
@pytest.mark.parametrize("path", PAGES, ids=name_of)
def test_a_page_runs(path: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """From top to bottom, in one folder and one namespace."""
    monkeypatch.chdir(tmp_path)
    warm_little(monkeypatch)
    names: dict[str, Any] = {}
    skipped: set[str] = set()
    ran = 0
    printed = StringIO()
    for k, block in enumerate(blocks(path)):
        if lacking := missing(block.needs):
            skipped.update(lacking)
        elif block.printed:
            check_output(block.text, printed.getvalue())
        elif block.kind == "python":
            printed = StringIO()
            with redirect_stdout(printed):
                run_block(block.text, f"<{name_of(path)}, block {k}>", names)
            ran += 1
        elif block.kind == "console":
            run_commands(block.text)
            ran += 1
    if skipped:
        assert not os.environ.get(REQUIRED), f"missing: {', '.join(sorted(skipped))}"
        pytest.skip(f"{ran} blocks ran; others need {', '.join(sorted(skipped))}")


def run_commands(text: str) -> None:
    """Each line after `$` is a command. The lines below it are its output, or there are none."""
    for piece in re.split(r"^\$ ", text, flags=re.MULTILINE)[1:]:
        line, _, shown = piece.partition("\n")
        command, _, said = line.partition("  # ")
        words = shlex.split(command)
        piped = "tilejit" in words and (
            words[0].startswith("TILEJIT_") or any(word in SHELL for word in words)
        )
        if words[0] != "tilejit" and not piped:
            check_command(command)
            continue
        if piped:
            if not shutil.which("sh"):
                continue
            done = in_shell(command, Path.cwd())
            code, out, whole = done.returncode, done.stdout, done.stdout + done.stderr
        else:
            result = run(*words[1:])
            code, out, whole = result.exit_code, result.stdout, result.output
        wanted = int(said.removeprefix("exit ")) if said.startswith("exit ") else 0
        assert code == wanted, f"{command}\n{whole}"
        if shown.strip():
            check_output(shown, out, f"{command}\n{whole}")


def check_output(shown: str, printed: str, about: str = "") -> None:
    """Compare what a page shows with what was printed; `...` stands for any text."""
    same = doctest.OutputChecker().check_output(shown.rstrip(), printed.rstrip(), doctest.ELLIPSIS)
    assert same, about or printed


def check_command(command: str) -> None:
    """The extras, modules and paths that a command names exist."""
    assert command.startswith(PROGRAMS), command
    words = shlex.split(command)
    if "install" in words and "pip" in words[0]:
        for extra in re.findall(r"\[(.*?)\]", command):
            assert not set(extra.split(",")) - extras(), command
    if words[:2] == ["python", "-m"] and words[2] != "venv":
        assert find_spec(words[2]), command
    for word in words[1:]:
        if word.startswith("tests"):
            assert (ROOT / word).exists(), command


def extras() -> set[str]:
    """The extras of this version. Those of frameworks and clusters come with their modules."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    later = {name for name in ("jax", "torch", "dask") if missing((f"tilejit.interop.{name}",))}
    return {*project["optional-dependencies"], *later}


def test_commands_of_contributing_exist() -> None:
    found = [b.text for b in blocks(ROOT / "CONTRIBUTING.md") if b.kind == "console"]
    assert len(found) == 3
    for text in found:
        run_commands(text)


def test_every_page_is_in_the_navigation() -> None:
    nav = (ROOT / "mkdocs.yml").read_text().partition("\nnav:")[2]
    for path in (ROOT / "docs").rglob("*.md"):
        assert f"- {path.relative_to(ROOT / 'docs').as_posix()}\n" in nav


def test_a_block_with_wrong_output_fails() -> None:
    with pytest.raises(AssertionError):
        run_block("1 + 1  # 3\n", "<a test>", {})
    with pytest.raises(AssertionError):
        run_commands('$ tilejit show "f32[3]"\nnothing of this\n')
    with pytest.raises(AssertionError):
        check_output("4\n", "5\n")
    with pytest.raises(AssertionError):
        run_commands("$ pip install '.[nowhere]'\n")
    with pytest.raises(AssertionError):
        run_commands("$ rm -r elsewhere\n")
