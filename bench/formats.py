"""The named formats that XLA's tiles can express, each with its recipe and an even and an uneven shape.

The recipes are the code that users of the formats write. The bench checks every answer against them.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from bench.arrays import BF16, INT4, short_name
from bench.recipe import Recipe

F16, F32 = np.dtype(np.float16), np.dtype(np.float32)
S8, U8, U32, PRED = np.dtype(np.int8), np.dtype(np.uint8), np.dtype(np.uint32), np.dtype(np.bool_)

Dims = tuple[int, ...]
WORDS = (4096, 4096), (4099, 4101)
HALVES = (8192, 4096), (8191, 4101)
BYTES = (8192, 8192), (8191, 8197)
IMAGES = (16, 64, 128, 128), (16, 67, 125, 125)
HALF_IMAGES = (32, 64, 128, 128), (32, 67, 125, 125)


@dataclass(frozen=True, slots=True)
class Format:
    """A name, its layout in XLA's notation, its recipe, and two shapes of about 64 MB.

    `width` is the width of packed elements in bits; 0 if elements take complete bytes.
    """

    name: str
    dtype: Any
    layout: str
    split: tuple[tuple[int, ...], ...]
    order: tuple[int, ...]
    shapes: tuple[Dims, Dims]
    width: int = 0

    def recipe(self, dims: Dims) -> Recipe:
        """The recipe for an array with those dimensions."""
        return Recipe(dims, self.split, self.order)

    def label(self, dims: Dims) -> str:
        """tpu bf16[8192,4096] T(8,128)(2,1)"""
        order, _, tiles = self.layout.strip("{}").partition(":")
        descending = ",".join(map(str, reversed(range(len(dims)))))
        text = tiles if order == descending else self.layout
        text = text if len(text) <= 24 else text[:23] + "…"
        return f"{self.name} {short_name(self.dtype)}[{','.join(map(str, dims))}] {text}"


FORMATS = (
    Format("tpu", F32, "{1,0:T(8,128)}", ((8,), (128,)), (0, 2, 1, 3), WORDS),
    Format("tpu", BF16, "{1,0:T(8,128)(2,1)}", ((4, 2), (128,)), (0, 3, 1, 4, 2), HALVES),
    Format("tpu", S8, "{1,0:T(8,128)(4,1)}", ((2, 4), (128,)), (0, 3, 1, 4, 2), BYTES),
    Format("tpu", S8, "{1,0:T(32,128)(4,1)}", ((8, 4), (128,)), (0, 3, 1, 4, 2), BYTES),
    Format("tpu", INT4, "{1,0:T(64,128)(8,1)E(4)}", ((8, 8), (128,)), (0, 3, 1, 4, 2), BYTES, 4),
    Format("tpu", PRED, "{1,0:T(32,128)(32,1)E(1)}", ((32,), (128,)), (0, 2, 3, 1), BYTES, 1),
    Format("tenstorrent", BF16, "{1,0:T(32,32)(16,16)}", ((2, 16), (2, 16)), (0, 3, 1, 4, 2, 5), HALVES),
    Format("nChw16c", F32, "{3,2,1,0:T(16,1,1)}", ((), (16,), (), ()), (0, 1, 3, 4, 2), IMAGES),
    Format("nChw8c", F32, "{3,2,1,0:T(8,1,1)}", ((), (8,), (), ()), (0, 1, 3, 4, 2), IMAGES),
    Format("NC1HWC0", F16, "{3,2,1,0:T(16,1,1)}", ((), (16,), (), ()), (0, 1, 3, 4, 2), HALF_IMAGES),
    Format(
        "OIhw16i16o",
        F32,
        "{3,2,1,0:T(16,16,1,1)(16,1,1,1)}",
        ((16,), (16,), (), ()),
        (0, 2, 4, 5, 3, 1),
        ((1024, 1792, 3, 3), (1020, 1790, 3, 3)),
    ),
    Format(
        "OIhw4i16o4i",
        S8,
        "{3,2,1,0:T(16,16,1,1)(16,4,1,1)}",
        ((16,), (4, 4), (), ()),
        (0, 2, 5, 6, 3, 1, 4),
        ((2048, 3584, 3, 3), (2043, 3581, 3, 3)),
    ),
    Format("vnni", BF16, "{1,0:T(2,1)}", ((2,), ()), (0, 2, 1), HALVES),
    Format("vnni", S8, "{1,0:T(4,1)}", ((4,), ()), (0, 2, 1), BYTES),
    Format("amx B", BF16, "{1,0:T(32,16)(2,1)}", ((16, 2), (16,)), (0, 3, 1, 4, 2), HALVES),
    Format("amx B", S8, "{1,0:T(64,16)(4,1)}", ((16, 4), (16,)), (0, 3, 1, 4, 2), BYTES),
    Format("col32", S8, "{0,1:T(32,1)}", ((), (32,)), (1, 0, 2), BYTES),
    Format(
        "col4_4r2_8c",
        S8,
        "{0,1:T(32,8)(32,2)(4,4,1)(8,1,4,4,1)}",
        ((4, 2), (4, 2, 4)),
        (3, 0, 2, 4, 5, 1, 6),
        BYTES,
    ),
    Format(
        "col32_2r_4r4",
        S8,
        "{0,1:T(32,32)(32,8)(32,2)(4,1,1,32,2)(32,1)}",
        ((4, 4, 2), (32,)),
        (4, 0, 2, 1, 3, 5),
        BYTES,
    ),
    Format(
        "mx scales",
        U8,
        "{1,0:T(128,4)(32,4)(4,1,1,4)}",
        ((4, 32), (4,)),
        (0, 3, 2, 1, 4),
        ((65536, 1024), (65530, 1021)),
    ),
    Format("aiter", F16, "{1,0:T(16,8)}", ((16,), (8,)), (0, 2, 1, 3), HALVES),
    Format("aiter", S8, "{1,0:T(16,16)}", ((16,), (16,)), (0, 2, 1, 3), BYTES),
    Format("fractal_nz", F16, "{0,1:T(16,16)(16,1)}", ((16,), (16,)), (2, 0, 1, 3), HALVES),
    Format(
        "crouton",
        U8,
        "{3,2,1,0:T(8,8,32)}",
        ((), (8,), (8,), (32,)),
        (0, 1, 3, 5, 2, 4, 6),
        ((16, 128, 128, 256), (16, 125, 125, 250)),
    ),
    Format(
        "crouton",
        F16,
        "{3,2,1,0:T(8,4,32)(2,1)}",
        ((), (8,), (2, 2), (32,)),
        (0, 1, 3, 6, 2, 4, 7, 5),
        ((16, 128, 128, 128), (16, 125, 125, 125)),
    ),
    Format("blis A", F32, "{1,0:T(6,1)}", ((6,), ()), (0, 2, 1), ((4224, 4096), (4099, 4101))),
    Format("blis A", F32, "{1,0:T(16,1)}", ((16,), ()), (0, 2, 1), WORDS),
    Format("blis B", F32, "{0,1:T(16,1)}", ((), (16,)), (1, 0, 2), WORDS),
    Format("morton", U32, "{1,0:T(8,8)(4,4)(2,2)}", ((2, 2, 2), (2, 2, 2)), (0, 4, 1, 5, 2, 6, 3, 7), WORDS),
)
