"""ggml's repacks for CPUs: the records of 4, 8 or 16 rows in one, their bytes in chunks."""

from __future__ import annotations

from collections.abc import Callable

from tilejit.catalog.checks import one_of
from tilejit.catalog.entries import Family, entry, grid
from tilejit.catalog.format import Format
from tilejit.catalog.ggml_types import PLANES, scales_and_mins
from tilejit.catalog.packing import Field, Packing, ValueMap, xor

_SOURCE = "llama.cpp, ggml/src/ggml-cpu/repack.cpp (llama-cpp-python 0.3.36)"
_RUN = "run: repack.cpp of llama-cpp-python 0.3.36, compiled"

Fields = Callable[[int, int], tuple[Field, ...]]
"""fields(rows, chunk) -> the fields of a record."""


def interleaved(kind: str, rows: int, fields: tuple[Field, ...]) -> Packing:
    """The packing of records that each hold a block of several rows of a ggml type."""
    block = 256 if kind.endswith(("_k", "_xs")) else 32
    return Packing(PLANES[kind], fields, records=f"... R/{rows} C/{block}", multiples={"R": rows, "C": block})


def example_of(packing: Packing) -> tuple[tuple[int, ...], str]:
    """The dimensions of one record, and the dtype of its codes."""
    return tuple(packing.multiples.values()), "int8" if packing.main.signed else "uint8"


def _repack(kind: str, rows: int, chunks: tuple[int, ...], fields: Fields, description: str) -> Format:
    """Create a format whose kernels take a number of bytes from a row at a time.

    Args:
        kind: ggml's type, whose planes it has.
        rows: the rows of a record.
        chunks: the numbers of bytes; the first is the default.
        fields: fields(rows, chunk) -> the fields of a record.
        description: what a record holds.
    """

    def packing(chunk: int = chunks[0]) -> Packing:
        return interleaved(kind, rows, fields(rows, one_of("chunk", chunk, chunks)))

    each = f"chunk={' or '.join(map(str, chunks))} {'byte' if chunks == (1,) else 'bytes'} of each"
    return entry(
        f"ggml-{kind}x{rows}",
        f"{kind.upper()}, {rows} rows of an array R C, {each}: {description}",
        packing,
        example_of(packing()),
        _SOURCE,
        verified=_RUN,
        variants=grid(chunk=chunks),
    )


def of_rows(name: str, rows: int, order: str = "(R r) C -> ... R C r") -> Field:
    """The numbers of one block of all rows."""
    return Field((name,), f"... {order}, r={rows}")


def halves(rows: int, chunk: int, values: ValueMap | None = None) -> Field:
    """The 16 bytes of 32 codes, byte j with the codes j and j + 16, in chunks of all rows."""
    order = f"... (R r) (C p c b) -> ... R C c r b p, r={rows}, p=2, c={16 // chunk}, b={chunk}"
    return Field(("codes",), order, values=values)


def whole(rows: int, chunk: int) -> Field:
    """32 codes of a byte in chunks of all rows."""
    return Field(("codes",), f"... (R r) (C c b) -> ... R C c r b, r={rows}, c={32 // chunk}, b={chunk}")


def _numbers(names: str, rows: int) -> tuple[Field, ...]:
    return tuple(of_rows(name, rows) for name in names.split())


def _32(names: str, codes: Callable[[int, int], Field]) -> Fields:
    return lambda rows, chunk: (*_numbers(names, rows), codes(rows, chunk))


def _codes(order: str, low: int, number: int, rows: int, chunk: int) -> Field:
    """Bits of 256 codes; 32 bytes hold several groups of 32 codes."""
    text = f"... (R r) {order}, r={rows}, l={32 // chunk}, b={chunk}"
    return Field(("codes",), text, take=(low, number))


def _low_4(rows: int, chunk: int) -> Field:
    return _codes("(C g p l b) -> ... R C g l r b p, g=4, p=2", 0, 4, rows, chunk)


def _bit_4(rows: int, chunk: int) -> Field:
    return _codes("(C t l b) -> ... R C l r b t, t=8", 4, 1, rows, chunk)


