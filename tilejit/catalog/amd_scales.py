"""Scales of MX blocks for AMD's matrix cores."""

from __future__ import annotations

from dataclasses import replace

from tilejit.catalog.checks import checked_int, flag
from tilejit.catalog.entries import Family, layout_format, planes_format
from tilejit.catalog.format import Dims, Element
from tilejit.catalog.packing import Field, Packing, Plane

_TRITON = "triton_kernels of triton-lang/triton, layout_details"
_EXPRESSIONS = "the source's expressions in torch"
_AITER = "ROCm/aiter@e4048607, aiter/ops/shuffle.py"
_RUN = "run: ROCm/aiter@e4048607"
_ONE = 0x7F
"""The E8M0 scale 1."""
_GFX1250 = "... (K k) (N a n) -> ... N K n a k, a=4, n=32"
_N32K4 = "... (N n) (K k) -> ... N K n k, n=32, k=4"


def _gfx1250(element: Element, dims: Dims) -> Packing:
    k = min(4, max(1, dims[-2])) if len(dims) > 1 else 4
    return Packing((Plane("values", "... K N", 8),), (Field(("values",), _GFX1250, sizes={"k": k}),))


def _a16w4(gate_up: bool = True, experts: int = 1) -> Packing:
    count = checked_int("experts", experts)
    left = "(e g N n)" if flag("gate_up", gate_up) else "(e N g n)"
    pattern = f"{left} (K b k) -> e N K k n b g, g=2, n=16, b=2, k=4"
    field = Field(("values",), pattern, sizes={"e": count}, padding=_ONE)
    return Packing((Plane("values", "R K", 8),), (field,), multiples={"R": 32 * count})


FAMILY = Family(
    "amd-scales",
    "Scales of MX blocks for AMD's matrix cores",
    (
        layout_format(
            "cdna4-mx-scale",
            "triton_kernels on gfx950: scales of MX blocks, array K N",
            "... (K b k) (N a n) -> ... N K k n b a, b=2, k=4, a=2, n=16",
            ((8, 32), "uint8"),
            f"{_TRITON}/cdna4_scale.py@02cca62a",
            bits=8,
            multiples={"K": 8, "N": 32},
            verified=_EXPRESSIONS,
            same_as=("aiter-shuffle-scale",),
        ),
        replace(
            layout_format(
                "gfx1250-mx-scale",
                "triton_kernels on gfx1250: scales of MX blocks in blocks of 128 x 4, array K N",
                _GFX1250,
                ((4, 128), "uint8"),
                f"{_TRITON}/gfx1250_scale.py@0c02fe57",
                bits=8,
                rule="k = min(4, K)",
                verified=_EXPRESSIONS,
                same_as=("mx-scales",),
            ),
            build=_gfx1250,
        ),
        layout_format(
            "aiter-shuffle-scale",
            "aiter: scales of MX blocks, array M K; readers ignore the padding to 256 rows and 8 columns, "
            "which aiter leaves uninitialized",
            "... (M s a m) (K b k) -> ... M s K k m b a, s=8, a=2, m=16, b=2, k=4",
            ((256, 8), "uint8"),
            f"{_AITER}, shuffle_scale",
            bits=8,
            verified=_RUN,
            same_as=("cdna4-mx-scale",),
        ),
        planes_format(
            "aiter-scale-a16w4",
            "aiter: scales of MX blocks of a16w4 experts, array R K; gate_up interleaves the two halves of "
            "an expert's rows",
            _a16w4,
            ((32, 8), "uint8"),
            f"{_AITER}, shuffle_scale(is_guinterleave=True)",
            verified=_RUN,
            variants=(
                {"gate_up": False},
                *(
                    {"gate_up": both, "experts": e}
                    for both in (True, False)
                    for e in (2, 4, 8, 16, 32, 64, 128)
                ),
            ),
        ),
        layout_format(
            "aiter-scale-n32k4",
            "aiter on gfx1250: scales of MX blocks in tiles of 32 x 4, array E N K",
            _N32K4,
            ((1, 32, 8), "uint8"),
            f"{_AITER}, shuffle_scale_n32k4",
            bits=8,
            multiples={"N": 32, "K": 4},
            tensor="u8: ... N/32 K*32",
            verified=_RUN,
        ),
        layout_format(
            "aiter-gfx1250-scale",
            "aiter on gfx1250: scales of mxfp8fp4 GEMMs in tiles of 32 x 4, array N K; rows are padded to 32",
            _N32K4,
            ((40, 8), "uint8"),
            f"{_AITER}, shuffle_mxfp8fp4_scale",
            bits=8,
            multiples={"K": 4},
            padding=_ONE,
            verified=_RUN,
        ),
    ),
)
