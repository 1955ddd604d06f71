"""`Counterexample`: the observation that proves that a function does not move elements as a layout does."""

from __future__ import annotations

from typing import Literal, TypeAlias

from codegen import dataclass

Kind: TypeAlias = Literal[
    "lost", "duplicated", "combined", "changed", "split", "too small", "varying size", "not deterministic"
]
"""lost: an element is nowhere. duplicated: one is in two slots. combined: a slot depends on two elements.
changed: a slot does not tell an element's value. split: the bits of an element are not side by side."""


@dataclass(frozen=True, repr=False, slots=True)
class Counterexample:
    """What a function did that no layout does; it prints as a sentence.

    Attributes:
        kind: what happened, in one or two words.
        text: the observation, with values.
        elements: the indices of the elements that show it.
        slots: the slots that show it, counted in slots of the element's width from the start of the buffer.
    """

    kind: Kind
    text: str
    elements: tuple[tuple[int, ...], ...] = ()
    slots: tuple[int, ...] = ()

    def __repr__(self) -> str:
        return self.text


class RefutedError(Exception):
    """Ends the search for a layout, because a counterexample was found; `infer` always catches it."""

    def __init__(self, counterexample: Counterexample) -> None:
        super().__init__(counterexample.text)
        self.counterexample = counterexample
