"""Ordinary files: opened without waiting, written whole or not at all."""

from __future__ import annotations

import os
import secrets
import stat
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import IO

from codegen.errors import LayoutError, TilejitError


def open_ordinary(path: str | os.PathLike[str]) -> IO[bytes]:
    """Open a file to read; a pipe or a device is refused at once, where `open` would wait for its other end.

    Raises:
        LayoutError: it is no ordinary file.
        OSError: it cannot be opened.
    """
    flags = (getattr(os, name, 0) for name in ("O_NONBLOCK", "O_CLOEXEC", "O_BINARY"))
    handle = os.open(path, os.O_RDONLY | sum(flags))
    if stat.S_ISREG(os.fstat(handle).st_mode):
        return os.fdopen(handle, "rb")
    os.close(handle)
    raise LayoutError(f"{str(path)!r} is no ordinary file\n  copy what it gives to a file first")


@contextmanager
def replacing(path: str | os.PathLike[str]) -> Iterator[IO[bytes]]:
    """A file to write that takes the place of `path` when the block ends without an exception.

    >>> with replacing("model.safetensors") as file:
    ...     file.write(data)

    The bytes are on disk before the rename, so whatever happens `path` holds what it held or all of the new
    content. Any exception, KeyboardInterrupt too, removes the unfinished file. A link is followed; the
    mode of an existing file is kept.

    Raises:
        TilejitError: `path` is there and no ordinary file.
        OSError: the directory or the disk refuses.
    """
    target = Path(os.path.realpath(path))
    mode = _mode_of(target)
    temporary = target.with_name(f".tilejit-{secrets.token_hex(8)}.tmp")
    try:
        with open(temporary, "xb") as file:
            if mode is not None:
                os.chmod(temporary, mode)
            yield file
            file.flush()
            os.fsync(file.fileno())
        os.replace(temporary, target)
    except BaseException as error:
        with suppress(OSError):
            temporary.unlink()
        if isinstance(error, OSError) and error.filename == str(temporary):
            raise OSError(error.errno, error.strerror, os.fspath(path)) from error
        raise
    _sync_directory(target.parent)


def _mode_of(target: Path) -> int | None:
    """The permission bits of the file that is replaced, or None where there is none."""
    try:
        status = target.stat()
    except FileNotFoundError:
        return None
    if not stat.S_ISREG(status.st_mode):
        raise TilejitError(f"{str(target)!r} is no ordinary file, so nothing is written over it")
    return stat.S_IMODE(status.st_mode)


def _sync_directory(directory: Path) -> None:
    """Make the rename last; file systems and platforms that cannot are left alone."""
    with suppress(OSError):
        handle = os.open(directory, os.O_RDONLY)
        try:
            os.fsync(handle)
        finally:
            os.close(handle)
