"""ik_llama.cpp's repacks: the records of 4 or 8 rows in one, in the form that files have."""

from __future__ import annotations

from tilejit.catalog.entries import Family, entry
from tilejit.catalog.format import Format
from tilejit.catalog.ggml import in_order, record, scale
from tilejit.catalog.ggml_repack import example_of, halves, interleaved, of_rows, whole
from tilejit.catalog.ggml_types import PLANES, per_block
from tilejit.catalog.packing import Field

_SOURCE = "ik_llama.cpp 8337e4cd, ggml/src/iqk/iqk_quantize.cpp"
_RUN = "run: iqk_quantize.cpp 8337e4cd, compiled"


def _codes(order: str, low: int = 0, number: int = 0, rows: int = 4) -> Field:
    """Codes of sub-blocks of 32, numbered 16h + 8g + 4f + i."""
    take = (low, number) if number else None
    return Field(("codes",), f"... (R r) {order}, r={rows}, h=2, g=2, f=2, i=4", take=take)


def _scales(names: tuple[str, ...], order: str, low: int, number: int, rows: int = 4) -> Field:
    return Field(names, f"... (R r) {order}, r={rows}", take=(low, number))


_BOTH = ("scales", "mins")
_LOW = "(C s h g f i) -> ... R C s f h r i g, s=8"
_ALL: tuple[tuple[str, int, tuple[Field, ...], str], ...] = (
    (
        "q4_0",
        8,
        (of_rows("d", 8), halves(8, 4)),
        "d of the rows, codes in chunks of 4 bytes; no XOR",
    ),
    ("q8_0", 8, (of_rows("d", 8), whole(8, 4)), "d of the rows, codes in chunks of 4"),
    ("mxfp4", 8, (of_rows("e", 8), halves(8, 4)), "e of the rows, codes in chunks of 4 bytes"),
    ("iq4_nl", 4, (of_rows("d", 4), _codes("(C h g f i) -> ... R C f h r i g")), "d of the rows, codes"),
    (
        "q4_k",
        4,
        (
            of_rows("d", 4),
            of_rows("dmin", 4),
            _scales(_BOTH, "(C x s) m -> ... R C s r x m, x=2, s=4", 4, 2),
            _scales(_BOTH, "(C s) m -> ... R C s r m, s=8", 0, 4),
            _codes(_LOW),
        ),
        "d and dmin of the rows, high bits of scales and mins, low bits, codes",
    ),
    (
        "q6_k",
        4,
        (
            of_rows("d", 4),
            of_rows("scales", 4, "(R r) (C s) -> ... R C s r, s=16"),
            _codes("(C s h g f i) -> ... R C s h r i f g, s=8", 4, 2),
            _codes(_LOW, 0, 4),
        ),
        "d of the rows, scales, high 2 bits of the codes, low 4 bits",
    ),
    (
        "iq4_xs",
        8,
        (
            of_rows("d", 8),
            _scales(("scales",), "(C x s) -> ... R C s r x, x=4, s=2", 4, 2, 8),
            _scales(("scales",), "(C x s) -> ... R C s r x, x=2, s=4", 0, 4, 8),
            _codes("(C s h g f i) -> ... R C s h g r i f, s=8", rows=8),
        ),
        "d of the rows, high bits of the scales, low bits, codes",
    ),
)
"""Type, rows, fields, and what a record holds."""


def _repack(kind: str, rows: int, fields: tuple[Field, ...], description: str) -> Format:
    packing = interleaved(kind, rows, fields)
    return entry(
        f"ik-{kind}-r{rows}",
        f"{kind.upper()}, {rows} rows of an array R C: {description}",
        packing,
        example_of(packing),
        _SOURCE,
        verified=_RUN,
    )


_Q8_K = record(
    "q8_k",
    "d, sum, codes, sums; value d q; sums are those of 16 codes",
    (scale(), scale("sum"), in_order("codes", 256), in_order("sums", 16)),
    296,
    256,
    name="ik-q8_k",
    planes=(*PLANES["q8_k"], per_block("sum", "f32", 256)),
    source="ik_llama.cpp 8337e4cd, block_q8_K",
    verified="read: not run",
)

FAMILY = Family(
    "ik-llama",
    "ik_llama.cpp's repacks of GGUF tensors, and its Q8_K",
    (*(_repack(*row) for row in _ALL), _Q8_K),
)
