"""The record of one packed file, in a JSON file beside it: y.npy and y.npy.tilejit.json.

    {"version": 1, "packings": [...]}

Neither .npy files nor raw bytes can hold a layout. The record does not name its file, so that both can be
renamed.
"""

from __future__ import annotations

import errno
import json
import os
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

from codegen import LayoutError
from tilejit.files.json_text import parsed
from tilejit.files.packings import Packings, packings_from_json, packings_to_json
from tilejit.files.whole_file import identity_of_path, open_ordinary, replacing

SUFFIX = ".tilejit.json"
VERSION = 1
MAX_SIDECAR_BYTES = 1_000_000
MOST_NAME_BYTES = 255
"""The longest name of a file on common systems; a file with such a name cannot have a record."""
FIX = "restore it, or remove it and unpack the file with --shape"


def sidecar_of(path: Path) -> Path:
    """The name of a file's record: y.npy -> y.npy.tilejit.json"""
    return path.with_name(path.name + SUFFIX)


def read_sidecar(path: Path) -> Packings:
    """What a record beside a file says.

    Args:
        path: the path of the record.

    Returns:
        The packings; () if there is no record.

    Raises:
        LayoutError: the record is damaged; the message names the field.
        OSError: the record cannot be read.
    """
    raw = _read(path)
    if raw is None:
        return ()
    where = repr(str(path))
    try:
        if len(raw) > MAX_SIDECAR_BYTES:
            raise LayoutError(f"it is longer than {MAX_SIDECAR_BYTES} bytes")
        found = parsed(raw, "it")
        if not isinstance(found, dict) or set(found) != {"version", "packings"}:
            raise LayoutError("expected an object with version and packings")
        if found["version"] != VERSION:
            raise LayoutError(f"version: expected {VERSION}, got {str(found['version'])[:40]!r}")
    except LayoutError as error:
        raise LayoutError(
            f"{where} is not a valid record of a layout: {str(error)[:200]}\n  {FIX}"
        ) from error
    return packings_from_json(found["packings"], where, FIX)


@contextmanager
def replacing_sidecar(path: Path, packings: Packings) -> Iterator[None]:
    """Remove the record of a file while the file is replaced, then write the new one.

    At any time, the record describes the file beside it or does not exist. After an error, it is the new one
    if the file was replaced, else the old one.

    Args:
        path: the path of the record.
        packings: the packings of the new file; () writes no record.

    Raises:
        OSError: the record cannot be written.
    """
    file_path = path.with_name(path.name.removesuffix(SUFFIX))
    before, old = identity_of_path(file_path), _read(path)
    if packings and len(os.fsencode(path.name)) > MOST_NAME_BYTES:
        raise OSError(errno.ENAMETOOLONG, os.strerror(errno.ENAMETOOLONG), str(path))
    data: dict[str, Any] = {"version": VERSION, "packings": packings_to_json(packings)}
    new = json.dumps(data, indent=1).encode("ascii") + b"\n" if packings else None
    if old is not None:
        path.unlink()
    try:
        yield
    except BaseException:
        with suppress(OSError):  # the first error is more informative
            _write(path, new if identity_of_path(file_path) != before else old)
        raise
    _write(path, new)


def _read(path: Path) -> bytes | None:
    """The text of a record, as far as it may be valid; None if there is no record."""
    if len(os.fsencode(path.name)) > MOST_NAME_BYTES:
        return None
    with suppress(FileNotFoundError, NotADirectoryError), open_ordinary(path) as file:
        return file.read(MAX_SIDECAR_BYTES + 1)
    return None


def _write(path: Path, text: bytes | None) -> None:
    """Write a record; None writes none."""
    if text is not None:
        with replacing(path) as file:
            file.write(text)


def lost_records(directory: Path) -> dict[Path, Packings]:
    """The readable records in a directory whose files are missing, such as those of renamed files.

    Raises:
        OSError: the directory cannot be read.
    """
    names = set(os.listdir(directory))
    found = {}
    for name in sorted(names):
        if name.endswith(SUFFIX) and name.removesuffix(SUFFIX) not in names:
            path = directory / name
            with suppress(LayoutError, OSError):
                found[path] = read_sidecar(path)
    return found
