"""Qualcomm Hexagon: blocks of 2 KiB."""

from __future__ import annotations

from tilejit.catalog.entries import Family, entry, ordered
from tilejit.catalog.format import Element, Format
from tilejit.catalog.ggml_types import PLANES
from tilejit.catalog.packing import Field, Packing
from tilejit.catalog.widths import by_width


def _crouton(element: Element) -> Packing:
    both = by_width("crouton", element, {16: 2, 8: 1}, "convert to a 16-bit or an 8-bit type")
    pattern = "N (H h) (W w w2) (C c) -> N H W C h w c w2, h=8, c=32"
    return ordered(pattern, sizes={"w": 8 // both // both, "w2": both})


def _tiled(kind: str, numbers: str, size: int, padding: int = 0) -> Format:
    """Tiles of 32 rows x 32 columns of a ggml type: the codes, then each row's numbers."""
    codes = Field(("codes",), "... (R r) (C j p) -> ... R C j r p, r=32, j=16, p=2", padding=padding)
    names = tuple(numbers.split(" and "))
    order = "... (R r) C m -> ... R C r m" if len(names) > 1 else "... (R r) C -> ... R C r"
    fill = f" of the rows; missing rows have the code {padding} and {numbers} 0"
    return entry(
        f"hexagon-{kind}-tiled",
        f"{kind.upper()}, tiles of 32 x 32 of an array R C, {size} bytes: codes, then {numbers}{fill}",
        Packing(
            PLANES[kind],
            (codes, Field(names, f"{order}, r=32")),
            records="... R/32 C/32",
            multiples={"C": 32},
        ),
        ((40, 64), "int8" if PLANES[kind][0].signed else "uint8"),
        "llama.cpp, ggml/src/ggml-hexagon/ggml-hexagon.cpp (llama-cpp-python 0.3.36)",
        verified="run: ggml-hexagon.cpp of llama-cpp-python 0.3.36, compiled",
    )


FAMILY = Family(
    "hexagon",
    "Qualcomm Hexagon's tiles",
    (
        entry(
            "crouton",
            "Hexagon: blocks of 2 KiB, array N H W C",
            _crouton,
            ((1, 16, 16, 32), "uint8"),
            "Apache TVM for Hexagon, layouts nhwc-8h2w32c2w and nhwc-8h8w32c",
            rule="w = 8, w2 = 1 for 8 bits; w = 2, w2 = 2 for 16 bits",
        ),
        _tiled("q4_0", "d", 576, padding=8),
        _tiled("q4_1", "d and m", 640),
        _tiled("q8_0", "d", 1088),
        _tiled("mxfp4", "e", 544),
    ),
)
