"""Huawei Ascend: blocks of 32 bytes."""

from __future__ import annotations

from tilejit.catalog.checks import checked_int
from tilejit.catalog.entries import Family, entry, grid, ordered, renamed
from tilejit.catalog.format import Element
from tilejit.catalog.packing import Packing
from tilejit.catalog.widths import by_width

_CANN = "Huawei CANN, data format"


def _nc1hwc0(element: Element, c0: int | None = None) -> Packing:
    return ordered("N (C c) H W -> N C H W c", sizes={"c": _c0("NC1HWC0", element, c0)})


def _fractal_nz(element: Element, m0: int = 16, c0: int | None = None) -> Packing:
    sizes = {"m": checked_int("m0", m0), "n": _c0("fractal_nz", element, c0)}
    return ordered("... (M m) (N n) -> ... N M m n", sizes=sizes)


def _c0(name: str, element: Element, c0: int | None) -> int:
    """Elements of the innermost block: 32 bytes for 16-bit and 8-bit types."""
    if c0 is not None:
        return checked_int("c0", c0)
    return by_width(name, element, {16: 16, 8: 32}, "pass its innermost block, e.g. c0=16")


_NZ = entry(
    "fractal_nz",
    "Ascend: blocks of m0 x c0, column by column, array M N",
    _fractal_nz,
    ((32, 32), "f16"),
    f"{_CANN} FRACTAL_NZ",
    rule="m = m0, by default 16; n = c0, by default 16 for 16 bits and 32 for 8 bits",
    verified="definition",
    variants=grid(c0=(None, 8, 16, 32, 64)),
)
FAMILY = Family(
    "ascend",
    "Huawei Ascend's tensors",
    (
        entry(
            "NC1HWC0",
            "Ascend: channels in blocks of c0 (16-bit: 16, 8-bit: 32), array N C H W",
            _nc1hwc0,
            ((1, 32, 1, 4), "f16"),
            f"{_CANN} NC1HWC0",
            rule="c = c0, by default 16 for 16 bits and 32 for 8 bits",
            variants=grid(c0=(None, 4, 8, 16, 32)),
        ),
        _NZ,
        renamed(_NZ, "ascend-fractal-nz", _NZ.description, _NZ.source, _NZ.verified),
    ),
)
