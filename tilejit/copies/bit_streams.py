"""Dense streams of codes whose width does not divide a byte, in whole-array NumPy steps."""

from __future__ import annotations

from math import gcd
from typing import Any

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
    flat = _padded(np.ascontiguousarray(codes).reshape(-1), count)
    words = flat.view(f"<u{count}")  # a code in each byte
    out = np.empty((len(words), size), np.uint8)
    for start in range(0, len(words), CHUNK):
        part = words[start : start + CHUNK]
        found = np.zeros_like(part)
        for shift, place in _moves(bits, count):
            found |= part >> shift & place
        out[start : start + CHUNK] = found.view(np.uint8).reshape(-1, count)[:, :size]
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
        part = np.zeros((len(groups[start : start + CHUNK]), count), np.uint8)
        part[:, :size] = groups[start : start + CHUNK]
        words = part.view(f"<u{count}")[:, 0]
        found = np.zeros_like(words)
        for shift, place in _moves(bits, count):
            found |= (words & place) << shift
        out[start : start + CHUNK] = found.view(np.uint8).reshape(-1, count)
    return out.reshape(-1)[:codes]


def _moves(bits: int, count: int) -> list[tuple[Any, Any]]:
    """For each code of a word, how far it moves down from its byte, and a mask of its place in the stream."""
    word: Any = np.dtype(f"<u{count}").type
    return [(word((8 - bits) * k), word((1 << bits) - 1 << bits * k)) for k in range(count)]


def _group(bits: int) -> tuple[int, int]:
    """The codes that fill whole bytes, and their bytes: 3 -> (8, 3), 6 -> (4, 3)."""
    size = bits // gcd(bits, 8)
    return size * 8 // bits, size


def _padded(flat: Array, multiple: int) -> Array:
    rest = -len(flat) % multiple
    return np.concatenate([flat, np.zeros(rest, flat.dtype)]) if rest else flat
