"""What `identify` answers: a verdict, and the matches it rests on."""

from __future__ import annotations

from collections.abc import Mapping
from itertools import groupby
from typing import Any

from codegen import dataclass
from tilejit.layout.formats.calls import call_text

NAMES = 6
"""Names of one order of bytes that a text lists."""


@dataclass(frozen=True, slots=True)
class Match:
    """A format that explains a buffer, or a share of it.

    Attributes:
        format: the name of the format.
        parameters: its parameters, without those that have their default.
        times: how often the format was applied.
        changes: what was done beside packing: "transposed", "values ^ 8", "cast to bf16".
        agreement: the share of the array's elements that the buffer holds in this format; None for a guess.
        first_difference: the index of the first element that differs, the value found and the right one; None
            if all that the buffer holds agree.
        order: a number that all matches of one order of bytes share, whatever the array holds.
        fault: what is wrong with the buffer, such as missing bytes; empty for nothing.
        note: what was not compared, or what a guess rests on.
    """

    format: str
    parameters: Mapping[str, Any]
    times: int = 1
    changes: tuple[str, ...] = ()
    agreement: float | None = 1.0
    first_difference: tuple[tuple[int, ...], Any, Any] | None = None
    order: int = 0
    fault: str = ""
    note: str = ""

    @property
    def is_exact(self) -> bool:
        """Whether every element agrees and nothing is wrong with the buffer."""
        return self.agreement == 1.0 and not self.fault

    @property
    def label(self) -> str:
        """The format, how often it was applied, and what else was done."""
        return "; ".join([call_text(self.format, self.parameters), *self._mistakes])

    @property
    def brief(self) -> str:
        """The label of another name: "gptq (bits=3, transposed)"."""
        _, _, own = call_text(self.format, self.parameters).partition(", ")
        details = [*filter(None, [own]), *self._mistakes]
        return f"{self.format} ({', '.join(details)})" if details else self.format

    @property
    def _mistakes(self) -> tuple[str, ...]:
        """What was done beside packing once."""
        return (*(["applied twice"] if self.times == 2 else []), *self.changes)

    def __str__(self) -> str:
        parts = [self.label]
        if self.agreement is not None and self.agreement < 1.0:
            parts.append(f"{_percent(self.agreement)} of the elements agree")
        if self.first_difference is not None:
            index, got, wanted = self.first_difference
            parts.append(f"first difference at [{', '.join(map(str, index))}]: {got}, not {wanted}")
        return "; ".join(filter(None, [*parts, self.fault, self.note]))


@dataclass(frozen=True, slots=True, repr=False)
class Identification:
    """The answer of `identify`; it prints as text.

    >>> x = np.arange(512, dtype=np.int16).reshape(16, 32)
    >>> answer = tilejit.identify(tilejit.pack(x, "vnni").buffer, x.T)
    >>> answer.verdict, answer.format, answer.matches[0].changes
    ('exact', 'vnni', ('transposed',))

    Attributes:
        verdict: "exact": all bytes agree, and with no other order of the elements; "ambiguous": several
            orders explain all bytes; "near": no format explains all, and matches are sorted by agreement;
            "guess": without an original, matches are sorted by plausibility; "unknown": nothing fits.
        matches: the formats; for "exact" all names of the one order.
        more: for "ambiguous", how many further explanations the values do not rule out.
    """

    verdict: str
    matches: tuple[Match, ...]
    more: int = 0

    @property
    def format(self) -> str | None:
        """The name of the format, if the verdict is exact; else None."""
        return self.matches[0].format if self.verdict == "exact" else None

    def __repr__(self) -> str:
        if not self.matches:
            return f"{self.verdict}: no format fits"
        if self.verdict in ("near", "guess"):
            rows = [str(match) for match in self.matches]
        else:
            rows = [_named([*group]) for _, group in groupby(self.matches, lambda match: match.order)]
        if self.verdict == "exact":
            return f"exact: {rows[0]}"
        last = [f"  and {self.more} more that these values do not rule out"] if self.more else []
        return "\n".join([f"{self.verdict}:", *(f"  {row}" for row in rows), *last])


def _named(same: list[Match]) -> str:
    """A match, and other formats of its order of bytes."""
    first, *rest = same
    others = {match.format: match for match in reversed(rest) if match.format != first.format}
    if not others:
        return str(first)
    labels = [match.brief for match in reversed(others.values())]
    more = f" and {len(labels) - NAMES} more" if len(labels) > NAMES else ""
    return f"{first} (the same bytes as {', '.join(labels[:NAMES])}{more})"


def _percent(share: float) -> str:
    """A share below 1, which does not read as 100 %."""
    text = f"{share:.2%}"
    return text if text != "100.00%" else f"more than {99.99:.2f}%"
