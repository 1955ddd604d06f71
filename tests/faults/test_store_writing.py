"""A write that fails, or whose process is killed, loses at most that entry: every call of it, every error."""

from __future__ import annotations

import errno
import os
import shutil
import signal
import sys
from pathlib import Path
from subprocess import run

import pytest

from codegen.backend import store_files
from codegen.backend.store import KernelStore
from codegen.backend.store_files import UNFINISHED, UNFINISHED_SECONDS
from codegen.backend.store_key import store_key
from codegen.support.cpu import level_named
from tests.faults.syscalls import Syscalls
from tests.tools.oracle import environment

KEY = store_key("source", level_named("avx2"))
OTHER = store_key("other source", level_named("avx2"))
CODE = bytes(range(256)) * 20
ERRORS = ("ENOSPC", "EACCES", "EROFS", "EDQUOT", "EIO", "EINTR", "ESTALE", "EMFILE")

WRITING = ["open", "write", "close", "replace", "scandir"]
TRIMMING = [*WRITING, "unlink", "unlink"]
"""The calls of a write into a store with an old unfinished file and one entry too many."""


def unfinished(directory: Path) -> list[Path]:
    return list(directory.glob(f"{UNFINISHED}*"))


def full_store(directory: Path) -> KernelStore:
    """A store with another entry and an unfinished file; the next write removes both."""
    store = KernelStore(directory, most_bytes=8000)
    store.put(OTHER, CODE)
    left = directory / f"{UNFINISHED}0123456789abcdef"
    left.write_bytes(CODE)
    for file in directory.iterdir():
        os.utime(file, (0, 0))
    return store


def put(store: KernelStore, calls: Syscalls, monkeypatch: pytest.MonkeyPatch) -> None:
    with monkeypatch.context() as patched:
        patched.setattr(store_files, "os", calls)
        store.put(KEY, CODE)


