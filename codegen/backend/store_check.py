"""Check every file of the store: count the intact ones, and find the faults of the others."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import fields
from pathlib import Path

from codegen.backend.store import KernelStore
from codegen.backend.store_files import open_safely
from codegen.backend.store_key import StoreKey
from codegen.support.dataclasses import dataclass

HEAD_BYTES = 1 << 16
"""The longest first line to read; a key has a few hundred bytes."""


@dataclass(frozen=True, slots=True)
class Verified:
    """The numbers of intact kernels and notes, and the damaged files with their faults."""

    kernels: int
    notes: int
    damaged: tuple[tuple[Path, str], ...]


def verify_store(store: KernelStore) -> Verified:
    """Read every entry and note as a process that needs it would, including those of other versions and CPUs.

    Files that other processes remove at the same time are not counted.
    """
    kernels = [(path, kernel_fault(store, path)) for path in store.entries()]
    notes = [(path, note_fault(store, path)) for path in store.notes()]
    damaged = [(path, fault) for path, fault in (*kernels, *notes) if fault and os.path.lexists(path)]
    intact = [sum(not fault for _, fault in found) for found in (kernels, notes)]
    return Verified(intact[0], intact[1], tuple(damaged))


def kernel_fault(store: KernelStore, path: Path) -> str:
    """What is wrong with an entry, or "" if it is intact."""
    key = _key_of(path)
    if key is None:
        return "its first line is not a key"
    if key.digest != path.stem:
        return "it has the name of another key"
    with _keeping_times(path):
        found = store.get(key)
    return "" if found else "its checksum is wrong, or others could have written it"


def note_fault(store: KernelStore, path: Path) -> str:
    """What is wrong with a note, or "" if it is intact."""
    if not path.stem.replace("-", "").isalnum():
        return "it has the name of no note"
    with _keeping_times(path):
        found = store.get_note(path.stem)
    return "" if found is not None else "its checksum is wrong, or others could have written it"


def remove_entries(verified: Verified) -> list[tuple[Path, str]]:
    """Remove damaged files; return those that could not be removed, with the reason.

    They are misses whether they exist or not: a process that needs the kernel recompiles it.
    """
    left = []
    for path, _ in verified.damaged:
        try:
            path.unlink(missing_ok=True)
        except OSError as error:
            left.append((path, error.strerror or str(error)))
    return left


def _key_of(path: Path) -> StoreKey | None:
    """The key in an entry's first line, or None if that is not a key.

    A key has only strings and integers. Deeply nested values could be read, but not written again.
    """
    try:
        with os.fdopen(open_safely(path), "rb") as file:
            head = json.loads(file.readline(HEAD_BYTES))
        named = {field.name: head[field.name] for field in fields(StoreKey)}
        return StoreKey(**named) if all(isinstance(x, str | int) for x in named.values()) else None
    except (OSError, ValueError, TypeError, KeyError, RecursionError):
        return None


@contextmanager
def _keeping_times(path: Path) -> Iterator[None]:
    """Preserve the time of a file's last use, because checking is not a use."""
    try:
        before = path.lstat()
    except OSError:
        yield
        return
    yield
    if os.utime in os.supports_follow_symlinks:
        with suppress(OSError):
            os.utime(path, ns=(before.st_atime_ns, before.st_mtime_ns), follow_symlinks=False)
