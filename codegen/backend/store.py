"""Object code on disk: content-addressed, checked before use, and never required.

An entry is one file: a line of JSON (its key, the digest of the kernel's source, the checksum of the code),
then the object code. A note is also one file: a line with its name and checksum, then JSON with results worth
remembering, such as measurements. Anything unexpected is a miss. A store that grows too large drops its least
recently used files, whatever version, compiler or CPU level they belong to. An untrusted directory means no
store, and an unwritable one a read-only store; `KernelStore.reason` says why.
"""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import asdict
from functools import cache
from typing import TYPE_CHECKING, Any

from codegen.backend.store_files import (
    UNFINISHED,
    Held,
    distrust,
    plan_name,
    read_checked,
    trim,
    unwritable,
    user_cache,
    write_checked,
)
from codegen.backend.store_key import FORMAT, StoreKey, lowering_digest
from codegen.support.errors import StoreError
from codegen.support.settings import settings

if TYPE_CHECKING:
    from pathlib import Path

MAX_ENTRY_BYTES = 16 << 20
MAX_NOTE_BYTES = 1 << 14
MAX_STORE_BYTES = 512 << 20
"""Approximate size limit of a store; TILEJIT_CACHE_BYTES overrides it."""

PLANS_PER_PROCESS = 32
"""The most launch plans that a process writes, because there is one for each shape.

Reading them has no limit, so processes that run the same copies together write all plans.
"""

PLANS_PER_SCAN = 128
"""Launch plans written per scan of the files, on average. Most processes write few plans and no kernel."""

FILES_PER_WRITE = 250
"""Files scanned per write, on average; that takes a hundredth of the time of compiling a kernel."""


