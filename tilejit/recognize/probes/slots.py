"""The slots of a buffer: unsigned integers of any width, counted from its first bit on."""

from __future__ import annotations

from math import lcm
from typing import Any

import numpy as np
from numpy.typing import NDArray

Bytes = NDArray[np.uint8]


def slot_count(size_bytes: int, width: int) -> int:
    """The number of complete slots in a buffer.

    16 bytes, 4 bits -> 32    5 bytes, 16 bits -> 2
    """
    return size_bytes * 8 // width


def slot_values(data: Bytes, width: int, start: int = 0, stop: int | None = None) -> NDArray[Any]:
    """The values of slots: bit k of the stream is bit k % 8 of byte k // 8, and bytes are little-endian.

    0x21 0x43, 4 bits -> 1 2 3 4

    A slot of 128 bits has two words. Its value is the first one if the second is one more, or its complement.

    Args:
        data: the buffer.
        width: bits of a slot: 1 to 8, 16, 32, 64 or 128.
        start: the first slot; for widths below 8 a multiple of 8.
        stop: the slot after the last one; None takes all complete slots.
    """
    stop = slot_count(data.size, width) if stop is None else min(stop, slot_count(data.size, width))
    if width == 8:
        return data[start:stop]
    if width < 8:
        return _narrow(data, width, start, stop)
    if width == 128:
        words = data[start * 16 : stop * 16].view(np.uint64).reshape(-1, 2)
        return np.where(words[:, 1] == words[:, 0] + np.uint64(1), words[:, 0], ~words[:, 0])
    return data[start * width // 8 : stop * width // 8].view(f"u{width // 8}")


def _narrow(data: Bytes, width: int, start: int, stop: int) -> Bytes:
    """Slots that are narrower than a byte, in groups of complete bytes."""
    group = lcm(width, 8) // 8  # bytes
    count = group * 8 // width  # slots
    first, last = start // count * group, -(-stop // count) * group
    part = data[first:last]
    if part.size % group:
        part = np.concatenate([part, np.zeros(-part.size % group, np.uint8)])
    word: NDArray[Any] = part if group == 1 else np.zeros(part.size // group, _word(group))
    for k in range(group if group > 1 else 0):
        word |= part[k::group].astype(word.dtype) << word.dtype.type(8 * k)
    out = np.empty((word.size, count), np.uint8)
    mask = word.dtype.type((1 << width) - 1)
    for k in range(count):
        out[:, k] = word >> word.dtype.type(width * k) & mask
    skipped = start - start // count * count
    flat: Bytes = out.reshape(-1)[skipped : skipped + stop - start]
    return flat


def _word(size: int) -> np.dtype[Any]:
    """The smallest unsigned dtype of at least that many bytes."""
    return np.dtype(np.uint64 if size > 4 else np.uint32 if size > 1 else np.uint8)


def bytes_of_slots(values: NDArray[Any], width: int, size_bytes: int) -> Bytes:
    """The buffer whose first slots have these values: the inverse of `slot_values`; the rest is zero.

    1 2 3 4 in 4 bits -> 0x21 0x43
    """
    out = np.zeros(size_bytes, np.uint8)
    if width >= 8:
        data = np.ascontiguousarray(values).view(np.uint8)
        out[: data.size] = data[:size_bytes]
        return out
    group = lcm(width, 8) // 8  # bytes
    count = group * 8 // width  # slots
    parts = np.concatenate([values, np.zeros(-values.size % count, np.uint8)]).reshape(-1, count)
    word: NDArray[Any] = np.zeros(len(parts), _word(group))
    for k in range(count):
        word |= parts[:, k].astype(word.dtype) << word.dtype.type(width * k)
    data = np.empty((len(parts), group), np.uint8)
    for k in range(group):
        data[:, k] = word >> word.dtype.type(8 * k) & word.dtype.type(0xFF)
    data = data.reshape(-1)[:size_bytes]
    out[: data.size] = data
    return out
