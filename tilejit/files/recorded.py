"""The layouts of packed .npy files, recorded in one JSON file beside them.

    {"version": 1, "layouts": {"x.npy": {"primitive_type": "f32", "dimensions": [100, 300], ...}}}

The .npy format cannot store a layout. Packing a directory creates this file, and every later write into the
directory updates it. An entry is removed before its array is replaced and added afterwards, so that no entry
describes older bytes.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path
from typing import Any

from codegen import LayoutError, cached
from tilejit.files.whole_file import open_ordinary, replacing
from tilejit.layout.cute_shape import Spec, spec_from_json
from tilejit.tiled.buffers import check_packable

LAYOUTS_NAME = "tilejit-layouts.json"
VERSION = 1
MAX_LAYOUTS_BYTES = 100_000_000


def read_layouts(directory: Path) -> Mapping[str, Any]:
    """The recorded layouts of a directory's files by name, as JSON; empty if the directory has no record.

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
        cause = str(error) or "it is nested too deeply"
        where = str(file.parent / LAYOUTS_NAME)
        raise LayoutError(f"{where!r}: the layout of {file.name!r} cannot be read: {cause}") from error
    return spec


def record(directory: Path, entries: Mapping[str, Any]) -> None:
    """Record the layouts of files by name, as JSON; None removes the record of one.

    The record is created with the first layout and removed with the last.

    Raises:
        LayoutError: the existing record is damaged.
        OSError: the record cannot be written.
    """
    path = directory / LAYOUTS_NAME
    before = read_layouts(directory)
    after = {name: data for name, data in before.items() if name not in entries}
    after |= {name: data for name, data in entries.items() if data is not None}
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
def recording(directory: Path, layouts: Mapping[str, Spec | None]) -> Iterator[None]:
    """Record the layouts of files by name while they are written; None stands for a plain array.

    After an error, the entry of each file is correct: the new one if the file was replaced, else the old one.

    Raises:
        LayoutError, OSError: as `record`.
    """
    old = read_layouts(directory)
    new = {name: None if spec is None else spec.to_json() for name, spec in layouts.items()}
    before = {name: _identity(directory / name) for name in new}
    record(directory, dict.fromkeys(new))
    try:
        yield
    except BaseException:
        replaced = {name for name in new if _identity(directory / name) != before[name]}
        with suppress(OSError, LayoutError):  # the first error is more informative
            record(directory, {name: new[name] if name in replaced else old.get(name) for name in new})
        raise
    record(directory, new)


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
                stack.enter_context(recording(name.parent, {name.name: spec}))
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
        found = json.loads(raw)
        if not isinstance(found, dict) or not isinstance(found.get("layouts"), dict):
            raise LayoutError("it has no map of layouts")
        if found.get("version") != VERSION:
            raise LayoutError(f"expected version {VERSION}, got {str(found.get('version'))[:40]!r}")
    except (ValueError, RecursionError) as error:
        cause = str(error) or "it is nested too deeply"
        raise LayoutError(
            f"{path!r} is not a valid record of layouts: {cause[:200]}\n"
            "  remove it, and pass layouts with --shape"
        ) from error
    layouts: dict[str, Any] = found["layouts"]
    return layouts
