"""`tilejit identify`: the formats of packed tensors, beside the originals or from the bytes alone."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, NamedTuple

import typer

from tilejit.cli import completion
from tilejit.cli.errors import arguments_checked, misused
from tilejit.cli.file_report import printable, some
from tilejit.cli.output import console, print_json, print_lines
from tilejit.cli.parameters import read_dims

if TYPE_CHECKING:
    from tilejit.files.packings import Packings
    from tilejit.files.tensor_file import Entry, TensorFile
    from tilejit.recognize.formats.identification import Identification

TYPES = (".npy", ".safetensors")
"""Extensions of files that are not raw bytes."""
File = Annotated[
    Path,
    typer.Argument(
        metavar="FILE",
        help="A .safetensors or .npy file of packed tensors, or the raw bytes of one with another extension.",
        exists=True,
    ),
]


def identify(
    file: File,
    against: Annotated[
        Path | None,
        typer.Option(
            "--against",
            metavar="FILE",
            help="The original tensors, under the same names; a file with one tensor fits any name.",
            exists=True,
        ),
    ] = None,
    dims: Annotated[
        str | None,
        typer.Option("--dims", metavar="D,D,...", help="Without --against: the dimensions of the array."),
    ] = None,
    dtype: Annotated[
        str | None,
        typer.Option(
            "--dtype", metavar="T", help="Without --against: its dtype.", autocompletion=completion.dtypes
        ),
    ] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON.")] = False,
) -> None:
    """Recognize the formats of packed tensors.

    With --against, each tensor is compared with its original in every format of the catalog: applied once and
    twice, transposed, with halves swapped or rows interleaved, and with nibbles or bytes in the other order.
    Without, sizes, padding and scales decide, and the answer is a guess. A layout that the file records comes
    first, and with --against, whether the tensor unpacks to its original.
    """
    if against is not None and (dims or dtype):
        raise misused("--against names files that know their dtypes and dimensions\nomit --dims and --dtype")
    found = _identified(file, against, dims, dtype)
    if as_json:
        print_json([{"tensor": name, **_facts(*answer)} for name, answer in found.items()])
        return
    for name, (answer, record) in found.items():
        if record is not None:
            print_lines(console(), f"{printable(name)}: {printable(str(record))}")
        if record is None or answer.matches:
            print_lines(console(), f"{printable(name)}: {answer}")


def _identified(
    path: Path, against: Path | None, dims: str | None, dtype: str | None
) -> dict[str, tuple[Identification, RecordedLayout | None]]:
    """The answer for each tensor of a file, or of one that has an original; and what the file records."""
    from tilejit.recognize.formats.identify import identify as identified

    packed, records = _buffers(path), _recorded(path)
    if against is None:
        with arguments_checked():
            sizes = None if dims is None else read_dims(dims)
            return {
                name: (identified(data, dtype=dtype, dims=sizes), RecordedLayout.of(records[name]))
                for name, data in packed.items()
            }
    originals = _arrays(against)
    pairs = {name: name for name in packed if name in originals}
    if not pairs and len(packed) == len(originals) == 1:
        pairs = {next(iter(packed)): next(iter(originals))}
    if not pairs:
        have, want = (some([*names]) for names in (packed, originals))
        raise misused(
            f"no tensor of {path.name} has an original in {against.name}: {have}; {want}\n"
            "pass files whose tensors have the same names, or files of one tensor each"
        )
    found = {}
    for name, other in pairs.items():
        data, original = packed[name], originals[other]()
        found[name] = identified(data, original), RecordedLayout.of(records[name], data, original)
    return found


class RecordedLayout(NamedTuple):
    """What a file records about a tensor.

    Attributes:
        text: the layouts, the first packing first.
        is_original: whether the tensor unpacks to its original; None without one.
    """

    text: str
    is_original: bool | None

    @classmethod
    def of(cls, packings: Packings, data: Any = None, original: Any = None) -> RecordedLayout | None:
        """The record of a tensor and, with its original, the comparison; None if it has no record."""
        from tilejit.layout.indexing import shape_name

        if not packings:
            return None
        text = ", then ".join(f"{one}, {shape_name(one.spec)}" for one in packings)
        return cls(text, None if original is None else _unpacks_to(packings, data, original))

    def __str__(self) -> str:
        states = {
            None: "",
            True: "; it unpacks to the original",
            False: "; it does not unpack to the original",
        }
        return f"recorded: {self.text}{states[self.is_original]}"


def _unpacks_to(packings: Packings, data: Any, original: Any) -> bool:
    """Whether a buffer holds an array in the recorded layouts."""
    import numpy as np

    from tilejit.files.packings import unpacked

    found = unpacked(packings, data)
    if found is None or found.shape != original.shape:
        return False
    if found.dtype != original.dtype:
        return bool((found == original).all())
    got, wanted = (np.ascontiguousarray(x).reshape(-1).view(np.uint8) for x in (found, original))
    return np.array_equal(got, wanted)


def _recorded(path: Path) -> dict[str, Packings]:
    """What the metadata of a file, or a record beside it, says about each tensor."""
    from tilejit.files.provenance import known_of

    if path.suffix.lower() not in TYPES:
        return {path.stem: known_of(path).packings}
    file = _opened(path)
    return {entry.name: file.packings(entry) for entry in file.entries}


def _buffers(path: Path) -> dict[str, Any]:
    """The bytes of each tensor, mapped."""
    import numpy as np

    if path.suffix.lower() not in TYPES:
        return {path.stem: np.fromfile(path, np.uint8)}
    file = _opened(path)
    return {entry.name: file.data.part(entry.begin, entry.end).map(0, entry.nbytes) for entry in file.entries}


def _arrays(path: Path) -> dict[str, Any]:
    """A function for each tensor that reads it, unpacked."""
    file = _opened(path)
    return {entry.name: lambda entry=entry: _array(file, entry) for entry in file.entries}


def _array(file: TensorFile, entry: Entry) -> Any:
    from tilejit.tiled.tiled_array import TiledArray

    whole = (
        file.tiled(entry) if file.is_packed(entry) else file.elements(entry, file.element_type(entry, None))
    ).whole()
    return whole.unpack() if isinstance(whole, TiledArray) else whole


def _opened(path: Path) -> TensorFile:
    from tilejit.files.file_types import open_file

    return open_file(path)


def _facts(answer: Identification, record: RecordedLayout | None) -> dict[str, Any]:
    return {
        "recorded": None if record is None else record.text,
        "unpacks_to_original": None if record is None else record.is_original,
        "verdict": answer.verdict,
        "matches": [
            {
                "format": match.format,
                "parameters": dict(match.parameters),
                "times": match.times,
                "changes": list(match.changes),
                "agreement": match.agreement,
                "first_difference": None if match.first_difference is None else list(match.first_difference),
                "note": match.note,
            }
            for match in answer.matches
        ],
    }
