"""Groups of explanations that are the same order of bytes, whatever the array holds, and their padding."""

from __future__ import annotations

from collections.abc import Iterable
from hashlib import blake2b
from math import prod
from typing import Any

import numpy as np

from tilejit.arrays.memory import Array
from tilejit.layout.indexing import multi_index
from tilejit.recognize.formats.changes import HALVES_SWAPPED, NO_CHANGE, PLAIN, Index
from tilejit.recognize.formats.compare import compare
from tilejit.recognize.formats.orders import Order, packed_at_random
from tilejit.recognize.formats.places import Part, bit_places
from tilejit.recognize.formats.storage import Storage
from tilejit.recognize.formats.trials import Score

MOST_PADDING = 1024
"""Padding elements of each axis that are looked at."""
PACKED_AGAIN = 1 << 20
"""Elements of an array that is packed again to compare padding and unused bits."""
MARGIN = 0.05
"""Shares of damaged padding that agree alike: samples differ. If some padding is whole, all of it counts."""

Key = tuple[object, ...]
Group = tuple[Score, ...]
"""Explanations with equal places of all bits, the simplest first; or one without places."""


def groups_of(scores: Iterable[Score], given: frozenset[str]) -> list[Group]:
    """Group explanations of the same sampled elements by the places of their bits, the simplest group first.

    Args:
        scores: the explanations.
        given: the names of the buffers that are given.
    """
    places: dict[Key, list[Score]] = {}
    for score in sorted(scores, key=lambda row: row.simplicity):
        key = (*_places(score), *score.trial.last.others(given)) if score.parts else (id(score),)
        places.setdefault(key, []).append(score)
    return [tuple(same) for same in places.values()]


def refined(group: Group, data: Array, array: Array) -> list[Group]:
    """Divide a group by the stored values, and leave out what says no more than others.

    Explanations whose padding agrees less with the buffer than that of others are left out. So are those that
    need a change of values, if others do not: "row-major; values - 1" says no more than "exl2-q_scale".

    Args:
        group: the explanations.
        data: flat bytes of the buffer.
        array: the array.
    """
    if len(group) == 1:
        return [group]
    shares = [padding_share(score, data, array) or 0.0 for score in group]
    most = max(shares)
    least = most if most == 1.0 else most - MARGIN
    same = [score for score, share in zip(group, shares, strict=True) if share >= least]
    same = [score for score in same if not score.change.kind] or same
    found: list[tuple[Array | None, list[Score]]] = []
    for score in same:
        stored = _stored(score)
        for known, own in found:
            if _agree(known, stored):
                own.append(score)
                break
        else:
            found.append((stored, [score]))
    return [_simplest(own) for _, own in found]


def _places(score: Score) -> Key:
    """What tells the places of an explanation's bits from those of others."""
    storage, last = score.trial.storage, score.trial.last
    places = bit_places(score.parts, storage.bits) if len(score.parts) > 1 else score.parts[0].places
    moved = score.reordering.moved(places, last.size)
    digest = blake2b(np.ascontiguousarray(moved).tobytes(), digest_size=16).digest()
    element = "" if storage.is_code else storage.element.name
    return storage.bits, storage.cast, element, score.change.kind == "bytes", digest, last.size


def _simplest(scores: list[Score]) -> Group:
    """The simplest explanation by each format with its parameters, applied once or twice."""
    found: dict[Key, Score] = {}
    for score in scores:
        found.setdefault((score.trial.last.candidate, score.trial.times), score)
    return tuple(found.values())


def _stored(score: Score) -> Array | None:
    """The stored code of each code, -1 for those that are never stored; None for wide elements."""
    storage, table = score.trial.storage, score.trial.table
    if not storage.is_code:
        return None
    changed = score.change.applied(np.arange(1 << storage.bits, dtype=np.uint8), storage.bits)
    return changed.astype(np.int16) if table is None else table[changed]


def _agree(first: Array | None, second: Array | None) -> bool:
    """Whether stored codes are equal for all codes that both formats take."""
    if first is None or second is None:
        return first is second
    both = (first >= 0) & (second >= 0)
    return bool(both.any()) and bool((first[both] == second[both]).all())


def same_bytes(score: Score, other: Score, array: Array, given: frozenset[str]) -> bool:
    """Whether an explanation without places and another one give the same bytes for any array.

    Packing random arrays decides: of a few rows, if both formats pack rows one after another.

    Args:
        score: the explanation without places.
        other: the other one.
        array: the array that both explain.
        given: the names of the buffers that are given.
    """
    score, other = _of_few_rows(score, other) or (score, other)
    order, known, storage = score.trial.last, other.trial.last, score.trial.storage
    if order.others(given) and not known.has_places:
        return score.texts == other.texts and _forms(order) == _forms(known) and _random_equal(order, known)
    if order.others(given) or known.others(given) or not storage.is_code:
        return False
    fresh = _random_codes(score.trial.change.dims(score.trial.first.dims), array.dtype, storage)
    data = score.packed(fresh)
    if known.has_places:
        return compare(other, data, fresh, {}).agreement == 1.0
    return np.array_equal(data, other.packed(fresh))


