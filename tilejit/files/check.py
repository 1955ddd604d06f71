"""Check a file against what it records: metadata, sizes, dtypes and padding."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from pathlib import Path

from codegen import LayoutError, TilejitError, dataclass
from tilejit.files.file_types import open_recorded
from tilejit.files.padding import Padding, checked_padding
from tilejit.files.provenance import known_of
from tilejit.files.recorded import LAYOUTS_NAME
from tilejit.files.tensor_file import Entry, TensorFile
from tilejit.files.windows import FileTiles, UnpackedBytes
from tilejit.layout.as_layout import as_layout
from tilejit.layout.cute_shape import Spec
from tilejit.layout.indexing import shape_name
from tilejit.layout.text.pattern_text import spelled_out

Advance = Callable[[int], None]


@dataclass(frozen=True, slots=True)
class Problem:
    """Something in a file that differs from its record.

    Attributes:
        text: the description, and on the following lines how to fix it.
        tensor: the name of the tensor; "" for the file.
        spec: the layout whose padding differs; None for other problems.
        padding: how the padding differs; None for other problems.
        byte: the offset in the file of the first padding slot that differs; -1 for other problems, and for
            a buffer that was packed again.
    """

    text: str
    tensor: str = ""
    spec: Spec | None = None
    padding: Padding | None = None
    byte: int = -1


@dataclass(frozen=True, slots=True)
class Checked:
    """A file, and what is wrong with it.

    Attributes:
        path: the path of the file or directory.
        tensors: the number of its tensors.
        packed: the number of those that are packed.
        padding_slots: the slots of their buffers that hold no element.
        problems: what differs; empty if all is right.
    """

    path: str
    tensors: int = 0
    packed: int = 0
    padding_slots: int = 0
    problems: tuple[Problem, ...] = ()


def check_file(
    path: str | os.PathLike[str], *, threads: int | None = None, advance: Advance | None = None
) -> Checked:
    """Check a file against what its metadata, or the record beside it, says about its layouts.

    >>> np.save("x.npy", np.ones((1000, 300), np.float32))
    >>> plan_file_pack("x.npy", "{1,0:T(8,128)}").write("x.tpu.npy")
    >>> checked = check_file("x.tpu.npy")
    >>> checked.packed, checked.padding_slots, checked.problems
    (1, 84000, ())

    Args:
        path: the path of a .npy or .safetensors file, or of raw bytes with a record.
        threads: the number of threads; None chooses it from the size.
        advance: called with the number of bytes after each part of the file.

    Returns:
        The numbers of tensors and padding slots, and what is wrong: damaged metadata, other sizes or dtypes,
        tensors that are missing, layouts that are unknown or resolve to another shape than recorded, and
        padding with other values than recorded.

    Raises:
        OSError: the file cannot be read.
    """
    name = str(path)
    try:
        file = open_recorded(Path(path))
    except TilejitError as error:
        return Checked(name, problems=(Problem(str(error).removeprefix(f"{name!r}: ")),))
    unlisted = [*_unlisted(Path(path))]
    problems = [*unlisted, *_lost_tensors(file)]
    packed = slots = 0
    for entry in file.entries:
        if not file.is_packed(entry):
            problems += [] if unlisted else _suspicious(file, entry)
            if advance:
                advance(entry.nbytes)
            continue
        packed += 1
        try:
            for tiles in _layers(file, entry):
                found = checked_padding(tiles, threads, advance)
                slots += found.slots
                problems += _wrong_padding(file, entry, tiles, found)
            problems += _wrong_layouts(file, entry)
        except LayoutError as error:
            problems.append(Problem(str(error), _name(file, entry)))
    return Checked(name, len(file.entries), packed, slots, tuple(problems))


def _unlisted(path: Path) -> Iterator[Problem]:
    """The problem of a .npy file that the record of its directory does not mention."""
    if path.suffix.lower() == ".npy" and known_of(path).listed is False:
        yield Problem(
            f"{LAYOUTS_NAME} beside it does not list it\n"
            f'  list a plain array there, as "{path.name}": null; unpack a packed one with --shape'
        )


def _lost_tensors(file: TensorFile) -> Iterator[Problem]:
    for name in file.missing():
        yield Problem("the metadata describes this packed tensor, but the file lacks it\n  restore it", name)


def _suspicious(file: TensorFile, entry: Entry) -> Iterator[Problem]:
    """The problem of an array that may be packed, although no record says so."""
    if why := file.suspected(entry):
        yield Problem(why, _name(file, entry))


def _wrong_layouts(file: TensorFile, entry: Entry) -> Iterator[Problem]:
    """The problems of records whose layout, as it was requested, does not resolve to the recorded shape."""
    for packing in file.packings(entry):
        spec = packing.spec
        if packing.layout in ("", str(spec)):  # the caller gave the shape
            continue
        try:
            given = {k: tuple(v) if isinstance(v, list) else v for k, v in packing.parameters.items()}
            found = as_layout(spelled_out(packing.layout), dtype=spec.element, dims=spec.dimensions, **given)
        except (LayoutError, TypeError) as error:
            yield Problem(
                f"the recorded layout is not verified: {str(error).splitlines()[0]}\n"
                "  install the package that defines the format, or pack the source again",
                _name(file, entry),
            )
            continue
        if found != spec:
            yield Problem(
                f"the record contradicts itself: {packing} is {shape_name(found)}, but its shape is "
                f"{shape_name(spec)}\n  pack the source again",
                _name(file, entry),
            )


def _layers(file: TensorFile, entry: Entry) -> Iterator[FileTiles]:
    """A packed tensor in its layout, and then in those of the packings before.

    Raises:
        LayoutError: the tensor does not match its record.
    """
    tiles = file.tiled(entry)
    yield tiles
    for packing in reversed(file.packings(entry)[:-1]):
        tiles = FileTiles(UnpackedBytes(tiles), packing.spec)
        yield tiles


def _wrong_padding(file: TensorFile, entry: Entry, tiles: FileTiles, found: Padding) -> Iterator[Problem]:
    if not found.differing:
        return
    spec = tiles.layout
    byte, where = -1, f"slot {found.first}"
    if isinstance(tiles.data, UnpackedBytes):
        where += " of the buffer that was packed again"
    else:
        byte = tiles.data.begin + found.first * spec.bits // 8
        where += f", byte {byte} of the file"
    value = 0 if spec.padding_value is None else spec.padding_value
    yield Problem(
        f"{found.differing} of {found.slots} padding slots are not {value}; the first is {where}\n"
        "  another program wrote to the buffer, or the file is damaged: pack its source again",
        _name(file, entry),
        spec,
        found,
        byte,
    )


def _name(file: TensorFile, entry: Entry) -> str:
    return "" if file.one_array else entry.name
