"""Codes of FP4 and FP6: checkpoints and files."""

from __future__ import annotations

from tilejit.catalog.checks import one_of
from tilejit.catalog.entries import Family, entry, grid, ordered
from tilejit.catalog.packing import Field, Packing, Plane


def _safetensors(bits: int = 4) -> Packing:
    width = one_of("bits", bits, (4, 6))
    return ordered("... C -> ... C", bits=width, multiples={"numel": 2 if width == 4 else 4})


FAMILY = Family(
    "fp4-fp6",
    "Checkpoints and files with codes of FP4 and FP6",
    (
        entry(
            "gpt-oss-mxfp4",
            "GPT-OSS: E2M1 codes, the first of two in the low nibble, and an E8M0 scale for each 32, array "
            "E N K",
            Packing(
                (Plane("blocks", "... N K", 4), Plane("scales", "... N K/32", 8)),
                (Field(("blocks",), buffer="blocks"), Field(("scales",), buffer="scales")),
                tensors={"blocks": "u8: ... N K/32 16", "scales": "u8: ... N K/32"},
                multiples={"K": 32},
                optional=("scales",),
            ),
            ((1, 2, 32), "uint8"),
            "transformers 5.23.0, transformers/integrations/mxfp4.py, _convert_moe_packed_tensors",
            verified="run: transformers 5.23.0 decodes it",
        ),
        entry(
            "mxfp6-dense",
            "compressed-tensors: FP6 codes along rows, four in three bytes, array N K",
            ordered("... K -> ... K", bits=6, multiples={"K": 4}, tensor="u8: ... K*3/4"),
            ((2, 8), "uint8"),
            "compressed-tensors 0.20.0, compressed_tensors/compressors/mxfp6/helpers.py",
            verified="run: compressed-tensors 0.20.0",
        ),
        entry(
            "torchao-fp4",
            "torchao: E2M1 codes along rows, the first of two in the low nibble, array N K",
            ordered("... K -> ... K", bits=4, multiples={"K": 2}, tensor="u8: ... K/2"),
            ((2, 8), "uint8"),
            "torchao 0.18.0, torchao/prototype/mx_formats/kernels.py, pack_uint4",
            verified="run: torchao 0.18.0",
        ),
        entry(
            "safetensors-sub-byte",
            "safetensors: dtypes F4, F6_E2M3 and F6_E3M2 as one stream of bits that ends at a byte boundary",
            _safetensors,
            ((2, 4), "uint8"),
            "safetensors 0.8.0, safetensors/src/tensor.rs",
            verified="run: safetensors 0.8.0 with torch 2.13.0",
            variants=grid(bits=(4, 6)),
        ),
    ),
)
