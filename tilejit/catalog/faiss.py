"""Faiss: codes of product quantization for registers' table lookups."""

from __future__ import annotations

from codegen import LayoutError
from tilejit.catalog.checks import checked_int
from tilejit.catalog.entries import Family, entry, grid, ordered
from tilejit.catalog.packing import Packing


def _fast_scan(bbs: int = 32) -> Packing:
    block = checked_int("bbs", bbs)
    if block % 32:
        raise LayoutError(f"bbs is {block}\n  pass a multiple of 32")
    pattern = f"(N i h g r) (M s) -> N M i s r g h, i={block // 32}, h=2, g=2, r=8, s=2"
    return ordered(pattern, bits=4)


FAMILY = Family(
    "faiss",
    "Faiss's codes",
    (
        entry(
            "faiss-pq4-fast-scan",
            "Faiss's 4-bit fast scan: blocks of bbs vectors, array N M of codes; M is padded to even",
            _fast_scan,
            ((32, 4), "uint8"),
            "faiss-cpu 1.15.1, IndexPQFastScan.codes",
            verified="run: faiss-cpu 1.15.1",
            variants=grid(bbs=(32, 64, 96, 128)),
        ),
    ),
)
