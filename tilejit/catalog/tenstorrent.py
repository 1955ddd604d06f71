"""Tenstorrent: tiles of faces."""

from __future__ import annotations

from codegen import LayoutError
from tilejit.catalog.entries import Family, each, layout_format, renamed
from tilejit.catalog.format import Element
from tilejit.catalog.widths import pair


def _sizes(
    element: Element, tile: int | tuple[int, int] = 32, face: int | tuple[int, int] | None = None
) -> dict[str, int]:
    height, width = pair(tile, "tile")
    rows, columns = (min(16, height), min(16, width)) if face is None else pair(face, "face")
    if height % rows or width % columns:
        raise LayoutError(
            f"faces of {rows} x {columns} do not divide a tile of {height} x {width}\n"
            "  pass face= sizes that divide those of tile="
        )
    return {"mf": height // rows, "m": rows, "nf": width // columns, "n": columns}


_TILE = layout_format(
    "tenstorrent",
    "ttnn's TILE: tiles of 32 x 32 in four faces of 16 x 16",
    "... (M mf m) (N nf n) -> ... M N mf nf m n",
    ((64, 64), "bf16"),
    "tt-metal, tech_reports/tensor_layouts/tensor_layouts.md",
    sizes=_sizes,
    rule="m x n = face, 16 x 16; mf m x nf n = tile, 32 x 32",
    same_as=("tenstorrent-tile",),
    variants=each("tile", *((rows, 32) for rows in (16, 8, 4, 2, 1)), (32, 16), 16),
)
FAMILY = Family(
    "tenstorrent-tiles",
    "Tenstorrent's tiles",
    (_TILE, renamed(_TILE, "tenstorrent-tile", _TILE.description, _TILE.source, "definition")),
)
