"""Files written tensor by tensor, in byte order: atomically, and resumable on request."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager, nullcontext
from typing import IO, Any, Protocol, TypeAlias

import numpy as np

from codegen import LayoutError, dataclass
from tilejit.arrays.memory import Array
from tilejit.files.pieces import Pieces
from tilejit.files.resume import Origin, resuming
from tilejit.files.whole_file import CHUNK_BYTES, Around, replacing
from tilejit.files.windows import FileBytes

COPIED_BYTES = 32 << 20
"""Bytes of a file to map at once for an unchanged copy."""

Advance: TypeAlias = Callable[[int], None]
Say: TypeAlias = Callable[[str], None]


class Sink(Protocol):
    """A target that takes bytes as they are created, such as standard output."""

    def write(self, data: Any, /) -> int:
        """Write bytes, and return their number."""


Target: TypeAlias = str | os.PathLike[str] | Sink


class Parted(Protocol):
    """Bytes that are created piece by piece."""

    @property
    def nbytes(self) -> int:
        """The total number of bytes."""

    def after(self, done: int) -> Iterator[Array]:
        """The bytes from an offset on."""


Made: TypeAlias = Array | Parted


@dataclass(frozen=True, slots=True)
class Output:
    """One tensor to write.

    Attributes:
        name: the tensor's name.
        dtype: its dtype, by the format's name.
        shape: its dimensions in elements.
        nbytes: its size in bytes.
        make: creates the bytes when the tensor is written; they are released afterwards.
    """

    name: str
    dtype: Any
    shape: tuple[int, ...]
    nbytes: int
    make: Callable[[], Made]


@dataclass(frozen=True, slots=True)
class Mapped:
    """Bytes of a file to copy unchanged."""

    data: FileBytes

    @property
    def nbytes(self) -> int:
        """The total number of bytes."""
        return self.data.nbytes

    def after(self, done: int) -> Iterator[Array]:
        """The bytes from an offset on."""
        for at in range(done, self.nbytes, COPIED_BYTES):
            yield self.data.map(at, min(at + COPIED_BYTES, self.nbytes))


@dataclass(frozen=True, slots=True)
class Named:
    """Pieces whose errors name the tensor; `finish` is called after the last one."""

    pieces: Pieces
    named: Callable[[Exception], LayoutError]
    finish: Callable[[], None] | None = None

    @property
    def nbytes(self) -> int:
        """The total number of bytes."""
        return self.pieces.nbytes

    def after(self, done: int) -> Iterator[Array]:
        """The bytes from an offset on.

        Raises:
            LayoutError: a value does not fit the packed dtype.
        """
        try:
            yield from self.pieces.after(done)
        except (LayoutError, TypeError) as error:
            raise self.named(error) from error
        if self.finish is not None:
            self.finish()


def write_outputs(
    path: Target,
    header: bytes,
    outputs: Iterable[Output],
    advance: Advance | None = None,
    *,
    origin: Origin | None = None,
    say: Say | None = None,
    skip: Say | None = None,
    clobber: bool = True,
    around: Around = nullcontext,
) -> None:
    """Write the header and then each tensor to a temporary file that replaces `path`, or directly to a sink.

    Args:
        path: a file, or a sink such as standard output.
        header: the bytes before the tensors.
        outputs: the tensors, in file order.
        advance: called with the number of bytes after each write.
        origin: describes the input. If given, an interrupted run keeps the bytes that it wrote, and the next
            run with the same origin continues there.
        say: called with a message when a run continues or starts over.
        skip: called with the name of each tensor that an earlier run wrote completely.
        clobber: whether to replace an existing file.
        around: the context in which a complete file takes its name.

    Raises:
        LayoutError: a value does not fit the packed dtype; the message names its tensor.
        TilejitError: another run is writing `path`, or it is not a regular file, or it exists and `clobber`
            is False.
        OSError: the file cannot be written.
    """
    with _opened(path, origin, say, clobber, around) as (done, write):
        if done < len(header):
            write(header[done:])
        at = len(header)
        for output in outputs:
            skipped = min(max(0, done - at), output.nbytes)
            at += output.nbytes
            if advance and skipped:
                advance(skipped)
            if skip and 0 < done >= at:
                skip(output.name)
            if skipped == output.nbytes:
                continue
            for data in _from(output, skipped):
                for start in range(0, data.nbytes, CHUNK_BYTES):
                    written = write(data[start : start + CHUNK_BYTES].data)
                    if advance:
                        advance(written)
                del data  # two at once would need twice the memory


@contextmanager
def _opened(
    path: Target, origin: Origin | None, say: Say | None, clobber: bool, around: Around
) -> Iterator[tuple[int, Callable[[Any], int]]]:
    """The number of bytes that earlier runs wrote, and a function that writes more."""
    if not isinstance(path, str | os.PathLike):
        yield 0, path.write
        return
    if origin is None:
        file: IO[bytes]
        with replacing(path, clobber=clobber, around=around) as file:
            yield 0, file.write
        return
    with resuming(path, origin, say, around) as unfinished:
        yield unfinished.done, unfinished.write


def _from(output: Output, done: int) -> Iterator[Array]:
    made = output.make()
    if made.nbytes != output.nbytes:
        raise AssertionError(f"{output.name}: expected {output.nbytes} bytes, got {made.nbytes}")
    if not isinstance(made, np.ndarray):
        yield from made.after(done)
        return
    yield made.reshape(-1).view(np.uint8)[done:]
