"""Marlin and Machete: weights, scales and zero points in the orders that tensor cores read."""

from __future__ import annotations

import numpy as np

from codegen import LayoutError
from tilejit.catalog.entries import Family, entry, ordered, renamed
from tilejit.catalog.packing import Array, Field, Packing, Plane, ValueMap

_UTILS = "sglang 0.5.23, marlin_utils.py"
_FP4 = "sglang 0.5.23, marlin_utils_fp4.py"
_SGLANG = "run: sglang 0.5.23"
_SPARSE = "torchao 0.9.0, sparsity/marlin"
_MACHETE = (
    "vLLM, csrc/quantization/machete/machete_prepacked_layout.cuh; Hopper, TmaWarpSpecializedCooperative"
)
_CUTE = "run: gptqmodel 7.7.0, its CuTe expressions compiled for the CPU; the kernel not"
_SCALES_FP4 = "... (N J u v i) -> ... N i J v u, J=2, u=2, v=2, i=8"
_WEIGHTS = "... (K h a l) (N j b c) -> ... K N c a j"
_WEIGHT_SIZES = "h=2, a=4, l=2, j=4, b=2, c=8"

_E4M3 = np.arange(127, dtype=np.uint8)
"""The codes of E4M3 without a sign and without NaN."""


def _times_128() -> Array:
    """For each E4M3 code, 128 times its value as a float with 5 exponent and 3 mantissa bits, no sign."""
    exponent, mantissa = (_E4M3 >> 3).astype(np.int32), (_E4M3 & 7).astype(np.float32)
    values = np.where(exponent > 0, np.ldexp(1 + mantissa / 8, exponent), np.ldexp(mantissa / 8, 1))
    return (values.astype(np.float16).view(np.uint16) >> 7).astype(np.uint8)


def _decode(stored: Array) -> Array:
    table = np.full(256, 255, np.uint8)
    table[_times_128()] = _E4M3
    codes = table[stored]
    if (codes == 255).any():
        raise LayoutError("the buffer holds bytes that marlin-nvfp4-scales never stores\n  check its format")
    return codes


def _nvfp4_scales() -> Packing:
    change = ValueMap(
        "as E5M3 of 128 times the value, code + 120 if normal", lambda codes: _times_128()[codes], _decode
    )
    return Packing(
        (Plane("values", "... N", 8, levels=len(_E4M3)),),
        (Field(("values",), _SCALES_FP4, values=change),),
        tensors={"buffer": "f8e4m3fn: ... N"},
        multiples={"N": 64},
    )


_INT4 = entry(
    "marlin-int4",
    "Marlin: int4 weights, array K N, tiles of 16 x 64; the kernel needs K % 128",
    ordered(
        f"{_WEIGHTS} l b h, {_WEIGHT_SIZES}", bits=4, multiples={"K": 16, "N": 64}, tensor="s32: ... K/16 N*2"
    ),
    ((16, 64), "uint8"),
    f"{_UTILS}; get_weight_perm(4)",
    verified=f"{_SGLANG}, test_marlin_utils.py",
)

