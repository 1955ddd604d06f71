"""From the explanations of buffers to a verdict about them."""

from __future__ import annotations

from dataclasses import replace
from typing import NamedTuple

import numpy as np

from codegen import LayoutError
from tilejit.arrays.memory import Array
from tilejit.catalog.format import ELEMENT_SIZE
from tilejit.copies.planes import pack_planes
from tilejit.recognize.formats.identification import Identification, Match
from tilejit.recognize.formats.order_matches import SURE, Compared, search
from tilejit.recognize.formats.orders import form_of
from tilejit.recognize.formats.other_planes import Planes
from tilejit.recognize.formats.padded import padding_agrees
from tilejit.recognize.formats.scores import Score
from tilejit.recognize.formats.steps import (
    Step,
    Stepped,
    random_planes,
    size_fault,
    stepped,
    stepped_of_other_sizes,
)
from tilejit.recognize.formats.storage import Storage
from tilejit.recognize.formats.whole import SMALL, Comparison, compare

PADDING = "padding differs from what the format writes"
SHOWN = 5
"""The most near candidates."""


class Explained(NamedTuple):
    """Matches of one order of bytes, and the explanations that they rest on.

    Attributes:
        matches: the matches.
        score: the simplest explanation whose places are known; None if there is none.
        step: the simplest one of a format that whole-array steps pack; None if there is none.
        is_whole: whether all bytes are explained, not only those of a main plane.
        surplus: the bytes that are missing, or too many.
        missing: the number of the format's buffers that are not given.
    """

    matches: list[Match]
    score: Score | None
    step: Step | None
    is_whole: bool
    surplus: int = 0
    missing: int = 0


def matched(planes: Planes, array: Array) -> Identification:
    """The formats in which buffers hold an array, or several planes.

    Args:
        planes: the buffers, and what is known of other planes.
        array: the array, or the main plane.
    """
    found = search(planes.buffers, array, planes.fits_order)
    orders = [order for row in found.exact if (order := _order(row, planes))]
    exact = [order for order in orders if order.matches[0].is_exact]
    near = [order for order in orders if not order.matches[0].is_exact]
    near += [order for row in found.near if (order := _order(row, planes))]
    for own in () if found.more else stepped(planes, array):
        order = _stepped_order(own, planes, array)
        if not order.matches[0].is_exact:
            near.append(order)
            continue
        same = next((other for other in exact if _same_bytes(order, other, planes, array)), None)
        if same is None:
            exact.append(order)
        else:
            same.matches.extend(order.matches)
    if exact:
        return _concluded(exact, found.more)
    if not any((order.matches[0].agreement or 0.0) > SURE for order in near):
        near += [_stepped_order(own, planes, array) for own in stepped_of_other_sizes(planes, array)]
    near.sort(key=lambda own: (-(own.matches[0].agreement or 0.0), _simplicity(own.matches[0]), own.surplus))
    matches = tuple(order.matches[0] for order in near[:SHOWN])
    return Identification("near" if matches else "unknown", matches)


def _concluded(exact: list[Explained], more: int) -> Identification:
    """The verdict if some orders explain all elements; those that explain all bytes come alone."""
    exact = [order for order in exact if order.is_whole] or exact
    least = min(order.missing for order in exact)
    exact = [order for order in exact if order.missing == least]
    exact.sort(key=lambda order: _simplicity(order.matches[0]))
    matches = [
        replace(match, order=number)
        for number, order in enumerate(exact)
        for match in sorted(order.matches, key=_simplicity)
    ]
    sure = len(exact) == 1 and not more
    return Identification("exact" if sure else "ambiguous", tuple(matches), more)


def _simplicity(match: Match) -> tuple[int, int, int]:
    return len(match.changes), match.times, len(match.parameters)


