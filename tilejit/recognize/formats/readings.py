"""Ways in which a buffer differs from what a format writes: bits in other places, and changed values."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from tilejit.arrays.memory import Array
from tilejit.recognize.formats.places import Part


class Reordering(NamedTuple):
    """Bits of a whole buffer in other places.

    Attributes:
        text: what was done, empty for nothing.
        flip: the bits of a place that are inverted; 4 swaps the nibbles of each byte.
        halves: whether the halves of the buffer are swapped.
        shift: the bytes by which the buffer begins too early; negative if its first bytes are missing.
    """

    text: str
    flip: int = 0
    halves: bool = False
    shift: int = 0

    def moved(self, places: Array, size: Any) -> Array:
        """The places in the buffer as it is; `size` are the bytes that a format writes."""
        if self.flip:
            places = places ^ self.flip
        if self.halves:
            places = (places + 4 * size) % (8 * size)
        return places + 8 * self.shift if self.shift else places

    def part(self, part: Part, size: Any) -> Part:
        """The places of a part in the buffer as it is."""
        follow = None if part.follow is None else self.moved(part.follow, size)
        return part._replace(places=self.moved(part.places, size), follow=follow)

    def restored(self, data: Array) -> Array:
        """The bytes that a format wrote."""
        if self.halves:
            return np.concatenate([data[data.size // 2 :], data[: data.size // 2]])
        if self.flip >= 8:
            return data.reshape(-1, (self.flip >> 3) + 1)[:, ::-1].reshape(-1)
        return turned_bytes(data, 8 - self.flip) if self.flip else data


PLAIN = Reordering("")


def reorderings(bits: int, size: int) -> list[Reordering]:
    """The reorderings of a buffer of elements of that width."""
    found = [PLAIN]
    if bits in (1, 2, 4):
        found.append(Reordering("first code in the high bits", flip=8 - bits))
    for width in (2, 4, 8):
        if bits <= 8 and size % width == 0:
            text = f"bytes of each {8 * width}-bit word reversed"
            found.append(Reordering(text, flip=8 * (width - 1)))
    if size % 2 == 0 and bits <= 4 * size:
        found.append(Reordering("halves of the buffer swapped", halves=True))
    return found


def turned_bytes(data: Array, bits: int) -> Array:
    """The bytes with the codes of each in the other order."""
    mask, out = np.uint8((1 << bits) - 1), np.zeros_like(data)
    for low in range(0, 8, bits):
        out |= (data >> np.uint8(low) & mask) << np.uint8(8 - bits - low)
    return out


class ValueChange(NamedTuple):
    """A change of all values of a buffer.

    Attributes:
        kind: "^", "+" or "bytes"; empty for nothing.
        number: the number that was XORed or added, modulo the number of codes.
    """

    kind: str = ""
    number: int = 0

    def text(self, bits: int) -> str:
        """The change in words: "values ^ 8", "values - 1"."""
        if self.kind == "bytes":
            return "bytes of each element reversed"
        if self.kind == "+" and self.number >= 1 << bits - 1:
            return f"values - {(1 << bits) - self.number}"
        return f"values {self.kind} {self.number}" if self.kind else ""

    def applied(self, values: Array, bits: int) -> Array:
        """The codes of the buffer, from those of the array."""
        back = ValueChange("+", -self.number % (1 << bits)) if self.kind == "+" else self
        return back.undone(values, bits)

    def undone(self, values: Array, bits: int) -> Array:
        """The values of the array, from those of the buffer: codes, or rows of bytes."""
        if self.kind == "bytes":
            return values[..., ::-1]
        if self.kind == "^":
            return values ^ np.uint8(self.number)
        if self.kind == "+":
            return values - np.uint8(self.number) & np.uint8((1 << bits) - 1)
        return values


UNCHANGED = ValueChange()


def read(data: Array, parts: tuple[Part, ...], table: Array | None) -> tuple[Array, Array]:
    """Read elements from flat bytes.

    Args:
        data: the bytes.
        parts: the parts of the elements; one of more than 8 bits is a whole element.
        table: the stored code of each code, or of each row of codes.

    Returns:
        The elements, a code or a row of bytes for each, and which of them lie within the bytes and are codes
        that the format stores.
    """
    place, _, bits, _ = parts[0]
    if bits > 8:
        first = place >> 3
        inside = (first >= 0) & (first + bits // 8 <= data.size)
        safe = np.where(inside, first, 0)[..., None] + np.arange(bits // 8)
        return np.take(data, safe, mode="clip"), inside
    codes: Array | None = None
    inside = np.ones(place.shape, bool)
    for place, low, bits, follow in parts:
        byte = place >> 3
        inside &= (byte >= 0) & (byte < data.size)
        got = np.take(data, byte, mode="clip") >> (place & 7).astype(np.uint8)
        if follow is not None:
            upper = np.take(data, follow >> 3, mode="clip").astype(np.uint16)
            got = got | (upper << (8 - (place & 7)).astype(np.uint16)).astype(np.uint8)
        got = (got & np.uint8((1 << bits) - 1)) << np.uint8(low)
        codes = got if codes is None else codes | got
    assert codes is not None
    if table is None:
        return codes, inside
    return decoded(codes, inside, table)


def decoded(codes: Array, inside: Array, table: Array) -> tuple[Array, Array]:
    """The codes of stored codes, and which of them the format stores."""
    inverse = np.full(table.size, -1, np.int16)
    known = np.flatnonzero(table >= 0)
    inverse[table[known]] = known
    found = inverse[codes]
    return np.where(found < 0, 0, found).astype(np.uint8), inside & (found >= 0)


def most_frequent(numbers: Array, inside: Array) -> tuple[list[int], Array]:
    """The most frequent number of each row, and its share."""
    rows, count = numbers.shape
    bins = numbers.astype(np.int64) + 256 * np.arange(rows)[:, None]
    counts = np.bincount(bins[inside], minlength=256 * rows).reshape(rows, 256)
    best = counts.argmax(axis=1)
    return best.tolist(), counts[np.arange(rows), best] / count