FAMILY = Family(
    "marlin",
    "Marlin and Machete: weights and scales",
    (
        _INT4,
        entry(
            "marlin-int8",
            "Marlin: int8 weights, array K N, tiles of 16 x 64; the kernel needs K % 128",
            ordered(
                f"{_WEIGHTS} b l h, {_WEIGHT_SIZES}",
                bits=8,
                multiples={"K": 16, "N": 64},
                tensor="s32: ... K/16 N*4",
            ),
            ((16, 64), "uint8"),
            f"{_UTILS}; get_weight_perm(8)",
            verified=f"{_SGLANG}, test_marlin_utils.py",
        ),
        renamed(
            _INT4,
            "marlin-fp4",
            "Marlin: NVFP4 and MXFP4 weights, E2M1 codes, array K N, in the order of marlin-int4",
            _FP4,
            "read: not run",
        ),
        entry(
            "marlin-scales",
            "Marlin: scales of groups, array G N, 16-bit",
            ordered("... (N j i) -> ... N i j, j=8, i=8", multiples={"N": 64}, tensor="any: ... N"),
            ((2, 64), "float16"),
            f"{_UTILS}, marlin_permute_scales",
            verified=_SGLANG,
        ),
        entry(
            "marlin-scales-channel",
            "Marlin: scales per channel, array 1 N, and bias, array N, 16-bit",
            ordered("... (N q i p) -> ... N i q p, q=4, i=4, p=2", multiples={"N": 32}, tensor="any: ... N"),
            ((1, 32), "float16"),
            f"{_UTILS}, marlin_permute_scales and marlin_permute_bias",
            verified=_SGLANG,
        ),
        entry(
            "marlin-zero-points",
            "Marlin: int4 zero points, array G N, grouped scales' order with columns 0 2 4 6 1 3 5 7",
            ordered(
                "... (N q p i) -> ... N i p q, q=4, p=2, i=8",
                bits=4,
                multiples={"N": 64},
                tensor="s32: ... N/8",
            ),
            ((2, 64), "uint8"),
            f"{_UTILS}, marlin_zero_points",
            verified=_SGLANG,
        ),
        entry(
            "marlin-24",
            "Marlin 2:4: int4 weights, array K N of the values kept of 2K rows, in the order of each column; "
            "code 8 counts as pruned, and metadata are a separate tensor",
            ordered(
                "(K h a l) (N d c b j) -> K N d c a j l b h, h=2, a=4, l=2, d=4, c=2, b=2, j=4",
                bits=4,
                multiples={"K": 16, "N": 64},
                tensor="s32: K/16 N*2",
            ),
            ((16, 64), "uint8"),
            f"{_SPARSE}, pack_to_marlin_24",
            verified="run: torchao 0.9.0",
        ),
        entry(
            "marlin-24-scales",
            "Marlin 2:4: scales of groups, array G N, 16-bit",
            ordered("... (N i j) -> ... N j i, i=2, j=4", multiples={"N": 64}, tensor="any: ... N"),
            ((2, 64), "float16"),
            _SPARSE,
            verified="run: torchao 0.9.0",
        ),
        entry(
            "marlin-nvfp4-scales",
            "Marlin: NVFP4 scales, array G N of E4M3 bytes, not negative",
            _nvfp4_scales(),
            ((2, 64), "uint8"),
            f"{_FP4}, nvfp4_marlin_process_scales after marlin_permute_scales",
            verified=f"{_SGLANG}, normal values; the definition for subnormal ones",
        ),
        entry(
            "marlin-mxfp4-scales",
            "Marlin: MXFP4 scales for 16-bit activations, array G N of E8M0 bytes",
            ordered(_SCALES_FP4, bits=8, multiples={"N": 64}, tensor="f8e8m0fnu: ... N"),
            ((2, 64), "uint8"),
            f"{_FP4}, mxfp4_marlin_process_scales after marlin_permute_scales",
            verified=_SGLANG,
        ),
        entry(
            "machete-int4",
            "Machete: int4 weights for 16-bit activations, array N K, blocks of 128 x 64, N first",
            ordered(
                "(N w i g) (K r h q j) -> K N w g q r j h i, w=8, i=2, g=8, r=4, h=2, q=4, j=2",
                bits=4,
                multiples={"N": 128, "K": 64},
            ),
            ((128, 64), "uint8"),
            _MACHETE,
            verified=_CUTE,
        ),
        entry(
            "machete-int8",
            "Machete: int8 weights for 16-bit activations, array N K, blocks of 128 x 64, N first",
            ordered(
                "(N w i g) (K r h q j) -> K N w g q r h i j, w=8, i=2, g=8, r=4, h=2, q=4, j=2",
                bits=8,
                multiples={"N": 128, "K": 64},
            ),
            ((128, 64), "uint8"),
            _MACHETE,
            verified=_CUTE,
        ),
    ),
)
