"""From the explanations of buffers to a verdict about them."""

from __future__ import annotations

from dataclasses import replace
from typing import NamedTuple

from codegen import LayoutError
from tilejit.arrays.memory import Array
from tilejit.catalog.format import ELEMENT_SIZE
from tilejit.recognize.formats.compare import Comparison
from tilejit.recognize.formats.groups import padding_share
from tilejit.recognize.formats.identification import Identification, Match
from tilejit.recognize.formats.other_planes import Planes
from tilejit.recognize.formats.search import SHOWN, Compared, Search
from tilejit.recognize.formats.storage import repeated_axis
from tilejit.recognize.formats.trials import Score

PADDING = "padding differs from what the format writes"
UNCHECKED = "padding and unused bits not compared"


class Explained(NamedTuple):
    """Matches of one order of bytes.

    Attributes:
        matches: the matches.
        is_whole: whether all bytes are explained, not only those of a main plane.
        surplus: the bytes that are missing, or too many.
        missing: the number of buffers that the format has and are not given, or the other way round.
    """

    matches: list[Match]
    is_whole: bool
    surplus: int
    missing: int


def matched(planes: Planes, array: Array) -> Identification:
    """The formats in which buffers hold an array, or several planes.

    Args:
        planes: the buffers, and what is known of other planes.
        array: the array, or the main plane.
    """
    found = Search(planes, array).run()
    orders = [own for row in (*found.exact, *found.near) if (own := _explained(row, planes, array))]
    exact = [own for own in orders if own.matches[0].is_exact]
    if exact:
        return _concluded(exact, found.more, repeated_axis(array))
    orders.sort(key=lambda own: (-(own.matches[0].agreement or 0.0), _brevity(own.matches[0]), own.surplus))
    matches = tuple(own.matches[0] for own in orders[:SHOWN])
    return Identification("near" if matches else "unknown", matches)


def _concluded(exact: list[Explained], more: int, repeated: int | None) -> Identification:
    """The verdict if some orders explain all elements; those that explain all bytes come alone.

    It is not exact if slices along the axis `repeated` are equal.
    """
    exact = [own for own in exact if own.is_whole] or exact
    least = min(own.missing for own in exact)
    exact = [own for own in exact if own.missing == least]
    exact.sort(key=lambda own: _brevity(own.matches[0]))
    unordered = "" if repeated is None else f"slices along axis {repeated} are equal, in whatever order"
    matches = [
        replace(match, order=number, note="; ".join(filter(None, [match.note, unordered])))
        for number, own in enumerate(exact)
        for match in sorted(own.matches, key=_brevity)
    ]
    sure = len(exact) == 1 and not more and repeated is None
    return Identification("exact" if sure else "ambiguous", tuple(matches), more)


def _brevity(match: Match) -> tuple[int, int, int]:
    """A key that sorts matches with short labels first."""
    return len(match.changes), match.times, len(match.parameters)


def _explained(row: Compared, planes: Planes, array: Array) -> Explained | None:
    """The matches of a group of explanations; None if the format never stores what other planes hold."""
    score = row.group[0]
    last, comparison, at = score.trial.last, row.comparison, ""
    if last.packing is not None and planes.others and comparison.agreement == 1.0 and not score.texts:
        try:
            other, at = planes.compared(last)
        except LayoutError:
            return None
        comparison = other or comparison
    matches = [_match(own, row, comparison, at or _note(own, row, planes, array)) for own in row.group]
    is_whole = not last.others(frozenset(planes.buffers)) or bool(planes.others)
    return Explained(matches, is_whole, row.surplus, planes.missing(last))


def _note(score: Score, row: Compared, planes: Planes, array: Array) -> str:
    """What was not compared, what does not fit, or what padding holds."""
    beyond = "" if score.codes is None else "values outside {} to {} do not fit".format(*score.codes)
    padding = ""
    if row.comparison.agreement == 1.0 and not row.surplus:
        share = padding_share(score, row.data, array)
        padding = UNCHECKED if share is None else PADDING if share < 1.0 else ""
    return "; ".join(filter(None, [planes.note(score.trial.last), beyond, padding]))


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
        _fault(row.data.size - last.size, at_start=score.reordering.shift != 0),
        note,
    )


def _fault(extra: int, *, at_start: bool) -> str:
    """What is wrong with a buffer that has more or fewer bytes than a format writes; empty for nothing."""
    if not extra:
        return ""
    unit, ending = ("byte", "s") if abs(extra) == 1 else ("bytes", "")
    if extra > 0:
        return f"{extra} {unit} {'precede' if at_start else 'follow'}{ending}"
    return f"{-extra} {unit} missing at the {'start' if at_start else 'end'}"