def test_a_write_makes_exactly_these_calls(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The tests below inject faults into all of them."""
    first, second = Syscalls(), Syscalls()
    put(KernelStore(tmp_path), first, monkeypatch)
    assert first.made == WRITING
    put(full_store(tmp_path), second, monkeypatch)
    assert second.made == TRIMMING
    assert KernelStore(tmp_path).get(KEY) == CODE
    assert len(list(tmp_path.iterdir())) == 1


@pytest.mark.parametrize("onwards", [False, True], ids=["once", "from then on"])
@pytest.mark.parametrize("at", range(len(TRIMMING)), ids=lambda k: f"{k}-{TRIMMING[k]}")
@pytest.mark.parametrize("name", ERRORS)
def test_a_call_that_fails(
    name: str, at: int, onwards: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    store, error = full_store(tmp_path), getattr(errno, name)
    put(store, Syscalls(at, error, onwards=onwards), monkeypatch)
    kept = at >= len(WRITING) - 1
    assert store.get(KEY) == (CODE if kept else None)
    assert (os.strerror(error) in store.reason) == (TRIMMING[at] != "unlink")
    if not onwards:
        assert len(unfinished(tmp_path)) == (at < len(TRIMMING) - 1)
    assert store.get(OTHER) in (None, CODE)
    for file in tmp_path.iterdir():
        os.utime(file, (0, 0))
    store.put(KEY, CODE)
    assert store.get(KEY) == CODE
    assert unfinished(tmp_path) == []


@pytest.mark.parametrize("name", ERRORS)
def test_a_read_that_fails_is_a_miss(name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    store = KernelStore(tmp_path)
    store.put(KEY, CODE)
    os.utime(store.entries()[0], (0, 0))
    made = ["open", "fstat", "read", "close", "utime"]
    for at, call in enumerate(made):
        calls = Syscalls(at, getattr(errno, name))
        with monkeypatch.context() as patched:
            patched.setattr(store_files, "os", calls)
            assert store.get(KEY) == (CODE if call == "utime" else None)
        assert calls.made == made[: at + 1] or calls.made == [*made[: at + 1], "close"]
    assert store.get(KEY) == CODE


@pytest.mark.parametrize("at_most", [1, 7, 4096])
def test_writes_may_be_short(at_most: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    store, calls = KernelStore(tmp_path), Syscalls(at_most=at_most)
    put(store, calls, monkeypatch)
    assert store.get(KEY) == CODE
    assert calls.made.count("write") == -(-store.entries()[0].stat().st_size // at_most)


def test_an_interrupt_propagates_and_leaves_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def interrupted(handle: int, data: bytes) -> int:
        raise KeyboardInterrupt

    with monkeypatch.context() as patched:
        patched.setattr(os, "write", interrupted)
        with pytest.raises(KeyboardInterrupt):
            KernelStore(tmp_path).put(KEY, CODE)
    assert list(tmp_path.iterdir()) == []


KILLED = """
import sys
from pathlib import Path
from codegen.backend import store_files
from tests.faults.syscalls import Syscalls
from tests.faults.test_store_writing import CODE, KEY, KernelStore

store = KernelStore(Path(sys.argv[1]), most_bytes=8000)
store_files.os = Syscalls(int(sys.argv[2]), error=None)
store.put(KEY, CODE)
"""


@pytest.mark.full
@pytest.mark.skipif(not hasattr(signal, "SIGKILL"), reason="no SIGKILL here")
@pytest.mark.parametrize("at", range(len(TRIMMING)), ids=lambda k: f"{k}-{TRIMMING[k]}")
def test_a_killed_writer_loses_at_most_its_entry(at: int, tmp_path: Path) -> None:
    """Before each call, and during the write: the entry is complete or absent, and leftovers are removed."""
    store = full_store(tmp_path)
    done = run([sys.executable, "-c", KILLED, tmp_path, str(at)], env=environment(), check=False)
    assert done.returncode == -signal.SIGKILL
    renamed = at > WRITING.index("replace")
    assert store.get(KEY) == (CODE if renamed else None)
    assert len(unfinished(tmp_path)) == (2 if at > 0 and not renamed else at < len(TRIMMING) - 1)
    store.put(KEY, CODE)
    assert store.get(KEY) == CODE
    assert len(unfinished(tmp_path)) == (at > 0 and not renamed), "the young one may be another process's"
    old = store_files.time.time() - UNFINISHED_SECONDS - 1
    for file in unfinished(tmp_path):
        os.utime(file, (old, old))
    store.put(OTHER, CODE)
    assert unfinished(tmp_path) == []


LIMITED = """
import resource, signal, sys
from pathlib import Path
from tests.faults.test_store_writing import CODE, KEY, OTHER, KernelStore

store = KernelStore(Path(sys.argv[1]))
store.put(OTHER, CODE)
signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
resource.setrlimit(resource.RLIMIT_FSIZE, (len(CODE) // 2, resource.getrlimit(resource.RLIMIT_FSIZE)[1]))
store.put(KEY, CODE)
assert "File too large" in store.reason, store.reason
assert store.get(KEY) is None
assert store.get(OTHER) == CODE
"""


@pytest.mark.skipif(sys.platform != "linux", reason="limits of file sizes as Linux has them")
def test_a_limit_of_file_sizes_is_a_failed_write(tmp_path: Path) -> None:
    """The kernel itself cuts this write short."""
    done = run([sys.executable, "-c", LIMITED, tmp_path], env=environment(), capture_output=True, check=False)
    assert done.returncode == 0, done.stderr.decode()
    assert len(list(tmp_path.iterdir())) == 1


DISK = """
import os, sys
from pathlib import Path
from subprocess import run
from tests.faults.test_store_writing import CODE, KEY, OTHER, KernelStore, level_named, store_key, unfinished

directory = Path(sys.argv[1])
store = KernelStore(directory)
keys = [store_key(str(number), level_named("avx2")) for number in range(40)]
for key in keys:
    store.put(key, CODE)
assert "No space left" in store.reason, store.reason
kept = [key for key in keys if store.get(key) == CODE]
assert len(kept) == len(store.entries()) < len(keys), len(kept)
assert unfinished(directory) == []
store.entries()[0].unlink()
store.put(KEY, CODE)
assert store.get(KEY) == CODE

run(["mount", "-o", "remount,ro", str(directory)], check=True)
frozen = KernelStore(directory)
frozen.put(OTHER, CODE)
assert "Read-only file system" in frozen.reason, frozen.reason
assert (frozen.get(KEY), frozen.get(OTHER)) == (CODE, None)
os.environ["TILEJIT_CACHE_DIR"] = str(directory)
found = KernelStore.open()
assert "cannot be written to" in found.reason
found.put(OTHER, CODE)
found.put_note("tiles", {})
assert (found.get(KEY), found.get(OTHER), found.notes()) == (CODE, None, [])
"""

MOUNTED = """
mount -t tmpfs -o "$1" tilejit-test "$2" || exit 77
chmod 700 "$2"
exec "$3" -c "$4" "$2"
"""


@pytest.mark.full
@pytest.mark.skipif(not shutil.which("unshare"), reason="no file systems of a test's own here")
@pytest.mark.parametrize("limit", ["size=64k", "nr_inodes=12"])
def test_a_full_disk_that_becomes_read_only(limit: str, tmp_path: Path) -> None:
    """A real file system of 64 KiB or a dozen files, mounted where no other process sees it."""
    alone = (
        ["unshare", "--mount"] if os.geteuid() == 0 else ["unshare", "--user", "--map-root-user", "--mount"]
    )
    command = [*alone, "sh", "-c", MOUNTED, "sh", limit, str(tmp_path), sys.executable, DISK]
    done = run(command, env=environment(), capture_output=True, text=True, check=False)
    if done.returncode == 77 or "unshare" in done.stderr:
        pytest.skip(f"nothing may be mounted here: {done.stderr.strip()}")
    assert done.returncode == 0, done.stderr
