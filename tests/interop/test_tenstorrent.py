"""Tenstorrent tile tensors against torch's own pad, reshape and permute."""

from __future__ import annotations

from typing import Any

import pytest

import tilejit as tj
from tests.interop.frameworks import framework

torch: Any = framework("torch")
from tilejit.interop import tenstorrent  # noqa: E402


def by_torch(x: Any, tile: tuple[int, int], value: float = 0.0) -> Any:
    """Pad, cut into tiles and faces, and put the faces one after the other."""
    h, w = tile
    fh, fw = min(16, h), min(16, w)
    x = torch.nn.functional.pad(x, (0, -x.shape[-1] % w, 0, -x.shape[-2] % h), value=value)
    lead, (rows, columns) = x.shape[:-2], x.shape[-2:]
    faces = x.reshape(*lead, rows // h, h // fh, fh, columns // w, w // fw, fw)
    n = len(lead)
    ordered = faces.permute(*range(n), n, n + 3, n + 1, n + 4, n + 2, n + 5)
    return ordered.reshape(*lead, rows // h, columns // w, h, w)


@pytest.mark.parametrize(
    ("dtype", "tile", "dims"),
    [
        ("float32", (32, 32), (64, 96)),
        ("float32", (32, 32), (2, 3, 50, 70)),
        ("bfloat16", (32, 32), (64, 96)),
        ("bfloat16", (16, 32), (50, 70)),
        ("bfloat16", (8, 32), (2, 3, 50, 70)),
        ("bfloat16", (1, 32), (5, 70)),
        ("bfloat16", (32, 16), (50, 70)),
    ],
    ids=str,
)
def test_tiles_are_torchs_reshape_and_permute(
    dtype: str, tile: tuple[int, int], dims: tuple[int, ...]
) -> None:
    x = torch.randn(dims, generator=torch.Generator().manual_seed(1)).to(getattr(torch, dtype))
    tiles = tenstorrent.tilize(x, tile=tile)
    assert tiles.dtype == x.dtype
    assert tiles.equal(by_torch(x, tile))
    assert tenstorrent.untilize(tiles, dims).equal(x)
    assert tenstorrent.untilize(tiles.reshape(-1), dims, tile=tile).equal(x)


def test_the_faces_of_a_tile_are_contiguous() -> None:
    x = torch.arange(1024.0).reshape(32, 32)
    tiles = tenstorrent.tilize(x)
    assert tiles.shape == (1, 1, 32, 32)
    faces = tiles.view(2, 2, 16, 16)
    assert faces[0, 1].equal(x[:16, 16:])
    assert faces[1, 0].equal(x[16:, :16])
    assert tenstorrent.tilize(x, face=32).equal(x.reshape(1, 1, 32, 32))
    assert tenstorrent.untilize(tenstorrent.tilize(x, face=(8, 16)), (32, 32), face=(8, 16)).equal(x)


def test_padding_strides_and_out() -> None:
    x = torch.randn(70, 50, generator=torch.Generator().manual_seed(2)).bfloat16()
    assert tenstorrent.tilize(x.T, padding=-1.5).equal(by_torch(x.T, (32, 32), -1.5))
    out = torch.zeros(50, 70, dtype=torch.bfloat16).T
    assert tenstorrent.untilize(tenstorrent.tilize(x), (70, 50), out=out, threads=1) is out
    assert out.equal(x)
    assert tenstorrent.tilize(torch.ones(0, 5)).shape == (0, 1, 32, 32)


def test_errors() -> None:
    x = torch.ones(64, 64)
    tiles = tenstorrent.tilize(x)
    for call in (
        lambda: tenstorrent.tilize(torch.ones(64)),
        lambda: tenstorrent.tilize(x, tile=24),
        lambda: tenstorrent.tilize(x, tile=(32, 32, 32)),
        lambda: tenstorrent.tilize(x, tile=0),
        lambda: tenstorrent.tilize(x, face=24),
        lambda: tenstorrent.tilize(x.int(), padding=0.5),
        lambda: tenstorrent.tilize(x.requires_grad_()),
        lambda: tenstorrent.untilize(tiles, (65, 64)),
        lambda: tenstorrent.untilize(tiles, (64,)),
        lambda: tenstorrent.untilize(tiles.reshape(-1), (64, 64)),
        lambda: tenstorrent.untilize(tiles, (64, 64), tile=16),
        lambda: tenstorrent.untilize(tiles, (64, 64), out=torch.zeros(4)),
    ):
        with pytest.raises(tj.LayoutError, match="\n  "):
            call()
    for wrong in (lambda: tenstorrent.tilize(x.detach().numpy()), lambda: tenstorrent.untilize(tiles, 64)):
        with pytest.raises(TypeError):
            wrong()
