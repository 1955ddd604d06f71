"""`verify_store` counts the intact files of a store and names the fault of each damaged one."""

from __future__ import annotations

import os
from dataclasses import fields, replace
from pathlib import Path

import pytest

from codegen.backend.store import KernelStore
from codegen.backend.store_check import HEAD_BYTES, remove_entries, verify_store
from codegen.backend.store_key import StoreKey, store_key
from codegen.support.cpu import level_named

CODE = b"\x7fELF machine code"
OTHER_CHECKSUM = "its checksum is wrong, or others could have written it"


@pytest.fixture
def store(tmp_path: Path) -> KernelStore:
    """Two kernels, for two CPU levels and compilers, and a note."""
    directory = tmp_path / "store"
    directory.mkdir(mode=0o700)
    made = KernelStore(directory)
    made.put(store_key("def a(): pass", level_named("avx2")), CODE)
    made.put(replace(store_key("def b(): pass", level_named("neon")), numba="0.1"), CODE)
    made.put_note("thresholds-" + "0" * 32, {"stream_bytes": 1})
    return made


def test_stored_entries_are_sound(store: KernelStore) -> None:
    found = verify_store(store)
    assert (found.kernels, found.notes, found.damaged) == (2, 1, ())


def test_every_cut_and_flipped_byte_is_found(store: KernelStore) -> None:
    path = store.entries()[0]
    whole = path.read_bytes()
    for at in (*range(0, len(whole), 37), len(whole) - 1):
        for spoiled in (whole[:at], whole[:at] + bytes([whole[at] ^ 4]) + whole[at + 1 :]):
            path.write_bytes(spoiled)
            found = verify_store(store)
            assert (found.kernels, found.notes) == (1, 1)
            assert [p for p, _ in found.damaged] == [path]
    path.write_bytes(whole)
    assert not verify_store(store).damaged


def test_faults_have_different_messages(store: KernelStore) -> None:
    first, second = store.entries()
    note = store.notes()[0]
    named = first.with_name("1" * 64 + ".kernel")
    named.write_bytes(first.read_bytes())
    garbage = first.with_name("2" * 64 + ".kernel")
    garbage.write_bytes(b"[" * (2 * HEAD_BYTES))
    no_key = first.with_name("3" * 64 + ".kernel")
    no_key.write_bytes(b'{"checksum": "0"}\n')
    deep = first.with_name("5" * 64 + ".kernel")  # valid JSON that does not print back the same
    others = b"".join(b', "%s": 0' % f.name.encode() for f in fields(StoreKey)[1:])
    deep.write_bytes(b'{"source_digest": ' + b"[" * 800 + b"]" * 800 + others + b"}\n")
    second.write_bytes(second.read_bytes() + b"more")
    note.write_bytes(note.read_bytes()[:-2])
    odd = first.with_name("odd name.note")
    odd.write_bytes(b"")
    assert dict(verify_store(store).damaged) == {
        named: "it has the name of another key",
        garbage: "its first line is not a key",
        no_key: "its first line is not a key",
        deep: "its first line is not a key",
        second: OTHER_CHECKSUM,
        note: OTHER_CHECKSUM,
        odd: "it has the name of no note",
    }


def test_links_and_pipes_are_not_entries(store: KernelStore, tmp_path: Path) -> None:
    first = store.entries()[0]
    elsewhere = tmp_path / "elsewhere"
    first.rename(elsewhere)
    first.symlink_to(elsewhere)
    os.mkfifo(first.with_name("4" * 64 + ".kernel"))
    found = verify_store(store)
    assert found.kernels == 1
    assert len(found.damaged) == 2
    assert remove_entries(found) == []
    assert elsewhere.exists()
    assert not os.path.lexists(first)


def test_only_damaged_files_are_removed(store: KernelStore) -> None:
    first, second = store.entries()
    first.write_bytes(b"")
    assert remove_entries(verify_store(store)) == []
    assert store.entries() == [second]
    found = verify_store(store)
    assert (found.kernels, found.notes, found.damaged) == (1, 1, ())


def test_verifying_does_not_count_as_use(store: KernelStore) -> None:
    """A bounded store keeps what was used last."""
    for path in (*store.entries(), *store.notes()):
        os.utime(path, (1_600_000_000, 1_600_000_000))
    assert not verify_store(store).damaged
    assert {p.stat().st_mtime for p in (*store.entries(), *store.notes())} == {1_600_000_000}


def test_a_missing_store_has_no_files() -> None:
    found = verify_store(KernelStore(None))
    assert (found.kernels, found.notes, found.damaged) == (0, 0, ())
