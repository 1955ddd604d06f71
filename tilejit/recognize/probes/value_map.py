"""`ValueMap`: how a function changes the values of elements that it otherwise only moves."""

from __future__ import annotations

from collections.abc import Callable
from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from codegen import dataclass
from tilejit.recognize.probes.bit_patterns import CHUNK, Patterns

_EXTENDED = "sign-extended to"
MAX_TABLE_BITS = 8
"""The widest elements whose values a table lists."""


@dataclass(frozen=True, slots=True)
class ValueMap:
    """A one-to-one map from the pattern of an element to what its slot holds.

    >>> ValueMap("x ^ 8", tuple(x ^ 8 for x in range(16))).applied(np.array([0, 9], np.uint8))
    array([8, 1], dtype=uint8)

    Attributes:
        text: what a slot holds for the pattern x: "x ^ 8", "x - 1", or in words.
        table: what the slot holds for each pattern; empty for elements of more than 8 bits.
        xor: for wider elements, the bits that are flipped.
        addend: for wider elements, the number added after that.
        bits: for wider elements, the bit of the pattern that each bit of the slot holds, before both; empty
            if bits keep their order.
        partial: whether some patterns of the table were never seen.
        domain: the patterns that elements have; empty for all.
    """

    text: str
    table: tuple[int, ...] = ()
    xor: int = 0
    addend: int = 0
    bits: tuple[int, ...] = ()
    partial: bool = False
    domain: tuple[int, ...] = ()

    @property
    def extends_sign(self) -> bool:
        """Whether a byte has a narrower signed integer."""
        return self.text.startswith(_EXTENDED)

    def applied(self, patterns: Patterns) -> Patterns:
        """What slots hold for patterns."""
        if self.table:
            out: Patterns = np.array(self.table, patterns.dtype)[patterns]
            return out
        moved = _moved(patterns, self.bits) if self.bits else patterns
        out = (moved ^ patterns.dtype.type(self.xor)) + patterns.dtype.type(self.addend)
        return out

    def inverted(self, values: Patterns) -> Patterns:
        """The patterns for what slots hold; a value that no pattern gives becomes pattern 0."""
        if self.table:
            inverse = np.zeros(1 << 8, values.dtype)
            known = np.array(self.domain or range(len(self.table)))
            inverse[np.array(self.table)[known]] = known
            out: Patterns = inverse[values]
            return out
        plain = (values - values.dtype.type(self.addend)) ^ values.dtype.type(self.xor)
        return _moved(plain, tuple(np.argsort(self.bits).tolist())) if self.bits else plain


def _moved(patterns: Patterns, bits: tuple[int, ...]) -> Patterns:
    """Patterns whose bit k is bit bits[k] of the given ones."""
    out = np.zeros_like(patterns)
    one = patterns.dtype.type(1)
    for k, source in enumerate(bits):
        out |= (patterns >> patterns.dtype.type(source) & one) << patterns.dtype.type(k)
    return out


class Stored(NamedTuple):
    """An element, by its number, its pattern in a probe, and what its slot held."""

    number: int
    pattern: int
    value: int


class Collision(NamedTuple):
    """Two stored elements that no value map explains: equal patterns or equal values, but not both.

    For elements of more than 8 bits, the two may be the same: a value that is neither its pattern nor derived
    from it by any map that TileJIT tries.
    """

    first: Stored
    second: Stored

    @property
    def loses(self) -> bool:
        """Whether two patterns have the same value, so that the value does not tell which it was."""
        return self.first.pattern != self.second.pattern


