"""Scales of FP4 and FP8 blocks, in the orders that matrix units read."""

from __future__ import annotations

from collections.abc import Callable

from tilejit.catalog.checks import checked_int, one_of
from tilejit.catalog.entries import Family, each, layout_format, renamed
from tilejit.catalog.format import Element
from tilejit.catalog.widths import by_width

_BLOCKS = "... (R r4 r) (C c) -> ... R C r r4 c, r4=4, r=32, c=4"
_CUBLAS = "cuBLAS, 1D block scaling factors layout"
_TORCHAO = "run: torchao 0.18.0, to_blocked"
_TRITON = "triton_kernels of triton-lang/triton, layout_details"
_EXPRESSIONS = "the source's expressions in torch"
_DEEPGEMM = "deepseek-ai/DeepGEMM@54e22612, deep_gemm"
_DEEPGEMM_RUN = "run: deepseek-ai/DeepGEMM@54e22612"


def _bytes(name: str) -> Callable[..., dict[str, int]]:
    def sizes(element: Element) -> dict[str, int]:
        by_width(name, element, {8: 1}, "view the scales as uint8, or convert them to f8e4m3fn or f8e8m0fnu")
        return {}

    return sizes


def _utccp(element: Element) -> dict[str, int]:
    by_width("deepgemm-utccp", element, {32: 1}, "view four scales as one s32")
    return {}


def _shuffled(element: Element, epilogue_tile_m: int = 128) -> dict[str, int]:
    tile = one_of("epilogue_tile_m", epilogue_tile_m, (8, 16, 32, 64, 128, 256))
    return {"v": 2, "p": 2} if tile % 128 else {"v": 1, "p": 4}


def _warps(element: Element, num_warps: int = 8) -> dict[str, int]:
    return {"w": checked_int("num_warps", num_warps)}


_NVFP4 = layout_format(
    "nvfp4-scales",
    "NVFP4's scales, one for 16 elements, in blocks of 128 x 4, array R C",
    _BLOCKS,
    ((128, 8), "f8e4m3fn"),
    _CUBLAS,
    sizes=_bytes("nvfp4-scales"),
    verified=_TORCHAO,
)

FAMILY = Family(
    "scales",
    "Scales of FP4 and FP8 blocks",
    (
        _NVFP4,
        layout_format(
            "mx-scales",
            "MX formats' scales, one for 32 elements, in blocks of 128 x 4, array R C",
            _BLOCKS,
            ((128, 8), "f8e8m0fnu"),
            _CUBLAS,
            sizes=_bytes("mx-scales"),
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
        layout_format(
            "blackwell-mx-scale",
            "triton_kernels on Blackwell: scales of MX blocks in blocks of 128 x 4, array K N; K padded to 8",
            "... (K b k) (N a n) -> ... N K b n a k, b=2, k=4, a=4, n=32",
            ((8, 128), "uint8"),
            f"{_TRITON}/blackwell_scale.py@00a287a7",
            bits=8,
            tensor="u8: 1 N/128 K/4^2 2 256",
            verified=_EXPRESSIONS,
        ),
        layout_format(
            "hopper-mx-scale",
            "triton_kernels on Hopper: scales of MX blocks for num_warps warps, array M K",
            "... (M a w b g) (K k) -> ... M w K a g k b, a=2, b=2, g=8, k=2",
            ((256, 4), "uint8"),
            f"{_TRITON}/hopper_scale.py@14dd7a19",
            bits=8,
            sizes=_warps,
            rule="w = num_warps",
            verified=_EXPRESSIONS,
            variants=each("num_warps", 1, 2, 4),
        ),
        layout_format(
            "trtllm-scales-8x4",
            "TensorRT-LLM: scales of FP4 blocks of few rows, in blocks of 8 x 4, array M K",
            "... (M m) (K k) -> ... M K m k, m=8, k=4",
            ((16, 8), "uint8"),
            "flashinfer 0.7.2.post1, quantization/quantization_cute_dsl_utils.py",
            bits=8,
            verified="definition: the index formula was read",
        ),
        layout_format(
            "trtllm-gen-shuffle-sf-a",
            "TensorRT-LLM-gen: scales with shuffled rows, then in blocks of 128 x 4, array R C",
            "... (R u v q p) (C c) -> ... R C v p q u c, u=4, q=8, c=4",
            ((128, 8), "uint8"),
            "flashinfer 0.7.2.post1, shuffle_matrix_sf_a",
            bits=8,
            sizes=_shuffled,
            rule="v=1, p=4 if epilogue_tile_m is a multiple of 128, else v=2, p=2",
            multiples={"R": 128},
            verified="run: flashinfer 0.7.2.post1, torchao 0.18.0",
            variants=({"epilogue_tile_m": 64},),
        ),
        layout_format(
            "deepgemm-ue8m0",
            "DeepGEMM: exponents of scales, bits 23 to 30 of f32, four along K in one word, array M K",
            "... (K k) -> ... K k, k=4",
            ((4, 8), "f8e8m0fnu"),
            f"{_DEEPGEMM}/utils/math.py, pack_ue8m0_to_int",
            bits=8,
            multiples={"K": 4},
            tensor="s32: ... K/4",
            verified=_DEEPGEMM_RUN,
        ),
        layout_format(
            "deepgemm-ue8m0-mn-major",
            "DeepGEMM: the same words with M contiguous, array M K; M and K are padded to 4",
            "... (M m) (K k) -> ... K M m k, m=4, k=4",
            ((8, 8), "f8e8m0fnu"),
            "deepseek-ai/DeepGEMM@54e22612, get_mn_major_tma_aligned_packed_ue8m0_tensor",
            bits=8,
            verified=_DEEPGEMM_RUN,
        ),
        layout_format(
            "deepgemm-utccp",
            "DeepGEMM: words of four scales, 4 x 32 rows transposed for UTCCP, array E M K",
            "... (M a m) K -> ... M m a K, a=4, m=32",
            ((1, 128, 2), "s32"),
            f"{_DEEPGEMM}/mega, _transpose_sf_for_utccp",
            sizes=_utccp,
            multiples={"M": 128},
            verified=_DEEPGEMM_RUN,
        ),
    ),
)
