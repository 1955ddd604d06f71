"""Huawei Ascend: blocks of 32 bytes."""

from __future__ import annotations

from tilejit.catalog.checks import checked_int
from tilejit.catalog.entries import Family, each, layout_format, renamed
from tilejit.catalog.format import Element
from tilejit.catalog.widths import by_width

_CANN = "Huawei CANN, data format"


def _nc1hwc0(element: Element, c0: int | None = None) -> dict[str, int]:
    return {"c": _c0("NC1HWC0", element, c0)}


def _fractal_nz(element: Element, m0: int = 16, c0: int | None = None) -> dict[str, int]:
    return {"m": checked_int("m0", m0), "n": _c0("fractal_nz", element, c0)}


def _c0(name: str, element: Element, c0: int | None) -> int:
    """Elements of the innermost block: 32 bytes for 16-bit and 8-bit types."""
    if c0 is not None:
        return checked_int("c0", c0)
    return by_width(name, element, {16: 16, 8: 32}, "pass its innermost block, e.g. c0=16")


_NZ = layout_format(
    "fractal_nz",
    "Ascend: blocks of m0 x c0, column by column, array M N",
    "... (M m) (N n) -> ... N M m n",
    ((32, 32), "f16"),
    f"{_CANN} FRACTAL_NZ",
    sizes=_fractal_nz,
    rule="m = m0, by default 16; n = c0, by default 16 for 16 bits and 32 for 8 bits",
    verified="definition",
    same_as=("ascend-fractal-nz",),
    variants=each("c0", 8, 16, 32, 64),
)
FAMILY = Family(
    "ascend",
    "Huawei Ascend's tensors",
    (
        layout_format(
            "NC1HWC0",
            "Ascend: channels in blocks of c0 (16-bit: 16, 8-bit: 32), array N C H W",
            "N (C c) H W -> N C H W c",
            ((1, 32, 1, 4), "f16"),
            f"{_CANN} NC1HWC0",
            sizes=_nc1hwc0,
            rule="c = c0, by default 16 for 16 bits and 32 for 8 bits",
            variants=each("c0", 4, 8, 16, 32),
        ),
        _NZ,
        renamed(_NZ, "ascend-fractal-nz", _NZ.description, _NZ.source, _NZ.verified),
    ),
)
