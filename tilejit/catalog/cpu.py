"""Matrix operands of CPU instructions and libraries: VNNI, AMX, BLIS."""

from __future__ import annotations

from tilejit.catalog.checks import checked_int
from tilejit.catalog.entries import Family, entry, grid, ordered
from tilejit.catalog.format import Element
from tilejit.catalog.packing import Packing
from tilejit.catalog.widths import by_width

_INTEL = "Intel 64 and IA-32 Architectures Software Developer's Manual:"


def _vnni(element: Element, pack: int | None = None) -> Packing:
    return ordered("... (K k) N -> ... K N k", sizes={"k": _packed("vnni", element, pack)})


def _amx_b(element: Element, pack: int | None = None) -> Packing:
    pattern = "... (K rows k) (N n) -> ... K N rows n k, rows=16, n=16"
    return ordered(pattern, sizes={"k": _packed("amx-b", element, pack)})


def _packed(name: str, element: Element, pack: int | None) -> int:
    """The number of rows that share 32 bits."""
    if pack is not None:
        return checked_int("pack", pack)
    return by_width(
        name, element, {16: 2, 8: 4}, "pass the number of rows that lie side by side, e.g. pack=8"
    )


def _blis_a(mr: int = 6) -> Packing:
    return ordered("... (M mr) K -> ... M K mr", sizes={"mr": checked_int("mr", mr)})


def _blis_b(element: Element, nr: int | None = None) -> Packing:
    columns = max(1, 512 // element.storage_bits) if nr is None else checked_int("nr", nr)
    return ordered("... K (N nr) -> ... N K nr", sizes={"nr": columns})


FAMILY = Family(
    "cpu",
    "Operands of CPU instructions and of BLIS",
    (
        entry(
            "vnni",
            "VNNI: rows of K side by side, as many as share 32 bits, array K N",
            _vnni,
            ((8, 16), "bf16"),
            f"{_INTEL} VPDPBUSD, VDPBF16PS",
            rule="k = pack, by default 32 / bits",
            variants=grid(pack=(None, 2, 4, 8)),
        ),
        entry(
            "amx-b",
            "AMX: B in tiles of 16 rows of 64 bytes, rows of K side by side, array K N",
            _amx_b,
            ((64, 32), "bf16"),
            f"{_INTEL} TDPBUSD, TDPBF16PS",
            rule="k = pack, by default 32 / bits",
            variants=grid(pack=(None, 2, 4, 8)),
        ),
        entry(
            "blis-a",
            "BLIS: panels of mr rows, column by column, array M K",
            _blis_a,
            ((12, 8), "f32"),
            "BLIS, docs/KernelsHowTo.md: micropanels of A",
            rule="mr = 6 by default",
            variants=grid(mr=(6, 4, 8, 12, 14, 16, 24, 32)),
        ),
        entry(
            "blis-b",
            "BLIS: panels of nr columns (64 bytes), row by row, array K N",
            _blis_b,
            ((8, 32), "f32"),
            "BLIS, docs/KernelsHowTo.md: micropanels of B",
            rule="nr = 512 / bits by default",
            variants=grid(nr=(None, 4, 6, 8, 12, 16, 32, 64)),
        ),
    ),
)
