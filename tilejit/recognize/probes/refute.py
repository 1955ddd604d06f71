"""Find out why a function's result is not a layout: change single elements, and see which bits follow."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from codegen import dataclass
from tilejit.recognize.probes.bit_patterns import (
    Patterns,
    array_of,
    constant,
    pattern_dtype,
    safe_bits,
)
from tilejit.recognize.probes.prober import Counterexample, Prober
from tilejit.recognize.probes.slots import Bytes, slot_values
from tilejit.recognize.probes.value_map import Collision

MOST_SUSPECTS = 4
MOST_DRAWS = 6
"""Random arrays that are tried in the search for a second element."""
MORE_REPEATS = 6
"""Further calls that find bits that change by themselves, if two calls differed."""
SEED = 1043
REPLAYS = (0, 0, 1, 0, 1, 1)
"""Which of two arrays each call gets. What depends on earlier calls, such as reused memory, differs here."""


@dataclass(frozen=True, eq=False, slots=True)
class Trial:
    """The array of a probe and the buffer that the function made of it."""

    patterns: Patterns
    data: Bytes


class Suspect(NamedTuple):
    """An element, by its number, that some reading of the probes does not explain, and why."""

    number: int
    collision: Collision | None = None


@dataclass(frozen=True, eq=False, slots=True)
class Inquiry:
    """Questions about single elements, which further calls answer.

    Attributes:
        probe: the function.
        width: the bits of a slot.
        known: a probe with random elements.
        stable: the bits of the buffer that were equal in repeated calls.
    """

    probe: Prober
    width: int
    known: Trial
    stable: Bytes

    @classmethod
    def of(cls, probe: Prober, width: int, trials: list[Trial]) -> Inquiry:
        """Repeat earlier probes to find the bits that do not depend on the array alone."""
        stable = np.full_like(trials[0].data, 0xFF)
        for trial in trials:
            stable &= ~(probe(trial.patterns, "the array of an earlier call") ^ trial.data)
        if np.any(stable != 0xFF):
            for _ in range(MORE_REPEATS):
                stable &= ~(probe(trials[-1].patterns, "the array of an earlier call") ^ trials[-1].data)
        return cls(probe, width, trials[-1], stable)

    def counterexample(self, suspects: list[Suspect]) -> Counterexample:
        """What the function does to one of the suspects."""
        if np.any(self.stable != 0xFF):
            slots = slot_values(self.stable, self.width)
            whole = slots.dtype.type((1 << min(self.width, 64)) - 1)
            if np.count_nonzero(slots == whole) < self.probe.count:
                return self.unstable()
        for suspect in suspects[:MOST_SUSPECTS]:
            found = self.examined(suspect)
            if found is not None:
                return found if found.kind == "lost" else self.too_small() or found
        return self.unstable()

    def too_small(self) -> Counterexample | None:
        """The counterexample for a buffer that cannot hold all elements."""
        bits, count, size = self.probe.element.bits, self.probe.count, self.stable.size
        needed = -(-bits * count // 8)
        if size >= needed or self.probe.bounds:
            return None
        text = f"the buffer has {size} bytes, but {count} elements of {bits} bits need {needed}"
        return Counterexample("too small", text)

    def examined(self, suspect: Suspect) -> Counterexample | None:
        """What the function does to an element; None if the bits that are stable do not depend on it."""
        number = suspect.number
        own = self.bits_of(number)
        bits = bit_positions(own)
        if not bits.size:
            index = index_of(self.probe, number)
            text = f"element {index} is lost: no byte of the buffer changes with it"
            return None if np.any(self.stable != 0xFF) else Counterexample("lost", text, (index,))
        other = self.partner(number, own)
        if other is not None:
            return self.combined(number, *other)
        touched = np.unique(bits // self.width).tolist()
        split = self.split(number)
        if split is None and len(touched) > 1:
            index = index_of(self.probe, number)
            text = f"element {index} changes slots {touched[0]} and {touched[1]}"
            return Counterexample("duplicated", text, (index,), tuple(touched[:2]))
        return split or self.changed(suspect, touched[0])

    def bits_of(self, number: int) -> Bytes:
        """The stable bits of the buffer that change with an element, among random or among equal elements."""
        changed = np.zeros_like(self.stable)
        base = np.array(constant(self.probe.element, self.probe.count, self.probe.alphabet.base))
        equal = Trial(base, self.probe(base, "equal elements"))
        for around in (self.known, equal):
            for pattern in self.alternatives(int(around.patterns[number])):
                changed |= self.changed_bits(around, number, pattern)
        return changed

    def alternatives(self, now: int) -> list[int]:
        """Some patterns for an element, other than the one that it has."""
        element, alphabet = self.probe.element, self.probe.alphabet
        more = self.probe.random(SEED, 6).tolist()
        if element.kind not in ("float", "complex") and not self.probe.bounds:
            more = [now ^ (1 << element.bits) - 1, *more]
        return [p for p in dict.fromkeys([*more, alphabet.base, alphabet.last]) if p != now]

    def changed_bits(self, around: Trial, number: int, pattern: int) -> Bytes:
        """The stable bits of the buffer that change if one element of a probe gets another pattern."""
        patterns = np.array(around.patterns)
        patterns[number] = pattern
        return (self.probe(patterns, "an array with one element changed") ^ around.data) & self.stable

    def partner(self, number: int, bits: Bytes) -> tuple[int, int] | None:
        """An element other than `number` that some of these bits depend on, and the slot of such a bit."""
        patterns = self.known.patterns
        for draw in range(MOST_DRAWS):
            other = self.probe.random(SEED + 1 + draw)
            other[number] = patterns[number]
            changed = self.differing(other) & bits
            if changed.any():
                slot = int(bit_positions(changed)[0]) // self.width
                return self.first_that_matters(other, self.of_slot(slot) & bits), slot
        return None

    def of_slot(self, slot: int) -> Bytes:
        """The bits of a slot."""
        out = np.zeros_like(self.stable)
        bits = np.arange(slot * self.width, (slot + 1) * self.width)
        np.bitwise_or.at(out, bits // 8, np.left_shift(1, bits % 8).astype(np.uint8))
        return out

    def differing(self, patterns: Patterns) -> Bytes:
        """The stable bits that differ from those of the known probe."""
        return (self.probe(patterns, "random elements") ^ self.known.data) & self.stable

    def first_that_matters(self, patterns: Patterns, bits: Bytes) -> int:
        """An element with which some of the bits change, by bisection between two arrays."""
        same, different = 0, patterns.size  # the first `same` elements may be replaced, `different` not
        while different - same > 1:
            middle = (same + different) // 2
            mixed = np.concatenate([patterns[:middle], self.known.patterns[middle:]])
            if np.any(self.differing(mixed) & bits):
                different = middle
            else:
                same = middle
        return same

    def combined(self, number: int, other: int, slot: int) -> Counterexample:
        """The counterexample for a slot that depends on two elements."""
        first, second = (index_of(self.probe, k) for k in sorted((number, other)))
        return Counterexample(
            "combined",
            f"slot {slot} depends on elements {first} and {second}: it changes with either of them",
            (first, second),
            (slot,),
        )

    def split(self, number: int) -> Counterexample | None:
        """The counterexample for an element whose bits move apart; None unless each bit moves to one bit."""
        now = int(self.known.patterns[number])
        moved: dict[int, int] = {}
        for bit in safe_bits(self.probe.element) if self.probe.bounds is None else ():
            found = bit_positions(self.changed_bits(self.known, number, now ^ 1 << bit))
            if found.size != 1:
                return None
            moved[bit] = int(found[0])
        if not moved:
            return None
        aligned = len({position - bit for bit, position in moved.items()}) == 1 and moved[0] % self.width == 0
        if aligned or len(set(moved.values())) < len(moved):
            return None
        index = index_of(self.probe, number)
        return Counterexample(
            "split",
            f"the bits of element {index} are not a slot of {self.width} bits: {_runs(moved)}",
            (index,),
            tuple(sorted({position // self.width for position in moved.values()})),
        )

    def changed(self, suspect: Suspect, slot: int) -> Counterexample:
        """The counterexample for an element whose slot does not tell its value."""
        probe, number, known = self.probe, suspect.number, self.known
        index, now = index_of(probe, number), int(known.patterns[number])
        seen = {self.value(known.data, slot): now}
        tried = [stored.pattern for stored in suspect.collision or ()]
        for pattern in dict.fromkeys([*tried, *self.alternatives(now)]):
            if pattern in seen.values():
                continue
            patterns = known.patterns.copy()
            patterns[number] = pattern
            value = self.value(probe(patterns, "an array with one element changed"), slot)
            if value in seen:
                one, two = (shown_pattern(probe, p) for p in (seen[value], pattern))
                text = f"element {index} leaves the same in slot {slot} whether it is {one} or {two}"
                return Counterexample("changed", text, (index,), (slot,))
            seen[value] = pattern
        held, stored = (shown_pattern(probe, p) for p in (now, self.value(known.data, slot)))
        text = f"element {index} is {held}, but slot {slot} holds {stored}"
        if suspect.collision and suspect.collision.first.number != number:
            text = ", but ".join(
                f"{shown_pattern(probe, one.pattern)} becomes {shown_pattern(probe, one.value)} "
                f"in element {index_of(probe, one.number)}"
                for one in suspect.collision
            )
        return Counterexample("changed", text, (index,), (slot,))

    def value(self, data: Bytes, slot: int) -> int:
        """The value of a slot."""
        start = slot // 8 * 8
        return int(slot_values(data, self.width, start, start + 8)[slot - start])

    def unstable(self) -> Counterexample:
        """The counterexample for a function that returns other bytes for the same array."""
        place = int(np.argmax(self.stable != 0xFF))
        bit = int(bit_positions(~self.stable[place : place + 1])[0]) + 8 * place
        return Counterexample(
            "not deterministic",
            f"byte {place} of the buffer differs between two calls with the same array",
            (),
            (bit // self.width,),
        )


def dependence(probe: Prober, width: int, trials: list[Trial], bits: Bytes) -> Counterexample | None:
    """Why some bits of the buffer that hold no element change: the elements that they depend on.

    None if the bits don't depend on the array alone, as in memory that the function does not write.
    """
    place = int(np.argmax(bits))
    pair = next(
        ((a, b) for a in trials for b in trials if (a.data[place] ^ b.data[place]) & bits[place]), None
    )
    if pair is None:
        return None
    for which in REPLAYS:
        data = probe(pair[which].patterns, "the array of an earlier call")
        if (data[place] ^ pair[which].data[place]) & bits[place]:
            return None
    inquiry = Inquiry(probe, width, pair[0], bits)
    differing = inquiry.differing(pair[1].patterns)
    if not differing.any():
        return None
    slot = int(bit_positions(differing)[0]) // width
    first = inquiry.first_that_matters(pair[1].patterns, inquiry.of_slot(slot))
    second = inquiry.partner(first, inquiry.of_slot(slot))
    if second is not None:
        return inquiry.combined(first, *second)
    index = index_of(probe, first)
    text = f"element {index} changes slot {slot} besides its own"
    return Counterexample("duplicated", text, (index,), (slot,))


def altered(
    probe: Prober, sent: Patterns, got: Patterns, number: int, slot: int, kind: str
) -> Counterexample:
    """The counterexample for an element that is not in its slot in an array of values of some kind."""
    index = index_of(probe, number)
    was, is_now = (shown_pattern(probe, int(patterns[number])) for patterns in (sent, got))
    text = f"in an array of {kind}, element {index} is {was}, but slot {slot} holds {is_now}"
    return Counterexample("changed", text, (index,), (slot,))


def duplicated(probe: Prober, number: int, first: int, second: int) -> Counterexample:
    """The counterexample for an element in two slots."""
    index = index_of(probe, number)
    low, high = sorted((first, second))
    return Counterexample(
        "duplicated", f"element {index} is in slots {low} and {high}", (index,), (low, high)
    )


def index_of(probe: Prober, number: int) -> tuple[int, ...]:
    """The index of an element, from its number in C order."""
    return tuple(int(k) for k in np.unravel_index(number, probe.dims))


def shown_pattern(probe: Prober, pattern: int) -> str:
    """The value of an element with a pattern, as NumPy prints it."""
    return str(array_of(np.array([pattern], pattern_dtype(probe.element)), probe.element, probe.dtype)[0])


def bit_positions(data: Bytes) -> Any:
    """The positions of the bits that are set, in order; bit k is bit k % 8 of byte k // 8."""
    places = np.flatnonzero(data)
    bits = np.unpackbits(data[places], bitorder="little").reshape(-1, 8)
    row, bit = np.nonzero(bits)
    return places[row] * 8 + bit


def _runs(moved: dict[int, int]) -> str:
    """Where bits of an element are, in runs of neighbors.

    0: 0, 1: 1, 2: 1024, 3: 1025 -> "bits 0-1 are bits 0-1 of byte 0, bits 2-3 are bits 0-1 of byte 128"
    """

    def named(low: int, high: int) -> str:
        return f"bit {low}" if low == high else f"bits {low}-{high}"

    runs: list[tuple[int, int]] = []
    for bit, position in moved.items():
        if runs and position % 8 and moved.get(bit - 1) == position - 1:
            runs[-1] = runs[-1][0], bit
        else:
            runs.append((bit, bit))
    texts = [
        f"{named(low, high)} {'is' if low == high else 'are'} "
        f"{named(moved[low] % 8, moved[high] % 8)} of byte {moved[low] // 8}"
        for low, high in runs[:8]
    ]
    return ", ".join(texts) + (", …" if len(runs) > 8 else "")
