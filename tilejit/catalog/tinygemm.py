"""tinygemm: PyTorch's int4 weights for CUDA and for CPUs, and their scales and zeros."""

from __future__ import annotations

import numpy as np

from tilejit.catalog.checks import one_of
from tilejit.catalog.entries import Family, entry, grid, ordered
from tilejit.catalog.format import Format
from tilejit.catalog.packing import Array, Codec, Field, Packing, Plane, Sizes

_INT4MM = "pytorch@05f814fe, aten/src/ATen/native/cuda/int4mm.cu, matrix_to_m16n8k16_Bint4_layout"
_TORCH = "torch 2.13.0, aten::_convert_weight_to_int4pack_for_cpu"
_HALVES = "(N h j) K -> N K j h, h=2"
_PAIRS = "(N j p) K -> N K j p, p=2"


def _cuda(inner: int = 8) -> Packing:
    tiles = one_of("inner", inner, (2, 4, 8))
    order = f"(N n) (K i q r p) -> N K n r i p q, n=8, i={tiles // 2}, q=4, r=4, p=2"
    return ordered(
        order,
        bits=4,
        multiples={"N": 8, "K": 16 * tiles},
        tensor=f"s32: N/8 K/{16 * tiles} 32 {tiles // 2}",
    )


def _cpu_codec(rows: int, halves: bool) -> Codec:
    """Blocks of rows; a block of fewer rows has pairs of neighboring rows.

    Args:
        rows: the rows of a block.
        halves: whether whole blocks pair row j with row j + rows / 2.
    """

    def split(n: int) -> int:
        return n // rows * rows

    def encode(arrays: tuple[Array, ...], sizes: Sizes) -> Array:
        (codes,), n, k = arrays, sizes["N"], sizes["K"]
        head = split(n)
        if halves:
            low, high = np.moveaxis(codes[:head].reshape(head // rows, 2, rows // 2, k), 1, 0)
        else:
            low, high = np.moveaxis(codes[:head].reshape(head // rows, rows // 2, 2, k), 2, 0)
        whole = np.swapaxes(low | high << 4, 1, 2)
        rest = (codes[head::2] | codes[head + 1 :: 2] << 4).T
        return np.concatenate([whole.reshape(-1), rest.reshape(-1)])

    def decode(data: Array, sizes: Sizes) -> tuple[Array, ...]:
        n, k, flat = sizes["N"], sizes["K"], data.reshape(-1)
        head = split(n)
        codes = np.empty((n, k), np.uint8)
        whole = np.swapaxes(flat[: head * k // 2].reshape(head // rows, k, rows // 2), 1, 2)
        shape = (head // rows, 2, rows // 2, k) if halves else (head // rows, rows // 2, 2, k)
        blocks = codes[:head].reshape(shape)
        rest = flat[head * k // 2 :].reshape(k, (n - head) // 2).T
        for nibble in range(2):
            half = blocks[:, nibble] if halves else blocks[:, :, nibble]
            for number in range(len(whole)):  # a block at a time, so that its rows stay in the cache
                half[number] = whole[number] >> 4 * nibble & 15
            codes[head + nibble :: 2] = rest >> 4 * nibble & 15
        return (codes,)

    order = f"{_HALVES if halves else _PAIRS}, j={rows // 2}"
    return Codec(f"{order}; a last block of n rows {_PAIRS}, j=n/2", "N K/2", encode, decode)


def _cpu(name: str, isa: str, capability: str, rows: int, halves: bool) -> Format:
    packing = Packing(
        (Plane("values", "N K", 4),),
        (Field(("values",), codec=_cpu_codec(rows, halves)),),
        tensors={"buffer": "u8: N K/2"},
        multiples={"N": 16, "K": 2},
    )
    return entry(
        name,
        f"PyTorch's tinygemm on CPUs with {isa}: int4 weights, array N K, blocks of {rows} rows",
        packing,
        ((rows + 16, 4), "uint8"),
        _TORCH,
        verified=f"run: torch 2.13.0, ATEN_CPU_CAPABILITY={capability}",
    )


def _scales_and_zeros() -> Packing:
    return Packing(
        (Plane("scales", "N G"), Plane("zeros", "N G")),
        (Field(("scales",), "N G -> G N"), Field(("zeros",), "N G -> G N")),
        records="G N",
        tensors={"buffer": "any: G N 2"},
    )


FAMILY = Family(
    "tinygemm",
    "tinygemm: PyTorch's int4 weights",
    (
        entry(
            "tinygemm-cuda",
            "PyTorch's tinygemm on NVIDIA GPUs: int4 weights, array N K; torchao pads N to 8 and K to 1024",
            _cuda,
            ((8, 128), "uint8"),
            _INT4MM,
            verified="expressions: the index formula evaluated; GPU not run",
            variants=grid(inner=(8, 2, 4)),
        ),
        _cpu("tinygemm-cpu", "AVX-512", "avx512", 64, True),
        _cpu("tinygemm-cpu-avx2", "AVX2", "avx2", 32, True),
        _cpu("tinygemm-cpu-default", "neither AVX2 nor AVX-512", "default", 32, False),
        entry(
            "tinygemm-scales-and-zeros",
            "PyTorch's tinygemm: scales and zeros, arrays N G, as pairs (scale, zero) in G N",
            _scales_and_zeros(),
            ((8, 2), "float32"),
            "torchao 0.18.0, quantization/utils.py, pack_tinygemm_scales_and_zeros",
            verified="run: torchao 0.18.0",
        ),
    ),
)
