"""The store reads nothing that others could have put there: their files, links, and world-writable files."""

from __future__ import annotations

import json
import os
import shutil
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from subprocess import run

import pytest

from codegen.backend import store_files
from codegen.backend.store import KernelStore
from codegen.backend.store_key import store_key
from codegen.support.cpu import level_named
from tests.tools.oracle import environment

NOBODY = 65534
KEY = store_key("source", level_named("avx2"))
CODE = bytes(range(256)) * 20

as_root = pytest.mark.skipif(
    not hasattr(os, "geteuid") or os.geteuid() != 0, reason="only root gives files to others"
)


@pytest.fixture
def common() -> Iterator[Path]:
    """A directory that every user can reach."""
    directory = Path(tempfile.mkdtemp(prefix="tilejit-owners-"))
    directory.chmod(0o755)
    yield directory
    shutil.rmtree(directory)


def planted(kind: str, file: Path, elsewhere: Path) -> None:
    """Turn a sound entry into one that others may have touched."""
    match kind:
        case "another user's":
            os.chown(file, NOBODY, -1)
        case "group-writable":
            file.chmod(0o620)
        case "world-writable":
            file.chmod(0o602)
        case "symbolic link":
            file.rename(elsewhere)
            file.symlink_to(elsewhere)
        case "hard link":
            os.link(file, elsewhere)
        case "fifo":
            file.unlink()
            os.mkfifo(file)
        case "socket":
            import socket

            file.unlink()
            with socket.socket(socket.AF_UNIX) as end:
                end.bind(os.path.relpath(file))
        case "device":
            file.unlink()
            file.symlink_to("/dev/zero")
        case "directory":
            file.unlink()
            file.mkdir()


