"""The layouts of packed .npy files, recorded in one JSON file beside them.

    {"version": 1, "layouts": {"x.npy": {"primitive_type": "f32", "dimensions": [100, 300], ...},
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
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path
from typing import Any

from codegen import LayoutError, cached
from tilejit.files.json_text import parsed, reason, shortened
from tilejit.files.whole_file import open_ordinary, replacing
from tilejit.layout.cute_shape import Spec, spec_from_json
from tilejit.support.units import listed
from tilejit.tiled.buffers import check_packable

LAYOUTS_NAME = "tilejit-layouts.json"
VERSION = 1
MAX_LAYOUTS_BYTES = 100_000_000


def read_layouts(directory: Path) -> Mapping[str, Any]:
    """The recorded layouts of a directory's files by name, as JSON; None for an array that is not packed.

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


def is_listed(path: str | os.PathLike[str]) -> bool | None:
    """Whether the record of a file's directory has an entry for it; None if there is no record.

    Raises:
        LayoutError, OSError: as `read_layouts`.
    """
    file = Path(path)
    known = read_layouts(file.parent)
    return file.name in known if known else None


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


def recorded_layout(path: str | os.PathLike[str]) -> Spec | None:
    """The layout of a packed .npy file; None if none is recorded.

    Raises:
        LayoutError: the record cannot be read.
        OSError: as `read_layouts`.
    """
    file = Path(path)
    data = read_layouts(file.parent).get(file.name)
    if data is None:
        return None
    try:
        spec = spec_from_json(data)
        check_packable(spec)
    except (ValueError, TypeError, OverflowError, RecursionError) as error:
        where = str(file.parent / LAYOUTS_NAME)
        raise LayoutError(
            f"{where!r}: the layout of {file.name!r} cannot be read: {reason(error)}\n"
            "  remove this entry, and unpack the file with --shape"
        ) from error
    return spec


def record(
    directory: Path, entries: Mapping[str, Any], forgotten: Iterable[str] = (), *, keep: bool = False
) -> None:
    """Record the layouts of files by name, as JSON; None stands for an array that is not packed.

    The record is created with the first layout and removed with the last.

    Args:
        directory: the directory.
        entries: the layouts to add.
        forgotten: the files whose entries are removed.
        keep: whether to keep a record without layouts, because files of other types are packed.

    Raises:
        LayoutError: the existing record is damaged.
        OSError: the record cannot be written.
    """
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
def recording(
    directory: Path, layouts: Mapping[str, Spec | None], unknown: Collection[str] = (), *, keep: bool = False
) -> Iterator[None]:
    """Record the layouts of files by name while they are written; None stands for a plain array.

    After an error, the entry of each file is correct: the new one if the file was replaced, else the old one.

    Args:
        directory: the directory.
        layouts: the layouts of the files.
        unknown: files that may be packed; they get no entry.
        keep: whether to keep a record without layouts.

    Raises:
        LayoutError, OSError: as `record`.
    """
    old = read_layouts(directory)
    new = {name: None if spec is None else spec.to_json() for name, spec in layouts.items()}
    names = {*new, *unknown}
    before = {name: _identity(directory / name) for name in names}
    record(directory, {}, names)
    try:
        yield
    except BaseException:
        replaced = {name for name in names if _identity(directory / name) != before[name]}
        correct = {name: data for name, data in old.items() if name in names - replaced}
        correct |= {name: data for name, data in new.items() if name in replaced}
        with suppress(OSError, LayoutError):  # the first error is more informative
            record(directory, correct, keep=keep)
        raise
    record(directory, new, keep=keep)


@contextmanager
def updating_record(path: str | os.PathLike[str], spec: Spec | None) -> Iterator[None]:
    """Update the record of a directory, if it has one, while a .npy file is written into it.

    Raises:
        LayoutError, OSError: as `record`.
    """
    names = {Path(os.path.abspath(path)), Path(os.path.realpath(path))}  # a link and its target
    with ExitStack() as stack:
        for name in names:
            if (name.parent / LAYOUTS_NAME).exists():
                known = spec is not None or name.suffix.lower() == ".npy"  # other files need no entry
                layouts, unknown = ({name.name: spec}, ()) if known else ({}, (name.name,))
                stack.enter_context(recording(name.parent, layouts, unknown))
        yield


def _identity(path: Path) -> tuple[int, int, int] | None:
    """A file's inode, size and time, which change when it is replaced; None if it does not exist."""
    try:
        status = path.stat()
    except OSError:
        return None
    return status.st_ino, status.st_size, status.st_mtime_ns


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
