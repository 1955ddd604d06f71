"""The files of the store: written atomically, checked when read, removed when long unused.

A file is a line of JSON, its head with the checksum of the body, and then the body. A reader knows the head
that it expects, so it compares bytes and parses nothing. It returns exactly what was written, or nothing.
"""

from __future__ import annotations

import json
import os
import stat
import time
from contextlib import suppress
from hashlib import sha256
from typing import Any, NamedTuple

from codegen.support.caching import lazy_pattern
from codegen.support.dataclasses import dataclass

UNFINISHED = ".new-"
"""Prefix of the names of files that are being written."""

UNFINISHED_SECONDS = 3600
"""Age at which an unfinished file counts as abandoned: writing one takes milliseconds."""

TOUCHED_SECONDS = 24 * 3600
"""Resolution of the time when a file was last used."""

ROOM_SHARE = 8
"""A store that is too large shrinks to 1/8 below its limit, so that not every write has to scan it."""

MOST_PLANS = 4096
"""The largest number of launch plans in a store: there is one for each shape, and each takes a disk block."""

UNUSED_SECONDS = 2 * TOUCHED_SECONDS
"""Age at which launch plans of other versions of the package are removed: several may be installed."""

_KEPT = lazy_pattern(
    r"[0-9a-f]{64}\.kernel|[a-z]+-[0-9a-f]{32}\.note|plan-(?P<version>[0-9a-f]{8})-[0-9a-f]{32}\.note"
)
_LEFT = lazy_pattern(r"\.new-[0-9a-z_]{8,16}")
"""Names that only TileJIT uses, because the directory of a store may also contain other files."""

_SAFELY = getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_BINARY", 0)


def digest_of(data: bytes) -> str:
    """SHA-256 in hexadecimal digits."""
    return sha256(data).hexdigest()


def read_checked(path: str, head: dict[str, Any], most_bytes: int) -> bytes | None:
    """The body of a file, or None if its first line is not the head with the body's checksum.

    Marks the file as used.

    most_bytes: the largest file to read, its first line included
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


def open_safely(path: str | os.PathLike[str]) -> int:
    """A handle for reading; it follows no links and does not wait for pipes.

    Raises:
        OSError: there is no such file, or it is a link.
    """
    return os.open(path, os.O_RDONLY | _SAFELY | getattr(os, "O_NONBLOCK", 0))


def write_checked(path: str, head: dict[str, Any], body: bytes, most_bytes: int) -> int:
    """Write a file under a temporary name and rename it; return its size in bytes.

    Return 0 and write nothing if the file would be larger than `most_bytes`: `read_checked` would refuse it.

    Raises:
        OSError: the file could not be written; no other file has changed.
    """
    data = memoryview(_first_line(head, body) + body)
    if len(data) > most_bytes:
        return 0
    unfinished = os.path.join(os.path.dirname(path), UNFINISHED + os.urandom(8).hex())
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


def _mark_used(path: str, seconds: float) -> None:
    """Set the file's time to now, at most once a day, so that reading does not write to disk each time."""
    if abs(time.time() - seconds) > TOUCHED_SECONDS:
        with suppress(OSError):
            os.utime(path)


@dataclass(frozen=True, slots=True)
class Held:
    """How many files a store holds, and their total size."""

    files: int
    size_bytes: int


class _File(NamedTuple):
    """A file of the store, and the version of the package if it is a launch plan."""

    age: float
    name: str
    size: int
    version: str | None


def plan_name(version: str, digest: str) -> str:
    """The name of a launch plan, which `trim` recognizes; both are digests."""
    return f"plan-{version[:8]}-{digest[:32]}"


