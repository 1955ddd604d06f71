"""Writing files that can be interrupted and continued: OUT.partial and its journal.

The journal's first line describes the origin of the file; each further line counts the bytes written. A
number is written only after those bytes are on disk, so a journal never claims missing bytes.
"""

from __future__ import annotations

import hashlib
import json
import os
import stat
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager, nullcontext, suppress
from pathlib import Path
from typing import IO, Any, TypeAlias

from codegen import TilejitError, dataclass
from tilejit.files.whole_file import Around, mode_of, sync_directory

SYNC_BYTES = 64 << 20
"""Bytes between syncs to disk and journal entries: the most that a killed run loses."""
MOST_JOURNAL_BYTES = 16 << 20

Origin: TypeAlias = Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class Identity:
    """The identity of an input: its size, time and header digest."""

    size: int
    mtime_ns: int
    header: bytes


def identity_of(file: IO[bytes], header_bytes: int) -> Identity:
    """The identity of an open file, whose header has that many bytes."""
    status = os.fstat(file.fileno())
    file.seek(0)
    return Identity(status.st_size, status.st_mtime_ns, hashlib.sha256(file.read(header_bytes)).digest())


def origin_of(source: Identity, header: bytes, how: Iterable[Any]) -> Origin:
    """The origin of a file: the input, the output's header, and how the output is created."""
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
    """An unfinished file: earlier runs wrote `done` bytes of it, and `write` appends more."""

    def __init__(self, handle: int, journal: int, done: int) -> None:
        self.handle, self.journal, self.done = handle, journal, done
        self._written = self._noted = done

    def write(self, data: Any) -> int:
        """Append bytes, and return their number."""
        rest = memoryview(data).cast("B")
        while rest:
            count = os.write(self.handle, rest)
            rest = rest[count:]
            self._written += count
        if self._written - self._noted >= SYNC_BYTES:
            self.note()
        return len(memoryview(data).cast("B"))

    def note(self) -> None:
        """Sync written bytes to disk, then record them in the journal and sync it."""
        os.fsync(self.handle)
        if self._written > self._noted:
            _append(self.journal, f"{self._written}\n")
            self._noted = self._written


@contextmanager
def resuming(
    path: str | os.PathLike[str],
    origin: Origin,
    say: Callable[[str], None] | None = None,
    around: Around = nullcontext,
) -> Iterator[Unfinished]:
    """A file that replaces `path` when the block ends without an exception.

    >>> with resuming("model.safetensors", origin) as file:
    ...     file.write(data[file.done:])

    If the block or the process ends early, the bytes stay in OUT.partial, beside the journal
    OUT.partial.journal. The next run with the same origin continues there; any other run starts over. Errors
    in the data itself remove both.

    Raises:
        TilejitError: another run is writing the file, or OUT.partial has no journal.
        OSError: a file cannot be opened or written.
    """
    target = Path(os.path.realpath(path))
    mode = mode_of(target)
    partial, notes = (target.with_name(target.name + end) for end in (".partial", ".partial.journal"))
    journal = handle = -1
    try:
        journal = _open(notes)
        _lock(journal, notes, path)
        try:
            done = _begin(journal, partial, origin, say)
            handle = _open(partial)
        except (OSError, TilejitError):
            if not os.fstat(journal).st_size:
                notes.unlink()
            raise
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
        with around():
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
    """The number of valid bytes of the unfinished file; from here on, the journal describes this origin."""
    first, *claims = _lines(journal)
    exists = partial.exists()
    if exists and not first:
        raise TilejitError(f"{str(partial)!r} exists without a journal\n  remove it, or choose another name")
    done, why = _claimed(first, claims, partial, origin) if exists else (0, "")
    if say and (done or why):
        say(why or f"an earlier run wrote {done} bytes; continuing from there")
    if not done:
        with suppress(FileNotFoundError):
            partial.unlink()  # before its journal, because a journal alone is meaningless
        os.ftruncate(journal, 0)
        _append(journal, json.dumps(dict(origin), sort_keys=True) + "\n")
        sync_directory(partial.parent)
    else:
        _append(journal, f"\n{done}\n")  # after a line that was cut off
    return done


def _claimed(first: str, claims: list[str], partial: Path, origin: Origin) -> tuple[int, str]:
    """The number of valid bytes, and the reason if there are none."""
    try:
        known = json.loads(first)
    except (ValueError, RecursionError):
        known = None
    if known != dict(origin):
        return 0, f"{_difference(known, origin)} {partial.name!r}; starting over"
    numbers = [int(line) for line in claims if line.isascii() and line.isdigit() and len(line) < 20]
    done = numbers[-1] if numbers else 0
    if done > partial.stat().st_size:
        return 0, f"{partial.name!r} is shorter than its journal states; starting over"
    return done, ""


def _difference(known: Any, origin: Origin) -> str:
    """How a journal differs from this origin, as the words of the message before the file's name."""
    if not isinstance(known, dict):
        return "damaged journal of"
    differ = next((key for key in origin if known.get(key) != origin[key]), "")
    reasons = {"tilejit": "another version of tilejit wrote", "output": "another layout was requested for"}
    return reasons.get(differ, "the input has changed since")


def _lines(journal: int) -> list[str]:
    """The complete lines of the journal; the first one is "" if there is none."""
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
    """Open a regular file to read and write, creating it if needed; links are not followed."""
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
    """Exclude other runs until this one ends; does nothing on systems without such locks."""
    try:
        import fcntl
    except ImportError:
        return
    with suppress(BlockingIOError):
        fcntl.flock(journal, fcntl.LOCK_EX | fcntl.LOCK_NB)
        if notes.exists() and os.path.samestat(os.fstat(journal), notes.stat()):
            return  # otherwise another run has just ended and removed it
    raise TilejitError(f"another run is writing {os.fspath(path)!r}\n  wait until it ends")
