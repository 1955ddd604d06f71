"""Tenstorrent's tile tensors as torch tensors. Needs the extra `torch`.

A tile tensor `[..., H/32, W/32, 32, 32]` holds the tiles row by row. Each tile holds its faces of 16 x 16
one after the other. The memory has ttnn's TILE layout.
"""

from __future__ import annotations

from collections.abc import Iterable
from importlib.util import find_spec
from math import prod
from typing import Any

if find_spec("torch") is None:
    raise ImportError("tilejit.interop.tenstorrent needs torch: pip install 'tilejit[torch]'", name="torch")

import torch

from codegen import LayoutError
from tilejit.interop import torch as tensors
from tilejit.layout.as_layout import as_layout
from tilejit.layout.checks import int_tuple
from tilejit.layout.helpers import dims_text
from tilejit.programs.tuning import Padding

__all__ = ["tilize", "untilize"]

Sizes = int | tuple[int, int]


def tilize(
    tensor: torch.Tensor,
    /,
    *,
    tile: Sizes = 32,
    face: Sizes | None = None,
    padding: Padding | None = None,
    threads: int | None = None,
) -> torch.Tensor:
    """Convert a tensor to tiles with consecutive faces, as ttnn's TILE layout stores them.

    >>> tilize(torch.ones(2, 100, 50)).shape
    torch.Size([2, 4, 2, 32, 32])
    >>> tilize(torch.ones(5, 64), tile=(8, 32)).shape
    torch.Size([1, 2, 8, 32])

    Args:
        tensor: [..., H, W] of any dtype and strides.
        tile: rows and columns of a tile, in elements, or one number for both. ttnn's small tiles have fewer
            than 32 rows.
        face: rows and columns of a face; None for at most 16 x 16, as in ttnn.
        padding: the value of padding elements in the last tiles of H and W; None for 0.
        threads: the number of threads; None chooses it from the size.

    Returns:
        [..., tiles of H, tiles of W, rows, columns]. The last two dimensions are a tile's memory in order:
        with faces of 16 x 16, its first eight rows of 32 are the top left face.

    Raises:
        LayoutError: the tensor has fewer than two dimensions, the faces do not divide the tile, or the dtype
            cannot represent the padding value; or the tensor cannot be read, see
            `tilejit.interop.torch.numpy_view`.
        TypeError: an argument has the wrong type.
    """
    tensors.numpy_view(tensor)
    options: dict[str, Any] = {"tile": tile} | ({} if face is None else {"face": face})
    flat = tensors.pack(tensor, "tenstorrent", padding=padding, threads=threads, **options)
    return flat.reshape(_tiled_dims(tuple(tensor.shape), tile))


def untilize(
    tiles: torch.Tensor,
    dims: Iterable[int],
    /,
    *,
    tile: Sizes | None = None,
    face: Sizes | None = None,
    out: torch.Tensor | None = None,
    threads: int | None = None,
) -> torch.Tensor:
    """Convert a tile tensor back to the tensor that it holds, without its padding.

    >>> x = torch.arange(5000.0).reshape(100, 50)
    >>> torch.equal(untilize(tilize(x), x.shape), x)
    True

    Args:
        tiles: the result of `tilize`, or its memory as a flat tensor.
        dims: the dimensions of the tensor, in elements.
        tile: rows and columns of a tile; None takes the last two dimensions of `tiles`.
        face: rows and columns of a face; None for at most 16 x 16, as in ttnn.
        out: where to write: a tensor of shape `dims` with any strides. None allocates one.
        threads: the number of threads; None chooses it from the size.

    Returns:
        The tensor.

    Raises:
        LayoutError: the shape of `tiles` does not match `dims`, or `tiles` is flat and `tile` is None; or as
            `tilize`.
        TypeError: an argument has the wrong type.
    """
    tensors.numpy_view(tiles)
    sizes = int_tuple(dims, "dims")
    if tile is None:
        if tiles.ndim < 4:
            raise LayoutError("the size of the tiles of a flat tensor is unknown\n  pass tile=, e.g. tile=32")
        tile = (tiles.shape[-2], tiles.shape[-1])
    options: dict[str, Any] = {"tile": tile} | ({} if face is None else {"face": face})
    spec = as_layout("tenstorrent", dtype=tensors.numpy_view(tiles[:0]).dtype, dims=sizes, **options)
    whole = _tiled_dims(sizes, tile)
    if tuple(tiles.shape) not in (whole, (prod(whole),)):
        raise LayoutError(
            f"expected tiles {dims_text(whole)} for a tensor {dims_text(sizes)}, got "
            f"{dims_text(tuple(tiles.shape))}\n  pass the dimensions of the tensor that was tilized"
        )
    return tensors.unpack(tiles, spec, out=out, threads=threads)


def _tiled_dims(dims: tuple[int, ...], tile: Sizes) -> tuple[int, ...]:
    """[..., tiles of H, tiles of W, rows, columns]; the format has checked `tile`."""
    height, width = tile if isinstance(tile, tuple | list) else (tile, tile)
    return (*dims[:-2], -(-dims[-2] // height), -(-dims[-1] // width), height, width)
