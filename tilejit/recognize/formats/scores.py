"""Scores of trials: the share of sampled elements that agree, for each way to read the buffer."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import NamedTuple

import numpy as np

from tilejit.arrays.memory import Array
from tilejit.recognize.formats.orders import Order
from tilejit.recognize.formats.places import Part
from tilejit.recognize.formats.readings import (
    UNCHANGED,
    Reordering,
    ValueChange,
    decoded,
    most_frequent,
    read,
)
from tilejit.recognize.formats.trials import Stack, Trial

ROWS = 512
"""Trials that are read at a time, so that their places fit in cache."""


class Score(NamedTuple):
    """The share of sampled elements that agree in a trial, read in one way.

    Attributes:
        share: the share, from 0 to 1; elements outside the buffer do not agree.
        trial: the trial.
        reordering: how the bits of the buffer were moved.
        change: how its values were changed.
        parts: the places of the sampled elements.
    """

    share: float
    trial: Trial
    reordering: Reordering
    change: ValueChange
    parts: tuple[Part, ...]

    @property
    def texts(self) -> tuple[str, ...]:
        """What was done beside packing, in words."""
        trial = self.trial
        # A rule that depends on the dtype has no parameter for the width of codes.
        code = f"as {trial.storage.element.name}" if trial.last.spec and trial.storage.is_narrow else ""
        own = (
            code or trial.storage.text,
            trial.change.text,
            self.reordering.text,
            self.change.text(trial.storage.bits),
        )
        return tuple(filter(None, own))

    @property
    def simplicity(self) -> tuple[int, int, bool, int]:
        """A key that sorts simple explanations first, and of codes those in formats of codes."""
        last = self.trial.last
        return (
            len(self.texts),
            self.trial.times,
            last.is_part,
            last.candidate.generality if last.bits < 8 else 0,
        )


def scores(
    stack: Stack,
    rows: Sequence[int],
    data: Array,
    wanted: Array,
    ways: Callable[[Order], Sequence[Reordering]],
    least: float,
) -> Iterator[Score]:
    """The scores of a stack's trials that reach the least share.

    Args:
        stack: the trials.
        rows: those that the buffer may hold.
        data: flat bytes of the buffer.
        wanted: the sampled elements, a code or a row of bytes for each.
        ways: ways(order) -> how the buffer may be reordered.
        least: the least share of agreement.
    """
    groups: dict[Reordering, list[int]] = {}
    for row in rows:
        for way in ways(stack.trials[row].last):
            groups.setdefault(way, []).append(row)
    for way, chosen in groups.items():
        for start in range(0, len(chosen), ROWS):
            own = np.array(chosen[start : start + ROWS])
            yield from _scored(stack, own, data, wanted, way, least)


def _scored(
    stack: Stack, rows: Array, data: Array, wanted: Array, way: Reordering, least: float
) -> Iterator[Score]:
    trials = [stack.trials[row] for row in rows]
    sizes = np.array([trial.last.size for trial in trials])[:, None]
    parts = tuple(way.part(part.rows(rows), sizes) for part in stack.parts)
    found, inside = read(data, parts, None)
    for number, trial in enumerate(trials):
        table = trial.table
        if table is not None:
            found[number], inside[number] = decoded(found[number], inside[number], table)
    for change, shares in _changes(found, inside, wanted, stack.storage.bits):
        for row in np.flatnonzero(shares >= least):
            own = change[row] if isinstance(change, list) else change
            if own is not None:
                at = int(rows[row])
                parts = tuple(part.rows(at) for part in stack.parts)
                yield Score(float(shares[row]), trials[row], way, own, parts)


def _changes(
    found: Array, inside: Array, wanted: Array, bits: int
) -> Iterator[tuple[ValueChange | list[ValueChange | None], Array]]:
    """The share that agrees as it is, and with each change of values."""
    if bits > 8:
        yield UNCHANGED, np.mean(np.all(found == wanted, axis=-1) & inside, axis=1)
        yield ValueChange("bytes"), np.mean(np.all(found[..., ::-1] == wanted, axis=-1) & inside, axis=1)
        return
    yield UNCHANGED, np.mean((found == wanted) & inside, axis=1)
    mask = np.uint8((1 << bits) - 1)
    xor, share = most_frequent(found ^ wanted, inside)
    yield [ValueChange("^", number) if number else None for number in xor], share
    added, share = most_frequent(found - wanted & mask, inside)
    # A number that only one bit has is both XORed and added, if it is the highest.
    yield (
        [ValueChange("+", number) if number and number != 1 << bits - 1 else None for number in added],
        share,
    )