KINDS = (
    pytest.param("another user's", marks=as_root),
    *(
        "group-writable",
        "world-writable",
        "symbolic link",
        "hard link",
        "fifo",
        "socket",
        "device",
        "directory",
    ),
)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("what", ["kernel", "note"])
def test_planted_files_are_misses(
    what: str, kind: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The next write replaces them, without following a link."""
    monkeypatch.chdir(tmp_path)
    store, elsewhere = KernelStore(tmp_path), tmp_path / "elsewhere"

    def put() -> None:
        store.put(KEY, CODE) if what == "kernel" else store.put_note("tiles", {"a": 1})

    def get() -> object:
        return store.get(KEY) if what == "kernel" else store.get_note("tiles")

    put()
    sound = get()
    assert sound is not None
    (file,) = [*store.entries(), *store.notes()]
    whole = file.read_bytes()
    planted(kind, file, elsewhere)
    assert get() is None
    put()
    assert get() == (None if kind == "directory" else sound)
    assert bool(store.reason) == (kind == "directory")
    if elsewhere.exists():
        assert elsewhere.read_bytes() == whole
        assert not elsewhere.samefile(file)


def test_a_write_does_not_follow_a_link(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Even if someone could know the name."""
    (tmp_path / "elsewhere").write_text("mine")
    monkeypatch.setattr(os, "urandom", lambda count: bytes(count))
    (tmp_path / f"{store_files.UNFINISHED}{bytes(8).hex()}").symlink_to(tmp_path / "elsewhere")
    store = KernelStore(tmp_path)
    store.put(KEY, CODE)
    assert "File exists" in store.reason
    assert (tmp_path / "elsewhere").read_text() == "mine"
    assert store.get(KEY) is None


def test_files_are_private_to_the_user(tmp_path: Path) -> None:
    before = os.umask(0)
    try:
        KernelStore(tmp_path).put(KEY, CODE)
    finally:
        os.umask(before)
    assert KernelStore(tmp_path).entries()[0].stat().st_mode & 0o777 == 0o600


OPENED = """
import json, os
from codegen.backend.store import KernelStore
from tests.faults.test_store_owners import CODE, KEY

{become}
store = KernelStore.open()
store.put(KEY, CODE)
print(json.dumps([str(store.directory), store.reason, store.get(KEY) == CODE]))
"""

AS_ROOT = ""
AS_NOBODY = f"os.setgroups([]); os.setresgid({NOBODY}, {NOBODY}, {NOBODY}); os.setresuid(*[{NOBODY}] * 3)"
ROOT_FOR_NOBODY = f"os.setresuid({NOBODY}, 0, 0)"
"""Started by nobody, runs as root, like a program with the set-user-ID bit."""


def child(code: str, become: str, **settings: str) -> str:
    """The output of a process that becomes another user once it has read what only root may read."""
    given = environment(HOME="/nonexistent", XDG_CACHE_HOME="", TILEJIT_NO_CACHE="", **settings)
    command = [sys.executable, "-c", code.format(become=become)]
    done = run(command, env=given, cwd="/", capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return done.stdout


def opened(directory: Path, become: str) -> tuple[str, str, bool]:
    """The store's directory and its reason, as a user sees them, and whether it keeps an entry."""
    found, reason, kept = json.loads(child(OPENED, become, TILEJIT_CACHE_DIR=str(directory)))
    return found, reason, kept


@pytest.mark.full
@as_root
@pytest.mark.parametrize("mode", [0o700, 0o755, 0o1777])
def test_nobody_uses_the_store_of_root(mode: int, common: Path) -> None:
    KernelStore(common).put(KEY, CODE)
    common.chmod(mode)
    assert opened(common, AS_NOBODY) == ("None", f"{common} belongs to another user", False)


@pytest.mark.full
@as_root
def test_root_uses_no_store_of_nobody(common: Path) -> None:
    common.chmod(0o1777)
    theirs, ours = common / "theirs", common / "ours"
    assert opened(theirs, AS_NOBODY) == (str(theirs), "", True)
    assert theirs.stat().st_uid == NOBODY
    assert theirs.stat().st_mode & 0o777 == 0o700
    refused = ("None", f"{theirs} belongs to another user", False)
    assert opened(theirs, AS_ROOT) == refused
    assert opened(theirs, ROOT_FOR_NOBODY) == refused
    assert opened(ours, ROOT_FOR_NOBODY) == (str(ours), "", True)
    assert ours.stat().st_uid == 0


@pytest.mark.full
@as_root
def test_a_read_only_store_is_read(common: Path) -> None:
    common.chmod(0o1777)
    theirs = common / "theirs"
    assert opened(theirs, AS_NOBODY) == (str(theirs), "", True)
    theirs.chmod(0o500)
    before = [(file.name, file.stat().st_mtime_ns) for file in (theirs, *theirs.iterdir())]
    assert opened(theirs, AS_NOBODY) == (str(theirs), f"{theirs} cannot be written to", True)
    assert [(file.name, file.stat().st_mtime_ns) for file in (theirs, *theirs.iterdir())] == before
    (entry,) = theirs.glob("*.kernel")
    entry.chmod(0o622)
    assert opened(theirs, AS_NOBODY) == (str(theirs), f"{theirs} cannot be written to", False)


COPIES = """
import os
import pkgutil
from importlib import import_module
import codegen
import numpy as np
import tilejit as tj
from codegen.backend.build import build
from codegen.support.cpu import cpu_level
from codegen.backend.store import default_store
from codegen.backend.store_key import store_key

for package in (codegen, tj):
    for found in pkgutil.walk_packages(package.__path__, package.__name__ + "."):
        if not found.name.startswith(("tilejit.cli", "tilejit.mlir", "tilejit.interop")):
            import_module(found.name)
store_key("source", cpu_level())
SOURCE = "def first(operands, scratch, sizes, begin, end):\\n    copy_block(sizes, scratch, 9)\\n"
build("first", SOURCE, cpu_level())
{become}
x = np.arange(60, dtype=np.uint16).reshape(6, 10)
t = tj.pack(x, "{{0,1:T(4,4)}}")
print(bool((tj.unpack(t) == x).all()), default_store().reason)
"""


@pytest.mark.full
@as_root
def test_a_user_without_a_home_can_copy() -> None:
    told = child(COPIES, AS_NOBODY, TILEJIT_CACHE_DIR="")
    assert told.startswith("True ")
    assert "/nonexistent" in told