def _order(row: Compared, planes: Planes) -> Explained | None:
    """The matches of a group of explanations; None if the format never stores what other planes hold."""
    score = row.group.simplest
    last, comparison, at = score.trial.last, row.comparison, ""
    if last.packing is not None and planes.others and comparison.agreement == 1.0 and not score.texts:
        try:
            own = last.candidate
            other, at = planes.compared(last.packing, own.name, last.dims, own.parameters)
        except LayoutError:
            return None
        comparison = other or comparison
    matches = [_match(score, row, comparison, at or _note(score, row, planes)) for score in row.group.scores]
    is_whole = not last.others(frozenset(planes.buffers)) or bool(planes.others)
    missing = 0 if last.packing is None else planes.missing(last.packing)
    return Explained(matches, score, None, is_whole, row.surplus, missing)


def _note(score: Score, row: Compared, planes: Planes) -> str:
    """What was not compared, or what padding holds."""
    last = score.trial.last
    note = "" if last.packing is None else planes.note(last.packing)
    if row.comparison.agreement == 1.0 and not row.surplus and not padding_agrees(score, row.data):
        return f"{note}; {PADDING}" if note else PADDING
    return note


def _match(score: Score, row: Compared, comparison: Comparison, note: str) -> Match:
    last = score.trial.last
    own, parameters = last.candidate, dict(last.candidate.parameters)
    if last.bits < 8 and last.spec is None and not own.is_code:
        parameters[ELEMENT_SIZE] = last.bits
    return Match(
        own.name,
        parameters,
        score.trial.times,
        score.texts,
        comparison.agreement,
        comparison.first,
        0,
        size_fault(row.data.size - last.size, at_start=score.reordering.shift != 0),
        note,
    )


def _stepped_order(own: Stepped, planes: Planes, array: Array) -> Explained:
    step, comparison = own.step, own.comparison
    many, note = len(step.packing.planes) > 1, planes.note(step.packing)
    if many and comparison.agreement == 1.0 and planes.others and not step.texts:
        name, parameters = step.candidate.name, step.candidate.parameters
        other, at = planes.compared(step.packing, name, own.dims, parameters)
        comparison, note = other or comparison, at or note
    if not many and comparison.agreement == 1.0 and not own.fault and array.size <= SMALL:
        data = next(iter(planes.buffers.values()))
        note = note if np.array_equal(step.packed(array), data) else PADDING
    match = Match(
        step.candidate.name,
        step.candidate.parameters,
        step.times,
        step.texts,
        comparison.agreement,
        comparison.first,
        0,
        own.fault,
        note,
    )
    is_whole = not many or bool(planes.others)
    return Explained([match], None, step, is_whole, missing=planes.missing(step.packing))


def _same_bytes(order: Explained, other: Explained, planes: Planes, array: Array) -> bool:
    """Whether two explanations give the same bytes for any array, decided by packing a random one."""
    step = order.step
    assert step is not None
    if other.step is not None and len(step.packing.planes) > 1:
        return _same_planes(step, other.step, array)
    if len(step.packing.planes) > 1 or not other.is_whole or not step.storage.is_code:
        return False
    fresh = _random_like(array, step.storage)
    data = step.packed(fresh)
    if other.score is not None:
        return compare(other.score, data, fresh).agreement == 1.0
    assert other.step is not None
    return np.array_equal(data, other.step.packed(fresh))


def _same_planes(step: Step, other: Step, array: Array) -> bool:
    """Whether two formats pack random planes into the same bytes."""
    dims = step.change.dims(array.shape)
    forms = [
        [form_of(plane, s.packing.sizes(dims, s.candidate.name)) for plane in s.packing.planes]
        for s in (step, other)
    ]
    if step.texts != other.texts or forms[0] != forms[1]:
        return False
    planes = random_planes(step.packing, step.candidate.name, dims)
    both = [pack_planes(planes, s.candidate.name, dict(s.candidate.parameters)) for s in (step, other)]
    return all(
        np.array_equal(a, b) for a, b in zip(both[0].buffers.values(), both[1].buffers.values(), strict=True)
    )


def _random_like(array: Array, storage: Storage) -> Array:
    """Random codes in the form of an array."""
    low = -(1 << storage.bits - 1) if storage.element.name.startswith("s") else 0
    numbers = np.random.default_rng(1).integers(low, low + (1 << storage.bits), array.shape)
    return numbers.astype(array.dtype)
