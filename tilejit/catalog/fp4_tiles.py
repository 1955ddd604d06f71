"""Codes of FP4 and FP6 in the orders that matrix units read."""

from __future__ import annotations

from math import lcm

import numpy as np

from codegen import LayoutError
from tilejit.catalog.checks import checked_int, one_of
from tilejit.catalog.entries import Family, entry, grid
from tilejit.catalog.packing import Array, Codec, Field, Packing, Plane, Sizes, rounded_up
from tilejit.catalog.sources import EXPRESSIONS, TRITON

_MOVES = (((8, 12), (7, 6)), ((8, 9), (7, 3)), ((8, 6), (7, 0)), ((8, 11), (6, 9), (1, 13)))
"""For each of the 4 bytes of a Hopper word, masks of a code's bits and how far those are shifted.

The code in the low nibble goes to the lower 16 bits of the word, the other one to the upper 16 bits."""
_PAIR = 0x10001
_HOPPER_ORDER = (0, 2, 4, 3, 7, 5, 6, 1, 8)
"""(N w t s) (K i u v c) -> N t K s v i u w c"""


def _fp6_llm() -> Packing:
    pattern = "(M a b c d) (N e f) -> M N a {}, a=2, b=2, c=2, d=8, e=2, f=8"
    return Packing(
        (Plane("codes", "M N", 6),),
        (
            Field(("codes",), pattern.format("d f -c -b -e"), take=(4, 2)),
            Field(("codes",), pattern.format("b d f -c -e"), take=(0, 4)),
        ),
        multiples={"M": 64, "N": 64},
    )


def _blackwell(block_k: int = 128, block_n: int = 256) -> Packing:
    k, n = checked_int("block_k", block_k), checked_int("block_n", block_n)
    if k % 2:
        raise LayoutError(f"block_k is {k}\n  pass an even number, because a byte holds two codes along K")
    steps = lcm(256, k) // k
    field = Field(("codes",), "... (K s k) (N n) -> ... K s N n k", sizes={"s": steps, "k": k, "n": n})
    return Packing((Plane("codes", "... K N", 4),), (field,))


def _hopper(mma_version: int = 3) -> Packing:
    version = one_of("mma_version", mma_version, (2, 3))
    i, c = (1, 4) if version == 2 else (4, 1)

    def encode(arrays: tuple[Array, ...], sizes: Sizes) -> Array:
        (codes,) = arrays
        lead, rows, columns = _padded(sizes)
        padded = np.zeros((*lead, rows, columns), np.uint8)
        padded[..., : sizes["N"], : sizes["K"]] = codes
        pairs = (padded[..., 0::2] | padded[..., 1::2] << 4).reshape(*lead, *_digits(rows, columns, i, c))
        order = (*range(len(lead)), *(len(lead) + axis for axis in _HOPPER_ORDER))
        return _interleaved(pairs.transpose(order).reshape(-1, 4))

    def decode(data: Array, sizes: Sizes) -> tuple[Array, ...]:
        lead, rows, columns = _padded(sizes)
        digits = _digits(rows, columns, i, c)
        pairs = _separated(data).reshape(*lead, *(digits[axis] for axis in _HOPPER_ORDER))
        back = (*range(len(lead)), *(len(lead) + _HOPPER_ORDER.index(axis) for axis in range(9)))
        pairs = pairs.transpose(back).reshape(*lead, rows, columns // 2)
        codes = np.empty((*lead, rows, columns), np.uint8)
        np.bitwise_and(pairs, 15, out=codes[..., 0::2])
        np.right_shift(pairs, 4, out=codes[..., 1::2])
        return (np.ascontiguousarray(codes[..., : sizes["N"], : sizes["K"]]),)

    inner = "i=1, u=2, v=4, c=4" if version == 2 else "i=4, u=2, v=4, c=1"
    text = (
        "bytes of two codes along K, N padded to 256 and K to 128, in the order (N w t s) (K i u v c) -> "
        f"N t K s v i u w c, w=2, t=4, s=2, {inner}; then 4 bytes are one word E(b0) | E(b1) >> 3 | "
        "E(b2) >> 6 | F(b3) of E(b) = e(b & 15) | e(b >> 4) << 16, e(x) = (x & 8) << 12 | (x & 7) << 6, "
        "and F of f(x) = (x & 8) << 11 | (x & 6) << 9 | (x & 1) << 13"
    )
    codec = Codec(text, "... N/4^64 K*2^256", encode, decode)
    return Packing(
        (Plane("codes", "... N K", 4),),
        (Field(("codes",), codec=codec),),
        tensors={"buffer": f"u8: {codec.extents}"},
    )


def _padded(sizes: Sizes) -> tuple[tuple[int, ...], int, int]:
    """The leading dimensions, and N and K with their padding."""
    return sizes["..."], rounded_up(sizes["N"], 256), rounded_up(sizes["K"], 128)


def _digits(rows: int, columns: int, i: int, c: int) -> tuple[int, ...]:
    """The extents of N w t s K i u v c."""
    return rows // 16, 2, 4, 2, columns // 64, i, 2, 4, c


def _interleaved(pairs: Array) -> Array:
    """Move the bits of each 4 bytes, 8 codes, to their places in a word."""
    words = np.zeros(len(pairs), np.uint32)
    for byte, moves in enumerate(_MOVES):
        own = pairs[:, byte].astype(np.uint32)
        lanes = own & 15 | own >> 4 << 16
        for mask, shift in moves:
            words |= (lanes & np.uint32(mask * _PAIR)) << np.uint32(shift)
    return words.astype("<u4", copy=False).view(np.uint8)


def _separated(data: Array) -> Array:
    """The inverse of `_interleaved`."""
    words = np.ascontiguousarray(data).reshape(-1).view("<u4")
    pairs = np.empty((len(words), 4), np.uint8)
    for byte, moves in enumerate(_MOVES):
        lanes = np.zeros(len(words), np.uint32)
        for mask, shift in moves:
            lanes |= words >> np.uint32(shift) & np.uint32(mask * _PAIR)
        pairs[:, byte] = (lanes | lanes >> 12) & 0xFF
    return pairs


FAMILY = Family(
    "fp4-tiles",
    "Codes of FP4 and FP6 for matrix units",
    (
        entry(
            "hopper-mx-value",
            "triton_kernels on Hopper: E2M1 codes for 16-bit MMAs, array N K; bits are interleaved in words",
            _hopper,
            ((256, 128), "uint8"),
            f"{TRITON}/hopper_value.py@000df03e",
            verified=EXPRESSIONS,
            variants=grid(mma_version=(3, 2)),
        ),
        entry(
            "blackwell-mx4-shuffled",
            "triton_kernels on Blackwell: E2M1 codes in blocks that load as one, array K N",
            _blackwell,
            ((128, 256), "uint8"),
            f"{TRITON}/blackwell_value_shuffled.py@000df03e",
            rule="k = block_k, n = block_n, s k = lcm(256, block_k)",
            verified=EXPRESSIONS,
            variants=grid(block_k=(128, 64, 256), block_n=(256, 64, 128, 512)),
        ),
        entry(
            "fp6-llm-2-4-split",
            "FP6-LLM: FP6 codes of 64 x 64 tiles, array M N; first the high 2 bits of all, then the low 4",
            _fp6_llm,
            ((64, 64), "uint8"),
            "torchao 0.9.0, torchao/dtypes/floatx/floatx_tensor_core_layout.py, _pack_tc_fp6",
            verified="run: torchao 0.9.0",
        ),
    ),
)
