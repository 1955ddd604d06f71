"""Settings that name folders become absolute paths."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.tools.oracle import run_python

CODE = """
import json, os
from codegen.support.settings import settings
found = settings()
os.makedirs("elsewhere")
os.chdir("elsewhere")
from codegen.backend.store import KernelStore
assert str(KernelStore.open().directory).startswith(found.cache_directory)
print(json.dumps([found.cache_directory, found.dump_directory, sorted(os.listdir("."))]))
"""


@pytest.mark.parametrize(
    ("given", "wanted"), [("~/tj", "home/tj"), ("tj", "work/tj"), ("../tj", "tj"), ("{}/tj", "tj")]
)
def test_folders_are_absolute(given: str, wanted: str, tmp_path: Path) -> None:
    for name in ("home", "work"):
        (tmp_path / name).mkdir()
    folder = given.format(tmp_path)
    settings = {"TILEJIT_CACHE_DIR": folder, "TILEJIT_DUMP": folder, "TILEJIT_NO_CACHE": ""}
    done = run_python(CODE, cwd=tmp_path / "work", HOME=str(tmp_path / "home"), **settings)
    there = str(tmp_path / wanted)
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout) == [there, there, []]
    assert not (tmp_path / "work" / "~").exists()
