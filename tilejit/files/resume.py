"""Files whose writing may end early and be taken up again: OUT.partial, and a journal of what is in it.

The journal's first line says what the file is made of, each further one how many bytes are written. A number
is written only after those bytes are on disk, so that no journal claims what is not there.
"""

from __future__ import annotations

import hashlib
import json
import os
import stat
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import IO, Any, TypeAlias

from codegen import TilejitError, dataclass
from tilejit.files.whole_file import mode_of, sync_directory

SYNC_BYTES = 64 << 20
"""Bytes after which what is written is put on disk and noted: what a killed run loses at most."""
MOST_JOURNAL_BYTES = 16 << 20

Origin: TypeAlias = Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class Identity:
    """What tells an input from others of the same name: its size, its time and the digest of its header."""

    size: int
    mtime_ns: int
    header: bytes


def identity_of(file: IO[bytes], header_bytes: int) -> Identity:
    """What tells an open file from others, which begins with a header of so many bytes."""
    status = os.fstat(file.fileno())
    file.seek(0)
    return Identity(status.st_size, status.st_mtime_ns, hashlib.sha256(file.read(header_bytes)).digest())


def origin_of(source: Identity, header: bytes, how: Iterable[Any]) -> Origin:
    """What a file is made of: the input; the output's header, and how it is made."""
    from tilejit import __version__

    plan = hashlib.sha256(header)
    for fact in how:
        plan.update(repr(fact).encode("utf-8", "surrogatepass") + b"\n")
    return {
        "tilejit": __version__,
        "input_bytes": source.size,
        "input_mtime_ns": source.mtime_ns,
        "input_header": source.header.hex(),
        "output": plan.hexdigest(),
    }


class Unfinished:
    """An unfinished file: `done` bytes of it were written before; `write` appends."""

    def __init__(self, handle: int, journal: int, done: int) -> None:
        self.handle, self.journal, self.done = handle, journal, done
        self._written = self._noted = done

    def write(self, data: Any) -> int:
        """Append bytes; how many."""
        rest = memoryview(data).cast("B")
        while rest:
            count = os.write(self.handle, rest)
            rest = rest[count:]
            self._written += count
        if self._written - self._noted >= SYNC_BYTES:
            self.note()
        return len(memoryview(data).cast("B"))

    def note(self) -> None:
        """Put what is written on disk, then say so in the journal, on disk too."""
        os.fsync(self.handle)
        if self._written > self._noted:
            _append(self.journal, f"{self._written}\n")
            self._noted = self._written


@contextmanager
def resuming(
    path: str | os.PathLike[str], origin: Origin, say: Callable[[str], None] | None = None
) -> Iterator[Unfinished]:
    """A file that takes the place of `path` when the block ends without an exception.

    >>> with resuming("model.safetensors", origin) as file:
    ...     file.write(data[file.done:])

    What is written stays in OUT.partial when the block or the process ends early, beside the journal
    OUT.partial.journal; of the same origin the next run begins with that. Any other is begun anew. Errors of
    the data itself remove both.

    Raises:
        TilejitError: another run is writing the file, or there is an OUT.partial that no journal speaks of.
        OSError: the directory or the disk refuses.
    """
    target = Path(os.path.realpath(path))
    mode = mode_of(target)
    partial, notes = (target.with_name(target.name + end) for end in (".partial", ".partial.journal"))
    journal = handle = -1
    try:
        journal = _open(notes)
        _lock(journal, notes, path)
        done = _begin(journal, partial, origin, say)
        handle = _open(partial)
        os.ftruncate(handle, done)
        os.lseek(handle, done, os.SEEK_SET)
        sync_directory(target.parent)
        file = Unfinished(handle, journal, done)
        try:
            yield file
        except TilejitError:
            partial.unlink()
            notes.unlink()
            raise
        except BaseException:
            with suppress(OSError):
                file.note()
            raise
        if mode is not None:
            os.chmod(partial, mode)
        os.fsync(handle)
        os.replace(partial, target)
        notes.unlink()
    except OSError as error:
        if error.errno and error.filename in (None, str(partial), str(notes)):
            raise OSError(error.errno, error.strerror, os.fspath(path)) from error
        raise
    finally:
        for opened in (handle, journal):
            if opened >= 0:
                os.close(opened)
    sync_directory(target.parent)