def _2_bits(low: int, rows: int, chunk: int) -> Field:
    return _codes("(C g p l b) -> ... R C g l r b p, g=2, p=4", low, 2, rows, chunk)


def _q4_kx8(rows: int, chunk: int) -> tuple[Field, ...]:
    scales = Field(("scales", "mins"), codec=scales_and_mins(rows))
    return (*_numbers("d dmin", rows), scales, _low_4(rows, chunk))


def _q5_kx8(rows: int, chunk: int) -> tuple[Field, ...]:
    *first, low = _q4_kx8(rows, chunk)
    return (*first, _bit_4(rows, chunk), low)


def _q6_kx8(rows: int, chunk: int) -> tuple[Field, ...]:
    low = "(C n h g l b) -> ... R C n g l r b h, n=2, h=2, g=2"
    return (
        of_rows("d", rows),
        of_rows("scales", rows, "(R r) (C s) -> ... R C s r, s=16"),
        _codes(low, 0, 4, rows, chunk),
        _2_bits(4, rows, chunk),
    )


def _nibbles(order: str, rows: int, low: int = 0, number: int = 4) -> Field:
    """Scales and mins side by side, a dimension of 2."""
    return Field(("scales", "mins"), f"... (R r) {order}, r={rows}", take=(low, number))


def _q2_kx8(rows: int, chunk: int) -> tuple[Field, ...]:
    scales = _nibbles("(C s p) m -> ... R C s r p m, s=8, p=2", rows)
    return (*_numbers("d dmin", rows), scales, _2_bits(0, rows, chunk))


def _q2_kx16(rows: int, chunk: int) -> tuple[Field, ...]:
    scales = _nibbles("(C h q o) m -> ... R C h o q r m, h=2, q=4, o=2", rows)
    return (*_numbers("d dmin", rows), scales, _2_bits(0, rows, chunk))


def _q4_kx16(rows: int, chunk: int) -> tuple[Field, ...]:
    return (
        *_numbers("d dmin", rows),
        _nibbles("(C s) m -> ... R C s r m, s=8", rows),
        _nibbles("(C h s) m -> ... R C s r h m, h=2, s=4", rows, 4, 2),
        _low_4(rows, chunk),
    )


def _flipped(rows: int, chunk: int) -> Field:
    return halves(rows, chunk, xor(8))


_D, _E = "d of the rows, codes", "e of the rows, codes"
_FLIP, _K = "d of the rows, codes ^ 8", "d and dmin of the rows, scales and mins, codes"
_ALL: tuple[tuple[str, int, tuple[int, ...], Fields, str], ...] = (
    ("q4_0", 4, (4, 8), _32("d", _flipped), _FLIP),
    ("q4_0", 8, (8,), _32("d", _flipped), _FLIP),
    ("q4_0", 16, (1,), _32("d", _flipped), _FLIP),
    ("q8_0", 4, (4, 8), _32("d", whole), _D),
    ("q8_0", 16, (1,), _32("d", whole), _D),
    ("iq4_nl", 4, (4,), _32("d", halves), _D),
    ("iq4_nl", 8, (8,), _32("d", halves), _D),
    ("iq4_nl", 16, (1,), _32("d", halves), _D),
    ("mxfp4", 4, (4,), _32("e", halves), _E),
    ("mxfp4", 8, (8,), _32("e", halves), _E),
    ("q4_k", 8, (8, 4), _q4_kx8, _K),
    ("q5_k", 8, (8, 4), _q5_kx8, f"{_K}, bit 4 first"),
    ("q6_k", 8, (8, 4), _q6_kx8, "d of the rows, scales, low 4 bits of the codes, high 2 bits"),
    ("q2_k", 8, (8,), _q2_kx8, _K),
    ("q2_k", 16, (1,), _q2_kx16, _K),
    ("q4_k", 16, (1,), _q4_kx16, _K),
)
"""Type, rows, chunks, fields, and what a record holds."""

FAMILY = Family(
    "ggml-repack",
    "ggml's repacks of GGUF tensors for CPUs",
    tuple(_repack(*row) for row in _ALL),
)
