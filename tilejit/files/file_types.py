"""The file types that TileJIT converts. To add one, write a `TensorFile` and list its reader here."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

from codegen import TilejitError
from tilejit.files import npy, safetensors
from tilejit.files.tensor_file import TensorFile

READERS: dict[str, Callable[[str | os.PathLike[str], Any, str], TensorFile]] = {
    ".npy": npy.read,
    ".safetensors": safetensors.read,
}
"""The function that opens a file, by its extension; it takes the path, shape and name of `open_file`."""


def open_file(
    path: str | os.PathLike[str], *, shape: Any = None, extension: str = "", name: str = ""
) -> TensorFile:
    """Open a file for conversion.

    >>> np.save("x.tpu.npy", np.zeros(384000, np.float32))
    >>> file = open_file("x.tpu.npy", shape="f32[1000,300]{1,0:T(8,128)}")
    >>> file.entries[0].name
    'x.tpu'

    Args:
        path: the path of a .npy or .safetensors file.
        shape: the full shape of a packed .npy file, including its layout.
        extension: the extension if the path has none, such as for standard input.
        name: the name of a .npy file's array if the path has none.

    Returns:
        The open file.

    Raises:
        LayoutError: the file is damaged, or the shape cannot be read.
        TilejitError: the file has an unsupported extension, or a shape is given for a .safetensors file.
        OSError: the file cannot be opened.
    """
    known = Path(path)
    return READERS[checked_extension(path, extension or known.suffix)](path, shape, name or known.stem)


def checked_extension(path: object, extension: str) -> str:
    """The extension of a supported file, in lower case.

    Raises:
        TilejitError: the extension is not supported.
    """
    if extension.lower() not in READERS:
        raise TilejitError(
            f"expected a {' or '.join(READERS)} file, got {str(path)!r}\n  rename the file, or pass another"
        )
    return extension.lower()
