"""`check_layout`: reject the text of a layout that fits no array, before any array is known."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import suppress
from typing import Any

from tilejit.catalog.format import ELEMENT_SIZE
from tilejit.cute.parsing import parse
from tilejit.cute.text import is_cute
from tilejit.layout.as_layout import ArrayUnknownError, as_layout, is_name
from tilejit.layout.formats.registry import called
from tilejit.layout.text.pattern_text import spelled_out


def check_layout(text: str, parameters: Mapping[str, Any]) -> None:
    """Reject a text that is not a layout of any array, and parameters that its format lacks.

    "tpu" and "{1,0:T(8,128)}" pass; "tup" and "{1,0:T(8,128)" raise

    Raises:
        LayoutError: the text cannot be read.
        TypeError: the format lacks a parameter.
    """
    text = spelled_out(text)
    if is_name(text):
        found, own = called(text, parameters)
        found.check_parameters(key for key in own if key != ELEMENT_SIZE)
    if is_cute(text):
        parse(text)
    with suppress(ArrayUnknownError):
        as_layout(text, **parameters)
