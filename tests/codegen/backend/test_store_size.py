"""The bounded store removes what was used longest ago, whoever wrote it, while others read and write."""

from __future__ import annotations

import os
import sys
import time
from dataclasses import replace
from pathlib import Path
from subprocess import PIPE, Popen

import pytest

from codegen.backend.store import MAX_STORE_BYTES, KernelStore
from codegen.backend.store_files import (
    MOST_PLANS,
    ROOM_SHARE,
    TOUCHED_SECONDS,
    UNUSED_SECONDS,
    Held,
    digest_of,
    plan_name,
)
from codegen.backend.store_key import StoreKey, store_key
from codegen.support.cpu import level_named
from tests.tools.oracle import environment

KEY = store_key("source", level_named("avx2"))
CODE = b"\x7fELF and some machine code" * 40
VERSION = "a" * 64

pytestmark = pytest.mark.usefixtures("fresh_settings")


def key(number: int) -> StoreKey:
    return store_key(digest_of(f"source {number}".encode()), level_named("avx2"))


def file_of(store: KernelStore, wanted: StoreKey) -> Path:
    assert store.directory
    return store.directory / f"{wanted.digest}.kernel"


def used(file: Path, seconds_ago: float) -> None:
    when = time.time() - seconds_ago
    os.utime(file, (when, when))


def filled(directory: Path, count: int, **options: int) -> KernelStore:
    """Entries 0, 1, ...; the first was used longest ago."""
    store = KernelStore(directory)
    for number in range(count):
        store.put(key(number), CODE)
        used(file_of(store, key(number)), 1000 - number)
    return KernelStore(directory, **options)


def there(store: KernelStore, count: int) -> list[int]:
    return [number for number in range(count) if file_of(store, key(number)).exists()]


