"""XNNPACK: weights of matrix products, with biases in front of each group of nr rows."""

from __future__ import annotations

import numpy as np

from codegen import LayoutError
from tilejit.catalog.checks import checked_int
from tilejit.catalog.entries import Family, entry, grid
from tilejit.catalog.packing import Array, Codec, Field, Packing, Plane, Sizes, extents, xor

_SOURCE = "google/XNNPACK@75db3c09, src/reference/packing.cc"
_RUN = f"run: {_SOURCE}, compiled"
_SKIPPED = "readers ignore the memory of missing rows, which is 0 here"
_NR = (8, 2, 4, 16, 32)
_VARIANTS = grid(nr=_NR, kr=(4, 1, 2, 8))
_ROTATED = tuple(
    {"nr": nr, "kr": kr, "sr": sr} for nr in (8, 4, 16, 32) for kr, sr in ((1, 4), (2, 4), (4, 2), (4, 4))
)
"""Parameters of kernels that rotate the groups of a row."""


def _f32(nr: int = 8, kr: int = 1, sr: int = 1) -> Packing:
    _check(nr, kr, sr)
    fields = (_bias(nr), _weights(nr, kr, sr, "f4"))
    return _packing(Plane("weights", "N K", dtype="f32"), "f32", nr, fields)


def _qs8(nr: int = 8, kr: int = 4, sr: int = 1, input_zero_point: int = 0) -> Packing:
    _check(nr, kr, sr)
    point = _zero_point(input_zero_point)
    bias = _bias_less_sums(nr, point, 1, 0) if point else _bias(nr)
    return _packing(Plane("weights", "N K", dtype="s8"), "s32", nr, (bias, _weights(nr, kr, sr, "i1")))


def _qc4w(nr: int = 8, kr: int = 4, input_zero_point: int = 0) -> Packing:
    _check(nr, kr, 1)
    point = _zero_point(input_zero_point)
    bias = _bias_less_sums(nr, point, 16, 8) if point else _bias(nr)
    pattern = f"(N n) (K h k) -> N K n k h, n={nr}, h=2, k={kr}"
    return _packing(
        Plane("weights", "N K", 4), "s32", nr, (bias, Field(("weights",), pattern, values=xor(8)))
    )


def _packing(weights: Plane, bias: str, nr: int, fields: tuple[Field, ...]) -> Packing:
    return Packing((weights, Plane("bias", "N", dtype=bias)), fields, records=f"N/{nr}")


def _check(nr: int, kr: int, sr: int) -> None:
    """Check the parameters of a kernel, as XNNPACK does."""
    for name, value in (("nr", nr), ("kr", kr), ("sr", sr)):
        checked_int(name, value)
    checked_int("kr * sr", kr * sr, power_of_two=True)
    if sr > nr:
        raise LayoutError(f"sr is {sr} and nr is {nr}\n  pass at most nr as sr")


def _zero_point(value: object) -> int:
    """The zero point of the input."""
    return checked_int("input_zero_point", value, -128, 255)


def _bias(nr: int) -> Field:
    return Field(("bias",), f"(N n) -> N n, n={nr}")


def _bias_less_sums(nr: int, point: int, scale: int, zero: int) -> Field:
    """Biases minus the part that the zero point of the input adds to a product."""

    def part(weights: Array) -> Array:
        sums: Array = weights.sum(-1, dtype=np.int64)
        added: Array = scale * point * (sums - zero * weights.shape[-1])
        return added.astype(np.int32)

    def encode(arrays: tuple[Array, ...], sizes: Sizes) -> Array:
        bias, weights = arrays
        out = np.zeros(extents(f"N/{nr} {nr}", sizes), np.int32)
        out.reshape(-1)[: sizes["N"]] = bias - part(weights)
        return out.view(np.uint8)

    def decode(data: Array, sizes: Sizes, weights: Array) -> tuple[Array, ...]:
        return (data.view(np.int32).reshape(-1)[: sizes["N"]] + part(weights),)

    what = "weights" if not zero else f"weights - {zero}"
    text = f"(N n) -> N n, n={nr}, less {point * scale} times the sum of its row of {what}"
    return Field(("bias",), codec=Codec(text, f"N/{nr} {4 * nr}", encode, decode), uses=("weights",))


def _weights(nr: int, kr: int, sr: int, dtype: str) -> Field:
    """Groups of kr values of each row; if sr > 1, row n of a group starts with value n * kr of kr * sr."""
    if sr == 1:
        return Field(("weights",), f"(N n) (K k) -> N K n k, n={nr}, k={kr}")
    item = np.dtype(dtype)
    width = kr * sr
    turns = (np.arange(sr) + np.arange(nr)[:, None]) % sr

    def rotated(blocks: Array, order: Array) -> Array:
        found: Array = np.take_along_axis(blocks, order[None, :, None, :, None], 3)
        return found

    def encode(arrays: tuple[Array, ...], sizes: Sizes) -> Array:
        rows, columns = extents(f"N/{nr} K/{width}", sizes)
        padded = np.zeros((rows * nr, columns * width), item)
        padded[: sizes["N"], : sizes["K"]] = arrays[0]
        blocks = rotated(padded.reshape(rows, nr, columns, sr, kr), turns)
        return np.ascontiguousarray(blocks.transpose(0, 2, 3, 1, 4)).view(np.uint8)

    def decode(data: Array, sizes: Sizes) -> tuple[Array, ...]:
        blocks = data.view(item).reshape(*data.shape[:2], sr, nr, kr).transpose(0, 3, 1, 2, 4)
        padded = rotated(blocks, turns.argsort(-1)).reshape(len(data) * nr, data.shape[1] * width)
        return (np.ascontiguousarray(padded[: sizes["N"], : sizes["K"]]),)

    text = f"(N n) (K s k) -> N K s n k, n={nr}, s={sr}, k={kr}, where row n has group (s + n) % {sr} at s"
    return Field(
        ("weights",), codec=Codec(text, f"N/{nr} K/{width} {width * nr * item.itemsize}", encode, decode)
    )


FAMILY = Family(
    "xnnpack",
    "XNNPACK's weights",
    (
        entry(
            "xnnpack-gemm",
            f"XNNPACK's f32 weights (goi), array N K, after the biases of nr rows; {_SKIPPED}",
            _f32,
            ((8, 8), "f32"),
            f"{_SOURCE}, xnn_pack_f32_gemm_goi_w",
            verified=_RUN,
            variants=(*grid(nr=_NR, kr=(1, 2, 4, 8)), *_ROTATED),
        ),
        entry(
            "xnnpack-gemm-qs8",
            f"XNNPACK's 8-bit weights (goi), array N K, after the biases of nr rows, less input_zero_point "
            f"times the sum of the row; {_SKIPPED}",
            _qs8,
            ((8, 8), "s8"),
            f"{_SOURCE}, xnn_pack_qs8_gemm_goi_w",
            verified=_RUN,
            variants=(*_VARIANTS, *_ROTATED),
        ),
        entry(
            "xnnpack-gemm-qc4w",
            f"XNNPACK's 4-bit weights (goi) with zero point 8, array N K, after the biases of nr rows, "
            f"less 16 times input_zero_point times the sum of the row; {_SKIPPED}",
            _qc4w,
            ((8, 16), "uint8"),
            f"{_SOURCE}, xnn_pack_qs8_qc4w_gemm_goi_w",
            verified=f"{_RUN}, for input_zero_point 0",
            variants=_VARIANTS,
        ),
    ),
)
