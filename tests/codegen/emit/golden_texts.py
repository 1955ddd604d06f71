"""The texts of golden files: what the compiler decides, and what each pass changes."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from difflib import SequenceMatcher

from codegen import Function, format_function
from codegen.ir.strided_box import StridedBox
from codegen.pipeline.observer import Form, Observer
from codegen.schedule.schedule import Schedule
from tests.codegen.ir.printed import check_names

BOX, KERNEL = "box", "kernel"
"""The headings of boxes before any pass, and of sources."""

SIZES = {"auto": None, "virtual_vector_size 256": 256, "virtual_vector_size (32, 256)": (32, 256)}
"""Sizes of super-vectors by the headings of their sections."""

SCHEDULES = {
    "choose": "schedule",
    "choose_joined": "schedule",
    "misaligned": "schedule where the destination begins inside a line",
}
"""The headings of schedules, by the functions of `schedule/` that choose them."""

NUMBER = re.compile(r"%\d+")
UNCHANGED = 2
"""The most lines in a row that are shown although a pass did not change them."""


@dataclass(frozen=True, slots=True)
class Part:
    """A text with its heading; `is_result` says that it is a decision or a source."""

    heading: str
    text: str
    is_result: bool = False

    def __str__(self) -> str:
        return f"--- {self.heading}\n{self.text.rstrip()}"


def text_by_size(title: str, sizes: Mapping[str, list[Part]]) -> str:
    """The parts for each size of super-vectors: all for the first one, and the results for the others.

    A text that an earlier size has is not repeated.
    """
    lines = [title]
    results: dict[str, list[Part]] = {}
    for size, parts in sizes.items():
        lines += ["", f"==== {size}"]
        own = [part for part in parts if part.is_result]
        like = next((each for each, known in results.items() if known == own), "")
        known = {part: each for each in reversed(results) for part in results[each]}
        if like:
            lines.append(f"same as {like}")
        else:
            shown = own if results else parts
            lines += [f"--- {x.heading}: same as {known[x]}" if x in known else str(x) for x in shown]
        results[size] = own
    return "\n".join(lines) + "\n"


def observing(parts: list[Part], *, fallbacks: bool = True) -> Observer:
    """An observer that appends schedules, and what passes change; equal kernels have the same loops.

    fallbacks  whether to append the schedules of destinations that begin inside a line; their passes are
               those of other kernels
    """
    known: set[str] = set()
    before, is_fallback = "", False

    def observe(name: str, form: Form) -> None:
        nonlocal before, is_fallback
        if isinstance(form, Schedule):
            is_fallback = name == "misaligned"
            if fallbacks or not is_fallback:
                parts.append(Part(SCHEDULES[name], str(form), is_result=True))
            return
        text = str(form)
        if isinstance(form, Function):
            text = format_function(form)
            check_names(text)
        if text != before and text not in known and not is_fallback:
            follows = before.startswith("func.func") and name != "lower_copy"
            parts.append(Part(name, changed(before, text) if follows else text, name == "parametrize_sizes"))
        before = text
        if not isinstance(form, StridedBox):
            known.add(text)

    return observe


def changed(before: str, after: str) -> str:
    """The lines of a function that a pass changed, apart from numbers of values, and the line before each."""
    old, new = ([NUMBER.sub("%", line) for line in text.splitlines()] for text in (before, after))
    lines, shown = after.splitlines(), list[str]()
    for tag, _, _, begin, end in SequenceMatcher(None, old, new, autojunk=False).get_opcodes():
        if tag == "equal" and end - begin > UNCHANGED:
            indent = " " * (len(lines[begin]) - len(lines[begin].lstrip()))
            shown += [f"{indent}...", *(lines[end - 1 : end] if end < len(lines) else ())]
        else:
            shown += lines[begin:end]
    return "\n".join(shown)
