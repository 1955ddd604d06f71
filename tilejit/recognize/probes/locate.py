"""Find the slot of each element in what a pack function returns, or a counterexample."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from codegen import LayoutError, dataclass
from tilejit.recognize.probes.bit_patterns import (
    Alphabet,
    Patterns,
    array_of,
    bit_digits,
    constant,
    digits_of_numbers,
    joined_bits,
    places_of,
)
from tilejit.recognize.probes.placement import Placement, all_ones, scattered
from tilejit.recognize.probes.prober import Prober, RefutedError
from tilejit.recognize.probes.refute import Inquiry, Suspect, Trial, duplicated
from tilejit.recognize.probes.slots import (
    Bytes,
    DigitProbes,
    Reading,
    SlotTable,
    Table,
    read_slots,
    slot_count,
    slot_values,
    taken,
)
from tilejit.recognize.probes.value_map import Collision, Pairs, ValueMap

MOST_BITS = 1 << 26
"""The most bits of all elements together that are placed one by one."""
SEED = 43
MOST_ROUNDS = 24
"""Probes in which two slots must both follow an element to count as a second place of it."""


@dataclass(frozen=True, eq=False, slots=True)
class Located:
    """The slot of each element.

    Attributes:
        placement: the slots, as a table, and what they hold.
        own: the bits of the buffer that hold elements.
        trials: some of the probes, the first one first.
    """

    placement: Placement
    own: Bytes
    trials: tuple[Trial, ...]

    def packed(self, patterns: Patterns) -> Bytes:
        """The buffer for elements, with zeros in the padding."""
        return self.placement.packed(array_of(patterns, self.placement.element, self.placement.dtype))


def locate(probe: Prober) -> Located:
    """Find the slot of each element.

    First, elements carry as many bits of their numbers as their type safely holds. If that does not show a
    slot for each element, every element carries one bit: two values are enough to read it, whatever the
    function does to values. If that fails as well, every bit carries bits of its own number. At last, calls
    that differ in one element show why there are no slots.

    Raises:
        RefutedError: not every element has a slot.
        LayoutError, TypeError: a call fails, as `Prober` describes.
    """
    return _Search(probe).run()


class _Search:
    """The probes so far, and the elements that they do not explain."""

    def __init__(self, probe: Prober) -> None:
        self.probe, self.count = probe, probe.count
        zero = constant(probe.element, self.count, probe.alphabet.base)
        self.zero = self.trial(zero, "equal elements")
        self.element = probe.element  # the first call decides between codes and other arrays
        self.alphabet = probe.alphabet
        self.suspects: list[Suspect] = []
        if slot_count(self.zero.data.size, self.element.bits) >= 1 << 31:
            raise LayoutError(
                f"the buffer has {self.zero.data.size} bytes, too many to read\n  pass smaller dims"
            )

    def trial(self, patterns: Patterns, what: str) -> Trial:
        return Trial(patterns, self.probe(patterns, what))

    def run(self) -> Located:
        bits = self.alphabet.bits
        places = (
            digits_of_numbers(self.element, self.count, self.alphabet, place)
            for place in range(places_of(self.count, bits))
        )
        data = tuple(self.probe(digits, "digits of the elements' numbers") for digits in places)
        self.ones = self.trial(constant(self.element, self.count, self.alphabet.last), "equal elements")
        self.random = self.trial(self.probe.random(SEED), "random elements")
        probes = DigitProbes(self.zero.data, self.ones.data, data, bits)
        found = self.read(probes, ("xor", "difference")) or self.read(self.single_bits(), ("two values",))
        found = found or self.read_apart()
        if found is None:
            inquiry = Inquiry.of(self.probe, self.widths()[-1], [self.zero, self.random])
            raise RefutedError(inquiry.counterexample(self.suspects))
        return found

    def widths(self) -> list[int]:
        """The widths of slots to try: an element may fill its bytes, or share them."""
        stored = self.element.storage_bits
        fits = 8 * self.zero.data.size >= self.count * stored
        narrow = [width for width in self.probe.widths if width < stored]
        return [stored] * (fits or not narrow) + narrow

    def single_bits(self) -> DigitProbes:
        """Probes in which elements have one of two values, which carry a bit of their numbers."""
        two = Alphabet(0, 1)
        digits = (
            digits_of_numbers(self.element, self.count, two, place)
            for place in range(places_of(self.count, 1))
        )
        data = tuple(self.probe(self.two_valued(bits), "elements of two values") for bits in digits)
        return DigitProbes(self.zero.data, self.ones.data, data, 1)

    def two_valued(self, bits: Patterns) -> Patterns:
        """Elements with the pattern of the smallest or of the largest digit."""
        return np.where(bits & bits.dtype.type(1), self.ones.patterns, self.zero.patterns)

    def read(self, probes: DigitProbes, readings: Iterable[Reading]) -> Located | None:
        """The slots that some reading finds and that values agree with."""
        for reading in readings:
            for width in self.widths():
                table = read_slots(probes, width, self.element.bits, self.count, reading)
                slots = self.without_rivals(table, width, reading)
                found = None if slots is None else self.agreed(slots, width)
                if found is not None:
                    return found
        return None

    def read_apart(self) -> Located | None:
        """The slot of each bit, if those of an element are not side by side."""
        element, bits = self.element, self.element.bits
        if element.kind not in ("signed", "unsigned") or bits * self.count > MOST_BITS or self.probe.bounds:
            return None  # other elements would be NaN or denormal
        digits = (bit_digits(element, self.count, place) for place in range(places_of(bits * self.count, 1)))
        data = tuple(self.probe(numbers, "bits of the bits' numbers") for numbers in digits)
        probes = DigitProbes(self.zero.data, self.ones.data, data, 1)
        table = read_slots(probes, 1, 1, bits * self.count, "xor")
        if table.lost or table.rivals[0].size:
            return None
        held = taken(slot_values(self.zero.data, 1), table.slots).reshape(-1, bits)
        if np.any(held != held[0]):
            return None
        xor = int(joined_bits(held[0], element)[0])
        value_map = ValueMap(f"x ^ {xor}", xor=xor) if xor else None
        own = scattered(
            np.broadcast_to(all_ones(1), (table.slots.size,)), table.slots, 1, self.zero.data.size
        )
        found = self.located(table.slots, 1, value_map, own, apart=True)
        wrong = any(np.any((found.packed(t.patterns) ^ t.data) & own) for t in found.trials)
        return None if wrong else found

    def without_rivals(self, table: SlotTable, width: int, reading: Reading) -> Table | None:
        """The slots of a table after probes have decided between several slots that spell one number.

        Memory that a function does not write may hold anything, also what earlier probes left there. Two
        values don't show whether a slot holds a whole element or only some of its bits.

        Raises:
            RefutedError: two slots hold an element in all probes.
        """
        if table.lost:
            self.suspects.append(Suspect(int(np.argmax(table.slots < 0))))
            return None
        slots, numbers = table.rivals
        if not numbers.size:
            return table.slots
        both = np.unique(numbers)
        slots, numbers = np.concatenate([slots, table.slots[both]]), np.concatenate([numbers, both])
        for round_ in range(MOST_ROUNDS):
            follows = self.follows(slots, numbers, width, reading, SEED + 100 + round_)
            slots, numbers = slots[follows], numbers[follows]
            found, counts = np.unique(numbers, return_counts=True)
            if found.size < both.size:
                self.suspects.append(Suspect(int(np.setdiff1d(both, found)[0])))
                return None
            if counts.max() == 1:
                out = table.slots.copy()
                out[numbers] = slots
                return out
        number = int(found[counts > 1][0])
        if reading == "two values":
            self.suspects.append(Suspect(number))
            return None
        first, second = slots[numbers == number][:2].tolist()
        raise RefutedError(duplicated(self.probe, number, first, second))

    def follows(
        self, slots: NDArray[Any], numbers: NDArray[Any], width: int, reading: Reading, seed: int
    ) -> NDArray[np.bool_]:
        """Whether slots hold what the reading expects of their elements, in another probe."""
        low, high = (slot_values(trial.data, width)[slots] for trial in (self.zero, self.ones))
        wanted: Patterns
        if reading == "two values":
            bits = np.frombuffer(np.random.default_rng(seed).bytes(self.count), np.uint8) & np.uint8(1)
            values = slot_values(self.probe(self.two_valued(bits), "elements of two values"), width)[slots]
            wanted = np.where(bits[numbers], high, low)
            return np.asarray(values == wanted, np.bool_)
        patterns = self.probe.random(seed)
        values = slot_values(self.probe(patterns, "random elements"), width)[slots]
        sent, base = patterns[numbers], patterns.dtype.type(self.alphabet.base)
        wanted = low ^ sent ^ base if reading == "xor" else low + (sent - base)
        mask = patterns.dtype.type((1 << min(width, self.element.bits, 64)) - 1)
        return np.asarray((values ^ wanted) & mask == 0, np.bool_)

    def agreed(self, slots: Table, width: int) -> Located | None:
        """The slots if one value map explains what they hold in all probes.

        Raises:
            RefutedError: two values of an element give the same slot.
        """
        pairs = Pairs(min(self.element.bits, 64), min(width, 64))
        own = self.bits_of(slots, width)
        for trial in (self.zero, self.ones):
            self.add_equal(pairs, trial, slots, width, own)
        pairs.add(self.random.patterns, taken(slot_values(self.random.data, width), slots))
        found = pairs.value_map()
        if isinstance(found, ValueMap) and found.partial and self.element.kind in ("signed", "unsigned"):
            for pattern in sorted(self.domain.intersection(pairs.missing())):
                trial = self.trial(constant(self.element, self.count, pattern), "equal elements")
                self.add_equal(pairs, trial, slots, width, own)
            found = pairs.value_map()
        if isinstance(found, ValueMap) and self.probe.bounds and found.table:
            found = replace(found, domain=tuple(sorted(self.domain)))
        if isinstance(found, Collision):
            suspect = Suspect(found.second.number, found)
            self.suspects.append(suspect)
            if found.loses:
                inquiry = Inquiry.of(self.probe, width, [self.zero, self.random])
                refuted = inquiry.examined(suspect)
                if refuted is not None and refuted.kind == "changed":
                    raise RefutedError(refuted)
            return None
        return self.located(slots, width, found, own)

    def located(
        self, slots: Table, width: int, value_map: ValueMap | None, own: Bytes, *, apart: bool = False
    ) -> Located:
        probe, size = self.probe, self.zero.data.size
        placement = Placement(probe.element, probe.dtype, probe.dims, width, size, slots, apart, value_map)
        return Located(placement, own, (self.zero, self.ones, self.random))

    @property
    def domain(self) -> set[int]:
        """The patterns of codes and bytes that the function takes."""
        low, high = self.probe.bounds or (0, (1 << min(self.element.bits, 8)) - 1)
        return {value & (1 << self.element.bits) - 1 for value in range(low, min(high, low + 255) + 1)}

    def bits_of(self, slots: Table, width: int) -> Bytes:
        """The bits of the buffer that slots cover."""
        size = self.zero.data.size
        if slots.size * width == 8 * size:
            return np.full(size, 0xFF, np.uint8)
        return scattered(np.broadcast_to(all_ones(width), (slots.size,)), slots, width, size)

    def add_equal(self, pairs: Pairs, trial: Trial, slots: Table, width: int, own: Bytes) -> None:
        """Add the pairs of a probe with equal elements: one pair if their slots are equal."""
        values = slot_values(trial.data, width)
        value = values[slots[:1]]
        if width < 128 and not np.any((values ^ value) & slot_values(own, width)):
            pairs.add(trial.patterns[:1], value)
        else:
            pairs.add(trial.patterns, taken(values, slots))
