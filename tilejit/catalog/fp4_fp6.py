"""Codes of FP4 and FP6: checkpoints and files."""

from __future__ import annotations

from tilejit.catalog.checks import one_of
from tilejit.catalog.entries import Family, planes_format
from tilejit.catalog.packing import Field, Packing, Plane


def _safetensors(bits: int = 4) -> Packing:
    width = one_of("bits", bits, (4, 6))
    return Packing(
        (Plane("values", "... C", width),), (Field(("values",)),), multiples={"numel": 2 if width == 4 else 4}
    )


FAMILY = Family(
    "fp4-fp6",
    "Checkpoints and files with codes of FP4 and FP6",
    (
        planes_format(
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
        planes_format(
            "mxfp6-dense",
            "compressed-tensors: FP6 codes along rows, four in three bytes, array N K",
            Packing(
                (Plane("values", "... K", 6),),
                (Field(("values",)),),
                tensors={"buffer": "u8: ... K*3/4"},
                multiples={"K": 4},
            ),
            ((2, 8), "uint8"),
            "compressed-tensors 0.20.0, compressed_tensors/compressors/mxfp6/helpers.py",
            verified="run: compressed-tensors 0.20.0",
        ),
        planes_format(
            "torchao-fp4",
            "torchao: E2M1 codes along rows, the first of two in the low nibble, array N K",
            Packing(
                (Plane("values", "... K", 4),),
                (Field(("values",)),),
                tensors={"buffer": "u8: ... K/2"},
                multiples={"K": 2},
            ),
            ((2, 8), "uint8"),
            "torchao 0.18.0, torchao/prototype/mx_formats/kernels.py, pack_uint4",
            verified="run: torchao 0.18.0",
        ),
        planes_format(
            "safetensors-sub-byte",
            "safetensors: dtypes F4, F6_E2M3 and F6_E3M2 as one stream of bits that ends at a byte boundary",
            _safetensors,
            ((2, 4), "uint8"),
            "safetensors 0.8.0, safetensors/src/tensor.rs",
            verified="run: safetensors 0.8.0 with torch 2.13.0",
            variants=({"bits": 6},),
        ),
    ),
)
