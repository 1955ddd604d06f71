"""The slots of a buffer, unsigned integers of any width from its first bit on, and the element in each.

Elements are numbered from 1 in C order. Each probe sends one digit of its number as every element's value,
and an earlier probe sends the digit 0 everywhere. A slot therefore spells the number of its element, digit by
digit, whatever constant is XORed or added to it. A slot of padding never changes, so it spells 0.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Literal, NamedTuple

import numpy as np
from numpy.typing import NDArray

from codegen import dataclass
from tilejit.copies.bit_streams import pack_stream, unpack_stream

CHUNK = 1 << 16
"""Slots that are read at a time, so that intermediate results stay in the cache."""

Bytes = NDArray[np.uint8]
Table = NDArray[np.int32]
Numbers = NDArray[Any]


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
    part = data[start * width // 8 : -(-stop * width // 8)]
    if width < 8:
        return unpack_stream(part, width, max(stop - start, 0))
    if width == 128:
        words = part.view(np.uint64).reshape(-1, 2)
        return np.where(words[:, 1] == words[:, 0] + np.uint64(1), words[:, 0], ~words[:, 0])
    return part.view(f"u{width // 8}")


def bytes_of_slots(values: NDArray[Any], width: int, size_bytes: int) -> Bytes:
    """The buffer whose first slots have these values: the inverse of `slot_values`; the rest is zero.

    1 2 3 4 in 4 bits -> 0x21 0x43
    """
    out = np.zeros(size_bytes, np.uint8)
    data = np.ascontiguousarray(values).view(np.uint8) if width >= 8 else pack_stream(values, width)
    out[: data.size] = data[:size_bytes]
    return out


class DigitProbes(NamedTuple):
    """The buffers of probes that spell numbers.

    Attributes:
        zero: the buffer for an array of zero digits.
        ones: the buffer for an array of the largest digit.
        places: the buffers for each digit of the numbers, the lowest first.
        bits: the bits of a digit.
    """

    zero: Bytes
    ones: Bytes
    places: tuple[Bytes, ...]
    bits: int


Reading = Literal["xor", "difference", "two values"]
"""How a digit is read from a slot: its value XORed with that of the digit 0, their difference, or, for digits
of one bit, which of the two values it is."""


@dataclass(frozen=True, eq=False, slots=True)
class SlotTable:
    """The slot of each element, as the probes spell it.

    Attributes:
        slots: the slot of each element in C order; -1 if no slot spells its number.
        lost: the number of elements without a slot.
        rivals: further slots that spell an element's number, and the numbers, from 0 on.
    """

    slots: Table
    lost: int
    rivals: tuple[NDArray[np.int64], NDArray[np.int64]]


def read_slots(probes: DigitProbes, width: int, element_bits: int, count: int, reading: Reading) -> SlotTable:
    """Find the slot of each of `count` elements in slots of `width` bits.

    Args:
        probes: the buffers.
        width: the bits of a slot.
        element_bits: the bits of an element; fewer than `width` if an element does not fill its slot.
        count: the number of elements.
        reading: how digits are read.
    """
    mask = (1 << min(width, element_bits, 64)) - 1
    slots = np.full(count + 1, -1, np.int32)
    claims = 0

    def spelled() -> Iterator[tuple[Any, Numbers]]:
        """The slots that spell a number of an element, and the numbers, chunk by chunk."""
        for start in range(0, slot_count(probes.zero.size, width), CHUNK):
            numbers = _numbers(probes, width, mask, reading, start)
            numbers[numbers > count] = 0
            place = np.flatnonzero(numbers)
            yield place + start, numbers if place.size == numbers.size else numbers[place]

    for place, numbers in spelled():
        slots[numbers] = place
        claims += place.size
    lost = int(np.count_nonzero(slots[1:] < 0))
    rivals = np.zeros((2, 0), np.int64)
    if claims > count - lost:
        parts = []
        for place, numbers in spelled():
            beaten = slots[numbers] != place
            parts.append(np.stack([place[beaten], numbers[beaten].astype(np.int64) - 1]))
        rivals = np.concatenate(parts, axis=1)
    return SlotTable(slots[1:], lost, (rivals[0], rivals[1]))


def _numbers(probes: DigitProbes, width: int, mask: int, reading: Reading, start: int) -> Numbers:
    """The numbers that slots from `start` on spell; 0 for those that spell none."""

    def read(data: Bytes) -> Any:
        return slot_values(data, width, start, start + CHUNK)

    zero = read(probes.zero)
    bits = probes.bits * len(probes.places)
    numbers: Numbers = np.zeros(zero.size, np.int32 if bits < 32 else np.int64)
    valid = np.ones(zero.size, np.bool_)
    one = read(probes.ones) if reading == "two values" else zero
    if reading == "two values":
        valid &= zero != one
    for place, data in enumerate(probes.places):
        values = read(data)
        if reading == "two values":
            digit = values == one
            valid &= digit | (values == zero)
        else:
            digit = (values ^ zero if reading == "xor" else values - zero) & zero.dtype.type(mask)
            valid &= digit >> zero.dtype.type(probes.bits) == 0 if probes.bits < 8 * zero.itemsize else True
        numbers |= digit.astype(numbers.dtype) << numbers.dtype.type(probes.bits * place)
    numbers[~valid] = 0
    return numbers


def taken(values: NDArray[Any], slots: Table) -> NDArray[Any]:
    """The values of the slots of elements."""
    out = np.empty(slots.size, values.dtype)
    for start in range(0, slots.size, CHUNK):
        out[start : start + CHUNK] = values[slots[start : start + CHUNK]]
    return out
