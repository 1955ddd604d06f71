"""ExLlama: shuffled GPTQ words, EXL2 and EXL3."""

from __future__ import annotations

from tilejit.catalog.checks import one_of
from tilejit.catalog.entries import Family, entry, grid, ordered
from tilejit.catalog.packing import Field, Packing, Plane

_EXL2 = "exllamav2@da07facd, exllamav2_ext/cuda/pack_tensor.cu"
_EXL2_RUN = "run: exllamav2@da07facd, its kernel compiled for the CPU"
_EXL3 = "exllamav3@4f8ad012, exllamav3/exllamav3_ext/quant/pack.cu"


def _exl2_weight(bits: int = 4) -> Packing:
    width = one_of("bits", bits, (2, 3, 4, 5, 6, 8))
    k = 32 // width if 32 % width == 0 else 32
    words = None if 32 % width == 0 else (f"K/32 N/32 32 {width}", "K N n w -> K w N n")
    return Packing(
        (Plane("values", "K N", width),),
        (Field(("values",), f"(K k) (N n) -> K N n k, k={k}, n=32", words=words, padding=1 << width - 1),),
        tensors={"buffer": f"s32: K*{width}/32 N^32"},
        multiples={"K": 32},
    )


def _trellis(bits: int = 4) -> Packing:
    width = one_of("bits", bits, (1, 2, 3, 4, 5, 6, 7, 8))
    if 32 % width == 0:
        field = Field(("codes",), f"... (S k) -> ... S -k, k={32 // width}")
    else:
        words = f"... S/32 {width}", "... S w -> ... S -w"
        field = Field(("codes",), "... (S k) -> ... S -k, k=32", words=words)
    return Packing(
        (Plane("codes", "... S", width),),
        (field,),
        tensors={"buffer": f"s16: ... S*{width}/16"},
        multiples={"S": 256},
    )


FAMILY = Family(
    "exllama",
    "ExLlama weights: shuffled GPTQ, EXL2, EXL3",
    (
        entry(
            "exllama-shuffled",
            "ExLlama: GPTQ's qweight in memory, array K N, words of 8 rows in the order 0 2 4 6 1 3 5 7",
            ordered("(K q p) N -> K N p q, q=4, p=2", bits=4, multiples={"K": 8}, tensor="s32: K/8 N"),
            ((8, 8), "uint8"),
            "gptqmodel 7.7.0, gptqmodel_ext/exllamav2/cuda/quant/qdq_4.cuh, shuffle_4bit_8",
            verified="expressions: those of the source run in NumPy",
        ),
        entry(
            "exl2-q_weight",
            "EXL2: q_weight of the rows of one width, array K N, words of 32 bits down each column; "
            "q_groups has the width and the first word row of each group, and q_invperm the order of rows",
            _exl2_weight,
            ((32, 32), "uint8"),
            f"{_EXL2}; conversion/adaptivegptq.py",
            verified=_EXL2_RUN,
            variants=grid(bits=(4, 2, 3, 5, 6, 8)),
        ),
        entry(
            "exl2-q_scale",
            "EXL2: q_scale, array G N of scales 1 to 16, stored minus 1",
            Packing(
                (Plane("values", "G N", 4, low=1),),
                (Field(("values",)),),
                tensors={"buffer": "s32: G N/8"},
                multiples={"N": 8},
            ),
            ((2, 32), "uint8"),
            _EXL2,
            verified=_EXL2_RUN,
        ),
        entry(
            "exl3-tile",
            "EXL3: the order of weights in tiles of 16 x 16, array K N",
            ordered(
                "(K h q p) (N c g) -> K N g q c h p, h=2, q=4, p=2, c=2, g=8", multiples={"K": 16, "N": 16}
            ),
            ((16, 16), "uint16"),
            "exllamav3@4f8ad012, modules/quant/exl3_lib/quantize.py, tensor_core_perm",
            verified="run: exllamav3@4f8ad012",
        ),
        entry(
            "exl3-trellis",
            "EXL3: trellis, array K/16 N/16 256 of codes in the order of exl3-tile, in 32-bit words from the "
            "top bits down",
            _trellis,
            ((1, 1, 256), "uint8"),
            f"{_EXL3}, pack_trellis_kernel",
            verified="expressions: the source's loop evaluated; the kernel not run",
            variants=grid(bits=(4, 1, 2, 3, 5, 6, 7, 8)),
        ),
        entry(
            "exl3-signs",
            "EXL3: sign vectors su and sv in int16 words of 16, the first in bit 0; 1 is negative",
            ordered("... S -> ... S", bits=1, multiples={"S": 16}, tensor="s16: ... S/16"),
            ((32,), "uint8"),
            f"{_EXL3}, pack_signs_kernel",
            verified="read: not run",
        ),
    ),
)
