"""AWQ and GPTQ: words of 32 bits along rows or columns, alone and as whole checkpoints."""

from __future__ import annotations

import numpy as np

from codegen import LayoutError
from tilejit.catalog.checks import one_of
from tilejit.catalog.entries import Family, entry, grid, groups, ordered
from tilejit.catalog.packing import Arrays, Field, Packing, Plane, PlaneSteps, Sizes

_AUTO_ROUND = "auto-round 0.16.1, auto_round/utils/bit_packing.py"
_WIDTHS = (2, 3, 4, 5, 6, 7, 8)
_AWQ_ORDER = "K (N q p) -> K N p q, q=4, p=2"


def down_columns(plane: str, bits: int, buffer: str = "buffer") -> Field:
    """Codes of an array K N in words of 32 bits down each column; 3, 5, 6 and 7 bits as a dense stream."""
    if 32 % bits == 0:
        return Field((plane,), f"(K k) N -> K N k, k={32 // bits}", buffer=buffer)
    words = f"K/32 N {bits}", "K N w -> K w N"
    return Field((plane,), "(K k) N -> K N k, k=32", words=words, buffer=buffer)


def _gptq(bits: int = 4) -> Packing:
    width = one_of("bits", bits, _WIDTHS)
    return Packing(
        (Plane("values", "K N", width),),
        (down_columns("values", width),),
        tensors={"buffer": f"s32: K*{width}/32 N"},
        multiples={"K": 32},
    )


def _zeros(name: str, axes: str, bits: int, version: int) -> Plane:
    return Plane(name, axes, bits, low=one_of("version", version, (1, 2)) % 2)


def _row_multiple(bits: int) -> int:
    """The columns whose zeros fill whole words."""
    return 32 // bits if 32 % bits == 0 else 32


def _gptq_zeros(version: int = 1, bits: int = 4) -> Packing:
    width = one_of("bits", bits, _WIDTHS)
    return Packing(
        (_zeros("values", "G N", width, version),),
        (Field(("values",)),),
        tensors={"buffer": f"s32: G N*{width}/32"},
        multiples={"N": _row_multiple(width)},
    )


def _gptq_checkpoint(bits: int = 4, group: int = 128, version: int = 1) -> Packing:
    width, rows = one_of("bits", bits, _WIDTHS), groups(group)
    return Packing(
        (
            Plane("codes", "K N", width),
            _zeros("zeros", f"{rows} N", width, version),
            Plane("scales", f"{rows} N"),
            Plane("g_idx", "K", dtype="s32"),
        ),
        (
            down_columns("codes", width, "qweight"),
            Field(("zeros",), buffer="qzeros"),
            Field(("scales",), buffer="scales"),
            Field(("g_idx",), buffer="g_idx"),
        ),
        tensors={
            "qweight": f"s32: K*{width}/32 N",
            "qzeros": f"s32: {rows} N*{width}/32",
            "scales": f"any: {rows} N",
            "g_idx": "s32: K",
        },
        multiples={"K": 32, "N": _row_multiple(width)},
        optional=("g_idx",),
    )


def _awq_checkpoint(group: int = 128) -> Packing:
    rows = groups(group)
    return Packing(
        (Plane("codes", "K N", 4), Plane("zeros", f"{rows} N", 4), Plane("scales", f"{rows} N")),
        (
            Field(("codes",), _AWQ_ORDER, buffer="qweight"),
            Field(("zeros",), _AWQ_ORDER, buffer="qzeros"),
            Field(("scales",), buffer="scales"),
        ),
        tensors={"qweight": "s32: K N/8", "qzeros": f"s32: {rows} N/8", "scales": f"any: {rows} N"},
        multiples={"N": 8},
    )


def _sort_rows(arrays: Arrays, sizes: Sizes) -> Arrays:
    return {**arrays, "codes": arrays["codes"][np.argsort(arrays["g_idx"], kind="stable")]}


def _restore_rows(arrays: Arrays, sizes: Sizes) -> Arrays:
    if len(arrays) != 2:
        raise LayoutError("gptq-act-order needs both buffers to restore the order of rows\n  pass g_idx, too")
    codes = np.empty_like(arrays["codes"])
    codes[np.argsort(arrays["g_idx"], kind="stable")] = arrays["codes"]
    return {**arrays, "codes": codes}


