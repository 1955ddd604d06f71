"""ik_llama.cpp's repacks: the records of 4 or 8 rows in one, in the form that files have."""

from __future__ import annotations

from tilejit.catalog.entries import Family
from tilejit.catalog.ggml import in_order, record, scale
from tilejit.catalog.ggml_repack import Fields, halves, interleaved, of_rows, whole
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


def _iq4_nl(rows: int, chunk: int) -> tuple[Field, ...]:
    return of_rows("d", rows), _codes("(C h g f i) -> ... R C f h r i g")


def _q4_k(rows: int, chunk: int) -> tuple[Field, ...]:
    return (
        of_rows("d", rows),
        of_rows("dmin", rows),
        _scales(_BOTH, "(C x s) m -> ... R C s r x m, x=2, s=4", 4, 2),
        _scales(_BOTH, "(C s) m -> ... R C s r m, s=8", 0, 4),
        _codes(_LOW),
    )


def _q6_k(rows: int, chunk: int) -> tuple[Field, ...]:
    return (
        of_rows("d", rows),
        of_rows("scales", rows, "(R r) (C s) -> ... R C s r, s=16"),
        _codes("(C s h g f i) -> ... R C s h r i f g, s=8", 4, 2),
        _codes(_LOW, 0, 4),
    )


def _iq4_xs(rows: int, chunk: int) -> tuple[Field, ...]:
    return (
        of_rows("d", rows),
        _scales(("scales",), "(C x s) -> ... R C s r x, x=4, s=2", 4, 2, rows),
        _scales(("scales",), "(C x s) -> ... R C s r x, x=2, s=4", 0, 4, rows),
        _codes("(C s h g f i) -> ... R C s h g r i f, s=8", rows=rows),
    )


def _q4_0(rows: int, chunk: int) -> tuple[Field, ...]:
    return of_rows("d", rows), halves(rows, 4)


def _q8_0(rows: int, chunk: int) -> tuple[Field, ...]:
    return of_rows("d", rows), whole(rows, 4)


def _mxfp4(rows: int, chunk: int) -> tuple[Field, ...]:
    return of_rows("e", rows), halves(rows, 4)


_ALL: tuple[tuple[str, int, Fields, str], ...] = (
    ("q4_0", 8, _q4_0, "d of the rows, codes in chunks of 4 bytes; no XOR"),
    ("q8_0", 8, _q8_0, "d of the rows, codes in chunks of 4"),
    ("mxfp4", 8, _mxfp4, "e of the rows, codes in chunks of 4 bytes"),
    ("iq4_nl", 4, _iq4_nl, "d of the rows, codes"),
    ("q4_k", 4, _q4_k, "d and dmin of the rows, high bits of scales and mins, low bits, codes"),
    ("q6_k", 4, _q6_k, "d of the rows, scales, high 2 bits of the codes, low 4 bits"),
    ("iq4_xs", 8, _iq4_xs, "d of the rows, high bits of the scales, low bits, codes"),
)
"""Type, rows, fields, and what a record holds."""

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
    (
        *(
            interleaved(f"ik-{kind}-r{rows}", kind, rows, (), fields, text, _SOURCE, _RUN)
            for kind, rows, fields, text in _ALL
        ),
        _Q8_K,
    ),
)
