"""The file types that TileJIT converts. To add one, write a `TensorFile` and list its reader here."""

from __future__ import annotations

import os
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any

from codegen import LayoutError, TilejitError
from tilejit.files import npy, safetensors
from tilejit.files.provenance import known_of, suspected
from tilejit.files.tensor_file import TensorFile
from tilejit.files.whole_file import open_ordinary

READERS: dict[str, Callable[[str | os.PathLike[str], Any, str], TensorFile]] = {
    ".npy": npy.read,
    ".safetensors": safetensors.read,
}
"""The function that opens a file, by its extension; it takes the path, shape and name of `open_file`."""


RAW = ""
"""The extension that stands for raw bytes: one array without a header."""

HINTS = {
    **dict.fromkeys(
        (".pt", ".pth", ".ckpt"),
        'safetensors.torch.save_file(torch.load({path!r}), "x.safetensors") converts it',
    ),
    ".npz": 'np.save("x.npy", np.load({path!r})["NAME"]) saves one of its arrays as .npy',
    ".gguf": "np.save saves a tensor of gguf.GGUFReader({path!r}) as .npy",
    **dict.fromkeys(
        (".h5", ".hdf5", ".keras"),
        'np.save("x.npy", h5py.File({path!r})["NAME"][()]) saves one of its datasets as .npy',
    ),
    ".onnx": "np.save saves an array of onnx.numpy_helper.to_array as .npy",
    **dict.fromkeys((".pkl", ".pickle"), "np.save saves an array as .npy"),
    **dict.fromkeys((".gz", ".zip", ".zst", ".xz", ".tar"), "extract it first"),
}
"""What to do with files of other types, by extension."""


def open_file(
    path: str | os.PathLike[str],
    *,
    shape: Any = None,
    extension: str | None = None,
    name: str = "",
    offset: int = 0,
    raw: bool = False,
) -> TensorFile:
    """Open a file for conversion.

    >>> np.save("x.tpu.npy", np.zeros(384000, np.float32))
    >>> file = open_file("x.tpu.npy", shape="f32[1000,300]{1,0:T(8,128)}")
    >>> file.entries[0].name
    'x.tpu'

    Args:
        path: the path of a .npy or .safetensors file, or of a file with any other extension that holds the
            raw bytes of an array.
        shape: the full shape of a packed .npy file or of raw bytes, including its layout. None takes the
            recorded one.
        extension: the extension, if it is not that of the path, such as for standard input; "" for raw bytes.
        name: the name of a file's only array; "" takes the file's name.
        offset: the bytes before the array in a file of raw bytes.
        raw: True reads raw bytes whatever the extension is, unless `offset` is 0 and the file begins as
            np.save's files do.

    Returns:
        The open file.

    Raises:
        LayoutError: the file is damaged, or the shape cannot be read, or does not have the size of the bytes.
        TilejitError: the file is of another type, a shape is given for a .safetensors file or missing for raw
            bytes, or an offset is given for a file with a header.
        OSError: the file cannot be opened.
    """
    known = Path(path)
    kind = input_type(path, known.suffix if extension is None else extension, raw=raw, offset=offset)
    if kind == RAW:
        return _opened_raw(path, shape, name or known.stem, offset)
    if offset:
        raise TilejitError(f"{str(path)!r} is a {kind} file, which has no offset\n  omit it, or pass --raw")
    return READERS[kind](path, shape, name or known.stem)


def input_type(path: str | os.PathLike[str], extension: str, *, raw: bool, offset: int) -> str:
    """The type of a file to read, as `open_file` describes it.

    Raises:
        TilejitError, OSError: as `open_file`.
    """
    kind = file_type(path, extension, raw=raw)
    if raw and (kind != ".npy" or offset):
        return RAW
    if raw:
        with suppress(LayoutError), open_ordinary(path) as file:  # opening it later raises the error
            return kind if file.read(len(npy.MAGIC)) == npy.MAGIC else RAW
    return kind


def open_recorded(path: Path) -> TensorFile:
    """Open a file that needs no shape; a record beside it tells that it is raw bytes, whatever its extension.

    Raises:
        LayoutError, TilejitError, OSError: as `open_file`.
    """
    raw = path.suffix.lower() != ".safetensors" and bool(known_of(path).packings)
    return open_file(path, raw=raw)


def file_type(path: object, extension: str, *, raw: bool = False, written: bool = False) -> str:
    """The type of a file by its extension: ".npy", ".safetensors", or RAW for extensions of no known type.

    Raises:
        TilejitError: the extension is that of a type that TileJIT does not read or, if `written`, write, and
            `raw` is False.
    """
    kind = extension.lower()
    if kind in READERS:
        return kind
    if kind in HINTS and not raw:
        hint = "write a .npy file" if written else HINTS[kind].format(path=str(path))
        raise TilejitError(
            f"{str(path)!r}: TileJIT does not {'write' if written else 'read'} {kind} files\n  {hint}\n"
            "  for raw bytes, pass --raw"
        )
    return RAW


def _opened_raw(path: str | os.PathLike[str], shape: Any, name: str, offset: int) -> TensorFile:
    """A file of raw bytes.

    Raises:
        TilejitError: the shape is missing, and no record has it.
        LayoutError: the bytes do not have its size, or the record is damaged.
    """
    known = known_of(path) if shape is None else npy.given(path, shape)
    if known.packings:
        return npy.read_raw(path, known, name, offset)
    with open_ordinary(path) as file:
        look = npy.looks_like(file.read(8))
        if why := suspected(path, os.fstat(file.fileno()).st_size):
            raise LayoutError(f"{str(path)!r}: {why}")
    raise TilejitError(
        f"{str(path)!r} holds raw bytes, and no record beside it says their shape\n"
        f'  unpack or relayout it with --shape "bf16[1000,300]{{1,0:T(8,128)(2,1)}}"{look}'
    )
