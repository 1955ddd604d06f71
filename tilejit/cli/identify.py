"""`tilejit identify`: the formats of packed tensors, beside the originals or from the bytes alone."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from tilejit.cli import completion
from tilejit.cli.errors import arguments_checked, misused
from tilejit.cli.file_report import printable, some
from tilejit.cli.output import console, print_json, print_lines
from tilejit.cli.parameters import read_dims

if TYPE_CHECKING:
    from tilejit.files.tensor_file import Entry, TensorFile
    from tilejit.recognize.formats.identification import Identification

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
    Without, sizes, padding and scales decide, and the answer is a guess.
    """
    if against is not None and (dims or dtype):
        raise misused("--against names files that know their dtypes and dimensions\nomit --dims and --dtype")
    found = _identified(file, against, dims, dtype)
    if as_json:
        print_json([{"tensor": name, **_facts(answer)} for name, answer in found.items()])
        return
    for name, answer in found.items():
        print_lines(console(), f"{printable(name)}: {answer}")


def _identified(
    path: Path, against: Path | None, dims: str | None, dtype: str | None
) -> dict[str, Identification]:
    """The answer for each tensor of a file, or of one that has an original."""
    from tilejit.recognize.formats.identify import identify as identified

    packed = _buffers(path)
    if against is None:
        with arguments_checked():
            sizes = None if dims is None else read_dims(dims)
            return {name: identified(data, dtype=dtype, dims=sizes) for name, data in packed.items()}
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
    return {name: identified(packed[name], originals[other]()) for name, other in pairs.items()}


def _buffers(path: Path) -> dict[str, Any]:
    """The bytes of each tensor, mapped."""
    import numpy as np

    if path.suffix.lower() not in (".npy", ".safetensors"):
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


def _facts(answer: Identification) -> dict[str, Any]:
    return {
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
