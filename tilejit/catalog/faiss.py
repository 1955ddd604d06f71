"""Faiss: codes of product quantization for registers' table lookups."""

from __future__ import annotations

from codegen import LayoutError
from tilejit.catalog.checks import checked_int
from tilejit.catalog.entries import Family, layout_format


def _fast_scan(bbs: int = 32) -> str:
    block = checked_int("bbs", bbs)
    if block % 32:
        raise LayoutError(f"bbs is {block}\n  pass a multiple of 32")
    return f"(N i h g r) (M s) -> N M i s r g h, i={block // 32}, h=2, g=2, r=8, s=2"


FAMILY = Family(
    "faiss",
    "Faiss's codes",
    (
        layout_format(
            "faiss-pq4-fast-scan",
            "Faiss's 4-bit fast scan: blocks of bbs vectors, array N M of codes; M is padded to even",
            _fast_scan,
            ((32, 4), "uint8"),
            "faiss-cpu 1.15.1, IndexPQFastScan.codes",
            bits=4,
            verified="run: faiss-cpu 1.15.1",
            variants=tuple({"bbs": size} for size in (64, 96, 128)),
        ),
    ),
)