def test_what_was_used_longest_ago_is_removed(tmp_path: Path) -> None:
    size = filled(tmp_path, 10).trim().size_bytes // 10
    store = KernelStore(tmp_path, most_bytes=9 * size)
    store.put(key(10), CODE)
    room = 9 * size - 9 * size // ROOM_SHARE
    assert store.trim() == Held(room // size, room // size * size)
    assert there(store, 11) == list(range(11 - room // size, 11))
    assert store.reason == ""


def test_nothing_is_removed_within_the_bound(tmp_path: Path) -> None:
    held = filled(tmp_path, 10).trim()
    assert held.files == 10
    assert KernelStore(tmp_path, most_bytes=held.size_bytes).trim() == held
    assert KernelStore(tmp_path, most_bytes=held.size_bytes - 1).trim().files < 10


def test_an_entry_that_is_read_stays(tmp_path: Path) -> None:
    """Reading marks an entry as used, once a day."""
    size = filled(tmp_path, 4).trim().size_bytes // 4
    store = KernelStore(tmp_path, most_bytes=2 * size + size // 2)
    for number in range(4):
        used(file_of(store, key(number)), 3 * TOUCHED_SECONDS - number)
    assert store.get(key(0)) == CODE
    store.trim()
    assert there(store, 4) == [0, 3]


def test_a_damaged_entry_is_not_marked(tmp_path: Path) -> None:
    store = filled(tmp_path, 1)
    file = file_of(store, key(0))
    file.write_bytes(file.read_bytes()[:-1])
    os.utime(file, (0, 0))
    assert store.get(key(0)) is None
    assert file.stat().st_mtime == 0


def test_a_wrong_clock_cannot_keep_entries(tmp_path: Path) -> None:
    """Entries dated far in the future are removed first, unless they are read."""
    size = filled(tmp_path, 6).trim().size_bytes // 6
    store = KernelStore(tmp_path, most_bytes=4 * size)
    for number in range(4):
        used(file_of(store, key(number)), -(10**8))
    store.put(key(6), CODE)
    assert there(store, 7) == [4, 5, 6]


def test_entries_of_several_versions_coexist(tmp_path: Path) -> None:
    """Each compiler, Numba and CPU level has its own entry, and only age removes one."""
    others = [
        replace(KEY, **change)
        for change in ({"compiler_digest": "older"}, {"numba": "0.67.0"}, {"llvmlite": "0.49"})
    ]
    others += [store_key("source", level_named(name)) for name in ("avx512", "sse2", "neon")]
    keys = [KEY, *others]
    store = KernelStore(tmp_path)
    for number, each in enumerate(keys):
        store.put(each, CODE + bytes([number]))
    assert [store.get(each) for each in keys] == [CODE + bytes([n]) for n in range(len(keys))]
    for number, each in enumerate(keys):
        used(file_of(store, each), 100 * ((number * 3) % len(keys)))
    held = store.trim()
    assert held.files == len(keys)
    KernelStore(tmp_path, most_bytes=held.size_bytes - 1).trim()
    ages = {
        number: (number * 3) % len(keys) for number, each in enumerate(keys) if file_of(store, each).exists()
    }
    assert sorted(ages.values()) == list(range(len(ages)))
    assert 0 < len(ages) < len(keys)


def plans(directory: Path, count: int, version: str = VERSION, seconds_ago: float = 0) -> list[Path]:
    """Files of launch plans; the first was used longest ago."""
    files = [directory / f"{plan_name(version, f'{number:032x}')}.note" for number in range(count)]
    now = time.time()
    for number, file in enumerate(files):
        file.touch()
        when = now - seconds_ago - (count - number)
        os.utime(file, (when, when))
    return files


def test_reading_writes_once_a_day(tmp_path: Path) -> None:
    store = filled(tmp_path, 1)
    file = file_of(store, key(0))
    for seconds_ago, marked in (
        (0, False),
        (TOUCHED_SECONDS / 2, False),
        (2 * TOUCHED_SECONDS, True),
        (-1e6, True),
    ):
        used(file, seconds_ago)
        for changes in (marked, False):
            before = file.stat().st_mtime
            assert store.get(key(0)) == CODE
            assert (file.stat().st_mtime != before) == changes


@pytest.mark.full
def test_launch_plans_have_a_separate_limit(tmp_path: Path) -> None:
    """The oldest plans are removed. Kernels, and notes of other kinds, stay however old they are."""
    store = filled(tmp_path, 3)
    store.put_note("thresholds-" + "0" * 32, {})
    (note,) = store.notes()
    used(note, 10**7)
    files = plans(tmp_path, MOST_PLANS + 100)
    assert store.trim().files == MOST_PLANS + 4
    assert [file.exists() for file in files] == [False] * 100 + [True] * MOST_PLANS
    assert there(store, 3) == [0, 1, 2]
    assert note.exists()
    assert store.trim(VERSION).files == MOST_PLANS + 4


def test_unused_plans_of_other_versions_are_removed(tmp_path: Path) -> None:
    """Plans of a version in use stay, and all stay if a process doesn't know its own version."""
    own, fresh = plans(tmp_path, 5, seconds_ago=2 * UNUSED_SECONDS), plans(tmp_path, 5, "b" * 64)
    old = plans(tmp_path, 5, "c" * 64, seconds_ago=2 * UNUSED_SECONDS)
    store = KernelStore(tmp_path)
    assert store.trim().files == 15
    assert store.trim(VERSION).files == 10
    assert all(file.exists() for file in (*own, *fresh))
    assert not any(file.exists() for file in old)


def test_other_files_are_never_removed(tmp_path: Path) -> None:
    """The directory may hold more than kernels."""
    store = filled(tmp_path, 3)
    store.put_note("thresholds-" + "0" * 32, {})
    names = ("shopping.note", "mine.kernel", ".new-year", ".new-", "0" * 64, "notes.txt", "a-" + "0" * 32)
    for name in names:
        (tmp_path / name).write_bytes(bytes(5000))
        os.utime(tmp_path / name, (0, 0))
    (tmp_path / ("1" * 64 + ".kernel")).mkdir()
    (tmp_path / ("2" * 64 + ".kernel")).symlink_to(tmp_path / "notes.txt")
    assert KernelStore(tmp_path, most_bytes=0).trim() == Held(0, 0)
    left = {*names, "1" * 64 + ".kernel", "2" * 64 + ".kernel"}
    assert {file.name for file in tmp_path.iterdir()} == left
    assert store.trim().files == 0


def test_an_entry_beyond_the_bound_removes_no_other(tmp_path: Path) -> None:
    store = filled(tmp_path, 3, most_bytes=5000)
    store.put(key(3), bytes(6000))
    assert store.get(key(3)) is None
    assert there(store, 3) == [0, 1, 2]
    assert "TILEJIT_CACHE_BYTES is 5000" in store.reason


@pytest.mark.parametrize(
    ("text", "wanted"),
    [("", MAX_STORE_BYTES), ("2048", 2048), (" 0 ", 0)]
    + [(text, None) for text in ("x", "-1", "1e6", "1_000", "²", "٣", "9" * 5000)],
    ids=lambda value: str(value)[:12],
)
def test_the_setting_of_the_bound(
    text: str, wanted: int | None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TILEJIT_CACHE_DIR", str(tmp_path / "store"))
    monkeypatch.setenv("TILEJIT_CACHE_BYTES", text)
    store = KernelStore.open()
    if wanted is None:
        assert store.directory is None
        assert "is not a number of bytes" in store.reason
        return
    assert store.most_bytes == wanted
    store.put(KEY, CODE)
    assert store.get(KEY) == (CODE if wanted else None)


READER = """
import sys
from pathlib import Path
from tests.codegen.backend.test_store_size import CODE, KernelStore, key

store, found = KernelStore(Path(sys.argv[1])), 0
print("ready", flush=True)
for k in range(6000):
    code = store.get(key(k % 12))
    assert code is None or code == CODE
    found += code is not None
print(found)
"""


@pytest.mark.full
def test_readers_while_writers_remove_entries(tmp_path: Path) -> None:
    """Readers get a complete entry or none while two writers remove each other's entries."""
    size = filled(tmp_path, 12).trim().size_bytes // 12
    children = [
        Popen([sys.executable, "-c", READER, tmp_path], stdout=PIPE, text=True, env=environment())
        for _ in range(2)
    ]
    for child in children:
        assert child.stdout is not None
        assert child.stdout.readline() == "ready\n"
    writers = [KernelStore(tmp_path, most_bytes=bound * size) for bound in (4, 9)]
    turn = 0
    while any(child.poll() is None for child in children):
        writers[turn % 2].put(key(turn * 5 % 12), CODE)
        turn += 1
    assert turn > 0
    assert [child.returncode for child in children] == [0, 0]
    assert all(int(child.stdout.read()) > 0 for child in children if child.stdout)
    assert [writer.reason for writer in writers] == ["", ""]
