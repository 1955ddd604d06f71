"""Dense streams of codes whose width does not divide a byte, in whole-array NumPy steps."""

from __future__ import annotations

from math import gcd

import numpy as np

from tilejit.arrays.memory import Array

CHUNK = 1 << 13
"""Groups of codes that are joined at a time, so that their words stay in the cache."""


def stream_bytes(codes: int, bits: int) -> int:
    """The bytes of a stream of that many codes."""
    return -(-codes * bits // 8)


def pack_stream(codes: Array, bits: int) -> Array:
    """Pack uint8 codes one after another, the first in the low bits of the first byte.

    >>> pack_stream(np.arange(8, dtype=np.uint8), 3)
    array([136, 198, 250], dtype=uint8)
    """
    count, size = _group(bits)
    groups = _padded(codes.reshape(-1), count).reshape(-1, count)
    out = np.empty((len(groups), size), np.uint8)
    for start in range(0, len(groups), CHUNK):
        part = groups[start : start + CHUNK]
        words = np.zeros(len(part), "<u8")
        for k in range(count):
            words |= part[:, k].astype(np.uint64) << np.uint64(bits * k)
        out[start : start + CHUNK] = words.view(np.uint8).reshape(-1, 8)[:, :size]
    return out.reshape(-1)[: stream_bytes(codes.size, bits)]


def unpack_stream(stream: Array, bits: int, codes: int) -> Array:
    """Return the codes of a stream as uint8.

    >>> unpack_stream(np.array([136, 198, 250], np.uint8), 3, 8)
    array([0, 1, 2, 3, 4, 5, 6, 7], dtype=uint8)
    """
    count, size = _group(bits)
    groups = _padded(stream.reshape(-1), size).reshape(-1, size)
    out = np.empty((len(groups), count), np.uint8)
    for start in range(0, len(groups), CHUNK):
        part = groups[start : start + CHUNK]
        words = np.zeros((len(part), 8), np.uint8)
        words[:, :size] = part
        numbers = words.view("<u8").reshape(-1)
        for k in range(count):
            codes_k = (numbers >> np.uint64(bits * k)).astype(np.uint8)
            out[start : start + CHUNK, k] = codes_k & np.uint8((1 << bits) - 1)
    return out.reshape(-1)[:codes]


def _group(bits: int) -> tuple[int, int]:
    """The codes that fill whole bytes, and their bytes: 3 -> (8, 3), 6 -> (4, 3)."""
    size = bits // gcd(bits, 8)
    return size * 8 // bits, size


def _padded(flat: Array, multiple: int) -> Array:
    rest = -len(flat) % multiple
    return np.concatenate([flat, np.zeros(rest, flat.dtype)]) if rest else flat
