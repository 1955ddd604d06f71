"""The padding of a buffer beside that of a format which explains its elements."""

from __future__ import annotations

from math import prod

import numpy as np

from tilejit.arrays.memory import Array
from tilejit.layout.indexing import multi_index
from tilejit.recognize.formats.changes import Index
from tilejit.recognize.formats.orders import Order
from tilejit.recognize.formats.places import Part
from tilejit.recognize.formats.readings import read
from tilejit.recognize.formats.scores import Score

MOST_PADDING = 1024
"""Padding elements of each axis that are looked at."""


def padding_agrees(score: Score, data: Array) -> bool:
    """Whether sampled padding of a buffer holds what the format writes there, or there is none.

    Args:
        score: an explanation of all elements.
        data: flat bytes of the buffer.
    """
    trial, bits = score.trial, score.trial.storage.bits
    parts = _padding_parts(score)
    if parts is None:
        return True
    found, inside = read(data, tuple(score.reordering.part(part, trial.last.size) for part in parts), None)
    wanted = trial.first.padding
    if trial.second is not None and trial.second.table is not None:
        wanted = int(trial.second.table[wanted])
    if trial.storage.is_code:  # values may have been changed with their padding, or without
        changed = score.change.applied(np.array(wanted, np.uint8), bits)
        return bool((found[inside] == wanted).all() or (found[inside] == changed).all())
    right = np.frombuffer(wanted.to_bytes(found.shape[-1], "little"), np.uint8)
    return bool((found[inside] == right).all())


def _padding_parts(score: Score) -> tuple[Part, ...] | None:
    """The places of sampled padding; None if there is none."""
    trial = score.trial
    first = trial.first
    if first.spec is not None:
        return _of_rule(first) if trial.second is None else None
    if len(first.fields) != 1:
        return None
    index = padding_index(first.padded_from, first.fields[0].padded)
    return None if index is None else trial.moved_parts(index)


def _of_rule(order: Order) -> tuple[Part, ...] | None:
    spec = order.spec
    assert spec is not None
    if spec.physical_size == prod(spec.dimensions):
        return None
    slots = np.random.default_rng(0).integers(0, spec.physical_size, 2 * MOST_PADDING)
    axes = multi_index(spec, slots)
    slots = slots[np.min(axes, axis=0) < 0]
    return (Part(slots * order.bits, 0, order.bits),) if slots.size else None


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