def _act_order(bits: int = 4) -> Packing:
    width = one_of("bits", bits, _WIDTHS)
    return Packing(
        (Plane("codes", "K N", width), Plane("g_idx", "K", dtype="s32")),
        (down_columns("codes", width, "qweight"), Field(("g_idx",), buffer="g_idx")),
        tensors={"qweight": f"s32: K*{width}/32 N", "g_idx": "s32: K"},
        multiples={"K": 32},
        steps=PlaneSteps(
            "rows of codes in the order of a stable argsort of g_idx", _sort_rows, _restore_rows
        ),
    )


FAMILY = Family(
    "awq-gptq",
    "AWQ and GPTQ weights",
    (
        entry(
            "awq-gemm",
            "AutoAWQ, vLLM: qweight and qzeros, array K N, words of 8 columns in the order 0 2 4 6 1 3 5 7",
            ordered(_AWQ_ORDER, bits=4, multiples={"N": 8}, tensor="s32: K N/8"),
            ((4, 16), "uint8"),
            f"{_AUTO_ROUND}, pack_awq_bitstream",
            verified="run: auto-round 0.16.1, compressed-tensors 0.20.0",
        ),
        entry(
            "awq-checkpoint",
            "AutoAWQ: a layer of a checkpoint, codes K N; a group of -1 is all of K",
            _awq_checkpoint,
            ((128, 16), "uint8"),
            f"{_AUTO_ROUND}, pack_awq_bitstream",
            verified="run: auto-round 0.16.1, compressed-tensors 0.20.0",
            variants=grid(group=(128, 64, 32, -1)),
        ),
        entry(
            "awq-v2",
            "llm-awq, TinyChat and gemv-fast: qweight, array N K, int16 words of 4 codes in blocks of 4 rows",
            ordered(
                "(N i) (K t a b p) -> N K i t b p a, i=4, t=2, a=4, b=4, p=2",
                bits=4,
                multiples={"N": 4, "K": 64},
                tensor="s16: N/4 K",
            ),
            ((4, 64), "uint8"),
            "optimum-quanto 0.2.7, tensor/weights/awq/packed.py, pack_v2",
            verified="run: optimum-quanto 0.2.7",
        ),
        entry(
            "gptq",
            "GPTQ: qweight, array K N, words of 32 bits down each column",
            _gptq,
            ((32, 4), "uint8"),
            f"{_AUTO_ROUND}, pack_bitstream(dim=0)",
            verified="run: auto-round 0.16.1",
            variants=grid(bits=(4, 2, 3, 5, 6, 7, 8)),
        ),
        entry(
            "gptq-qzeros",
            "GPTQ: qzeros, array G N, words of 32 bits along rows; version 1 stores zero - 1",
            _gptq_zeros,
            ((2, 32), "uint8"),
            f"{_AUTO_ROUND}, pack_bitstream(dim=1)",
            verified="run: auto-round 0.16.1",
            variants=grid(version=(1, 2), bits=(4, 2, 3, 5, 6, 7, 8)),
        ),
        entry(
            "gptq-checkpoint",
            "GPTQ: a layer of a checkpoint, codes K N; version 1 stores zero - 1; a group of -1 is all of K; "
            "g_idx[k] is the group of row k, k // group without act-order",
            _gptq_checkpoint,
            ((128, 32), "uint8"),
            f"{_AUTO_ROUND}; auto_round_extension/torch/qlinear_torch.py",
            verified="run: auto-round 0.16.1; g_idx by definition",
            variants=grid(bits=(4, 2, 3, 8), group=(128, 64, 32, -1), version=(1, 2)),
        ),
        entry(
            "gptq-act-order",
            "GPTQ with act-order as Marlin loads it: qweight, array K N, rows of a group together; "
            "g_idx stays in the order of the checkpoint",
            _act_order,
            ((32, 4), "uint8"),
            "vLLM, marlin_sort_g_idx; its sort is not stable, so rows within a group may differ",
            verified="definition",
            variants=grid(bits=(4, 2, 3, 8)),
        ),
    ),
)
