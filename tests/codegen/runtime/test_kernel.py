"""Kernels that another process stored: they are dumped too, and wrong notes about them are misses."""

from __future__ import annotations

from pathlib import Path

import pytest

from codegen.backend.store import KernelStore
from tests.tools.oracle import run_python

COPY = """
import numpy as np
import tilejit as tj
from codegen import default_store

x = np.arange(90 * 70, dtype=np.uint32).reshape(90, 70)
out = np.zeros((70, 90), np.uint32)
tj.plan_copy(out, x.T)(out, x.T)
assert (out == x.T).all()
print(default_store().hits)
"""


def hits(store: Path, **settings: str) -> int:
    """Kernels that a process finds in the store for a copy."""
    done = run_python(COPY, TILEJIT_CACHE_DIR=str(store), **settings)
    assert done.returncode == 0, done.stderr
    return int(done.stdout)


@pytest.mark.full
def test_a_dump_includes_stored_kernels(tmp_path: Path) -> None:
    first, second = tmp_path / "first", tmp_path / "second"
    assert hits(tmp_path / "store", TILEJIT_DUMP=str(first)) == 0
    assert hits(tmp_path / "store", TILEJIT_DUMP=str(second))
    dumps = [{file.name: file.read_text() for file in folder.iterdir()} for folder in (first, second)]
    assert dumps[0] == dumps[1] != {}


@pytest.mark.full
def test_wrong_notes_are_misses(tmp_path: Path) -> None:
    directory = tmp_path / "store"
    hits(directory)
    store = KernelStore(directory)
    for path in store.notes():
        store.put_note(path.stem, {"source": 7})
    assert hits(directory)
