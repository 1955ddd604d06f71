"""Kernels of earlier runs are used only if everything that made them is the same."""

from __future__ import annotations

import os
import shutil
import sys
import time
from pathlib import Path
from subprocess import run

import pytest

import codegen
from codegen.backend.store import KernelStore
from codegen.backend.store_key import store_key
from codegen.support.cpu import LEVELS, cpu_level
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


def test_old_folders_of_other_versions_are_removed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Unless another run may be using them. Entries with other names stay."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    monkeypatch.setenv("TILEJIT_CACHE_DIR", "")
    monkeypatch.delenv(OWN_STORE, raising=False)
    base = tmp_path / "tilejit-tests"
    base.mkdir()
    (base / "dangling").symlink_to("nowhere")
    (base / "notes.txt").touch()
    count, now = FOLDERS_KEPT + 2, time.time()
    for number in range(count):
        folder = base / folder_name({"numpy": str(number)})
        folder.mkdir()
        used = now - 7200 + number if number else now
        os.utime(folder, (used, used))
    assert open_store(cold=False) is None
    kept = {folder_name({"numpy": str(n)}) for n in (0, *range(count - FOLDERS_KEPT + 2, count))}
    assert {path.name for path in base.iterdir()} == {
        "dangling",
        "notes.txt",
        folder_name(versions()),
        *kept,
    }


def test_numbas_part_is_kept(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """One entry for a source, which another source or damage does not match."""
    monkeypatch.setenv(OWN_STORE, str(tmp_path))
    made = numba_ir(NAME, SOURCE)
    (file,) = (tmp_path / "numba-ir").glob("*.kernel")
    assert numba_ir(NAME, SOURCE) == made
    assert ir_key(NAME, SOURCE) != ir_key(NAME, SOURCE + "\n")
    whole = file.read_bytes()
    file.write_bytes(whole[:-1])
    assert numba_ir(NAME, SOURCE).name == made.name
    assert file.stat().st_size > len(whole) // 2


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
