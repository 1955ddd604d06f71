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
"""The function that opens a file, by its extension; it takes path, shape and name of `open_file`."""


def open_file(
    path: str | os.PathLike[str], *, shape: Any = None, extension: str = "", name: str = ""
) -> TensorFile:
    """Open a file for conversion.

    >>> open_file("x.tpu.npy", shape="bf16[1000,300]{1,0:T(8,128)(2,1)}").entries[0].name
    'x.tpu'

    shape: the full shape of a packed .npy file, including its layout. extension, name: for a file whose path
    has neither, such as standard input.

    Raises:
        LayoutError: the file is damaged, or the shape cannot be read.
        TilejitError: the file has another type, or its type takes no shape.
        OSError: it cannot be opened.
    """
    known = Path(path)
    return READERS[checked_extension(path, extension or known.suffix)](path, shape, name or known.stem)


def checked_extension(path: object, extension: str) -> str:
    """The extension of a supported file, in lower case.

    Raises:
        TilejitError: the extension is not supported.
    """
    if extension.lower() not in READERS:
        raise TilejitError(f"{str(path)!r} ends neither in {' nor in '.join(READERS)}")
    return extension.lower()
