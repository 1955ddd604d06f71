"""Fixtures of the compiler's tests."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from codegen import clear_caches, default_store
from codegen.backend.store import KernelStore
from codegen.support.settings import settings


@pytest.fixture
def fresh_store(tmp_path: Path) -> Iterator[KernelStore]:
    """An empty store that this process uses for one test."""
    with pytest.MonkeyPatch.context() as environment:
        environment.setenv("TILEJIT_CACHE_DIR", str(tmp_path / "store"))
        environment.delenv("TILEJIT_NO_CACHE", raising=False)
        _forget()
        yield default_store()
    _forget()


def _forget() -> None:
    """Read the settings again, and plan everything again."""
    settings.cache_clear()
    default_store.cache_clear()
    clear_caches()
