"""compressed-tensors and NVIDIA ModelOpt: quantized checkpoints."""

from __future__ import annotations

import numpy as np

from codegen import LayoutError
from tilejit.catalog.checks import one_of
from tilejit.catalog.entries import Family, entry, grid, groups, ordered
from tilejit.catalog.packing import Array, Codec, Field, Packing, Plane, Sizes, extents

_VERSION = "compressed-tensors 0.20.0"
_SOURCE = f"{_VERSION}, compressed_tensors/compressors"
_MODELOPT = "nvidia-modelopt 0.47.0, modelopt/torch/export/quant_utils.py"
_WIDTHS = tuple(range(1, 9))


def _codes(name: str, axes: str, bits: int) -> Plane:
    return Plane(name, axes, bits, low=-(1 << bits - 1))


def _words(plane: Plane, dim: int, buffer: str) -> tuple[Field, str]:
    """Codes of N rows in 32-bit words along a dimension, and the tensor that holds them."""
    rows, columns = plane.axes.split()
    along = rows if dim == 0 else columns
    number, _, divisor = along.partition("/")
    words = f"{number}*{plane.bits}/{32 * int(divisor or 1)}"
    shape = f"{words} {columns}" if dim == 0 else f"{rows} {words}"
    if 32 % plane.bits == 0:
        order = "(N n) K -> N K n" if dim == 0 else "N (K n) -> N K n"
        field = Field((plane.name,), f"{order}, n={32 // plane.bits}", buffer=buffer)
    else:
        field = Field((plane.name,), codec=_stream(plane, dim, shape), buffer=buffer)
    return field, f"s32: {shape}"


