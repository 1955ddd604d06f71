"""HQQ: parts of the rows side by side in one word, the first part in the top bits."""

from __future__ import annotations

import numpy as np

from tilejit.catalog.entries import Family, entry, ordered
from tilejit.catalog.packing import Array, Codec, Field, Packing, Plane, Sizes

_HQQ = "hqq@0dbf39a6, hqq/core/bitpack.py"
_SHIFTS = 27 - 3 * np.arange(10, dtype=np.uint32)


def _encode(arrays: tuple[Array, ...], sizes: Sizes) -> Array:
    (codes,), rows = arrays, -(-sizes["R"] // 10)
    padded = np.zeros((10 * rows, sizes["C"]), np.uint32)
    padded[: sizes["R"]] = codes
    parts = padded.reshape(10, rows, sizes["C"]) << _SHIFTS[:, None, None]
    words: Array = np.bitwise_or.reduce(parts, axis=0)
    return words.astype("<u4").reshape(-1).view(np.uint8)


def _decode(data: Array, sizes: Sizes) -> tuple[Array, ...]:
    rows, columns = -(-sizes["R"] // 10), sizes["C"]
    words = data.reshape(-1).view("<u4").reshape(rows, columns)
    codes = (words >> _SHIFTS[:, None, None] & 7).astype(np.uint8)
    return (codes.reshape(10 * rows, columns)[: sizes["R"]],)


FAMILY = Family(
    "hqq",
    "HQQ weights",
    (
        entry(
            "hqq-4bit-u8",
            "HQQ: 4-bit codes, array R C, bytes with the first half of the rows in the high nibbles",
            ordered("(p R) C -> R C -p, p=2", bits=4, multiples={"R": 2}, tensor="u8: R/2 C"),
            ((4, 8), "uint8"),
            f"{_HQQ}, pack_4bit_u8",
            verified="run: its expressions",
        ),
        entry(
            "hqq-3bit-32",
            "HQQ: 3-bit codes, array R C, words of ten codes from bit 29 down, R padded to 10 with 0",
            Packing(
                (Plane("values", "R C", 3),),
                (
                    Field(
                        ("values",),
                        codec=Codec(
                            "32-bit words [R/10, C] with tenth t of the rows at bits 27 - 3t",
                            "R/10 C 4",
                            _encode,
                            _decode,
                        ),
                    ),
                ),
                tensors={"buffer": "s32: R/10 C"},
            ),
            ((20, 4), "uint8"),
            f"{_HQQ}, pack_3bit_32",
            verified="run: its expressions",
        ),
    ),
)
