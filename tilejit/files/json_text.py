"""JSON from files, read strictly: repeated names and deep nesting are errors with a reason."""

from __future__ import annotations

import json
from typing import Any, NoReturn

from codegen import LayoutError


def parsed(text: str | bytes, what: str, *, writable: bool = False) -> Any:
    """The value of a JSON text.

    '{"a": 1, "a": 2}', "the header" -> LayoutError: the header names 'a' twice

    Args:
        text: the text, or its bytes in UTF-8.
        what: the name of the text in messages.
        writable: whether to refuse lone surrogates, which can be read but never written as UTF-8.

    Raises:
        LayoutError: the text is not JSON, or is nested too deeply; the message says where.
    """
    try:
        decoded = text.decode() if isinstance(text, bytes) else text
        value = json.loads(decoded, object_pairs_hook=_without_duplicates, parse_constant=_no_constant)
        if writable:
            json.dumps(value, ensure_ascii=False).encode()
    except _TwiceError as error:
        raise LayoutError(f"{what} names {shortened(error.name)} twice") from error
    except RecursionError as error:
        raise LayoutError(f"{what} is nested too deeply") from error
    except ValueError as error:
        raise LayoutError(f"{what} is not JSON: {str(error)[:80]}") from error
    return value


def reason(error: Exception) -> str:
    """Why a value that JSON described cannot be used."""
    return "it is nested too deeply" if isinstance(error, RecursionError) else str(error)


def shortened(value: Any) -> str:
    """Quote a value for a message, and cut it if it is long."""
    text = repr(value)
    return text if len(text) <= 60 else text[:57] + "..."


class _TwiceError(Exception):
    def __init__(self, name: str) -> None:
        super().__init__(name)
        self.name = name


def _without_duplicates(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    table = dict(pairs)
    if len(table) < len(pairs):
        seen: set[str] = set()
        raise _TwiceError(next(key for key, _ in pairs if key in seen or seen.add(key)))  # type: ignore[func-returns-value]
    return table


def _no_constant(name: str) -> NoReturn:
    raise ValueError(f"{name} is not valid JSON")
