"""bitsandbytes: 4-bit codes with the high nibble first, and int8 rows."""

from __future__ import annotations

from tilejit.catalog.checks import checked_int, flag
from tilejit.catalog.entries import Family, entry, grid, renamed
from tilejit.catalog.packing import Field, Packing, Plane

_VERSION = "bitsandbytes 0.50.2"
_SOURCE = f"{_VERSION}, bitsandbytes/functional.py"
_NESTED = 256
"""The absmax values that share a second absmax."""


def _four_bits(blocksize: int = 64, nested: bool = False) -> Packing:
    block = checked_int("blocksize", blocksize)
    bits = 8 if flag("nested", nested) else 0
    absmax = Plane("absmax", f"numel/{block}", bits, "" if nested else "f32")
    outer = Plane("nested_absmax", f"numel/{block * _NESTED}", dtype="f32")
    scales = (absmax, outer) if nested else (absmax,)
    return Packing(
        (Plane("codes", "... K", 4), *scales),
        (
            Field(("codes",), "... (K p) -> ... K -p, p=2", buffer="weight"),
            *(Field((scale.name,), buffer=scale.name) for scale in scales),
        ),
        tensors={"weight": "u8: numel/2 1", **{scale.name: _tensor(scale) for scale in scales}},
        multiples={"K": 2},
        optional=tuple(scale.name for scale in scales),
    )


def _tensor(plane: Plane) -> str:
    return f"{plane.dtype or 'u8'}: {plane.axes}"


_NF4 = entry(
    "bitsandbytes-nf4",
    "bitsandbytes: codes of the NF4 table, the first of two in the high nibble; an absmax for each block of "
    "the flattened array",
    _four_bits,
    ((2, 64), "uint8"),
    f"{_SOURCE}, quantize_4bit",
    verified=f"run: {_VERSION}",
    variants=grid(blocksize=(64, 32, 128, 256, 512, 1024, 2048, 4096), nested=(False, True)),
)

FAMILY = Family(
    "bitsandbytes",
    "bitsandbytes weights",
    (
        _NF4,
        renamed(
            _NF4,
            "bitsandbytes-fp4",
            "bitsandbytes: codes of its FP4 table, which is not E2M1; the first of two in the high nibble",
            f"{_SOURCE}, quantize_4bit",
            f"run: {_VERSION}",
        ),
        entry(
            "bitsandbytes-int8",
            "bitsandbytes: int8 rows and the greatest magnitude of each, array N K; value CB SCB / 127",
            Packing(
                (Plane("CB", "N K", 8, signed=True), Plane("SCB", "N", dtype="f32")),
                (Field(("CB",), buffer="CB"), Field(("SCB",), buffer="SCB")),
                tensors={"CB": "s8: N K", "SCB": "f32: N"},
                optional=("SCB",),
            ),
            ((2, 16), "s8"),
            f"{_SOURCE}, int8_vectorwise_quant",
            verified=f"run: {_VERSION}",
        ),
    ),
)