class Pairs:
    """Pairs of the pattern of an element and the value of its slot, from several probes.

    Attributes:
        bits: the bits of a pattern.
        width: the bits of a slot.
    """

    def __init__(self, bits: int, width: int) -> None:
        self.bits, self.width = bits, width
        self._seen: list[tuple[Patterns, NDArray[Any]]] = []

    def add(self, patterns: Patterns, values: NDArray[Any]) -> None:
        """Add the pairs of one probe."""
        self._seen.append((patterns, values))

    def missing(self) -> tuple[int, ...]:
        """The patterns of which no element has been seen, for elements of at most 8 bits."""
        return tuple(np.flatnonzero(~self._counts().any(axis=1)).tolist())

    def _counts(self) -> NDArray[np.int64]:
        """How often each pattern (row) has each value (column)."""
        shape = 1 << self.bits, 1 << self.width
        counts = np.zeros(shape, np.int64)
        for patterns, values in self._seen:
            for start in range(0, patterns.size, CHUNK):
                pairs = patterns[start : start + CHUNK].astype(np.int64) << self.width
                pairs |= values[start : start + CHUNK]
                counts += np.bincount(pairs, minlength=counts.size).reshape(shape)
        return counts

    def value_map(self) -> ValueMap | Collision | None:
        """The map; a collision if there is none; None if values don't change.

        A partly known table whose values are neither XORed nor offset by a constant is completed with zeros.
        """
        if all(np.array_equal(patterns, values) for patterns, values in self._seen):
            return None
        return self._narrow(self._counts()) if self.width <= MAX_TABLE_BITS else self._wide()

    def _narrow(self, counts: NDArray[np.int64]) -> ValueMap | Collision | None:
        several = counts.astype(bool).sum(axis=1) > 1
        if several.any():
            return self._collision_of_pattern(int(several.argmax()), counts)
        shared = counts.astype(bool).sum(axis=0) > 1
        if shared.any():
            return self._collision_of_value(int(shared.argmax()), counts)
        known, values = np.nonzero(counts)
        named = _named(known, values, self.bits, self.width)
        if named is not None:
            return named if named.text else None
        table = np.zeros(1 << self.bits, np.int64)
        table[known] = values
        partial = bool(known.size < table.size)
        return ValueMap(f"the table {_table_text(table)}", tuple(table.tolist()), partial=partial)

    def _collision_of_pattern(self, pattern: int, counts: NDArray[np.int64]) -> Collision:
        """An element with the most frequent value of a pattern, and one with another value."""
        usual = int(counts[pattern].argmax())
        return Collision(
            self._first(lambda p, v: (p == pattern) & (v == usual)),
            self._first(lambda p, v: (p == pattern) & (v != usual)),
        )

    def _collision_of_value(self, value: int, counts: NDArray[np.int64]) -> Collision:
        """Elements with two patterns and the same value."""
        first, second = np.flatnonzero(counts[:, value])[:2].tolist()
        return Collision(self._first(lambda p, v: p == first), self._first(lambda p, v: p == second))

    def _first(self, test: Callable[[Patterns, Patterns], NDArray[np.bool_]]) -> Stored:
        """The first element of the first probe that passes a test."""
        for patterns, values in self._seen:
            hits = test(patterns, values)
            number = int(hits.argmax())
            if hits[number]:
                return Stored(number, int(patterns[number]), int(values[number]))
        raise AssertionError("no element passes the test")

    def _wide(self) -> ValueMap | Collision | None:
        patterns, values = self._seen[-1]  # the most different ones
        xor, addend = int(patterns[0] ^ values[0]), int((values[:1] - patterns[:1])[0])
        ordered = _bit_order(patterns, values, self.width)
        for candidate in (
            ValueMap(f"x ^ 0x{xor:x}", xor=xor),
            ValueMap(_sum_text(addend, self.width), addend=addend),
            *(ValueMap(_order_text(bits), bits=tuple(bits)) for bits in _byte_orders(self.width)),
            *([ordered] if ordered else []),
        ):
            if all(np.array_equal(candidate.applied(p), v) for p, v in self._seen):
                return candidate
        changed = self._first(lambda p, v: p != v)
        return Collision(changed, changed)


def _named(known: NDArray[np.int64], values: NDArray[np.int64], bits: int, width: int) -> ValueMap | None:
    """The map of known patterns, if a short text describes it; the text is empty if nothing changes."""
    every = np.arange(1 << bits)
    small, mask = (1 << bits) - 1, (1 << width) - 1
    xor, addend = int(known[0] ^ values[0]), int(values[0] - known[0]) & mask
    negative = every >> bits - 1 & 1
    candidates = [
        ("", every),
        (f"{_EXTENDED} {width} bits", every | negative * (mask >> bits << bits)),
        (f"x ^ {xor}", every ^ xor),
        (_sum_text(addend, width), every + addend & mask),
        (_sum_text(addend & small, bits), every + addend & small),
        ("bits in reverse order", sum(((every >> k & 1) << bits - 1 - k for k in range(bits)), 0 * every)),
        ("halves swapped", every >> bits // 2 | (every << bits - bits // 2 & mask)),
    ]
    for text, table in candidates:
        if np.array_equal(table[known], values):
            return ValueMap(text, tuple(np.asarray(table).tolist()))
    return None


def _byte_orders(width: int) -> list[list[int]]:
    """Orders of the bits in which bytes keep theirs: reversed bytes, and swapped halves."""
    return [[k ^ width - 8 for k in range(width)], [(k + width // 2) % width for k in range(width)]]


def _bit_order(patterns: Patterns, values: NDArray[Any], width: int) -> ValueMap | None:
    """The permutation of bits, and the flipped bits, if each bit of the values is one of the patterns."""
    patterns, values = patterns[:4096], values[:4096]
    one = patterns.dtype.type(1)
    ins = [patterns >> patterns.dtype.type(k) & one for k in range(width)]
    bits: list[int] = []
    flipped = 0
    for k in range(width):
        out = values >> values.dtype.type(k) & one
        for order in (k, *range(width)):
            if np.array_equal(ins[order], out) or np.array_equal(ins[order] ^ one, out):
                bits.append(order)
                flipped |= int(ins[order][0] ^ out[0]) << k
                break
        else:
            return None
    if len(set(bits)) < width:
        return None
    then = f", then x ^ 0x{flipped:x}" if flipped else ""
    return ValueMap(_order_text(bits) + then, xor=flipped, bits=tuple(bits))


def _order_text(bits: list[int]) -> str:
    """What a permutation of bits does, in words."""
    width = len(bits)
    for order, text in zip(_byte_orders(width), ("bytes in reverse order", "halves swapped"), strict=True):
        if bits == order:
            return text
    if bits == list(reversed(range(width))):
        return "bits in reverse order"
    runs, start = [], 0
    for k, (low, high) in enumerate(pairwise([*bits, -2])):
        if high != low + 1:
            runs.append(f"{bits[start]}-{low}" if low > bits[start] else str(low))
            start = k + 1
    return f"bits in the order {' '.join(runs)}"


def _sum_text(addend: int, width: int) -> str:
    """An addition modulo 2**width, with the addend of smaller magnitude.

    15, 4 -> "x - 1"
    """
    return f"x + {addend}" if addend <= 1 << width - 1 else f"x - {(1 << width) - addend}"


def _table_text(table: NDArray[np.int64]) -> str:
    listed = " ".join(map(str, table[:16].tolist()))
    return f"{listed} …" if table.size > 16 else listed
