"""Tenstorrent: tiles of faces."""

from __future__ import annotations

from codegen import LayoutError
from tilejit.catalog.entries import Family, entry, grid, ordered, renamed
from tilejit.catalog.packing import Packing
from tilejit.catalog.widths import TILES, pair


def _tiles(tile: int | tuple[int, int] = 32, face: int | tuple[int, int] | None = None) -> Packing:
    height, width = pair(tile, "tile")
    rows, columns = (min(16, height), min(16, width)) if face is None else pair(face, "face")
    if height % rows or width % columns:
        raise LayoutError(
            f"faces of {rows} x {columns} do not divide a tile of {height} x {width}\n"
            "  pass face= sizes that divide those of tile="
        )
    sizes = {"mf": height // rows, "m": rows, "nf": width // columns, "n": columns}
    return ordered("... (M mf m) (N nf n) -> ... M N mf nf m n", sizes=sizes)


_TILE = entry(
    "tenstorrent",
    "ttnn's TILE: tiles of 32 x 32 in four faces of 16 x 16",
    _tiles,
    ((64, 64), "bf16"),
    "tt-metal, tech_reports/tensor_layouts/tensor_layouts.md",
    rule="m x n = face, 16 x 16; mf m x nf n = tile, 32 x 32",
    variants=grid(tile=TILES),
)
FAMILY = Family(
    "tenstorrent-tiles",
    "Tenstorrent's tiles",
    (_TILE, renamed(_TILE, "tenstorrent-tile", _TILE.description, _TILE.source, "definition")),
)
