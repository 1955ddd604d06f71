"""ggml's records: blocks of codes with their scales in one struct."""

from __future__ import annotations

from tilejit.catalog.entries import Family, entry, renamed
from tilejit.catalog.format import Format
from tilejit.catalog.ggml_types import GGUF, LLAMA_CPP, PLANES, TERNARY, scales_and_mins
from tilejit.catalog.packing import Field, Packing, Plane

_B32 = "... R (C p j) -> ... R C j p, p=2, j=16"
"""16 bytes of 32 codes: byte j has code j low and code j + 16 high."""
_K4 = "... R (C g p l) -> ... R C g l p, g=4, p=2, l=32"
_K2 = "... R (C g p l) -> ... R C g l p, g=2, p=4, l=32"
_B1 = "... R (C t l) -> ... R C l t, t=8, l=32"
_S12 = Field(("scales", "mins"), codec=scales_and_mins())


def codes(pattern: str, low: int = 0, number: int = 0) -> Field:
    """Codes, or `number` of their bits."""
    return Field(("codes",), pattern, take=(low, number) if number else None)


def in_order(name: str, number: int, take: tuple[int, int] | None = None) -> Field:
    """The `number` elements of a block, one after another."""
    return Field((name,), f"... R (C c) -> ... R C c, c={number}", take=take)


def scale(name: str = "d") -> Field:
    """The number of a block."""
    return Field((name,))


def record(
    kind: str,
    description: str,
    fields: tuple[Field, ...],
    size: int,
    block: int = 32,
    *,
    name: str = "",
    planes: tuple[Plane, ...] | None = None,
    source: str = LLAMA_CPP,
    verified: str = GGUF,
) -> Format:
    """Create the format of a struct of `size` bytes for `block` columns.

    Args:
        kind: ggml's type.
        description: what the struct holds, and the value of a code q.
        fields: the fields.
        size: its bytes.
        block: its columns.
        name: the format's name, if it is not that of the type.
        planes: its planes, if they are not those of the type.
        source: where the format is defined.
        verified: how the bytes were compared with the source's.
    """
    planes = planes or PLANES[kind]
    return entry(
        name or f"ggml-{kind}",
        f"{size} bytes for {block} columns of an array R C: {description}",
        Packing(
            planes,
            fields,
            records=f"... R C/{block}",
            tensors={"buffer": f"u8: ... R C*{size}/{block}"},
            multiples={"C": block},
        ),
        ((2, block), "int8" if planes[0].signed else "uint8"),
        source,
        verified=verified,
    )


_Q4_0 = record("q4_0", "d, codes; value d (q - 8)", (scale(), codes(_B32)), 18)

FAMILY = Family(
    "ggml",
    "GGUF tensors: ggml's records",
    (
        _Q4_0,
        record("q4_1", "d, m, codes; value d q + m", (scale(), scale("m"), codes(_B32)), 20),
        record(
            "q5_0",
            "d, bit 4 of the codes, low bits; value d (q - 16)",
            (scale(), in_order("codes", 32, (4, 1)), codes(_B32, 0, 4)),
            22,
        ),
        record(
            "q5_1",
            "d, m, bit 4 of the codes, low bits; value d q + m",
            (scale(), scale("m"), in_order("codes", 32, (4, 1)), codes(_B32, 0, 4)),
            24,
        ),
        record("q8_0", "d, codes; value d q", (scale(), in_order("codes", 32)), 34),
        record(
            "q8_1",
            "d, s, codes; value d q; s is d times the sum of the codes",
            (scale(), scale("s"), in_order("codes", 32)),
            36,
            verified="read: not run",
        ),
        record(
            "q2_k",
            "scales s and mins n, codes, d, dmin; value d s q - dmin n",
            (
                Field(("scales", "mins"), "... R (C s) m -> ... R C s m, s=16"),
                codes(_K2),
                scale(),
                scale("dmin"),
            ),
            84,
            256,
        ),
        record(
            "q3_k",
            "bit 2 of the codes, low bits, scales s, d; value d (s - 32) (q - 4)",
            (
                codes(_B1, 2, 1),
                codes(_K2, 0, 2),
                Field(("scales",), "... R (C p j) -> ... R C j p, p=2, j=8", take=(0, 4)),
                Field(("scales",), "... R (C q j) -> ... R C j q, q=4, j=4", take=(4, 2)),
                scale(),
            ),
            110,
            256,
        ),
        record(
            "q4_k",
            "d, dmin, scales s and mins n, codes; value d s q - dmin n",
            (scale(), scale("dmin"), _S12, codes(_K4)),
            144,
            256,
        ),
        record(
            "q5_k",
            "d, dmin, scales s and mins n, bit 4 of the codes, low bits; value d s q - dmin n",
            (scale(), scale("dmin"), _S12, codes(_B1, 4, 1), codes(_K4, 0, 4)),
            176,
            256,
        ),
        record(
            "q6_k",
            "low 4 bits of the codes, high 2 bits, scales s, d; value d s (q - 32)",
            (
                codes("... R (C n h g l) -> ... R C n g l h, n=2, h=2, g=2, l=32", 0, 4),
                codes(_K2, 4, 2),
                in_order("scales", 16),
                scale(),
            ),
            210,
            256,
        ),
        record(
            "q8_k",
            "d, codes, sums; value d q; sums are those of 16 codes",
            (scale(), in_order("codes", 256), in_order("sums", 16)),
            292,
            256,
            verified="definition: struct in ggml-common.h",
        ),
        renamed(
            _Q4_0,
            "ggml-iq4_nl",
            "18 bytes for 32 columns of an array R C: d, codes; value d T[q] with T = "
            "-127 -104 -83 -65 -49 -35 -22 -10 1 13 25 38 53 69 89 113",
            LLAMA_CPP,
            GGUF,
        ),
        record(
            "iq4_xs",
            "d, high bits of scales s, low bits, codes; value d (s - 32) T[q], T as in ggml-iq4_nl",
            (
                scale(),
                in_order("scales", 8, (4, 2)),
                in_order("scales", 8, (0, 4)),
                codes("... R (C s p j) -> ... R C s j p, s=8, p=2, j=16"),
            ),
            136,
            256,
        ),
        record(
            "tq1_0",
            "codes 0 to 2 in base 3, d; value d (q - 1)",
            (Field(("codes",), codec=TERNARY), scale()),
            54,
            256,
        ),
        record("tq2_0", "codes, d; value d (q - 1)", (codes(_K2), scale()), 66, 256),
        record(
            "mxfp4", "e, codes of E2M1; value 2^(e - 127) times the code's", (scale("e"), codes(_B32)), 17
        ),
        record(
            "nvfp4",
            "scales of E4M3 without sign, codes of E2M1; value scale times the code's",
            (in_order("scales", 4), codes("... R (C s p j) -> ... R C s j p, s=4, p=2, j=8")),
            36,
            64,
        ),
    ),
)
