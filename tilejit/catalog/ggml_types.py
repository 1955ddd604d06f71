"""The planes of ggml's types, which their records and all repacks of them hold, and two codecs."""

from __future__ import annotations

import numpy as np

from tilejit.catalog.packing import Array, Codec, Plane, Sizes

LLAMA_CPP = "llama.cpp, ggml/src/ggml-common.h (llama-cpp-python 0.3.36)"
GGUF = "run: gguf 0.19.0, dequantize"

D, M, DMIN, E = ("d", "f16"), ("m", "f16"), ("dmin", "f16"), ("e", "f8e8m0fnu")
"""A number for each block: its plane and its dtype."""


def codes(bits: int, *, signed: bool = False, levels: int = 0) -> Plane:
    """The main plane: codes of a matrix, or of several."""
    return Plane("codes", "... R C", bits, signed=signed, levels=levels)


def per_block(name: str, dtype: str, block: int = 32) -> Plane:
    """A plane of one number for each `block` columns."""
    return Plane(name, f"... R C/{block}", dtype=dtype)


def _scales(bits: int, block: int, *names: str, signed: bool = False) -> tuple[Plane, ...]:
    return tuple(Plane(name, f"... R C/{block}", bits, signed=signed) for name in names)


def _of_256(*named: tuple[str, str]) -> tuple[Plane, ...]:
    return tuple(per_block(name, dtype, 256) for name, dtype in named)


PLANES: dict[str, tuple[Plane, ...]] = {
    "q4_0": (codes(4), per_block(*D)),
    "q4_1": (codes(4), per_block(*D), per_block(*M)),
    "q5_0": (codes(5), per_block(*D)),
    "q5_1": (codes(5), per_block(*D), per_block(*M)),
    "q8_0": (codes(8, signed=True), per_block(*D)),
    "q8_1": (codes(8, signed=True), per_block(*D), per_block("s", "f16")),
    "q2_k": (codes(2), *_of_256(D, DMIN), *_scales(4, 16, "scales", "mins")),
    "q3_k": (codes(3), *_of_256(D), *_scales(6, 16, "scales")),
    "q4_k": (codes(4), *_of_256(D, DMIN), *_scales(6, 32, "scales", "mins")),
    "q5_k": (codes(5), *_of_256(D, DMIN), *_scales(6, 32, "scales", "mins")),
    "q6_k": (codes(6), *_of_256(D), *_scales(8, 16, "scales", signed=True)),
    "q8_k": (codes(8, signed=True), per_block("d", "f32", 256), per_block("sums", "s16", 16)),
    "iq4_nl": (codes(4), per_block(*D)),
    "iq4_xs": (codes(4), *_of_256(D), *_scales(6, 32, "scales")),
    "tq1_0": (codes(2, levels=3), *_of_256(D)),
    "tq2_0": (codes(2), *_of_256(D)),
    "mxfp4": (codes(4), per_block(*E)),
    "nvfp4": (codes(4), per_block("scales", "f8e4m3fn", 16)),
}
"""The planes of each type; the first is that of the codes."""


def scales_and_mins(rows: int = 1) -> Codec:
    """8 scales and 8 mins of 6 bits in 12 bytes: those of 8 sub-blocks, or those of `rows` rows.

    Args:
        rows: 8 if 8 rows are interleaved, so that the 12 bytes of a sub-block hold those of the rows; else 1.
    """
    what = "scales s and mins n of 8 sub-blocks" if rows == 1 else "for each sub-block, s and n of the 8 rows"

    def encode(arrays: tuple[Array, ...], sizes: Sizes) -> Array:
        s, n = (_grouped(array, rows) for array in arrays)
        high = s[..., 4:] & 15 | n[..., 4:] << 4
        return np.concatenate([_with_high_bits(s), _with_high_bits(n), high], axis=-1)

    def decode(data: Array, sizes: Sizes) -> tuple[Array, ...]:
        s, n, rest = data[..., :4], data[..., 4:8], data[..., 8:]
        scales = np.concatenate([s & 63, s >> 6 << 4 | rest & 15], axis=-1)
        mins = np.concatenate([n & 63, n >> 6 << 4 | rest >> 4], axis=-1)
        return _ungrouped(scales, rows), _ungrouped(mins, rows)

    return Codec(
        f"12 bytes ({what}): s[j] + (s[j+4] >> 4 << 6); n[j] + (n[j+4] >> 4 << 6); "
        "s[j+4] % 16 + (n[j+4] % 16 << 4); j < 4",
        "... R C/256 12" if rows == 1 else f"... R/{rows} C/256 8 12",
        encode,
        decode,
    )


