"""Rows of weights in another order: TensorRT-LLM's shuffle, gate and up in turns, rotary pairs."""

from __future__ import annotations

from tilejit.catalog.checks import checked_int
from tilejit.catalog.entries import Family, entry, grid, ordered
from tilejit.catalog.packing import Packing
from tilejit.catalog.sources import FLASHINFER

_RUN = f"run: {FLASHINFER}"
_LLAMA = "llama.cpp, conversion: permute of q_proj and k_proj"


_HEADS = grid(heads=(1, 2, 4, 6, 8, 10, 12, 14, 16, 20, 24, 28, 32, 36, 40, 48, 56, 64, 80, 96, 128))
"""Numbers of heads that models have."""


def _shuffle_a(epilogue_tile_m: int = 128) -> Packing:
    turns = 2 if checked_int("epilogue_tile_m", epilogue_tile_m) % 128 else 4
    pattern = f"... (M q p) K -> ... M p q K, q=8, p={turns}"
    return ordered(pattern, multiples={"M": 8 * turns})


def _block_major_k(block_k: int = 128) -> Packing:
    block = checked_int("block_k", block_k)
    return ordered(f"... M (K k) -> ... K M k, k={block}", multiples={"K": block})


def _rope(heads: int = 1) -> Packing:
    number = checked_int("heads", heads)
    return ordered(f"(h p M) K -> h M p K, h={number}, p=2", multiples={"M": 2 * number})


def _rope_hf(heads: int = 1) -> Packing:
    number = checked_int("heads", heads)
    return ordered(f"(h M p) K -> h p M K, h={number}, p=2", multiples={"M": 2 * number})


FAMILY = Family(
    "rows",
    "Rows and columns of weights in another order",
    (
        entry(
            "trtllm-gen-shuffle-a",
            "TRT-LLM-gen's shuffleMatrixA, array M K: rows 0 1 2 ... of a block go to 0 8 16 24 1 ..., or to "
            "0 8 1 9 ... if epilogue_tile_m is not a multiple of 128",
            _shuffle_a,
            ((32, 16), "uint8"),
            f"{FLASHINFER}, utils.py, get_shuffle_matrix_a_row_indices",
            verified=_RUN,
            variants=grid(epilogue_tile_m=(128, 64)),
        ),
        entry(
            "trtllm-block-major-k",
            "TRT-LLM-gen's BlockMajorK: blocks of block_k columns, one after another, array M K",
            _block_major_k,
            ((4, 256), "uint8"),
            f"{FLASHINFER}, fused_moe/core.py, convert_to_block_layout",
            verified=_RUN,
            variants=grid(block_k=(128, 32, 64, 256)),
        ),
        entry(
            "trtllm-gate-up-interleave",
            "TRT-LLM-gen's gate and up rows: a row of each half in turns, array M K",
            ordered("... (g M) K -> ... M g K, g=2", multiples={"M": 2}),
            ((8, 16), "uint8"),
            f"{FLASHINFER}, fused_moe/core.py, get_reorder_rows_for_gated_act_gemm_row_indices",
            verified=_RUN,
        ),
        entry(
            "deepgemm-gate-up-8",
            "DeepGEMM's gate and up rows for mega MoE: 8 rows of each half in turns, array M K",
            ordered("... (g M m) K -> ... M g m K, g=2, m=8", multiples={"M": 16}),
            ((32, 16), "uint8"),
            f"{FLASHINFER}, experimental/mega_moe_v3/preparation.py, after DeepGEMM",
            verified=_RUN,
        ),
        entry(
            "rope-rows",
            "RoPE rows, Hugging Face to GGUF and Meta: each head's halves in turns, array M K; heads is "
            "n_head for q_proj, n_head_kv for k_proj",
            _rope,
            ((16, 4), "f32"),
            _LLAMA,
            verified="run: llama.cpp's conversion",
            variants=_HEADS,
        ),
        entry(
            "rope-rows-hf",
            "RoPE rows, GGUF and Meta to Hugging Face: each head's even rows, then its odd ones, array M K; "
            "heads is n_head for q_proj, n_head_kv for k_proj",
            _rope_hf,
            ((16, 4), "f32"),
            f"{_LLAMA}, inverted",
            verified="run: the inverse of llama.cpp's conversion",
            variants=_HEADS,
        ),
    ),
)
