"""The store returns what was put; anything unexpected is a miss; no problem with it stops a copy."""

from __future__ import annotations

import ast
import json
import os
from dataclasses import replace
from pathlib import Path

import pytest

from codegen.backend import store as store_module
from codegen.backend.object_symbols import undefined_symbols
from codegen.backend.store import KernelStore
from codegen.backend.store_files import user_cache
from codegen.backend.store_key import LLVM_LIBRARIES, StoreKey, compiler_digest, compiler_files, store_key
from codegen.support.cpu import LEVELS, level_named
from codegen.support.errors import StoreError
from codegen.support.versions import library_stamp, package_version

INPUTS = (
    "source_digest",
    "compiler_digest",
    "numba",
    "llvmlite",
    "llvm",
    "level",
    "triple",
    "cpu",
    "features",
)
CODE = b"\x7fELF and some machine code" * 40


pytestmark = pytest.mark.usefixtures("fresh_settings")


@pytest.fixture
def store(tmp_path: Path) -> KernelStore:
    return KernelStore(tmp_path)


@pytest.fixture
def key() -> StoreKey:
    return store_key("def kernel(): pass", level_named("avx2"))


def entry(store: KernelStore) -> Path:
    (path,) = store.entries()
    return path


def test_a_stored_entry_is_found(store: KernelStore, key: StoreKey) -> None:
    assert store.get(key) is None
    store.put(key, CODE)
    assert store.get(key) == CODE
    assert KernelStore(store.directory).get(key) == CODE
    assert (store.hits, store.misses) == (1, 1)
    assert entry(store).name == f"{key.digest}.kernel"
    assert list(store.directory.iterdir()) == [entry(store)]  # type: ignore[union-attr]


def test_every_input_of_the_compiler_is_in_the_key(store: KernelStore, key: StoreKey) -> None:
    store.put(key, CODE)
    for change in INPUTS:
        other = replace(key, **{change: "other"})
        assert other.digest != key.digest
        assert store.get(other) is None
    assert replace(key, format=key.format + 1).digest != key.digest
    assert store_key("def kernel(): pass\n", level_named("avx2")) != key


def test_no_two_levels_share_a_key() -> None:
    keys = [store_key("def kernel(): pass", level_named(name)) for name in LEVELS]
    assert len({key.digest for key in keys}) == len(LEVELS)


@pytest.mark.parametrize("at", ["first byte", "head", "last byte"])
def test_a_changed_byte_is_a_miss(store: KernelStore, key: StoreKey, at: str) -> None:
    store.put(key, CODE)
    data = bytearray(entry(store).read_bytes())
    place = {"first byte": 0, "head": 30, "last byte": len(data) - 1}[at]
    data[place] ^= 1
    entry(store).write_bytes(data)
    assert store.get(key) is None
    store.put(key, CODE)
    assert store.get(key) == CODE


@pytest.mark.parametrize(
    "content",
    [b"", b"\n", b"{}\n", b"[1]\n" + CODE, b"\xff\xfe\n", b"[" * 100_000, b"null\n", b'{"a":NaN}\nx'],
)
def test_foreign_content_is_a_miss(store: KernelStore, key: StoreKey, content: bytes) -> None:
    store.put(key, CODE)
    entry(store).write_bytes(content)
    assert store.get(key) is None


def test_a_truncated_entry_is_a_miss(store: KernelStore, key: StoreKey) -> None:
    store.put(key, CODE)
    data = entry(store).read_bytes()
    for length in (0, 10, data.index(b"\n"), data.index(b"\n") + 1, len(data) - 1):
        entry(store).write_bytes(data[:length])
        assert store.get(key) is None
    entry(store).write_bytes(data + b"\0")
    assert store.get(key) is None


def test_an_entry_under_another_name_is_a_miss(store: KernelStore, key: StoreKey) -> None:
    other = replace(key, cpu="x86-64")
    store.put(key, CODE)
    os.replace(entry(store), entry(store).with_name(f"{other.digest}.kernel"))
    assert store.get(other) is None


NOTE = {"stream_bytes": 1 << 23, "why": "measured"}


def note_file(store: KernelStore) -> Path:
    (path,) = store.notes()
    return path


