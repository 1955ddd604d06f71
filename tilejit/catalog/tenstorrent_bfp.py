"""Tenstorrent's block floats: 16 values of a face's row share an exponent."""

from __future__ import annotations

import numpy as np

from codegen import LayoutError
from tilejit.catalog.entries import Family, entry, grid
from tilejit.catalog.format import Format
from tilejit.catalog.packing import Array, Codec, Field, Packing, Plane, Sizes, extents, rounded_up
from tilejit.catalog.widths import TILES, pair

_SOURCE = "tenstorrent/tt-metal@034fc8c7, tt_metal/impl/data_format/blockfloat_common.cpp: the host's packer"
_ROW = 16
"""Values that share an exponent."""
_CHUNK = 1 << 12
"""Rows that are converted at a time, so that they stay in the cache."""


def _packing(magnitude: int, tile: int | tuple[int, int]) -> Packing:
    """The records of values of a sign and some bits of magnitude."""
    height, width = pair(tile, "tile")
    if height not in (1, 2, 4, 8, 16, 32) or width not in (16, 32):
        raise LayoutError(
            f"tile is {height} x {width}\n  pass a height of 1, 2, 4, 8, 16 or 32 and a width of 16 or 32"
        )
    exponents = height * width // _ROW
    head, body = rounded_up(exponents, 16), height * width * (magnitude + 1) // 8
    tiles = f"... R/{height} C/{width}"
    faces = (height // min(height, 16), min(height, 16), width // 16, 16)

    def encode(arrays: tuple[Array, ...], sizes: Sizes) -> Array:
        rows = _face_rows(arrays[0], extents(tiles, sizes), faces)
        top, codes = _quantized(rows, magnitude)
        out = np.zeros((*top.shape[:-1], head + body), np.uint8)
        out[..., :exponents] = top
        out[..., head:] = _joined_codes(codes.reshape(*top.shape[:-1], exponents * _ROW), magnitude + 1)
        return out

    def decode(data: Array, sizes: Sizes) -> tuple[Array, ...]:
        codes = _split_codes(data[..., head:], magnitude + 1)
        rows = codes.reshape(*codes.shape[:-1], exponents, _ROW)
        values = _values(rows, data[..., :exponents], magnitude)
        return (_array(values, extents("... R C", sizes), faces),)

    text = (
        f"{exponents} exponent bytes, each the largest exponent of 16 values of a row of a face"
        + (f", {head - exponents} zero bytes" if head > exponents else "")
        + f"; then for each value, face by face, {magnitude + 1} bits, the first in the low bits: sign and "
        f"magnitude, the significand with its leading 1 at the shared exponent, its {magnitude} "
        f"high bit{'s' * (magnitude > 1)} "
        "rounded to nearest, ties to even, at most all ones; bits that the shift drops do not count"
    )
    codec = Codec(text, f"{tiles} {head + body}", encode, decode, rounds=True)
    return Packing((Plane("values", "... R C", dtype="f32"),), (Field(("values",), codec=codec),))


def _face_rows(values: Array, tiles: tuple[int, ...], faces: tuple[int, ...]) -> Array:
    """The padded array as [..., tile row, tile column, row of a face, 16]."""
    *lead, down, across = tiles
    a, r, b, c = faces
    padded = np.zeros((*lead, down * a * r, across * b * c), np.float32)
    padded[..., : values.shape[-2], : values.shape[-1]] = values
    n = len(lead)
    digits = padded.reshape(*lead, down, a, r, across, b, c)
    order = (*range(n), n, n + 3, n + 1, n + 4, n + 2, n + 5)
    return digits.transpose(order).reshape(*tiles, a * b * r, c)


def _array(rows: Array, dims: tuple[int, ...], faces: tuple[int, ...]) -> Array:
    """The array of face rows, without its padding."""
    *lead, down, across = rows.shape[:-2]
    a, r, b, c = faces
    n = len(lead)
    digits = rows.reshape(*lead, down, across, a, b, r, c)
    order = (*range(n), n, n + 2, n + 4, n + 1, n + 3, n + 5)
    full = digits.transpose(order).reshape(*lead, down * a * r, across * b * c)
    return np.ascontiguousarray(full[..., : dims[-2], : dims[-1]])


def _quantized(rows: Array, magnitude: int) -> tuple[Array, Array]:
    """The shared exponents and the codes of rows of 16 floats."""
    flat = rows.reshape(-1, _ROW)
    top, codes = np.empty(len(flat), np.uint8), np.empty(flat.shape, np.uint8)
    for start in range(0, len(flat), _CHUNK):
        some = slice(start, start + _CHUNK)
        top[some], codes[some] = _quantized_chunk(flat[some], magnitude)
    return top.reshape(rows.shape[:-1]), codes.reshape(rows.shape)


def _quantized_chunk(rows: Array, magnitude: int) -> tuple[Array, Array]:
    bits = rows.view(np.uint32)
    exponent = bits >> np.uint32(23) & np.uint32(255)
    top = exponent.max(-1)
    significand = (bits & np.uint32(0x7FFFFF) | np.uint32(1 << 23)) >> np.minimum(
        top[..., None] - exponent, 31
    )
    low = 24 - magnitude
    rest, tie = significand & np.uint32((1 << low) - 1), np.uint32(1 << low - 1)
    code = significand >> np.uint32(low)
    code += (rest > tie) | ((rest == tie) & (code & np.uint32(1) == 1))
    code = np.minimum(code, np.uint32((1 << magnitude) - 1))
    code[bits << np.uint32(1) == 0] = 0
    sign = np.where(code > 0, bits >> np.uint32(31), np.uint32(0))
    return top.astype(np.uint8), (code | sign << np.uint32(magnitude)).astype(np.uint8)


def _values(codes: Array, top: Array, magnitude: int) -> Array:
    """The floats of codes with shared exponents; a number below the smallest exponent becomes 0."""
    flat, shared = codes.reshape(-1, _ROW), top.reshape(-1)
    values = np.empty(flat.shape, np.float32)
    for start in range(0, len(flat), _CHUNK):
        some = slice(start, start + _CHUNK)
        values[some] = _values_of_chunk(flat[some], shared[some], magnitude)
    return values.reshape(codes.shape)


def _values_of_chunk(codes: Array, top: Array, magnitude: int) -> Array:
    number = (codes & np.uint8((1 << magnitude) - 1)).astype(np.float32).view(np.int32)
    exponent = (number >> 23) + top[..., None].astype(np.int32) - (126 + magnitude)
    sign = codes.astype(np.int32) >> magnitude << 31
    found = np.where((number != 0) & (exponent >= 0), sign | exponent << 23 | number & 0x7FFFFF, 0)
    return found.astype(np.int32).view(np.float32)


def _joined_codes(codes: Array, bits: int) -> Array:
    """Codes of 8, 4 or 2 bits as bytes, the first in the low bits."""
    each = 8 // bits
    groups = codes.reshape(*codes.shape[:-1], codes.shape[-1] // each, each) << np.arange(
        0, 8, bits, dtype=np.uint8
    )
    packed: Array = np.bitwise_or.reduce(groups, -1)
    return packed


def _split_codes(data: Array, bits: int) -> Array:
    codes = data[..., None] >> np.arange(0, 8, bits, dtype=np.uint8) & np.uint8((1 << bits) - 1)
    return codes.reshape(*data.shape[:-1], data.shape[-1] * 8 // bits)


def _format(bits: int) -> Format:
    def packing(tile: int | tuple[int, int] = 32) -> Packing:
        return _packing(bits - 1, tile)

    return entry(
        f"tenstorrent-bfp{bits}_b",
        f"ttnn's block floats of {bits} bits, array R C: records of 32 x 32 values, rounded from f32",
        packing,
        ((32, 64), "f32"),
        _SOURCE,
        verified="run in Python: the expressions of tt-metal's host packer; devices may round differently",
        variants=grid(tile=TILES),
    )


FAMILY = Family("tenstorrent-bfp", "Tenstorrent's block floats", (_format(8), _format(4), _format(2)))
