"""Ordinary files: opened without waiting, written whole or not at all."""

from __future__ import annotations

import os
import secrets
import stat
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import IO

from codegen import LayoutError, TilejitError

CHUNK_BYTES = 8 << 20
"""What is written at one time, so that a progress bar moves and Ctrl-C is heard."""


def open_ordinary(path: str | os.PathLike[str]) -> IO[bytes]:
    """Open a file to read; a pipe or a device is refused at once, where `open` would wait for its other end.

    Raises:
        LayoutError: it is not a regular file.
        OSError: it cannot be opened.
    """
    flags = (getattr(os, name, 0) for name in ("O_NONBLOCK", "O_CLOEXEC", "O_BINARY"))
    handle = os.open(path, os.O_RDONLY | sum(flags))
    if stat.S_ISREG(os.fstat(handle).st_mode):
        return os.fdopen(handle, "rb")
    os.close(handle)
    raise LayoutError(f"{str(path)!r} is not a regular file\n  copy its contents to a file first")


@contextmanager
def replacing(path: str | os.PathLike[str], *, clobber: bool = True) -> Iterator[IO[bytes]]:
    """A file to write that takes the place of `path` when the block ends without an exception.

    >>> with replacing("model.safetensors") as file:
    ...     file.write(data)

    The bytes are on disk before the rename, so whatever happens `path` holds what it held or all of the new
    content. Any exception, KeyboardInterrupt too, removes the unfinished file; where the system has files
    without a name, so does the end of the process. A link is followed; the mode of an existing file is kept.

    clobber: without it, a file that is there by then is kept.

    Raises:
        TilejitError: `path` is there and no ordinary file, or is there without `clobber`.
        OSError: the directory or the disk refuses.
    """
    if not clobber:
        refuse_to_clobber(path)
    target = Path(os.path.realpath(path))
    mode = mode_of(target)
    temporary = target.with_name(f".tilejit-{secrets.token_hex(8)}.tmp")
    try:
        nameless = _open_nameless(target.parent)
        with nameless or open(temporary, "xb") as file:
            if mode is not None:
                os.chmod(temporary if nameless is None else file.fileno(), mode)
            yield file
            file.flush()
            os.fsync(file.fileno())
            if nameless is not None:
                _name(file, temporary)
        if clobber:
            os.replace(temporary, target)
        else:
            _place(temporary, target, path)
    except BaseException as error:
        with suppress(OSError):
            temporary.unlink()
        if isinstance(error, OSError) and error.errno and error.filename in (None, str(temporary)):
            raise OSError(error.errno, error.strerror, os.fspath(path)) from error
        raise
    sync_directory(target.parent)


def refuse_to_clobber(path: str | os.PathLike[str]) -> None:
    """Refuse a path that is there, even as a link that leads nowhere.

    Raises:
        TilejitError: names it.
    """
    if os.path.lexists(path):
        raise TilejitError(
            f"{os.fspath(path)!r} exists and is kept, because of --no-clobber\n  choose another name"
        )


def _place(temporary: Path, target: Path, path: str | os.PathLike[str]) -> None:
    """Give a finished file its name, unless another file has taken it meanwhile."""
    try:
        os.link(temporary, target)
    except FileExistsError:
        refuse_to_clobber(path)
        raise
    except OSError:  # a file system without hard links: the time between the two steps is all that can be had
        refuse_to_clobber(path)
        os.replace(temporary, target)
    else:
        temporary.unlink()


def _open_nameless(directory: Path) -> IO[bytes] | None:
    """A file without a name on a directory's disk, gone with the process; None where the system has none.

    Of directories that cannot be written to, `open` says why.
    """
    flags = getattr(os, "O_TMPFILE", 0)
    if not flags:
        return None
    try:
        handle = os.open(directory, flags | os.O_WRONLY | os.O_CLOEXEC, 0o666)
    except OSError:
        return None
    if os.path.exists(_by_handle(handle)):
        return os.fdopen(handle, "wb")
    os.close(handle)  # without /proc it could never be given a name
    return None


def _name(file: IO[bytes], path: Path) -> None:
    """Give an open file its first name."""
    directory = os.open(path.parent, os.O_RDONLY)
    try:
        # With the handle of a directory Python asks for linkat, which follows /proc's link to the file.
        os.link(_by_handle(file.fileno()), path.name, dst_dir_fd=directory, follow_symlinks=True)
    finally:
        os.close(directory)


def _by_handle(handle: int) -> str:
    return f"/proc/self/fd/{handle}"


def mode_of(target: Path) -> int | None:
    """The permission bits of the file that is replaced, or None where there is none."""
    try:
        status = target.stat()
    except FileNotFoundError:
        return None
    if not stat.S_ISREG(status.st_mode):
        raise TilejitError(f"{str(target)!r} is not a regular file, so it is not overwritten")
    return stat.S_IMODE(status.st_mode)


def sync_directory(directory: Path) -> None:
    """Make the rename last; file systems and platforms that cannot are left alone."""
    with suppress(OSError):
        handle = os.open(directory, os.O_RDONLY)
        try:
            os.fsync(handle)
        finally:
            os.close(handle)
