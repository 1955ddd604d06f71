"""A format's name and parameters as text, "gptq-checkpoint, group=-1", and back."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any, TypeAlias

from codegen import lazy_pattern
from tilejit.layout.formats.pattern import cut
from tilejit.support.tokens import MAX_TEXT, mistake, small_int

Value: TypeAlias = int | tuple[int, ...] | bool
"""The value of a parameter."""

_PARAMETER = lazy_pattern(r"\s*([A-Za-z_]\w*)\s*=(\s*\([^()]*\)\s*|[^,()]*)(?=,|\Z)", re.ASCII)
_INTEGER = lazy_pattern(r"-?[0-9]+")
_FLAGS = {"true": True, "True": True, "false": False, "False": False}


def read_call(text: str) -> tuple[str, dict[str, Value]]:
    """Return a format's name and the parameters that follow it in a text.

    "blis-a, mr=8" -> ("blis-a", {"mr": 8})    " tpu " -> ("tpu", {})
    "tenstorrent, tile=(16, 32)" -> ("tenstorrent", {"tile": (16, 32)})

    Raises:
        LayoutError: a parameter is not of the form KEY=VALUE, or occurs twice.
    """
    whole = text[:MAX_TEXT]
    name = whole.split(",", 1)[0]
    given: dict[str, Value] = {}
    at = len(name)
    while at < len(whole):
        match = _PARAMETER().match(whole, at + 1)
        value = read_value(match[2]) if match else None
        if match is None or value is None:
            raise mistake(
                text,
                at + 1,
                "expected a parameter of the format as KEY=VALUE",
                "write e.g. mr=8 or tile=(16,32)",
            )
        if match[1] in given:
            raise mistake(text, at + 1, f"{cut(match[1])} is given twice", "write it once")
        given[match[1]] = value
        at = match.end()
    return name.strip(), given


def call_text(name: str, parameters: Mapping[str, Any]) -> str:
    """The text that `read_call` reads.

    ("gptq", {"bits": 3}) -> "gptq, bits=3"    ("tenstorrent", {"tile": (16, 32)}) -> "..., tile=(16, 32)"
    """
    return ", ".join([name, *(f"{key}={value}" for key, value in parameters.items())])


def read_value(text: str) -> Value | None:
    """The value of a parameter; None if the text is none.

    "-1" -> -1    "true" -> True    "16,32" -> (16, 32)    "(16, 32)" -> (16, 32)    "x" -> None
    """
    text = text.strip()
    if text in _FLAGS:
        return _FLAGS[text]
    is_tuple = text.startswith("(") and text.endswith(")")
    parts = (text[1:-1] if is_tuple else text).split(",")
    if is_tuple and len(parts) == 2 and not parts[1].strip():
        del parts[1]
    numbers = tuple(_integer(part.strip()) for part in parts)
    if any(number is None for number in numbers):
        return None
    found = tuple(number for number in numbers if number is not None)
    return found if is_tuple or len(found) > 1 else found[0]


def _integer(text: str) -> int | None:
    return small_int(text) if _INTEGER().fullmatch(text) else None