def _with_high_bits(numbers: Array) -> Array:
    """The first 4 numbers of 6 bits with the high bits of the other 4 above them."""
    low, high = numbers[..., :4], numbers[..., 4:]
    out: Array = low | high >> 4 << 6
    return out


def _grouped(array: Array, rows: int) -> Array:
    """[..., R, C/32] -> [..., R, C/256, 8 sub-blocks], or [..., R/8, C/256, 8 sub-blocks, 8 rows]."""
    *leading, row_count, blocks = array.shape
    if rows == 1:
        return array.reshape(*leading, row_count, blocks // 8, 8)
    shaped = array.reshape(*leading, row_count // rows, rows, blocks // 8, 8)
    return np.moveaxis(shaped, -3, -1)


def _ungrouped(array: Array, rows: int) -> Array:
    """The inverse of `_grouped`."""
    if rows > 1:
        array = np.moveaxis(array, -1, -3)
        array = array.reshape(*array.shape[:-4], array.shape[-4] * rows, *array.shape[-2:])
    return array.reshape(*array.shape[:-2], array.shape[-2] * 8)


_POWERS = np.array([81, 27, 9, 3, 1], np.uint16)


def _base_3_bytes(digits: Array) -> Array:
    """Numbers of 5 digits in base 3, most significant first, as ceil(256 x / 243).

    [2 2 2 2 2] -> 255    [0 0 0 0 1] -> 2
    """
    number: Array = (digits * _POWERS[: digits.shape[-2], None]).sum(axis=-2, dtype=np.uint32)
    return ((number * 256 + 242) // 243).astype(np.uint8)


def _base_3_digits(data: Array, digits: int) -> Array:
    number = data.astype(np.uint16) * 243 >> 8
    return (number[..., None, :] // _POWERS[:digits, None] % 3).astype(np.uint8)


def _encode_ternary(arrays: tuple[Array, ...], sizes: Sizes) -> Array:
    blocks = arrays[0].reshape(-1, 256)
    parts = [blocks[:, low:high].reshape(-1, count, size) for low, high, count, size in _TERNARY]
    return np.concatenate([_base_3_bytes(part) for part in parts], axis=-1)


def _decode_ternary(data: Array, sizes: Sizes) -> tuple[Array, ...]:
    records = data.reshape(-1, 52)
    parts, at = [], 0
    for _, _, count, size in _TERNARY:
        digits = _base_3_digits(records[:, at : at + size], count)
        parts.append(digits.reshape(len(records), count * size))
        at += size
    return (np.concatenate(parts, axis=-1).reshape(*sizes["..."], sizes["R"], sizes["C"]),)


_TERNARY = (0, 160, 5, 32), (160, 240, 5, 16), (240, 256, 4, 4)
"""First and last column of a block, digits of a byte, and bytes: byte l has columns l, l + bytes, ..."""

TERNARY = Codec(
    "bytes ceil(256 x / 243), x of 5 digits in base 3, the first most significant: 32 bytes of the codes "
    "l + 32t, 16 bytes of 160 + l + 16t, 4 bytes of 240 + l + 4t with 0 as the last digit",
    "... R C/256 52",
    _encode_ternary,
    _decode_ternary,
)