def _of_few_rows(score: Score, other: Score) -> tuple[Score, Score] | None:
    """Two explanations for two blocks of first rows; None if other bytes of the buffers depend on these.

    Changes before and after packing that both have are left out.
    """
    blocks = [own.trial.first.first_rows for own in (score, other)]
    pair = [*map(_without_halves, (score, other), blocks)]
    if pair[0].reordering == pair[1].reordering:
        pair = [own._replace(reordering=PLAIN) for own in pair]
    if pair[0].trial.change.text == pair[1].trial.change.text:
        pair = [own._replace(trial=own.trial._replace(change=NO_CHANGE)) for own in pair]
    found: list[Score] = []
    for own in pair:
        few = own.trial.of_rows(2 * max(blocks) * all(blocks))
        if few is None or 0 in few.change.axes or own.reordering.halves or own.reordering.shift:
            return None
        found.append(own._replace(trial=few))
    return found[0], found[1]


def _without_halves(score: Score, block: int) -> Score:
    """An explanation without swapped halves, if those of the array are swapped and those of its buffer back.

    Args:
        score: the explanation.
        block: the rows that are packed one block after another; 0 if there are none.
    """
    trial = score.trial
    if not (score.reordering.halves and trial.change.text == HALVES_SWAPPED.format(0)):
        return score
    if not block or trial.first.dims[0] % (2 * block):
        return score
    return score._replace(trial=trial._replace(change=NO_CHANGE), reordering=PLAIN)


def _forms(order: Order) -> list[Key]:
    """What tells the planes of an order from others, whatever text says their extents."""
    assert order.packing is not None
    return [order.form(plane) for plane in order.packing.planes]


def _random_equal(first: Order, second: Order) -> bool:
    """Whether two formats pack the same random planes into the same bytes."""
    both = (packed_at_random(own.candidate, own.packing, own.dims) for own in (first, second) if own.packing)
    return all(map(np.array_equal, *(packed.values() for packed in both)))


def _random_codes(dims: tuple[int, ...], dtype: Any, storage: Storage) -> Array:
    """Random codes in an array of a dtype."""
    low = -(1 << storage.bits - 1) if storage.element.name.startswith("s") else 0
    numbers = np.random.default_rng(1).integers(low, low + (1 << storage.bits), dims)
    return numbers.astype(dtype)


def padding_share(score: Score, data: Array, array: Array) -> float | None:
    """The share of sampled padding of a buffer that holds what the format writes there; 1 if there is none.

    None if it was not compared: of a format that whole-array steps pack, a large array is not packed again.

    Args:
        score: an explanation of all elements.
        data: flat bytes of the buffer.
        array: the array.
    """
    trial, bits = score.trial, score.trial.storage.bits
    if not trial.last.has_places:
        if len(_forms(trial.last)) > 1 or 8 * data.size == bits * array.size:
            return 1.0
        if array.size > PACKED_AGAIN:
            return None
        return float(np.array_equal(score.packed(array), data))
    parts = _padding_parts(score)
    if parts is None:
        return 1.0
    found, inside = score.read(data, parts)
    found = found[inside]
    if not len(found):
        return 1.0
    wanted = trial.first.padding
    if trial.second is not None and trial.second.table is not None:
        wanted = int(trial.second.table[wanted])
    if trial.storage.is_code:  # values may have been changed with their padding, or without
        changed = score.change.applied(np.array(wanted, np.uint8), bits)
        return max(float(np.mean(found == wanted)), float(np.mean(found == changed)))
    right = np.frombuffer(wanted.to_bytes(found.shape[-1], "little"), np.uint8)
    return float(np.mean(found == right))


def _padding_parts(score: Score) -> tuple[Part, ...] | None:
    """The places of sampled padding; None if there is none."""
    trial, spec = score.trial, score.trial.first.spec
    if spec is None:
        if len(trial.first.fields) != 1:
            return None
        index = padding_index(trial.first.fields[0].blocking.dimensions, trial.first.fields[0].padded)
        return None if index is None else trial.moved_parts(index)
    if trial.second is not None or spec.physical_size == prod(spec.dimensions):
        return None
    slots = np.random.default_rng(0).integers(0, spec.physical_size, 2 * MOST_PADDING)
    slots = slots[np.min(multi_index(spec, slots), axis=0) < 0]
    return (Part(slots * trial.first.bits, 0, trial.first.bits),) if slots.size else None


def padding_index(dims: tuple[int, ...], padded: tuple[int, ...]) -> Index | None:
    """The indices of sampled padding elements of an array; None if it has no padding."""
    rng = np.random.default_rng(0)
    found = []
    for axis, (size, full) in enumerate(zip(dims, padded, strict=True)):
        if full > size:
            rows = [rng.integers(0, extent, MOST_PADDING) for extent in padded]
            rows[axis] = rng.integers(size, full, MOST_PADDING)
            found.append(np.stack(rows))
    return tuple(np.concatenate(found, axis=1)) if found else None
