"""Scales of MX blocks for AMD's matrix cores."""

from __future__ import annotations

from tilejit.catalog.checks import checked_int, flag
from tilejit.catalog.entries import Family, entry, grid, ordered
from tilejit.catalog.format import Dims
from tilejit.catalog.packing import Packing
from tilejit.catalog.sources import AITER, EXPRESSIONS, TRITON

_RUN = "run: ROCm/aiter@e4048607"
_ONE = 0x7F
"""The E8M0 scale 1."""
_N32K4 = "... (N n) (K k) -> ... N K n k, n=32, k=4"


def _gfx1250(dims: Dims) -> Packing:
    k = min(4, max(1, dims[-2])) if len(dims) > 1 else 4
    return ordered("... (K k) (N a n) -> ... N K n a k, a=4, n=32", bits=8, sizes={"k": k})


def _a16w4(gate_up: bool = True, experts: int = 1) -> Packing:
    count = checked_int("experts", experts)
    left = "(e g R n)" if flag("gate_up", gate_up) else "(e R g n)"
    return ordered(
        f"{left} (K b k) -> e R K k n b g, e={count}, g=2, n=16, b=2, k=4",
        bits=8,
        multiples={"R": 32 * count},
        padding=_ONE,
    )


FAMILY = Family(
    "amd-scales",
    "Scales of MX blocks for AMD's matrix cores",
    (
        entry(
            "cdna4-mx-scale",
            "triton_kernels on gfx950: scales of MX blocks, array K N",
            ordered(
                "... (K b k) (N a n) -> ... N K k n b a, b=2, k=4, a=2, n=16",
                bits=8,
                multiples={"K": 8, "N": 32},
            ),
            ((8, 32), "uint8"),
            f"{TRITON}/cdna4_scale.py@02cca62a",
            verified=EXPRESSIONS,
        ),
        entry(
            "gfx1250-mx-scale",
            "triton_kernels on gfx1250: scales of MX blocks in blocks of 128 x 4, array K N",
            _gfx1250,
            ((4, 128), "uint8"),
            f"{TRITON}/gfx1250_scale.py@0c02fe57",
            rule="k = min(4, K)",
            verified=EXPRESSIONS,
        ),
        entry(
            "aiter-shuffle-scale",
            "aiter: scales of MX blocks, array M K; readers ignore the padding to 256 rows and 8 columns, "
            "which aiter leaves uninitialized",
            ordered("... (M s a m) (K b k) -> ... M s K k m b a, s=8, a=2, m=16, b=2, k=4", bits=8),
            ((256, 8), "uint8"),
            f"{AITER}, shuffle_scale",
            verified=_RUN,
        ),
        entry(
            "aiter-scale-a16w4",
            "aiter: scales of MX blocks of a16w4 experts, array R K; gate_up interleaves the two halves of "
            "an expert's rows",
            _a16w4,
            ((32, 8), "uint8"),
            f"{AITER}, shuffle_scale(is_guinterleave=True)",
            verified=_RUN,
            variants=grid(gate_up=(True, False), experts=(1, 2, 4, 8, 16, 32, 64, 128)),
        ),
        entry(
            "aiter-scale-n32k4",
            "aiter on gfx1250: scales of MX blocks in tiles of 32 x 4, array E N K",
            ordered(_N32K4, bits=8, multiples={"N": 32, "K": 4}, tensor="u8: ... N/32 K*32"),
            ((1, 32, 8), "uint8"),
            f"{AITER}, shuffle_scale_n32k4",
            verified=_RUN,
        ),
        entry(
            "aiter-gfx1250-scale",
            "aiter on gfx1250: scales of mxfp8fp4 GEMMs in tiles of 32 x 4, array N K; rows are padded to 32",
            ordered(_N32K4, bits=8, multiples={"K": 4}, padding=_ONE),
            ((40, 8), "uint8"),
            f"{AITER}, shuffle_mxfp8fp4_scale",
            verified=_RUN,
        ),
    ),
)
