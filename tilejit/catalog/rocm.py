"""ROCm's aiter: weights for matrix cores."""

from __future__ import annotations

from tilejit.catalog.checks import one_of
from tilejit.catalog.entries import Family, entry, grid, ordered
from tilejit.catalog.format import Element
from tilejit.catalog.packing import Packing
from tilejit.catalog.sources import AITER
from tilejit.catalog.widths import by_width

_RUN = f"run: {AITER}"
_ORDER = "... (N n) (K k2 k) -> ... N K k2 n k"


def _inner(element: Element) -> dict[str, int]:
    k = by_width("aiter-preshuffle", element, {16: 8, 8: 16}, "convert to a 16-bit or an 8-bit type")
    return {"k2": 32 // k, "k": k}


def _preshuffle(element: Element) -> Packing:
    return ordered(f"{_ORDER}, n=16", sizes=_inner(element))


def _shuffle_weight(element: Element, rows: int = 16) -> Packing:
    sizes = {"n": one_of("rows", rows, (16, 32)), **_inner(element)}
    return ordered(_ORDER, sizes=sizes, multiples={"N": sizes["n"], "K": 32})


FAMILY = Family(
    "rocm",
    "ROCm's aiter",
    (
        entry(
            "aiter-preshuffle",
            "ROCm aiter's weights for matrix cores: 16 rows by 16 bytes, array N K",
            _preshuffle,
            ((32, 64), "bf16"),
            "ROCm aiter, shuffle_weight in aiter/ops/shuffle.py",
            rule="k = 128 / bits; k2 = 32 / k",
            verified=_RUN,
        ),
        entry(
            "aiter-shuffle-weight",
            "aiter's shuffle_weight: 16 rows (32 for its layout (32, 16)) by 16 bytes, array N K",
            _shuffle_weight,
            ((32, 64), "bf16"),
            f"{AITER}, shuffle_weight",
            rule="n = rows, 16 by default; k = 128 / bits; k2 = 32 / k",
            verified=_RUN,
            variants=grid(rows=(16, 32)),
        ),
        entry(
            "aiter-shuffle-weight-int4",
            "aiter's shuffle_weight with use_int4: 16 rows by 32 codes, one in each byte, array N K",
            ordered(
                "... (N n) (K k) -> ... N K n k, n=16, k=32",
                bits=8,
                multiples={"N": 16, "K": 32},
            ),
            ((32, 64), "s8"),
            f"{AITER}, shuffle_weight",
            verified="read: not run",
        ),
        entry(
            "aiter-int4-04",
            "aiter's packed int4: byte j of 8 codes has code j low and code j + 4 high, array R K",
            ordered("... (K h j) -> ... K j h, h=2, j=4", bits=4, signed=True, multiples={"K": 8}),
            ((4, 16), "s8"),
            f"{AITER}, pack_int8_to_packed_int4",
            verified=_RUN,
        ),
        entry(
            "aiter-weight-a16w4",
            "aiter's gate and up weights for a16w4: 16 rows by 64 bytes of each in turns, array E N K",
            ordered(
                "E (g N n) (K k c) -> E N g K k n c, g=2, n=16, k=4, c=16",
                bits=8,
                multiples={"N": 32, "K": 64},
            ),
            ((1, 64, 64), "uint8"),
            f"{AITER}, shuffle_weight(is_guinterleave, gate_up)",
            verified=_RUN,
        ),
        entry(
            "aiter-gfx1250-weight",
            "aiter's weights for gfx1250: 16 rows by 16 bytes, array N K of bytes",
            ordered(
                "... (N n) (K k c) -> ... N K k n c, n=16, k=2, c=16", bits=8, multiples={"N": 16, "K": 32}
            ),
            ((16, 64), "uint8"),
            f"{AITER}, shuffle_weight_gfx1250",
            verified=_RUN,
        ),
        entry(
            "aiter-gfx1250-a",
            "aiter's A of MXFP8 x FP4 for gfx1250: 2 rows by 128 bytes, array M K of bytes",
            ordered(
                "... (M m) (K k) -> ... M K m k, m=2, k=128",
                bits=8,
                multiples={"M": 2, "K": 128},
            ),
            ((4, 256), "uint8"),
            f"{AITER}, shuffle_mxfp8fp4_a",
            verified=_RUN,
        ),
    ),
)