def test_notes_are_kept_beside_kernels(store: KernelStore, key: StoreKey) -> None:
    assert store.get_note("thresholds-1") is None
    store.put_note("thresholds-1", NOTE)
    store.put(key, CODE)
    assert KernelStore(store.directory).get_note("thresholds-1") == NOTE
    assert store.get_note("thresholds-2") is None
    store.put_note("thresholds-1", {})
    assert store.get_note("thresholds-1") == {}
    assert note_file(store).name == "thresholds-1.note"
    assert store.clear() == 1
    assert store.notes() == []


def test_a_note_too_large_to_read_is_not_written(store: KernelStore) -> None:
    """The limit counts the whole file, so that everything written can be read."""
    most = store_module.MAX_NOTE_BYTES
    written = []
    for length in range(most - 400, most + 1):
        facts = {"text": "x" * length}
        store.put_note("tiles", facts)
        written.append(store.notes() != [])
        assert store.get_note("tiles") == (facts if written[-1] else None)
        store.clear()
    assert written == sorted(written, reverse=True)
    assert (written[0], written[-1]) == (True, False)


@pytest.mark.parametrize("change", ["byte", "end", "name", "size", "link", "pipe", "no facts", "junk"])
def test_a_damaged_note_is_a_miss(store: KernelStore, change: str, tmp_path: Path) -> None:
    store.put_note("tiles", NOTE)
    path, data = note_file(store), bytearray(note_file(store).read_bytes())
    match change:
        case "byte":
            data[-5] ^= 1
            path.write_bytes(data)
        case "end":
            path.write_bytes(data[:-1])
        case "name":
            path = path.rename(path.with_name("other.note"))
        case "size":
            path.write_bytes(bytes(data[:-1]) + b" " * (1 << 14) + b"}")
        case "link":
            path.symlink_to(path.rename(tmp_path / "elsewhere"))
        case "pipe":
            path.unlink()
            os.mkfifo(path)
        case "no facts":
            path.write_bytes(data.splitlines()[0] + b"\n[1]")
        case "junk":
            path.write_bytes(data.splitlines()[0] + b"\n" + b"[" * 9000)
    assert store.get_note("tiles") is None
    assert store.get_note("other") is None