def _begin(journal: int, partial: Path, origin: Origin, say: Callable[[str], None] | None) -> int:
    """How many bytes of the unfinished file are good; the journal speaks of this origin from here on."""
    first, *claims = _lines(journal)
    there = partial.exists()
    if there and not first:
        raise TilejitError(
            f"{str(partial)!r} is there, and no journal says what is in it\n"
            "  remove it, or choose another name"
        )
    done, why = _claimed(first, claims, partial, origin) if there else (0, "")
    if say and (done or why):
        say(why or f"{done} bytes were written before; going on from there")
    if not done:
        with suppress(FileNotFoundError):
            partial.unlink()  # before its journal: one without a journal is nobody's
        os.ftruncate(journal, 0)
        _append(journal, json.dumps(dict(origin), sort_keys=True) + "\n")
        sync_directory(partial.parent)
    else:
        _append(journal, f"\n{done}\n")  # behind a line that was cut off
    return done


def _claimed(first: str, claims: list[str], partial: Path, origin: Origin) -> tuple[int, str]:
    """The bytes that are good, and why there are none."""
    try:
        known = json.loads(first)
    except (ValueError, RecursionError):
        known = None
    if known != dict(origin):
        return 0, f"{_difference(known, origin)} {partial.name!r}; beginning anew"
    numbers = [int(line) for line in claims if line.isascii() and line.isdigit() and len(line) < 20]
    done = numbers[-1] if numbers else 0
    if done > partial.stat().st_size:
        return 0, f"{partial.name!r} is shorter than its journal says; beginning anew"
    return done, ""


def _difference(known: Any, origin: Origin) -> str:
    """Why what a journal speaks of is not this origin: what stands before the file's name."""
    if not isinstance(known, dict):
        return "the journal is damaged that speaks of"
    differ = next((key for key in origin if known.get(key) != origin[key]), "")
    reasons = {"tilejit": "another version of tilejit wrote", "output": "another layout was asked for in"}
    return reasons.get(differ, "the input has changed since")


def _lines(journal: int) -> list[str]:
    """The complete lines of the journal, the first of them "" where there is none."""
    os.lseek(journal, 0, os.SEEK_SET)
    raw = b""
    while len(raw) < MOST_JOURNAL_BYTES and (more := os.read(journal, 1 << 20)):
        raw += more
    return raw.decode("ascii", "replace").split("\n")[:-1] or [""]


def _append(journal: int, text: str) -> None:
    os.lseek(journal, 0, os.SEEK_END)
    os.write(journal, text.encode())
    os.fsync(journal)


def _open(path: Path) -> int:
    """An ordinary file to read and write, made if need be; a link is not followed."""
    names = ("O_NOFOLLOW", "O_CLOEXEC", "O_BINARY", "O_NONBLOCK")
    try:
        handle = os.open(path, os.O_RDWR | os.O_CREAT | sum(getattr(os, n, 0) for n in names), 0o666)
    except OSError:
        if not path.is_symlink():
            raise
    else:
        if stat.S_ISREG(os.fstat(handle).st_mode):
            return handle
        os.close(handle)
    raise TilejitError(f"{str(path)!r} is not a regular file\n  remove it, or choose another name")


def _lock(journal: int, notes: Path, path: str | os.PathLike[str]) -> None:
    """Keep other runs away until this one ends; systems without such locks are left alone."""
    try:
        import fcntl
    except ImportError:
        return
    with suppress(BlockingIOError):
        fcntl.flock(journal, fcntl.LOCK_EX | fcntl.LOCK_NB)
        if notes.exists() and os.path.samestat(os.fstat(journal), notes.stat()):
            return  # else another run has just ended and removed it
    raise TilejitError(f"another run is writing {os.fspath(path)!r}\n  wait for its end")
