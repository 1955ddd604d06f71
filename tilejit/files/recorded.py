"""The record of a directory of .npy files: one JSON file beside them.

    {"version": 1, "layouts": {"x.npy": [{"layout": "tpu", "parameters": {}, "shape": {...}}],
                               "bias.npy": null}}

The .npy format cannot store a layout. Packing a directory creates this file, and every later write into the
directory updates it. It lists all arrays of the directory, with null for those that are not packed, so that
a packed buffer without an entry is not taken for a plain array. An entry is removed before its array is
replaced and added afterwards, so that no entry describes older bytes.
"""

from __future__ import annotations

import json
import os
from collections.abc import Collection, Iterable, Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

from codegen import LayoutError, cached
from tilejit.files.json_text import parsed, shortened
from tilejit.files.packings import Packings, packings_from_json, packings_to_json
from tilejit.files.whole_file import identity_of_path, open_ordinary, replacing
from tilejit.support.units import listed

LAYOUTS_NAME = "tilejit-layouts.json"
VERSION = 1
MAX_LAYOUTS_BYTES = 100_000_000


def read_layouts(directory: Path) -> Mapping[str, Any]:
    """The recorded packings of a directory's files by name, as JSON; None for an array that is not packed.

    Empty if the directory has no record.

    Raises:
        LayoutError: the record is damaged.
        OSError: the record cannot be read.
    """
    path = directory / LAYOUTS_NAME
    try:
        status = path.stat()
    except (FileNotFoundError, NotADirectoryError):
        return {}
    return _read(str(path.absolute()), status.st_ino, status.st_size, status.st_mtime_ns)


def check_complete(directory: Path) -> None:
    """Raise if a file that the record of a directory lists is missing.

    Raises:
        LayoutError: a file is missing; the message names it.
        OSError: as `read_layouts`.
    """
    missing = missing_files(directory)
    if missing:
        named = listed(map(shortened, missing))
        raise LayoutError(
            f"{str(directory / LAYOUTS_NAME)!r} lists files that are missing: {named}\n"
            "  restore them, or remove their entries there"
        )


def missing_files(directory: Path) -> list[str]:
    """The files that the record of a directory lists and the directory lacks.

    Raises:
        LayoutError, OSError: as `read_layouts`.
    """
    return sorted({*read_layouts(directory)}.difference(os.listdir(directory)))


def recorded_packings(path: Path) -> Packings | None:
    """The packings of a file by the record of its directory; () if it is not packed, None if it is unlisted.

    Raises:
        LayoutError: the record or the entry is damaged; the message names the field.
        OSError: as `read_layouts`.
    """
    known = read_layouts(path.parent)
    if path.name not in known:
        return None
    data = known[path.name]
    if data is None:
        return ()
    where = f"{str(path.parent / LAYOUTS_NAME)!r}: the entry of {path.name!r}"
    return packings_from_json(data, where, "restore it, or remove it and unpack the file with --shape")


def record(
    directory: Path, entries: Mapping[str, Any], forgotten: Iterable[str] = (), *, keep: bool = False
) -> None:
    """Record the packings of files by name, as JSON; None stands for an array that is not packed.

    The record is created with the first packed array and removed with the last.

    Args:
        directory: the directory.
        entries: the entries to add.
        forgotten: the files whose entries are removed.
        keep: whether to keep a record without packed arrays, because files of other types are packed.

    Raises:
        LayoutError: the existing record is damaged.
        OSError: the record cannot be written.
    """
    with _locked(directory):
        _read.cache_clear()  # another process may have replaced the record within a tick of the clock
        _record(directory, entries, forgotten, keep=keep)


def _record(directory: Path, entries: Mapping[str, Any], forgotten: Iterable[str], *, keep: bool) -> None:
    path = directory / LAYOUTS_NAME
    before = read_layouts(directory)
    after = {name: data for name, data in before.items() if name not in {*forgotten}} | {**entries}
    if not keep and not any(data is not None for data in after.values()):
        after = {}
    if after == before:
        return
    _read.cache_clear()
    if not after:
        with suppress(FileNotFoundError):
            path.unlink()
        return
    text = json.dumps({"version": VERSION, "layouts": dict(sorted(after.items()))}, indent=1)
    with replacing(path) as file:
        file.write(text.encode("ascii") + b"\n")


@contextmanager
def _locked(directory: Path) -> Iterator[None]:
    """Exclude other writers of a directory's record; does nothing on systems without locks of directories."""
    handle = -1
    try:
        with suppress(ImportError, OSError):
            import fcntl

            handle = os.open(directory, os.O_RDONLY | os.O_CLOEXEC)
            fcntl.flock(handle, fcntl.LOCK_EX)
        yield
    finally:
        if handle >= 0:
            os.close(handle)  # this releases the lock


@contextmanager
def recording(
    directory: Path, packings: Mapping[str, Packings], unknown: Collection[str] = (), *, keep: bool = False
) -> Iterator[None]:
    """Record the packings of files by name while they are written; () stands for a plain array.

    After an error, the entry of each file is correct: the new one if the file was replaced, else the old one.

    Args:
        directory: the directory.
        packings: the packings of the files.
        unknown: files that may be packed; they get no entry.
        keep: whether to keep a record without packed arrays.

    Raises:
        LayoutError, OSError: as `record`.
    """
    old = read_layouts(directory)
    new = {name: packings_to_json(known) if known else None for name, known in packings.items()}
    names = {*new, *unknown}
    before = {name: identity_of_path(directory / name) for name in names}
    record(directory, {}, names, keep=True)  # entries of other arrays stay, even if none of those is packed
    try:
        yield
    except BaseException:
        replaced = {name for name in names if identity_of_path(directory / name) != before[name]}
        correct = {name: data for name, data in old.items() if name in names - replaced}
        correct |= {name: data for name, data in new.items() if name in replaced}
        with suppress(OSError, LayoutError):  # the first error is more informative
            record(directory, correct, keep=keep)
        raise
    record(directory, new, keep=keep)


@cached(4)
def _read(path: str, inode: int, size: int, mtime_ns: int) -> Mapping[str, Any]:
    with open_ordinary(path) as file:
        raw = file.read(MAX_LAYOUTS_BYTES + 1)
    try:
        if len(raw) > MAX_LAYOUTS_BYTES:
            raise LayoutError(f"it is longer than {MAX_LAYOUTS_BYTES} bytes")
        found = parsed(raw, "it")
        if not isinstance(found, dict) or not isinstance(found.get("layouts"), dict):
            raise LayoutError("it has no map of layouts")
        if found.get("version") != VERSION:
            raise LayoutError(f"expected version {VERSION}, got {str(found.get('version'))[:40]!r}")
    except LayoutError as error:
        raise LayoutError(
            f"{path!r} is not a valid record of layouts: {str(error)[:200]}\n"
            "  remove it, and pass layouts with --shape"
        ) from error
    layouts: dict[str, Any] = found["layouts"]
    return layouts
