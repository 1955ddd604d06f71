"""Tenstorrent's tile tensors as torch tensors. Needs the extra `torch`.

A tile tensor `[..., H/32, W/32, 32, 32]` holds the tiles row by row, and in each tile its faces of 16 x 16
one after the other. Its memory is ttnn's TILE layout.
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
    """A tensor in tiles, faces one after the other in each, as ttnn's TILE layout has it in memory.

    >>> tilize(torch.ones(2, 100, 50)).shape            # [2, 4, 2, 32, 32]
    >>> tilize(torch.ones(5, 64), tile=(8, 32)).shape   # [1, 2, 8, 32]

    tensor: [..., H, W] of any dtype and strides. tile: rows and columns of a tile, or one number for both;
    below 32 rows for ttnn's small tiles. face: of a face, at most 16 x 16 by default, as in ttnn. padding:
    what fills the last tiles of H and W: zero, or a value.

    Returns [..., tiles of H, tiles of W, rows, columns]. The last two dimensions are the places in memory
    of a tile: with faces of 16 x 16 its first eight rows of 32 are the face at the top left.

    Raises:
        LayoutError: fewer than two dimensions, faces that do not divide the tile, a padding value that the
            dtype does not hold; or the tensor cannot be read, see `tilejit.interop.torch.numpy_view`.
        TypeError: an argument is of a wrong type.
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
    """The tensor of those dimensions that a tile tensor holds, without its padding.

    >>> untilize(tilize(x), x.shape)                    # x

    tiles: what `tilize` returns, or its memory as a flat tensor. tile: if not given, the last two dimensions
    of `tiles`. out: a tensor of dims, any strides.

    Raises:
        LayoutError: `tiles` are not those of such a tensor, are flat and tile= is missing, or as in `tilize`.
        TypeError: an argument is of a wrong type.
    """
    tensors.numpy_view(tiles)
    sizes = int_tuple(dims, "dims")
    if tile is None:
        if tiles.ndim < 4:
            raise LayoutError("a flat tensor does not define its tiles\n  give tile=, e.g. tile=32")
        tile = (tiles.shape[-2], tiles.shape[-1])
    options: dict[str, Any] = {"tile": tile} | ({} if face is None else {"face": face})
    spec = as_layout("tenstorrent", dtype=tensors.numpy_view(tiles[:0]).dtype, dims=sizes, **options)
    whole = _tiled_dims(sizes, tile)
    if tuple(tiles.shape) not in (whole, (prod(whole),)):
        raise LayoutError(
            f"the tiles are {dims_text(tuple(tiles.shape))}, but those of {dims_text(sizes)} are "
            f"{dims_text(whole)}\n  give the dimensions of the tensor that was tilized"
        )
    return tensors.unpack(tiles, spec, out=out, threads=threads)


def _tiled_dims(dims: tuple[int, ...], tile: Sizes) -> tuple[int, ...]:
    """[..., tiles of H, tiles of W, rows, columns]; the format has checked `tile`."""
    height, width = tile if isinstance(tile, tuple | list) else (tile, tile)
    return (*dims[:-2], -(-dims[-2] // height), -(-dims[-1] // width), height, width)
