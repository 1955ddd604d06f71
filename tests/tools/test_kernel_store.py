"""Kernels of earlier runs are used only if everything that made them is the same."""

from __future__ import annotations

import os
import shutil
import sys
import time
from dataclasses import fields, replace
from pathlib import Path
from subprocess import run

import pytest

import codegen
from codegen.backend.build import NumbaIr
from codegen.backend.store import KernelStore
from codegen.backend.store_key import store_key
from codegen.support.cpu import LEVELS, cpu_level
from tests.tools import kernel_store
from tests.tools.kernel_store import (
    FOLDERS_KEPT,
    OWN_STORE,
    close_store,
    folder_name,
    ir_key,
    numba_ir,
    open_store,
    versions,
)

NAME, SOURCE = "nothing", "def nothing(operands, scratch, sizes, begin, end):\n    pass\n"


@pytest.fixture
def compiled(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The sources that Numba compiles while a test has a separate store."""
    made: list[str] = []

    def by_numba(name: str, source: str) -> NumbaIr:
        made.append(source)
        return NumbaIr(name, f"symbol_{len(made)}", "ir")

    monkeypatch.setenv(OWN_STORE, str(tmp_path))
    monkeypatch.setattr(kernel_store, "_by_numba", by_numba)
    return made


@pytest.mark.parametrize("fact", versions())
def test_other_versions_have_another_folder(fact: str) -> None:
    changed = {**versions(), fact: "another"}
    assert folder_name(changed) != folder_name(versions())
    assert folder_name(versions()) == folder_name(dict(reversed(versions().items())))


def test_runs_keep_kernels_but_no_measurements(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    for name in (OWN_STORE, "TILEJIT_CACHE_DIR", "TILEJIT_NO_CACHE"):
        monkeypatch.delenv(name, raising=False)
    folder = tmp_path / "tilejit-tests" / folder_name(versions())
    key, tuned = store_key(SOURCE, cpu_level()), "tuned-" + "0" * 32
    for _ in range(2):
        monkeypatch.delenv(OWN_STORE, raising=False)
        assert open_store(cold=False) is None
        store = KernelStore(folder)
        assert store.get_note(tuned) is None
        assert sum(note.name.startswith("thresholds-") for note in store.notes()) == len(LEVELS)
        store.put_note(tuned, {"schedule": 1})
        store.put(key, b"code")
    assert store.get(key) == b"code"
    monkeypatch.delenv(OWN_STORE)
    cold = open_store(cold=True)
    assert cold is not None
    assert KernelStore(cold).get(key) is None
    close_store(cold)
    assert not cold.exists()


def test_an_unusable_cache_folder_is_no_error(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "file").touch()
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "file"))
    monkeypatch.setenv("TILEJIT_CACHE_DIR", "")
    monkeypatch.delenv(OWN_STORE, raising=False)
    made = open_store(cold=False)
    assert made is not None
    close_store(made)


@pytest.mark.parametrize("hours", [0, 2])
def test_old_folders_of_other_versions_are_removed(
    hours: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Unless another run may be using them. Entries with other names stay."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    monkeypatch.setenv("TILEJIT_CACHE_DIR", "")
    base = tmp_path / "tilejit-tests"
    base.mkdir()
    (base / "dangling").symlink_to("nowhere")
    (base / "notes.txt").touch()
    count = FOLDERS_KEPT + 2
    for number in range(count):
        monkeypatch.delenv(OWN_STORE, raising=False)
        monkeypatch.setattr(kernel_store, "versions", lambda number=number: {"numpy": str(number)})
        assert open_store(cold=False) is None
        used = time.time() - hours * 3600 + number - count
        os.utime(os.environ[OWN_STORE], (used, used))
    names = {path.name for path in base.iterdir()}
    newest = range(0 if hours == 0 else count - FOLDERS_KEPT, count)
    assert names == {"dangling", "notes.txt"} | {folder_name({"numpy": str(n)}) for n in newest}


def test_numba_compiles_a_source_once(compiled: list[str]) -> None:
    assert [numba_ir(NAME, SOURCE).symbol for _ in range(3)] == ["symbol_1"] * 3
    assert numba_ir(NAME, SOURCE + "\n").symbol == "symbol_2"
    assert compiled == [SOURCE, SOURCE + "\n"]


@pytest.mark.parametrize("changed", ["compiler_digest", "versions"])
def test_a_stale_entry_is_never_used(
    changed: str, compiled: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """An entry of another compiler, Python, NumPy, Numba or llvmlite."""
    numba_ir(NAME, SOURCE)
    if changed == "compiler_digest":
        monkeypatch.setattr(kernel_store, "compiler_digest", lambda: "another")
        numba_ir(NAME, SOURCE)
        assert len(compiled) == 2
        return
    for number, fact in enumerate(versions(), 2):
        facts = {**versions(), fact: "another"}
        with monkeypatch.context() as patch:
            patch.setattr(kernel_store, "versions", lambda facts=facts: facts)
            numba_ir(NAME, SOURCE)
        assert len(compiled) == number, fact


DIGEST = "from codegen.backend.store_key import compiler_digest; print(compiler_digest())"


def test_an_edited_routine_counts_as_another_compiler(tmp_path: Path) -> None:
    """The digest in every key follows the text of the sources."""
    copy = tmp_path / "codegen"
    shutil.copytree(Path(codegen.__file__).parent, copy, ignore=shutil.ignore_patterns("__pycache__"))
    digests = set()
    for edited in (None, copy / "backend" / "build.py", *sorted((copy / "simd").rglob("*.py"))[:2]):
        if edited:
            edited.write_text(edited.read_text() + "# edited\n")
        child = {**os.environ, "PYTHONPATH": str(tmp_path)}
        done = run([sys.executable, "-c", DIGEST], env=child, cwd=tmp_path, capture_output=True, check=True)
        digests.add(done.stdout)
    assert len(digests) == 4


def test_a_damaged_entry_is_compiled_again(compiled: list[str], tmp_path: Path) -> None:
    numba_ir(NAME, SOURCE)
    (file,) = (tmp_path / "numba-ir").glob("*.kernel")
    file.write_bytes(file.read_bytes()[:-1])
    assert numba_ir(NAME, SOURCE).symbol == "symbol_2"


def test_machine_code_is_keyed_by_everything_that_makes_it(tmp_path: Path) -> None:
    """Whatever the run's folder does not identify, each entry's key does."""
    store, key = KernelStore(tmp_path), store_key(SOURCE, cpu_level())
    store.put(key, b"code")
    assert store.get(key) == b"code"
    for field in fields(key):
        other = 2 if field.name == "format" else "another"
        assert store.get(replace(key, **{field.name: other})) is None, field.name
    assert ir_key(NAME, SOURCE) != key
