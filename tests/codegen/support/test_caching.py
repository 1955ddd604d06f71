"""Values computed once."""

from __future__ import annotations

import re

import pytest

from codegen.support.caching import lazy_pattern


def test_a_lazy_pattern_is_compiled_on_first_use() -> None:
    broken = lazy_pattern("[a-z")
    with pytest.raises(re.error):
        broken()
    words = lazy_pattern("[a-z]+", re.IGNORECASE)
    assert words().fullmatch("Tile")
    assert not words().fullmatch("12")


def test_patterns_of_one_text_differ_by_their_flags() -> None:
    lower, both = lazy_pattern("[a-z]+"), lazy_pattern("[a-z]+", re.IGNORECASE)
    assert both().match("T")
    assert not lower().match("T")
