"""ONNX and ONNX Runtime: tensors of narrow types, MatMulNBits, blocked channels."""

from __future__ import annotations

from tilejit.catalog.checks import checked_int, one_of
from tilejit.catalog.entries import Family, entry, grid, ordered
from tilejit.catalog.format import Format
from tilejit.catalog.packing import Field, Packing, Plane

_ORT = "onnxruntime 1.31.1"


def _raw(
    name: str, kind: str, bits: int, *, signed: bool = False, verified: str = "run: onnx 1.23.2"
) -> Format:
    """A flattened tensor of a narrow type."""
    return entry(
        f"onnx-{name}",
        f"ONNX's raw_data of {kind}: the tensor flattened, {8 // bits} elements in a byte, the first low",
        ordered("... -> ...", bits=bits, signed=signed),
        ((3, 5), "uint8"),
        "onnx 1.23.2, numpy_helper.from_array",
        verified=verified,
    )


def _matmul_n_bits(bits: int = 4, block_size: int = 32, scale_bits: int = 32) -> Packing:
    width, block = one_of("bits", bits, (4, 8)), checked_int("block_size", block_size, 16, power_of_two=True)
    scales = f"f{one_of('scale_bits', scale_bits, (16, 32))}"
    zeros = Field(("zero_points",), "N (B b) -> N B b, b=2", buffer="zero_points", padding=8)
    return Packing(
        (
            Plane("B", "N K", width),
            Plane("scales", f"N K/{block}", dtype=scales),
            Plane("zero_points", f"N K/{block}", width),
        ),
        (
            Field(("B",), f"N (K k) -> N K k, k={block}", buffer="B"),
            Field(("scales",), buffer="scales"),
            zeros if width == 4 else Field(("zero_points",), buffer="zero_points"),
        ),
        tensors={
            "B": f"u8: N K/{block} {block * width // 8}",
            "scales": f"{scales}: N K/{block}",
            "zero_points": f"u8: N K/{block * 8 // width}",
        },
        optional=("zero_points",),
    )


def _nchwc(block: int = 16) -> Packing:
    return ordered(f"N (C c) H W -> N C H W c, c={one_of('block', block, (8, 16))}")


FAMILY = Family(
    "onnx",
    "ONNX and ONNX Runtime",
    (
        _raw("int4", "INT4", 4, signed=True),
        _raw("uint4", "UINT4", 4),
        _raw("float4", "FLOAT4E2M1", 4),
        _raw("int2", "INT2", 2, signed=True),
        entry(
            "ort-matmulnbits",
            "MatMulNBits: codes B in blocks along K, array N K (the weight transposed), with scales (f16 if "
            "scale_bits=16) and zero points; an unused nibble of zero_points holds 8",
            _matmul_n_bits,
            ((2, 96), "uint8"),
            f"{_ORT}, quantize_matmul_4bits, quantize_matmul_8bits",
            verified=f"run: {_ORT}",
            variants=grid(bits=(4, 8), block_size=(32, 16, 64, 128, 256), scale_bits=(32, 16)),
        ),
        entry(
            "ort-matmulnbits-zp",
            "MatMulNBits: 4-bit zero_points alone, array N B of rows and blocks; an unused nibble holds 8",
            ordered("N (B b) -> N B b, b=2", bits=4, padding=8),
            ((4, 3), "uint8"),
            f"{_ORT}, quantize_matmul_4bits",
            verified=f"run: {_ORT}",
        ),
        entry(
            "ort-nchwc",
            "ONNX Runtime's NCHWc: channels in blocks of 16 (AVX-512) or 8 (other CPUs), array N C H W",
            _nchwc,
            ((1, 32, 2, 3), "f32"),
            f"{_ORT}, com.microsoft.nchwc, ReorderInput",
            verified=f"run: {_ORT}, blocks of 16; blocks of 8 not run",
            variants=grid(block=(16, 8)),
        ),
    ),
)
