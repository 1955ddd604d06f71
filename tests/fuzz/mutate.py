"""Inputs made from others by a seeded generator: the engine without coverage."""

from __future__ import annotations

import random
import re
from collections.abc import Sequence

MOST_KEPT = 4000
NUMBERS = (
    *(b"0", b"1", b"2", b"3", b"7", b"8", b"64", b"128", b"255", b"4096", b"65536", b"-1", b"00", b"1_0"),
    *(b"2147483648", b"4294967296", b"4611686018427387904", b"9223372036854775807", b"9223372036854775808"),
    b"9" * 40,
)
"""Replacements for a number."""


class Mutator:
    """Makes inputs from those that it keeps.

    >>> mutator = Mutator(seed=1, corpus=[b"f32[2,3]"], tokens=[b"T(8,128)"], length=4096)
    >>> mutator.make()      # b"f32[2,T(8,128)3]"
    """

    def __init__(self, seed: int, corpus: Sequence[bytes], tokens: Sequence[bytes], length: int) -> None:
        self.kept, self.tokens, self.length = list(corpus) or [b""], list(tokens) or [b" "], length
        self._random = random.Random(seed)
        self._outcomes: set[str] = set()
        self._ways = (
            self._flip,
            self._token,
            self._cut,
            self._repeat,
            self._splice,
            self._number,
            self._swap,
        )

    def make(self) -> bytes:
        """The next input."""
        data = self._random.choice(self.kept)
        for _ in range(self._random.choice((1, 1, 2, 3, 5, 8))):
            data = self._random.choice(self._ways)(data)[: self.length]
        return data

    def note(self, data: bytes, outcome: str) -> None:
        """Keep an input whose outcome is new, to make others from it."""
        if outcome not in self._outcomes:
            self._outcomes.add(outcome)
            self.kept.append(data)
        if len(self.kept) > MOST_KEPT:
            del self.kept[self._random.randrange(len(self.kept))]

    def _place(self, data: bytes) -> int:
        return self._random.randint(0, len(data))

    def _flip(self, data: bytes) -> bytes:
        at = self._place(data)
        return data[:at] + bytes([self._random.randrange(256)]) + data[at + self._random.randint(0, 1) :]

    def _token(self, data: bytes) -> bytes:
        at = self._place(data)
        return data[:at] + self._random.choice(self.tokens) + data[at + self._random.choice((0, 0, 1, 4)) :]

    def _cut(self, data: bytes) -> bytes:
        at = self._place(data)
        return data[:at] + data[at + self._random.choice((1, 1, 2, 3, 8, len(data))) :]

    def _repeat(self, data: bytes) -> bytes:
        """Repeat a segment many times, to find quadratic time and deep nesting."""
        at, size = self._place(data), self._random.choice((1, 1, 2, 3, 5, 8, 20))
        times = self._random.choice((2, 3, 10, 33, 100, 500, 2000))
        return data[:at] + data[at : at + size] * times + data[at + size :]

    def _splice(self, data: bytes) -> bytes:
        other = self._random.choice(self.kept)
        return data[: self._place(data)] + other[self._place(other) :]

    def _number(self, data: bytes) -> bytes:
        found = list(re.finditer(rb"-?[0-9]+", data))
        if not found:
            return self._token(data)
        match = self._random.choice(found)
        return data[: match.start()] + self._random.choice(NUMBERS) + data[match.end() :]

    def _swap(self, data: bytes) -> bytes:
        a, b, c = sorted(self._place(data) for _ in range(3))
        return data[:a] + data[b:c] + data[a:b] + data[c:]