def trim(directory: str, most_bytes: int, version: str = "") -> Held:
    """Remove what killed writers left and, beyond `most_bytes`, the least recently used files.

    Of the launch plans, the least recently used beyond MOST_PLANS are removed. `version` is the digest of the
    package; if it is given, unused plans of other versions are removed as well.

    Other processes may read, write and trim at the same time; one that misses a file recreates it.

    Raises:
        OSError: the directory cannot be read.
    """
    now = time.time()
    kept: list[_File] = []
    is_kept, is_left = _KEPT().fullmatch, _LEFT().fullmatch
    with os.scandir(directory) as entries:
        for entry in entries:
            with suppress(OSError):
                status = entry.stat(follow_symlinks=False)
                if not stat.S_ISREG(status.st_mode):
                    continue
                if found := is_kept(entry.name):
                    # A future time comes from a wrong clock; taken as an age, it cannot keep a file forever.
                    age = abs(now - status.st_mtime)
                    kept.append(_File(age, entry.name, status.st_size, found["version"]))
                elif is_left(entry.name) and abs(now - status.st_mtime) > UNFINISHED_SECONDS:
                    os.unlink(entry.path)
    surplus = _surplus_plans(kept, version[:8])
    for file in surplus:
        _remove(directory, file)
    return _without_the_oldest(directory, [file for file in kept if file not in surplus], most_bytes)


def _surplus_plans(files: list[_File], version: str) -> set[_File]:
    """The launch plans that no process is likely to read, and the oldest beyond MOST_PLANS."""
    plans = sorted(file for file in files if file.version)
    unused = {x for x in plans if version not in ("", x.version) and x.age > UNUSED_SECONDS}
    return unused.union([x for x in plans if x not in unused][MOST_PLANS:])


def _without_the_oldest(directory: str, files: list[_File], most_bytes: int) -> Held:
    count, size_bytes = len(files), sum(file.size for file in files)
    if size_bytes <= most_bytes:
        return Held(count, size_bytes)
    for file in sorted(files, reverse=True):
        if size_bytes <= most_bytes - most_bytes // ROOM_SHARE:
            break
        _remove(directory, file)
        count, size_bytes = count - 1, size_bytes - file.size
    return Held(count, size_bytes)


def _remove(directory: str, file: _File) -> None:
    """Remove a file; one that cannot be removed must not cost newer ones."""
    with suppress(OSError):
        os.unlink(os.path.join(directory, file.name))


def user_cache() -> str:
    """The user's cache folder: XDG_CACHE_HOME, or ~/.cache. Relative paths count as unset, as XDG specifies.

    Raises:
        RuntimeError: the user's home directory is unknown.
    """
    base = os.environ.get("XDG_CACHE_HOME", "")
    if os.path.isabs(base):
        return base
    home = os.path.expanduser("~")
    if not os.path.isabs(home):
        raise RuntimeError("the home directory is unknown; set TILEJIT_CACHE_DIR")
    return os.path.join(home, ".cache")


def distrust(directory: str | os.PathLike[str]) -> str:
    """Why a directory must not be used, or "": it is another user's, a link, or writable by others."""
    status = os.lstat(directory)
    if stat.S_ISLNK(status.st_mode) or not stat.S_ISDIR(status.st_mode):
        return f"{directory} is a link, or not a directory"
    if not _own(status):
        return f"{directory} belongs to another user"
    if status.st_mode & 0o022:
        return f"others may write to {directory}; chmod it to 700"
    return ""


def unwritable(directory: str | os.PathLike[str]) -> str:
    """Why a directory is not writable, or ""."""
    effective = os.access in os.supports_effective_ids
    writable = os.access(directory, os.W_OK | os.X_OK, effective_ids=effective)
    return "" if writable else f"{directory} cannot be written to"


def _trusted(status: os.stat_result) -> bool:
    """Whether only this user can have written a file, and only under this name."""
    alone = status.st_nlink <= 1 and not status.st_mode & 0o022
    return stat.S_ISREG(status.st_mode) and alone and _own(status)


def _own(status: os.stat_result) -> bool:
    """Whether the effective user owns it: a program may run as another user than the one who started it."""
    return not hasattr(os, "geteuid") or status.st_uid == os.geteuid()
