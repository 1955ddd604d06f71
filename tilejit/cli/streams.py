"""`-` as a file name: standard input and output."""

from __future__ import annotations

import errno
import os
import shutil
import stat
import sys
import tempfile
from contextlib import suppress
from pathlib import Path
from typing import IO, Any, TypeAlias

from codegen import TilejitError, dataclass
from tilejit.cli.errors import misused
from tilejit.cli.output import is_terminal

DASH = Path("-")
NPY_MAGIC = b"\x93NUMPY"
MOST_TEXT = 1 << 20
"""The maximum size of text on standard input, in bytes."""


@dataclass(frozen=True, slots=True)
class StandardInput:
    """A regular file with the contents of standard input. Messages call it "standard input"."""

    path: str
    suffix: str
    file: IO[bytes] | None = None
    """The temporary copy at `path`, which is deleted together with this object; None if there is no copy."""
    name: str = "-"
    stem: str = "-"

    def __fspath__(self) -> str:
        """The path to open."""
        return self.path

    def __str__(self) -> str:
        return "standard input"

    def is_dir(self) -> bool:
        """Always False."""
        return False


@dataclass(frozen=True, slots=True)
class StandardOutput:
    """Standard output as an output file."""

    suffix: str
    name: str = "standard output"

    def __str__(self) -> str:
        return self.name

    def write(self, data: Any) -> int:
        """Write bytes and return their number.

        Raises:
            OSError: the disk is full, or standard output is closed or does not accept more data.
        """
        rest = memoryview(data).cast("B")
        size = len(rest)
        # With PYTHONUNBUFFERED, a write may be partial and does not report a full disk.
        while rest:
            taken = sys.stdout.buffer.write(rest)
            if taken is None:
                raise BlockingIOError(errno.EAGAIN, os.strerror(errno.EAGAIN), self.name)
            rest = rest[taken:]
        return size


Source: TypeAlias = Path | StandardInput
Target: TypeAlias = Path | StandardOutput


def ends(
    source: Path, target: Path, *, dry_run: bool, resume: bool, raw: bool, may_be_raw: bool
) -> tuple[Source, Target]:
    """The files to read and write. `-` stands for standard input or output.

    Args:
        source: the argument IN.
        target: the argument OUT.
        dry_run: whether nothing will be written.
        resume: whether to continue an unfinished file.
        raw: whether standard input and output are raw bytes.
        may_be_raw: whether standard input is raw bytes if it is neither a .npy nor a .safetensors file.

    Raises:
        UsageError: a stream does not support the request.
        TilejitError: standard input or output is a terminal or closed.
        OSError: standard input cannot be copied to a temporary file.
    """
    through = DASH in (source, target)
    if through and resume:
        raise misused("--resume is for files: a stream cannot be resumed\npass names for IN and OUT")
    if target == DASH:
        if source.is_dir():
            raise misused("IN is a directory, which standard output cannot hold\npass a directory for OUT")
        if not dry_run:
            _check_output()
    came: Source = standard_input(raw=raw, may_be_raw=may_be_raw) if source == DASH else source
    if target != DASH:
        return came, target
    with_tensors = not raw and came.suffix.lower() == ".safetensors"
    return came, StandardOutput(".safetensors" if with_tensors else "" if raw else ".npy")


def standard_input(*, raw: bool, may_be_raw: bool) -> StandardInput:
    """Standard input as a regular file. A pipe is copied to a temporary file.

    The temporary file is deleted when the process ends.

    Raises:
        TilejitError: standard input is a terminal or closed, or its contents are not a supported file.
        OSError: standard input cannot be copied to a temporary file.
    """
    stream = _checked_input()
    path, kept = _own_path(stream), None
    if path is None:
        kept, path = _copied(stream)
    with open(path, "rb") as file:
        head, size = file.read(9), os.fstat(file.fileno()).st_size
    if head.startswith(NPY_MAGIC):
        return StandardInput(path, ".npy", kept)
    is_header = head[8:] == b"{" and int.from_bytes(head[:8], "little") <= size - 8
    if raw or (may_be_raw and not is_header):
        return StandardInput(path, "", kept)
    if head[8:] != b"{":
        found = "neither a .npy nor a .safetensors file" if head else "empty"
        raise TilejitError(
            f"standard input is {found}\n"
            "  write the whole file into it, as `cat FILE |` does; if it is raw bytes, pass --shape"
        )
    return StandardInput(path, ".safetensors", kept)


def text_or_input(text: str) -> str:
    """The given text, or the text on standard input if it is `-`.

    Raises:
        TilejitError: standard input is a terminal or closed, or is too long.
    """
    return input_text().strip() if text == "-" else text


def input_text() -> str:
    """The text on standard input.

    Raises:
        TilejitError: standard input is a terminal or closed, or is too long.
    """
    found = _checked_input().read(MOST_TEXT + 1)
    if len(found) > MOST_TEXT:
        raise TilejitError(
            f"standard input is longer than {MOST_TEXT} bytes; expected the text of a layout or of loops"
        )
    return found.decode(errors="replace")


def _checked_input() -> IO[bytes]:
    if sys.stdin is None or sys.stdin.closed:
        raise TilejitError("standard input is closed: pipe something into it, or pass a file")
    if is_terminal(sys.stdin):
        raise TilejitError("standard input is a terminal: pipe something into it, or pass a file")
    return sys.stdin.buffer


def _check_output() -> None:
    if not sys.stdout:
        raise TilejitError("standard output is closed: redirect it to a file or a pipe")
    if is_terminal(sys.stdout):
        raise TilejitError(
            "standard output is a terminal, which cannot show binary data: redirect it to a file or a pipe"
        )


def _own_path(stream: IO[bytes]) -> str | None:
    """A path to standard input if it is a regular file and nothing has been read from it yet; else None."""
    with suppress(OSError, ValueError):
        handle = stream.fileno()
        path = f"/proc/self/fd/{handle}"
        if stat.S_ISREG(os.fstat(handle).st_mode) and not stream.tell() and os.access(path, os.R_OK):
            return path
    return None


def _copied(stream: IO[bytes]) -> tuple[IO[bytes], str]:
    """A temporary file with the contents of a stream, and its path. The file is deleted when it is closed."""
    try:
        # The file stays open until the process ends, because it is mapped into memory.
        kept: Any = tempfile.TemporaryFile(prefix=".tilejit-", suffix=".tmp")  # noqa: SIM115
        path = f"/proc/self/fd/{kept.fileno()}"
        if not os.path.exists(path):
            kept.close()
            kept = tempfile.NamedTemporaryFile(prefix=".tilejit-", suffix=".tmp")  # noqa: SIM115
            path = kept.name
        shutil.copyfileobj(stream, kept, 1 << 20)
        kept.flush()
    except OSError as error:
        raise OSError(error.errno, error.strerror, tempfile.gettempdir()) from error
    return kept, path