class KernelStore:
    """A directory of compiled kernels; `reason` says why it is missing, read-only or incomplete."""

    def __init__(
        self,
        directory: str | os.PathLike[str] | None,
        reason: str = "",
        most_bytes: int = MAX_STORE_BYTES,
        *,
        only_read: bool = False,
    ) -> None:
        self.folder = None if directory is None else os.fspath(directory)
        self.reason, self.most_bytes = reason, most_bytes
        self.is_writable = directory is not None and not only_read
        self.plans_left = PLANS_PER_PROCESS if self.is_writable else 0
        self.hits = self.misses = 0
        self._writes_until_trim = 0

    @property
    def directory(self) -> Path | None:
        """The folder as a path object, whose module takes 3 ms to import."""
        from pathlib import Path

        return None if self.folder is None else Path(self.folder)

    @classmethod
    def open(cls) -> KernelStore:
        """The user's store, or one that stores nothing if it is unavailable."""
        if settings().no_cache:
            return cls(None, "TILEJIT_NO_CACHE is set")
        wanted = settings().cache_bytes or str(MAX_STORE_BYTES)
        if not (wanted.isascii() and wanted.isdecimal() and len(wanted) < 20):
            return cls(None, f"TILEJIT_CACHE_BYTES={wanted} is not a number of bytes")
        try:
            directory = settings().cache_directory or os.path.join(user_cache(), "tilejit")
            os.makedirs(directory, exist_ok=True, mode=0o700)
            reason = distrust(directory)
        except (OSError, RuntimeError) as error:
            return cls(None, str(error))
        if reason:
            return cls(None, reason)
        reason = unwritable(directory)
        return cls(directory, reason, int(wanted), only_read=bool(reason))

    def get(self, key: StoreKey) -> bytes | None:
        """The object code of a key, or None if it is absent, damaged or untrusted."""
        code = self._read(key) if self.folder else None
        if code is None:
            self.misses += 1
        else:
            self.hits += 1
        return code

    def _read(self, key: StoreKey) -> bytes | None:
        return read_checked(self._path(key.digest, "kernel"), asdict(key), MAX_ENTRY_BYTES)

    def put(self, key: StoreKey, code: bytes) -> None:
        """Store object code; a full or read-only disk is not an error."""
        if self.is_writable:
            self._write(self._path(key.digest, "kernel"), asdict(key), code, MAX_ENTRY_BYTES)

    def get_note(self, name: str) -> dict[str, Any] | None:
        """The facts stored under a name, or None if they are absent, damaged or untrusted.

        The caller must check that they are plausible.
        """
        if self.folder is None:
            return None
        body = read_checked(self._path(name, "note"), _note_head(name), MAX_NOTE_BYTES)
        try:
            facts = json.loads(body or b"null")
        except (ValueError, RecursionError):
            return None
        return facts if isinstance(facts, dict) else None

    def put_note(self, name: str, facts: Mapping[str, Any]) -> None:
        """Store facts under a name of letters, digits and hyphens; a full disk is not an error.

        Facts that are too long for readers are not stored.
        """
        if self.is_writable:
            body = json.dumps(dict(facts), sort_keys=True).encode()
            self._write(self._path(name, "note"), _note_head(name), body, MAX_NOTE_BYTES, may_scan=False)

    def get_source_digest(self, structure_digest: str) -> str | None:
        """The digest of a kernel's source, which saves lowering and printing it; None if it is not noted."""
        facts = self.get_note(_note_of_source(structure_digest)) or {}
        digest = facts.get("source")
        return digest if isinstance(digest, str) and facts.get("lowering") == lowering_digest(self) else None

    def put_source_digest(self, structure_digest: str, source_digest: str) -> None:
        """Note the digest of the source that this version of the package makes from a structure."""
        facts = {"source": source_digest, "lowering": lowering_digest(self)}
        self.put_note(_note_of_source(structure_digest), facts)

    def get_plan(self, digest: str) -> dict[str, Any] | None:
        """The launch plan of the copy whose request has that digest, or None as for a note."""
        return self.get_note(plan_name(lowering_digest(self), digest))

    def put_plan(self, digest: str, plan: Mapping[str, Any]) -> None:
        """Store a launch plan, unless this process has written `PLANS_PER_PROCESS`.

        A caller that wants more of them written adds to `plans_left` first.
        """
        if self.plans_left <= 0:
            return
        self.plans_left -= 1
        self.put_note(plan_name(lowering_digest(self), digest), plan)
        if os.urandom(1)[0] < 256 // PLANS_PER_SCAN:
            with suppress(OSError):
                self.trim(lowering_digest(self))

    def _write(
        self, path: str, head: dict[str, Any], body: bytes, most_bytes: int, *, may_scan: bool = True
    ) -> None:
        if len(body) > self.most_bytes:
            self.reason = f"not all kernels could be kept: TILEJIT_CACHE_BYTES is {self.most_bytes}"
            return
        try:
            if not write_checked(path, head, body, most_bytes):
                return
            self._writes_until_trim -= 1
            if self._writes_until_trim < 0 and may_scan:
                self._writes_until_trim = self.trim().files // FILES_PER_WRITE
        except OSError as error:
            self.reason = f"not all kernels could be kept: {error}"

    def trim(self, version: str = "") -> Held:
        """Remove unfinished files, surplus plans and, beyond `most_bytes`, the least recently used files.

        version: the `lowering_digest`, if known; then unused plans of other versions are surplus

        Raises:
            OSError: the directory cannot be read.
        """
        return trim(self.folder, self.most_bytes, version) if self.folder else Held(0, 0)

    def entries(self) -> list[Path]:
        """The kernel files of the store."""
        return self._files("*.kernel")

    def notes(self) -> list[Path]:
        """The note files of the store."""
        return self._files("*.note")

    def _files(self, pattern: str) -> list[Path]:
        directory = self.directory
        return sorted(f for f in directory.glob(pattern) if not f.is_dir()) if directory else []

    def clear(self) -> int:
        """Remove all entries, notes and unfinished files; return how many entries there were.

        Raises:
            StoreError: an entry cannot be removed.
        """
        entries = self.entries()
        directory = self.directory
        leftovers = list(directory.glob(f"{UNFINISHED}*")) if directory else []
        for entry in [*entries, *self.notes(), *leftovers]:
            try:
                entry.unlink(missing_ok=True)
            except OSError as error:
                raise StoreError(f"cannot remove {entry}: {error.strerror}") from error
        return len(entries)

    def _path(self, name: str, kind: str) -> str:
        if self.folder is None:
            raise AssertionError("the store has no directory, so no paths")
        if not name.replace("-", "").isalnum():
            raise AssertionError(f"{name!r} is not a name for a file of the store")
        return os.path.join(self.folder, f"{name}.{kind}")


def _note_of_source(structure_digest: str) -> str:
    return f"source-{structure_digest[:32]}"


def _note_head(name: str) -> dict[str, Any]:
    return {"note": name, "format": FORMAT}


@cache
def default_store() -> KernelStore:
    """The store of this process, opened once."""
    return KernelStore.open()
