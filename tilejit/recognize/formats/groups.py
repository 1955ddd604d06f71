"""Groups of explanations that are the same order of bytes, whatever the array holds."""

from __future__ import annotations

from collections.abc import Iterable
from hashlib import blake2b

import numpy as np

from codegen import dataclass
from tilejit.arrays.memory import Array
from tilejit.recognize.formats.padded import padding_agrees
from tilejit.recognize.formats.places import bit_places
from tilejit.recognize.formats.scores import Score

Key = tuple[object, ...]


@dataclass(frozen=True, slots=True, eq=False)
class Group:
    """Explanations with equal places of all bits, the simplest first."""

    scores: tuple[Score, ...]

    @property
    def simplest(self) -> Score:
        """The simplest explanation."""
        return self.scores[0]


def groups_of(scores: Iterable[Score], given: frozenset[str]) -> list[Group]:
    """Group explanations of the same sampled elements by the places of their bits, the simplest group first.

    Args:
        scores: the explanations.
        given: the names of the buffers that are given.
    """
    places: dict[Key, list[Score]] = {}
    for score in sorted(scores, key=lambda row: row.simplicity):
        key = (*_places(score), *score.trial.last.others(given))
        places.setdefault(key, []).append(score)
    return [Group(tuple(same)) for same in places.values()]


def refined(group: Group, data: Array) -> list[Group]:
    """Divide a group by the stored values, and leave out what says no more than others.

    If some explanations write the padding that the buffer has, those that do not are left out. So are those
    that need a change of values, if others do not: "row-major; values - 1" says no more than "exl2-q_scale".

    Args:
        group: the explanations.
        data: flat bytes of the buffer.
    """
    same = list(group.scores)
    if len(same) > 1:
        same = [score for score in same if padding_agrees(score, data)] or same
        same = [score for score in same if not score.change.kind] or same
    return _by_values(same)


def _places(score: Score) -> Key:
    """What tells the places of an explanation's bits from those of others."""
    storage, last = score.trial.storage, score.trial.last
    places = score.parts[0].places
    if len(score.parts) > 1 or score.parts[0].follow is not None:
        places = bit_places(score.parts, storage.bits)
    moved = score.reordering.moved(places, last.size)
    digest = blake2b(np.ascontiguousarray(moved).tobytes(), digest_size=16).digest()
    element = "" if storage.is_code else storage.element.name
    return storage.bits, storage.cast, element, score.change.kind == "bytes", digest, last.size


def _by_values(same: list[Score]) -> list[Group]:
    """Explanations of one order, those with the same stored codes together."""
    found: list[tuple[Array | None, list[Score]]] = []
    for score in same:
        stored = _stored(score)
        for known, group in found:
            if _agree(known, stored):
                group.append(score)
                break
        else:
            found.append((stored, [score]))
    return [Group(tuple(_simplest(group))) for _, group in found]


def _simplest(scores: list[Score]) -> list[Score]:
    """The simplest explanation by each format with its parameters, applied once or twice."""
    found: dict[Key, Score] = {}
    for score in scores:
        found.setdefault((score.trial.last.candidate, score.trial.times), score)
    return list(found.values())


def _stored(score: Score) -> Array | None:
    """The stored code of each code, -1 for those that are never stored; None for wide elements."""
    storage, table = score.trial.storage, score.trial.table
    if not storage.is_code:
        return None
    codes = np.arange(1 << storage.bits, dtype=np.uint8)
    back = score.change.undone(codes, storage.bits)
    changed = np.empty_like(codes)
    changed[back] = codes
    return changed.astype(np.int16) if table is None else table[changed]


def _agree(first: Array | None, second: Array | None) -> bool:
    """Whether stored codes are equal for all codes that both formats take."""
    if first is None or second is None:
        return first is second
    both = (first >= 0) & (second >= 0)
    return bool(both.any()) and bool((first[both] == second[both]).all())
