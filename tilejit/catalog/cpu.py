"""Matrix operands of CPU instructions and libraries: VNNI, AMX, BLIS."""

from __future__ import annotations

from tilejit.catalog.checks import checked_int
from tilejit.catalog.entries import Family, each, layout_format
from tilejit.catalog.format import Element
from tilejit.catalog.widths import by_width

_INTEL = "Intel 64 and IA-32 Architectures Software Developer's Manual:"


def _vnni(element: Element, pack: int | None = None) -> dict[str, int]:
    return {"k": _packed("vnni", element, pack)}


def _amx_b(element: Element, pack: int | None = None) -> dict[str, int]:
    return {"k": _packed("amx-b", element, pack)}


def _packed(name: str, element: Element, pack: int | None) -> int:
    """The number of rows that share 32 bits."""
    if pack is not None:
        return checked_int("pack", pack)
    return by_width(
        name, element, {16: 2, 8: 4}, "pass the number of rows that lie side by side, e.g. pack=8"
    )


def _blis_a(element: Element, mr: int = 6) -> dict[str, int]:
    return {"mr": checked_int("mr", mr)}


def _blis_b(element: Element, nr: int | None = None) -> dict[str, int]:
    return {"nr": max(1, 512 // element.storage_bits) if nr is None else checked_int("nr", nr)}


FAMILY = Family(
    "cpu",
    "Operands of CPU instructions and of BLIS",
    (
        layout_format(
            "vnni",
            "VNNI: rows of K side by side, as many as share 32 bits, array K N",
            "... (K k) N -> ... K N k",
            ((8, 16), "bf16"),
            f"{_INTEL} VPDPBUSD, VDPBF16PS",
            sizes=_vnni,
            rule="k = pack, by default 32 / bits",
            variants=each("pack", 2, 4, 8),
        ),
        layout_format(
            "amx-b",
            "AMX: B in tiles of 16 rows of 64 bytes, rows of K side by side, array K N",
            "... (K rows k) (N n) -> ... K N rows n k, rows=16, n=16",
            ((64, 32), "bf16"),
            f"{_INTEL} TDPBUSD, TDPBF16PS",
            sizes=_amx_b,
            rule="k = pack, by default 32 / bits",
            variants=each("pack", 2, 4, 8),
        ),
        layout_format(
            "blis-a",
            "BLIS: panels of mr rows, column by column, array M K",
            "... (M mr) K -> ... M K mr",
            ((12, 8), "f32"),
            "BLIS, docs/KernelsHowTo.md: micropanels of A",
            sizes=_blis_a,
            rule="mr = 6 by default",
            variants=each("mr", 4, 8, 12, 14, 16, 24, 32),
        ),
        layout_format(
            "blis-b",
            "BLIS: panels of nr columns (64 bytes), row by row, array K N",
            "... K (N nr) -> ... N K nr",
            ((8, 32), "f32"),
            "BLIS, docs/KernelsHowTo.md: micropanels of B",
            sizes=_blis_b,
            rule="nr = 512 / bits by default",
            variants=each("nr", 4, 6, 8, 12, 16, 32, 64),
        ),
    ),
)
