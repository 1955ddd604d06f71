"""The planes of ggml's cases."""

from __future__ import annotations

import re

import ml_dtypes
import numpy as np

from tests.catalog.cases import CASES, Array, mix

SCALES, MINS = 1000003, 2000003
"""Seeds."""


SIZES = {  # bytes, columns
    **{"q4_0": (18, 32), "q4_1": (20, 32), "q5_0": (22, 32), "q5_1": (24, 32), "q8_0": (34, 32)},
    **{"q8_1": (36, 32), "q2_k": (84, 256), "q3_k": (110, 256), "q4_k": (144, 256), "q5_k": (176, 256)},
    **{"q6_k": (210, 256), "q8_k": (292, 256), "iq4_nl": (18, 32), "iq4_xs": (136, 256), "tq2_0": (66, 256)},
    **{"mxfp4": (17, 32), "nvfp4": (36, 64)},
}
CODES = {"q2_k": 4, "q3_k": 8, "q5_0": 32, "q5_1": 32, "q5_k": 32, "q6_k": 64, "tq1_0": 3, "tq2_0": 3}
"""The number of codes of a type; others have 16, and those that begin with q8 have 256."""


def kind_of(name: str) -> str:
    """The type of a case in lower case: "ggml_repack_q4_Kx8_8" -> "q4_k"."""
    text = CASES[name]["format"].lower().partition("-")[2]
    return re.sub(r"x\d+$|-r\d$|-tiled$", "", text)


def planes_of(name: str) -> dict[str, Array]:
    """The planes of a case, by the type that its format packs."""
    own = CASES[name]["input"]
    rows, columns = own["shape"]
    return planes(kind_of(name), rows, columns, own["modulus"], own.get("seed", 0))


def planes(kind: str, rows: int, columns: int, modulus: int, seed: int = 0) -> dict[str, Array]:
    """The planes of a type by the rule of the cases: block by block, whatever the rows."""
    codes = mix((rows, columns), modulus, seed)
    signed = kind.startswith("q8")
    out: dict[str, Array] = {"codes": (codes - 128).astype(np.int8) if signed else codes.astype(np.uint8)}
    big = kind.endswith(("_k", "_xs")) or kind.startswith("tq")
    blocks = (rows, columns // (256 if big else 32))

    def number(value: float, dtype: str = "f2") -> Array:
        return np.full(blocks, value, dtype)

    if kind == "mxfp4":
        return out | {"e": (120 + mix(blocks, 16, SCALES)).astype(np.uint8).view(ml_dtypes.float8_e8m0fnu)}
    if kind == "nvfp4":
        scales = 32 + mix((rows, columns // 16), 64, SCALES)
        return out | {"scales": scales.astype(np.uint8).view(ml_dtypes.float8_e4m3fn)}
    if kind == "q8_k":
        sums = out["codes"].reshape(rows, -1, 16).sum(-1, dtype=np.int16)
        return out | {"d": number(0.5, "f4"), "sums": sums}
    out["d"] = number(0.5)
    if kind.endswith("_1"):
        out["m" if kind[1] != "8" else "s"] = number(0.25)
    if kind in ("q2_k", "q4_k", "q5_k"):
        out["dmin"] = number(0.25)
        of, width = (16, 16) if kind == "q2_k" else (32, 64)
        for plane, seed_of in (("scales", SCALES), ("mins", MINS)):
            out[plane] = mix((rows, columns // of), width, seed_of).astype(np.uint8)
    if kind in ("q3_k", "iq4_xs"):
        out["scales"] = mix((rows, columns // (16 if kind == "q3_k" else 32)), 64, SCALES).astype(np.uint8)
    if kind == "q6_k":
        out["scales"] = (mix((rows, columns // 16), 256, SCALES) - 128).astype(np.int8)
    return out


def varied(kind: str, rows: int, columns: int) -> dict[str, Array]:
    """The planes of a type, and other numbers in every block."""
    given = planes(kind, rows, columns, 256 if kind.startswith("q8") else CODES.get(kind, 16), seed=9)
    for k, (name, array) in enumerate(given.items()):
        if array.dtype.kind == "f":
            given[name] = mix(array.shape, 2000, 11 * k).astype(array.dtype)
    return given
