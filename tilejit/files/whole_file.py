"""Regular files: opened without blocking, and replaced atomically."""

from __future__ import annotations

import os
import secrets
import stat
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext, suppress
from pathlib import Path
from typing import IO, TypeAlias

from codegen import LayoutError, TilejitError

CHUNK_BYTES = 8 << 20
"""Bytes to write at a time, so that progress bars advance and Ctrl-C is handled."""

Around: TypeAlias = Callable[[], AbstractContextManager[None]]
"""Creates the context in which a complete file takes its name."""


def open_ordinary(path: str | os.PathLike[str]) -> IO[bytes]:
    """Open a regular file for reading. Pipes and devices are rejected immediately, while `open` would block.

    Raises:
        LayoutError: the path is not a regular file.
        OSError: the file cannot be opened.
    """
    flags = (getattr(os, name, 0) for name in ("O_NONBLOCK", "O_CLOEXEC", "O_BINARY"))
    handle = os.open(path, os.O_RDONLY | sum(flags))
    if stat.S_ISREG(os.fstat(handle).st_mode):
        return os.fdopen(handle, "rb")
    os.close(handle)
    raise LayoutError(f"{str(path)!r} is not a regular file\n  copy its contents to a file first")


@contextmanager
def replacing(
    path: str | os.PathLike[str], *, clobber: bool = True, around: Around = nullcontext
) -> Iterator[IO[bytes]]:
    """A file to write that replaces `path` when the block ends without an exception.

    >>> with replacing("model.safetensors") as file:
    ...     file.write(data)

    The bytes are on disk before the rename, so `path` always has either its old or its complete new contents.
    Any exception, including KeyboardInterrupt, removes the unfinished file. On systems with anonymous files,
    the end of the process does as well. A link is followed, and the mode of an existing file is kept.

    Args:
        path: the file to replace.
        clobber: False keeps an existing file, even one that was created in the meantime.
        around: the context in which the complete file takes its name.

    Raises:
        TilejitError: `path` exists, and is not a regular file or `clobber` is False.
        OSError: the file cannot be written.
    """
    if not clobber:
        refuse_to_clobber(path)
    target = Path(os.path.realpath(path))
    mode = mode_of(target)
    temporary = target.with_name(f".tilejit-{secrets.token_hex(8)}.tmp")
    try:
        anonymous = _open_anonymous(target.parent)
        with anonymous or open(temporary, "xb") as file:
            if mode is not None:
                os.chmod(temporary if anonymous is None else file.fileno(), mode)
            yield file
            file.flush()
            os.fsync(file.fileno())
            if anonymous is not None:
                _name(file, temporary)
        with around():
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
    """Raise if the path exists, even as a link to a missing file.

    Raises:
        TilejitError: the path exists.
    """
    if os.path.lexists(path) or os.path.lexists(os.path.realpath(path)):
        raise TilejitError(
            f"{os.fspath(path)!r} exists and is kept, because of --no-clobber\n  choose another name"
        )


def would_replace(target: str | os.PathLike[str], path: str | os.PathLike[str]) -> bool:
    """Whether writing `target` would replace the file `path`, through whatever names and links."""
    try:
        # The resolved target is the one that is replaced, even if `..` follows a missing directory.
        return os.path.samefile(path, os.path.realpath(target))
    except OSError:  # one of them does not exist
        return False


def _place(temporary: Path, target: Path, path: str | os.PathLike[str]) -> None:
    """Give a finished file its name, unless another file took the name in the meantime."""
    try:
        os.link(temporary, target)
    except FileExistsError:
        refuse_to_clobber(path)
        raise
    except OSError:  # without hard links, checking and replacing cannot be one atomic step
        refuse_to_clobber(path)
        os.replace(temporary, target)
    else:
        temporary.unlink()


def _open_anonymous(directory: Path) -> IO[bytes] | None:
    """An anonymous file on a directory's disk, which disappears with the process; None if not supported.

    A directory that cannot be written to gives None as well, so that `open` reports the error.
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
    os.close(handle)  # without /proc, the file cannot be given a name
    return None


def _name(file: IO[bytes], path: Path) -> None:
    """Give an open anonymous file a name."""
    directory = os.open(path.parent, os.O_RDONLY)
    try:
        # With a directory handle, Python calls linkat, which follows /proc's link to the file.
        os.link(_by_handle(file.fileno()), path.name, dst_dir_fd=directory, follow_symlinks=True)
    finally:
        os.close(directory)


def _by_handle(handle: int) -> str:
    return f"/proc/self/fd/{handle}"


def mode_of(target: Path) -> int | None:
    """The permission bits of the file to replace, or None if there is none."""
    try:
        status = target.stat()
    except FileNotFoundError:
        return None
    if not stat.S_ISREG(status.st_mode):
        raise TilejitError(f"{str(target)!r} is not a regular file\n  choose another name")
    return stat.S_IMODE(status.st_mode)


def identity_of_path(path: Path) -> tuple[int, int, int] | None:
    """A file's inode, size and time, which change when it is replaced; None if it does not exist."""
    try:
        status = path.stat()
    except OSError:
        return None
    return status.st_ino, status.st_size, status.st_mtime_ns


def sync_directory(directory: Path) -> None:
    """Make the rename durable; does nothing on file systems and platforms without support."""
    with suppress(OSError):
        handle = os.open(directory, os.O_RDONLY)
        try:
            os.fsync(handle)
        finally:
            os.close(handle)
