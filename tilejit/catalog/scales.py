"""Scales of FP4 and FP8 blocks, in the orders that matrix units read."""

from __future__ import annotations

from tilejit.catalog.checks import checked_int, one_of
from tilejit.catalog.entries import Family, entry, grid, ordered, renamed
from tilejit.catalog.format import Element
from tilejit.catalog.packing import Packing
from tilejit.catalog.sources import EXPRESSIONS, FLASHINFER, TRITON
from tilejit.catalog.widths import by_width

_BLOCKS = "... (R r4 r) (C c) -> ... R C r r4 c, r4=4, r=32, c=4"
_CUBLAS = "cuBLAS, 1D block scaling factors layout"
_TORCHAO = "run: torchao 0.18.0, to_blocked"
_DEEPGEMM = "deepseek-ai/DeepGEMM@54e22612, deep_gemm"
_DEEPGEMM_RUN = "run: deepseek-ai/DeepGEMM@54e22612"


def _utccp(element: Element) -> Packing:
    by_width("deepgemm-utccp", element, {32: 1}, "view four scales as one s32")
    return ordered("... (M a m) K -> ... M m a K, a=4, m=32", multiples={"M": 128})


def _shuffled(epilogue_tile_m: int = 128) -> Packing:
    tile = one_of("epilogue_tile_m", epilogue_tile_m, (8, 16, 32, 64, 128, 256))
    sizes = {"v": 2, "p": 2} if tile % 128 else {"v": 1, "p": 4}
    pattern = "... (R u v q p) (C c) -> ... R C v p q u c, u=4, q=8, c=4"
    return ordered(pattern, bits=8, sizes=sizes, multiples={"R": 128})


def _warps(num_warps: int = 8) -> Packing:
    pattern = "... (M a w b g) (K k) -> ... M w K a g k b, a=2, b=2, g=8, k=2"
    return ordered(pattern, bits=8, sizes={"w": checked_int("num_warps", num_warps)})


_NVFP4 = entry(
    "nvfp4-scales",
    "NVFP4's scales, one for 16 elements, in blocks of 128 x 4, array R C",
    ordered(_BLOCKS, bits=8),
    ((128, 8), "f8e4m3fn"),
    _CUBLAS,
    verified=_TORCHAO,
)

FAMILY = Family(
    "scales",
    "Scales of FP4 and FP8 blocks",
    (
        _NVFP4,
        entry(
            "mx-scales",
            "MX formats' scales, one for 32 elements, in blocks of 128 x 4, array R C",
            ordered(_BLOCKS, bits=8),
            ((128, 8), "f8e8m0fnu"),
            _CUBLAS,
            verified=_TORCHAO,
        ),
        renamed(
            _NVFP4,
            "blackwell-scales-128x4",
            "CUTLASS, TensorRT-LLM, ModelOpt: scales of FP4 and MX blocks in blocks of 128 x 4, array R C",
            "TensorRT-LLM, swizzled scale factors 128x4",
            _TORCHAO,
        ),
        renamed(
            _NVFP4,
            "torchao-to_blocked",
            "torchao: scales of NVFP4 and MX blocks in blocks of 128 x 4, array R C",
            "torchao 0.18.0, torchao/prototype/mx_formats/utils.py, to_blocked",
            _TORCHAO,
        ),
        entry(
            "blackwell-mx-scale",
            "triton_kernels on Blackwell: scales of MX blocks in blocks of 128 x 4, array K N; K padded to 8",
            ordered(
                "... (K b k) (N a n) -> ... N K b n a k, b=2, k=4, a=4, n=32",
                bits=8,
                tensor="u8: 1 N/128 K/4^2 2 256",
            ),
            ((8, 128), "uint8"),
            f"{TRITON}/blackwell_scale.py@00a287a7",
            verified=EXPRESSIONS,
        ),
        entry(
            "hopper-mx-scale",
            "triton_kernels on Hopper: scales of MX blocks for num_warps warps, array M K",
            _warps,
            ((256, 4), "uint8"),
            f"{TRITON}/hopper_scale.py@14dd7a19",
            rule="w = num_warps",
            verified=EXPRESSIONS,
            variants=grid(num_warps=(8, 1, 2, 4)),
        ),
        entry(
            "trtllm-scales-8x4",
            "TensorRT-LLM: scales of FP4 blocks of few rows, in blocks of 8 x 4, array M K",
            ordered("... (M m) (K k) -> ... M K m k, m=8, k=4", bits=8),
            ((16, 8), "uint8"),
            f"{FLASHINFER}, quantization/quantization_cute_dsl_utils.py",
            verified="definition: the index formula was read",
        ),
        entry(
            "trtllm-gen-shuffle-sf-a",
            "TensorRT-LLM-gen: scales with shuffled rows, then in blocks of 128 x 4, array R C",
            _shuffled,
            ((128, 8), "uint8"),
            f"{FLASHINFER}, shuffle_matrix_sf_a",
            rule="v=1, p=4 if epilogue_tile_m is a multiple of 128, else v=2, p=2",
            verified=f"run: {FLASHINFER}, torchao 0.18.0",
            variants=grid(epilogue_tile_m=(128, 64)),
        ),
        entry(
            "deepgemm-ue8m0",
            "DeepGEMM: exponents of scales, bits 23 to 30 of f32, four along K in one word, array M K",
            ordered("... (K k) -> ... K k, k=4", bits=8, multiples={"K": 4}, tensor="s32: ... K/4"),
            ((4, 8), "f8e8m0fnu"),
            f"{_DEEPGEMM}/utils/math.py, pack_ue8m0_to_int",
            verified=_DEEPGEMM_RUN,
        ),
        entry(
            "deepgemm-ue8m0-mn-major",
            "DeepGEMM: the same words with M contiguous, array M K; M and K are padded to 4",
            ordered("... (M m) (K k) -> ... K M m k, m=4, k=4", bits=8),
            ((8, 8), "f8e8m0fnu"),
            "deepseek-ai/DeepGEMM@54e22612, get_mn_major_tma_aligned_packed_ue8m0_tensor",
            verified=_DEEPGEMM_RUN,
        ),
        entry(
            "deepgemm-utccp",
            "DeepGEMM: words of four scales, 4 x 32 rows transposed for UTCCP, array E M K",
            _utccp,
            ((1, 128, 2), "s32"),
            f"{_DEEPGEMM}/mega, _transpose_sf_for_utccp",
            verified=_DEEPGEMM_RUN,
        ),
    ),
)