def _stream(plane: Plane, dim: int, shape: str) -> Codec:
    """Codes that straddle words: each row or column is a stream of bits, padded with 0 to a word."""
    bits = plane.bits

    def encode(arrays: tuple[Array, ...], sizes: Sizes) -> Array:
        rows = arrays[0].T if dim == 0 else arrays[0]
        spread = np.unpackbits(rows[..., None], axis=-1, count=bits, bitorder="little")
        spread = spread.reshape(rows.shape[0], rows.shape[1] * bits)
        padded = np.pad(spread, ((0, 0), (0, -spread.shape[1] % 32)))
        words = np.packbits(padded, axis=1, bitorder="little").reshape(len(rows), padded.shape[1] // 32, 4)
        return words.transpose(1, 0, 2) if dim == 0 else words

    def decode(words: Array, sizes: Sizes) -> tuple[Array, ...]:
        rows = words.transpose(1, 0, 2) if dim == 0 else words
        length = extents(plane.axes, sizes)[dim]
        flat = rows.reshape(rows.shape[0], rows.shape[1] * 4)
        spread = np.unpackbits(flat, axis=1, count=length * bits, bitorder="little")
        codes = np.packbits(spread.reshape(len(rows), length, bits), axis=-1, bitorder="little")[..., 0]
        return (np.ascontiguousarray(codes.T if dim == 0 else codes),)

    each = "column" if dim == 0 else "row"
    text = f"a stream of {bits}-bit codes for each {each}, padded with 0 to a 32-bit word"
    return Codec(text, f"{shape} 4", encode, decode)


def _pack_quantized(bits: int = 4, packed_dim: int = 1) -> Packing:
    plane = _codes("values", "N K", one_of("bits", bits, _WIDTHS))
    field, tensor = _words(plane, one_of("packed_dim", packed_dim, (0, 1)), "buffer")
    return Packing((plane,), (field,), tensors={"buffer": tensor})


def _shape_of(buffer: str) -> Field:
    """The dimensions N and K as int64, without a plane."""

    def encode(_: tuple[Array, ...], sizes: Sizes) -> Array:
        return np.array([sizes["N"], sizes["K"]], "<i8").view(np.uint8)

    def decode(data: Array, sizes: Sizes) -> tuple[Array, ...]:
        found = data.view("<i8").tolist()
        if found != [sizes["N"], sizes["K"]]:
            raise LayoutError(
                f"{buffer} is {found}, but dims are {[sizes['N'], sizes['K']]}\n  pass dims={found}"
            )
        return ()

    return Field((), codec=Codec("N, K", "16", encode, decode), buffer=buffer)


def _wna16(bits: int = 4, group: int = 128) -> Packing:
    width, columns = one_of("bits", bits, _WIDTHS), groups(group)
    weight = _codes("weight", "N K", width)
    scale = Plane("weight_scale", f"N {columns}")
    zero = _codes("weight_zero_point", f"N {columns}", width)
    packed, packed_tensor = _words(weight, 1, "weight_packed")
    zeros, zeros_tensor = _words(zero, 0, "weight_zero_point")
    return Packing(
        (weight, scale, zero),
        (packed, Field(("weight_scale",), buffer="weight_scale"), zeros, _shape_of("weight_shape")),
        tensors={
            "weight_packed": packed_tensor,
            "weight_scale": f"any: N {columns}",
            "weight_zero_point": zeros_tensor,
            "weight_shape": "s64: 2",
        },
        multiples={} if group == -1 else {"K": group},
        optional=("weight_zero_point",),
    )


def _nvfp4(weight: str, scales: tuple[str, ...], scalar: str) -> Packing:
    """E2M1 codes with a scale for each 16; `scales` are further planes of one f32."""
    more = tuple(Plane(name, scalar, dtype="f32") for name in scales)
    blocks = Plane("weight_scale", "N K/16", dtype="f8e4m3fn")
    return Packing(
        (Plane("weight", "N K", 4), blocks, *more),
        (
            Field(("weight",), buffer=weight),
            *(Field((p.name,), buffer=p.name) for p in (blocks, *more)),
        ),
        tensors={
            weight: "u8: N K/2",
            "weight_scale": "f8e4m3fn: N K/16",
            **dict.fromkeys(scales, f"f32: {scalar}" if scalar else "f32"),
        },
        multiples={"K": 16},
        optional=("weight_scale", *scales),
    )


FAMILY = Family(
    "compressed-tensors",
    "compressed-tensors and ModelOpt checkpoints",
    (
        entry(
            "compressed-tensors-pack-quantized",
            "compressed-tensors: signed codes in 32-bit words along rows, array N K; zero points take "
            "packed_dim=0",
            _pack_quantized,
            ((2, 16), "s8"),
            f"{_SOURCE}/pack_quantized/helpers.py, pack_to_int32",
            verified=f"run: {_VERSION}, bits 1 to 8",
            variants=(*grid(bits=(4, 1, 2, 3, 5, 6, 7, 8)), *grid(packed_dim=(1, 0))),
        ),
        entry(
            "compressed-tensors-wna16",
            "compressed-tensors: weights, scales and zero points of pack-quantized, array N K; a group of -1 "
            "is one scale for each row",
            _wna16,
            ((8, 128), "s8"),
            f"{_SOURCE}/pack_quantized/base.py",
            verified=f"run: {_VERSION}, pack_to_int32",
            variants=grid(bits=(4, 8, 2, 3, 5, 6, 7), group=(128, 64, 32, -1)),
        ),
        entry(
            "compressed-tensors-sparse-bitmask",
            "compressed-tensors: a bit for each element, array R C; rows are padded with 0 to a byte",
            ordered("R (C c) -> R C c, c=8", bits=1, tensor="u8: R C/8"),
            ((2, 16), "uint8"),
            f"{_VERSION}, compressed_tensors/utils/helpers.py, pack_bitmasks",
            verified=f"run: {_VERSION}",
        ),
        entry(
            "compressed-tensors-nvfp4-pack-quantized",
            "compressed-tensors: E2M1 codes of NVFP4, array N K, with their scales in plain order",
            _nvfp4("weight_packed", ("weight_global_scale",), "1"),
            ((2, 32), "uint8"),
            f"{_SOURCE}/nvfp4/helpers.py, pack_fp4_to_uint8",
            verified=f"run: {_VERSION}",
        ),
        entry(
            "modelopt-nvfp4",
            "ModelOpt: E2M1 codes of NVFP4, array N K; weight_scale_2 is the reciprocal of "
            "compressed-tensors' weight_global_scale",
            _nvfp4("weight", ("weight_scale_2", "input_scale"), ""),
            ((2, 32), "uint8"),
            f"{_VERSION}, compressed_tensors/entrypoints/convert/converters/modelopt_nvfp4.py",
            verified="read: not run",
        ),
        entry(
            "modelopt-int4-awq",
            "ModelOpt: signed codes of rows 2r and 2r + 1 in one byte, array N K",
            ordered("(N p) K -> N K p, p=2", bits=4, signed=True, multiples={"N": 2}, tensor="u8: N/2 K"),
            ((4, 8), "s8"),
            f"{_MODELOPT}, pack_int4_in_uint8",
            verified="run: nvidia-modelopt 0.47.0",
        ),
    ),
)