def test_notes_need_neither_a_store_nor_space_on_the_disk(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    nowhere = KernelStore(None, "no place")
    nowhere.put_note("tiles", NOTE)
    assert nowhere.get_note("tiles") is None
    assert nowhere.notes() == []

    def full(*paths: object) -> None:
        raise OSError(28, "No space left on device")

    store = KernelStore(tmp_path)
    monkeypatch.setattr(os, "replace", full)
    store.put_note("tiles", NOTE)
    assert "No space" in store.reason
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("name", ["", "../up", "a/b", ".", "a b"])
def test_a_note_needs_a_plain_name(store: KernelStore, name: str) -> None:
    with pytest.raises(AssertionError, match="not a name"):
        store.put_note(name, NOTE)


def test_links_and_directories_are_misses(store: KernelStore, key: StoreKey, tmp_path: Path) -> None:
    store.put(key, CODE)
    path = entry(store)
    moved = tmp_path / "elsewhere"
    path.rename(moved)
    path.symlink_to(moved)
    assert store.get(key) is None
    path.unlink()
    path.mkdir()
    assert store.get(key) is None
    store.put(key, CODE)
    assert store.get(key) is None
    assert "not all kernels could be kept" in store.reason
    assert not list(tmp_path.glob(".new-*"))


def test_a_pipe_is_a_miss_and_does_not_wait(store: KernelStore, key: StoreKey) -> None:
    store.put(key, CODE)
    path = entry(store)
    path.unlink()
    os.mkfifo(path)
    assert store.get(key) is None


def test_clear_removes_entries(store: KernelStore, key: StoreKey, tmp_path: Path) -> None:
    store.put(key, CODE)
    store.put(replace(key, cpu="x86-64"), CODE)
    (tmp_path / "notes.txt").write_text("mine")
    assert store.clear() == 2
    assert store.entries() == []
    assert (tmp_path / "notes.txt").exists()
    assert store.clear() == 0
    (tmp_path / ".new-left").write_bytes(CODE)
    (tmp_path / "odd.kernel").mkdir()
    assert store.clear() == 0
    assert sorted(p.name for p in tmp_path.iterdir()) == ["notes.txt", "odd.kernel"]


def test_clear_names_files_that_it_cannot_remove(
    store: KernelStore, key: StoreKey, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(self: Path, missing_ok: bool = False) -> None:
        raise PermissionError(13, "Permission denied")

    store.put(key, CODE)
    monkeypatch.setattr(Path, "unlink", refuse)
    with pytest.raises(StoreError, match="cannot remove"):
        store.clear()


@pytest.mark.parametrize("kind", ["file", "link", "open to others", "no parent", "switched off"])
def test_directories_that_cannot_be_trusted(
    kind: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    directory = tmp_path / "store"
    monkeypatch.setenv("TILEJIT_CACHE_DIR", str(directory))
    match kind:
        case "file":
            directory.write_text("")
        case "link":
            (tmp_path / "real").mkdir()
            directory.symlink_to(tmp_path / "real")
        case "open to others":
            directory.mkdir()
            directory.chmod(0o777)
        case "no parent":
            (tmp_path / "file").write_text("")
            monkeypatch.setenv("TILEJIT_CACHE_DIR", str(tmp_path / "file" / "store"))
        case "switched off":
            monkeypatch.setenv("TILEJIT_NO_CACHE", "1")
    store = KernelStore.open()
    assert store.directory is None
    assert store.reason
    key = store_key("source", level_named("sse2"))
    store.put(key, CODE)
    assert store.get(key) is None
    assert store.entries() == []


def test_the_key_names_the_compiler_and_its_libraries(key: StoreKey) -> None:
    from llvmlite import binding

    assert key.llvm == ".".join(map(str, binding.llvm_version_info))
    assert key.compiler_digest == compiler_digest()
    assert (key.numba, key.llvmlite) == (package_version("numba"), package_version("llvmlite"))
    assert library_stamp("llvmlite", LLVM_LIBRARIES)
    assert library_stamp("llvmlite", ("binding/no_such_library",)) == ""
    assert library_stamp("no_such_package_of_ours", LLVM_LIBRARIES) == ""


def test_the_directory_is_private_to_the_user(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TILEJIT_CACHE_DIR", str(tmp_path / "a" / "store"))
    store = KernelStore.open()
    assert store.directory == tmp_path / "a" / "store"
    assert store.directory.stat().st_mode & 0o777 == 0o700
    monkeypatch.delenv("TILEJIT_CACHE_DIR")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "xdg"))
    assert KernelStore.open().directory == tmp_path / "xdg" / "tilejit"


@pytest.mark.parametrize("base", ["", "relative"])
def test_a_relative_cache_folder_is_ignored(base: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Otherwise each working directory would have its own store."""
    monkeypatch.setenv("XDG_CACHE_HOME", base)
    assert user_cache() == str(Path.home() / ".cache")


def test_the_head_is_one_line_of_json(store: KernelStore, key: StoreKey) -> None:
    store.put(key, CODE)
    head, code = entry(store).read_bytes().split(b"\n", 1)
    facts = json.loads(head)
    assert facts["source_digest"] == key.source_digest
    assert code == CODE


@pytest.mark.parametrize(
    "code", [b"", b"\x7fELF", b"\x7fELF\x01", b"\xcf\xfa\xed\xfe" * 20, b"not an object"]
)
def test_other_object_formats_have_no_known_symbols(code: bytes) -> None:
    assert undefined_symbols(code) == frozenset()


def test_the_compilers_digest_includes_modules_that_routines_import() -> None:
    """A constant in machine code must change the key of the kernels that contain it."""
    root = Path(store_module.__file__).parents[1]
    files = [Path(file) for file in compiler_files()]
    names = {".".join(("codegen", *f.relative_to(root).with_suffix("").parts)) for f in files}
    routines = [f for f in files if "simd" in f.parts]
    nodes = [node for f in routines for node in ast.walk(ast.parse(f.read_text()))]
    modules = [node for node in nodes if isinstance(node, ast.ImportFrom) and node.module]
    imported = {
        full if full in names else str(node.module)
        for node in modules
        for full in (f"{node.module}.{alias.name}" for alias in node.names)
    }
    assert "codegen.ir.blocks" in imported
    packages = {"codegen.simd.register", "codegen.simd.vector", "codegen.simd.copy", "codegen.simd"}
    assert {name for name in imported if name.startswith("codegen.")} <= names | packages
