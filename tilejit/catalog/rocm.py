"""ROCm's aiter: weights for matrix cores."""

from __future__ import annotations

from tilejit.catalog.checks import one_of
from tilejit.catalog.entries import Family, layout_format
from tilejit.catalog.format import Dims, Element, Format
from tilejit.catalog.packing import Field, Packing, Plane
from tilejit.catalog.widths import by_width

_SHUFFLE = "ROCm/aiter@e4048607, aiter/ops/shuffle.py"
_RUN = f"run: {_SHUFFLE}"
_ORDER = "... (N n) (K k2 k) -> ... N K k2 n k"


def _preshuffle(element: Element) -> dict[str, int]:
    k = by_width("aiter-preshuffle", element, {16: 8, 8: 16}, "convert to a 16-bit or an 8-bit type")
    return {"k2": 32 // k, "k": k}


def _shuffle_weight(element: Element, dims: Dims, rows: int = 16) -> Packing:
    sizes = {"n": one_of("rows", rows, (16, 32)), **_preshuffle(element)}
    field = Field(("values",), _ORDER, sizes=sizes)
    return Packing((Plane("values", "... N K"),), (field,), multiples={"N": sizes["n"], "K": 32})


def _bytes(element: Element) -> dict[str, int]:
    by_width("aiter", element, {8: 1}, "view the array as bytes")
    return {}


FAMILY = Family(
    "rocm",
    "ROCm's aiter",
    (
        layout_format(
            "aiter-preshuffle",
            "ROCm aiter's weights for matrix cores: 16 rows by 16 bytes, array N K",
            f"{_ORDER}, n=16",
            ((32, 64), "bf16"),
            "ROCm aiter, shuffle_weight in aiter/ops/shuffle.py",
            sizes=_preshuffle,
            rule="k = 128 / bits; k2 = 32 / k",
            verified=_RUN,
            same_as=("aiter-shuffle-weight",),
        ),
        Format(
            "aiter-shuffle-weight",
            "aiter's shuffle_weight: 16 rows (32 for its layout (32, 16)) by 16 bytes, array N K",
            _shuffle_weight,
            ("rows",),
            ((32, 64), "bf16"),
            f"{_ORDER}; n = rows, 16 by default; k = 128 / bits; k2 = 32 / k",
            f"{_SHUFFLE}, shuffle_weight",
            verified=_RUN,
            variants=({"rows": 32},),
            same_as=("aiter-preshuffle",),
        ),
        layout_format(
            "aiter-shuffle-weight-int4",
            "aiter's shuffle_weight with use_int4: 16 rows by 32 codes, one in each byte, array N K",
            "... (N n) (K k) -> ... N K n k, n=16, k=32",
            ((32, 64), "s8"),
            f"{_SHUFFLE}, shuffle_weight",
            sizes=_bytes,
            multiples={"N": 16, "K": 32},
            verified="read: not run",
        ),
        layout_format(
            "aiter-int4-04",
            "aiter's packed int4: byte j of 8 codes has code j low and code j + 4 high, array R K",
            "... (K h j) -> ... K j h, h=2, j=4",
            ((4, 16), "s8"),
            f"{_SHUFFLE}, pack_int8_to_packed_int4",
            bits=4,
            signed=True,
            multiples={"K": 8},
            verified=_RUN,
        ),
        layout_format(
            "aiter-weight-a16w4",
            "aiter's gate and up weights for a16w4: 16 rows by 64 bytes of each in turns, array E N K",
            "E (g N n) (K k c) -> E N g K k n c, g=2, n=16, k=4, c=16",
            ((1, 64, 64), "uint8"),
            f"{_SHUFFLE}, shuffle_weight(is_guinterleave, gate_up)",
            sizes=_bytes,
            multiples={"N": 32, "K": 64},
            verified=_RUN,
        ),
        layout_format(
            "aiter-gfx1250-weight",
            "aiter's weights for gfx1250: 16 rows by 16 bytes, array N K of bytes",
            "... (N n) (K k c) -> ... N K k n c, n=16, k=2, c=16",
            ((16, 64), "uint8"),
            f"{_SHUFFLE}, shuffle_weight_gfx1250",
            sizes=_bytes,
            multiples={"N": 16, "K": 32},
            verified=_RUN,
            same_as=("aiter-shuffle-weight",),
        ),
        layout_format(
            "aiter-gfx1250-a",
            "aiter's A of MXFP8 x FP4 for gfx1250: 2 rows by 128 bytes, array M K of bytes",
            "... (M m) (K k) -> ... M K m k, m=2, k=128",
            ((4, 256), "uint8"),
            f"{_SHUFFLE}, shuffle_mxfp8fp4_a",
            sizes=_bytes,
            multiples={"M": 2, "K": 128},
            verified=_RUN,
        ),
    ),
)
