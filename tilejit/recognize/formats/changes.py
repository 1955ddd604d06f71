"""Changes beside packing: of the order of an array, of the bits of a buffer, and of all values."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

import numpy as np

from codegen import dataclass
from tilejit.arrays.memory import Array

Index = tuple[Array, ...]
TRANSPOSED = "transposed"
HALVES_SWAPPED = "halves of axis {} swapped"


@dataclass(frozen=True, slots=True)
class Change:
    """A change of the order of an array's elements before packing.

    Attributes:
        text: what was done, empty for nothing.
        axes: the axes of the array along which elements move.
        index: index(index of an element) -> its index afterwards.
        origin: the inverse.
        apply: apply(array) -> the array afterwards.
    """

    text: str
    axes: tuple[int, ...]
    index: Callable[[Index], Index]
    origin: Callable[[Index], Index]
    apply: Callable[[Array], Array]

    def dims(self, dims: tuple[int, ...]) -> tuple[int, ...]:
        """The dimensions afterwards."""
        return (*dims[:-2], dims[-1], dims[-2]) if self.text == TRANSPOSED else dims


NO_CHANGE = Change("", (), lambda index: index, lambda index: index, lambda array: array)


def changes(dims: tuple[int, ...]) -> Iterator[Change]:
    """The changes to try for an array, nothing first."""
    yield NO_CHANGE
    if len(dims) >= 2 and (dims[-1] > 1 and dims[-2] > 1):
        last = (len(dims) - 2, len(dims) - 1)
        yield Change(TRANSPOSED, last, _swapped, _swapped, lambda array: array.swapaxes(-1, -2))
    for axis, size in enumerate(dims):
        if size % 2 == 0 and size > 2:
            yield _rotated(axis, size)
            yield _exchanged(f"halves of axis {axis} interleaved", axis, 2, size // 2)
            if size > 4:  # for 4 indices, the same as interleaved
                yield _exchanged(f"even and odd indices of axis {axis} separated", axis, size // 2, 2)


def _swapped(index: Index) -> Index:
    return (*index[:-2], index[-1], index[-2])


def _rotated(axis: int, size: int) -> Change:
    """Rotate an axis by half of its size."""

    def moved(index: Index) -> Index:
        return (*index[:axis], (index[axis] + size // 2) % size, *index[axis + 1 :])

    text = HALVES_SWAPPED.format(axis)
    return Change(text, (axis,), moved, moved, lambda array: np.roll(array, size // 2, axis))


def _exchanged(text: str, axis: int, major: int, minor: int) -> Change:
    """Exchange the two digits of an axis: index a * minor + b goes to b * major + a."""

    def mover(major: int, minor: int) -> Callable[[Index], Index]:
        return lambda index: (
            *index[:axis],
            index[axis] % minor * major + index[axis] // minor,
            *index[axis + 1 :],
        )

    def apply(array: Array) -> Array:
        split = array.reshape(*array.shape[:axis], major, minor, *array.shape[axis + 1 :])
        return split.swapaxes(axis, axis + 1).reshape(array.shape)

    return Change(text, (axis,), mover(major, minor), mover(minor, major), apply)


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

    def restored(self, data: Array) -> Array:
        """The bytes that a format wrote."""
        if self.halves:
            return np.roll(data, data.size // 2)
        if self.flip >= 8:
            return data.reshape(-1, (self.flip >> 3) + 1)[:, ::-1].reshape(-1)
        return _reversed_codes(data, 8 - self.flip) if self.flip else data

    def with_halves_in_order(self, data: Array, size: int) -> Array:
        """The buffer from its first half on: at least `size` bytes, if it has as many."""
        if not self.halves:
            return data
        half = data.size // 2
        return data[data.size - half :] if size <= half else self.restored(data)


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


def _reversed_codes(data: Array, bits: int) -> Array:
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
