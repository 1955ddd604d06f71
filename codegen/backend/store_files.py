"""The files of the store: written whole or not at all, read with doubt, removed when long unused.

A file is a line of JSON, its head with the checksum of the rest, and the rest. A reader knows the head that
it asks for, so that it compares bytes and interprets none: what is read is what was written, or nothing.
"""

from __future__ import annotations

import json
import os
import re
import stat
import time
from contextlib import suppress
from dataclasses import dataclass
from hashlib import sha256
from pathlib import Path
from typing import Any

UNFINISHED = ".new-"
"""How names of files begin that are being written."""

UNFINISHED_SECONDS = 3600
"""An unfinished file as old as that is nobody's any more: writing one takes milliseconds."""

TOUCHED_SECONDS = 24 * 3600
"""How exactly it is known when a file was last used."""

ROOM_SHARE = 8
"""A store that is too large gives back this part of its size, so that not every write has to look again."""

_KEPT = r"[0-9a-f]{64}\.kernel|[a-z]+-[0-9a-f]{32}\.note"
_LEFT = r"\.new-[0-9a-z_]{8,16}"
"""Names of ours alone: a store may be in a directory that holds other files too."""

_SAFELY = getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_BINARY", 0)


def digest_of(data: bytes) -> str:
    """SHA-256 in hexadecimal digits."""
    return sha256(data).hexdigest()


def read_checked(path: Path, head: dict[str, Any], most_bytes: int) -> bytes | None:
    """What stands behind the first line of a file of ours, or None if that is not the head and checksum.

    A file that is found is marked as used.
    """
    try:
        handle = open_safely(path)
        try:
            status = os.fstat(handle)
            if status.st_size > most_bytes or not _trusted(status):
                return None
            data = os.read(handle, status.st_size + 1)
        finally:
            os.close(handle)
    except OSError:
        return None
    begin = data.find(b"\n") + 1
    line, body = data[:begin], data[begin:]
    if line != _first_line(head, body):
        return None
    _mark_used(path, status.st_mtime)
    return body


def open_safely(path: Path) -> int:
    """A handle for reading: no link is followed, no pipe waited for.

    Raises:
        OSError: there is no such file, or it is a link.
    """
    return os.open(path, os.O_RDONLY | _SAFELY | getattr(os, "O_NONBLOCK", 0))


def write_checked(path: Path, head: dict[str, Any], body: bytes) -> int:
    """Write a file under a name of its own and rename it; its size in bytes.

    Raises:
        OSError: it could not be kept; no other file has changed.
    """
    data = memoryview(_first_line(head, body) + body)
    unfinished = path.with_name(UNFINISHED + os.urandom(8).hex())
    handle = os.open(unfinished, os.O_WRONLY | os.O_CREAT | os.O_EXCL | _SAFELY, 0o600)
    try:
        try:
            written = 0
            while written < len(data):
                written += os.write(handle, data[written:])
        finally:
            os.close(handle)
        os.replace(unfinished, path)
    except BaseException:
        with suppress(OSError):
            os.unlink(unfinished)
        raise
    return len(data)


def _first_line(head: dict[str, Any], body: bytes) -> bytes:
    return json.dumps({**head, "checksum": digest_of(body)}, sort_keys=True).encode() + b"\n"


def _mark_used(path: Path, seconds: float) -> None:
    """Set the file's time to now, once a day: reading an entry should not write to the disk each time."""
    if abs(time.time() - seconds) > TOUCHED_SECONDS:
        with suppress(OSError):
            os.utime(path)


@dataclass(frozen=True, slots=True)
class Held:
    """How many files a store holds, and how large they are together."""

    files: int
    size_bytes: int


def trim(directory: Path, most_bytes: int) -> Held:
    """Remove what killed writers left and, beyond a size, the files that were used longest ago.

    Others may read, write and trim meanwhile: whoever misses a file makes it anew.

    Raises:
        OSError: the directory cannot be read.
    """
    now, kept = time.time(), []
    is_kept, is_left = re.compile(_KEPT).fullmatch, re.compile(_LEFT).fullmatch
    with os.scandir(directory) as entries:
        for entry in entries:
            with suppress(OSError):
                status = entry.stat(follow_symlinks=False)
                if not stat.S_ISREG(status.st_mode):
                    continue
                if is_kept(entry.name):
                    # A time still to come is a wrong clock's; as an age it cannot keep a file for ever.
                    kept.append((abs(now - status.st_mtime), entry.name, status.st_size))
                elif is_left(entry.name) and abs(now - status.st_mtime) > UNFINISHED_SECONDS:
                    os.unlink(entry.path)
    return _without_the_oldest(directory, kept, most_bytes)


def _without_the_oldest(directory: Path, kept: list[tuple[float, str, int]], most_bytes: int) -> Held:
    files, size_bytes = len(kept), sum(size for _, _, size in kept)
    if size_bytes <= most_bytes:
        return Held(files, size_bytes)
    for _, name, size in sorted(kept, reverse=True):
        if size_bytes <= most_bytes - most_bytes // ROOM_SHARE:
            break
        with suppress(OSError):  # one that cannot be removed must not cost younger ones
            os.unlink(directory / name)
        files, size_bytes = files - 1, size_bytes - size
    return Held(files, size_bytes)


def distrust(directory: Path) -> str:
    """Why a directory must not be used, or "": another's, a link, or open to others."""
    status = directory.lstat()
    if stat.S_ISLNK(status.st_mode) or not stat.S_ISDIR(status.st_mode):
        return f"{directory} is no directory of its own"
    if not _own(status):
        return f"{directory} belongs to another user"
    if status.st_mode & 0o022:
        return f"others may write to {directory}; chmod it to 700"
    return ""


def unwritable(directory: Path) -> str:
    """Why nothing can be written to a directory, or ""."""
    effective = os.access in os.supports_effective_ids
    writable = os.access(directory, os.W_OK | os.X_OK, effective_ids=effective)
    return "" if writable else f"{directory} cannot be written to"


def _trusted(status: os.stat_result) -> bool:
    """Whether a file can only be what this user wrote under this name."""
    alone = status.st_nlink <= 1 and not status.st_mode & 0o022
    return stat.S_ISREG(status.st_mode) and alone and _own(status)


def _own(status: os.stat_result) -> bool:
    """The effective user is who writes here: a program may run for another than who started it."""
    return not hasattr(os, "geteuid") or status.st_uid == os.geteuid()
