"""The records beside files that cannot hold a layout: that of a directory, and that of a single file."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path

from codegen import LayoutError, dataclass
from tilejit.files.packings import Packings
from tilejit.files.recorded import LAYOUTS_NAME, read_layouts, recorded_packings, recording
from tilejit.files.sidecar import lost_records, read_sidecar, replacing_sidecar, sidecar_of


@dataclass(frozen=True, slots=True)
class Known:
    """What the records beside a file say about it.

    Attributes:
        packings: the packings of the file; () for a plain array, or if there is no record.
        record: the path of the record that mentions the file; "" if none does.
        listed: whether a record mentions the file; None if its directory has no record either.
    """

    packings: Packings = ()
    record: str = ""
    listed: bool | None = None


def known_of(path: str | os.PathLike[str]) -> Known:
    """What the records beside a file say, and those beside the file that a link leads to.

    Raises:
        LayoutError: a record is damaged, or two records contradict each other.
        OSError: a record cannot be read.
    """
    found: dict[str, Packings] = {}
    for name in _names(path):
        packings = recorded_packings(name)
        if packings is not None:
            found[str(name.parent / LAYOUTS_NAME)] = packings
        if packings := read_sidecar(sidecar_of(name)):
            found[str(sidecar_of(name))] = packings
    if not found:
        return Known(listed=False if read_layouts(Path(path).parent) else None)
    (record, packings), *others = found.items()
    for other, differing in others:
        if [one.spec for one in differing] != [one.spec for one in packings]:
            raise LayoutError(
                f"{record!r} and {other!r} contradict each other about {str(path)!r}\n"
                "  remove the one that is wrong"
            )
    return Known(packings, record, listed=True)


@contextmanager
def updating_record(path: str | os.PathLike[str], packings: Packings) -> Iterator[None]:
    """Update the records beside a file while it is replaced.

    A .npy file in a directory with a record gets an entry there, and any other file a record of its own.

    Args:
        path: the file.
        packings: its new packings; () for a plain array.

    Raises:
        LayoutError: the record of the directory is damaged.
        OSError: a record cannot be written.
    """
    *links, target = _names(path)
    with ExitStack() as stack:
        for name in (*links, target):
            own = packings
            if name.suffix.lower() == ".npy" and (name.parent / LAYOUTS_NAME).exists():
                stack.enter_context(recording(name.parent, {name.name: packings}))
                own = ()
            if name == target or sidecar_of(name).exists():
                stack.enter_context(replacing_sidecar(sidecar_of(name), own))
        yield


@contextmanager
def dropping_sidecar(path: str | os.PathLike[str]) -> Iterator[None]:
    """Remove the record of a single file while it is replaced, because a directory's record describes it.

    Raises:
        OSError: the record cannot be removed.
    """
    with ExitStack() as stack:
        for name in _names(path):
            stack.enter_context(replacing_sidecar(sidecar_of(name), ()))
        yield


def check_records(path: str | os.PathLike[str]) -> None:
    """Raise if the records beside a file that will be replaced cannot be updated.

    Raises:
        LayoutError: the record of the directory is damaged.
        OSError: it cannot be read.
    """
    for name in _names(path):
        read_layouts(name.parent)


def suspected(path: str | os.PathLike[str], nbytes: int) -> str:
    """Why a file without a record may be a renamed packed file, and what to do; "" if nothing suggests it.

    Args:
        path: the file.
        nbytes: the bytes of its array.

    """
    target, lost = _names(path)[-1], {}
    with suppress(OSError):  # a directory that cannot be listed
        lost = lost_records(target.parent) if target.exists() else {}  # a pipe does not exist
    for record, packings in lost.items():
        if packings[-1].spec.size_in_bytes == nbytes:
            return (
                f"it may be packed in {packings[-1]}, because the record {record.name!r} beside it "
                f"lacks its file, which had the same size\n"
                f"  rename the record to {sidecar_of(target).name!r} too, or remove it"
            )
    return ""


def _names(path: str | os.PathLike[str]) -> list[Path]:
    """The path of a file, and last that of the file a link leads to."""
    return list(dict.fromkeys((Path(os.path.abspath(path)), Path(os.path.realpath(path)))))
