"""Fixtures for tests of tuning."""

from __future__ import annotations

import pytest

from codegen.pipeline import tune
from codegen.support.caching import Cache


@pytest.fixture
def _another_process(monkeypatch: pytest.MonkeyPatch) -> None:
    """Forget the winners that this process remembers."""
    monkeypatch.setattr(tune, "_winners", Cache())
