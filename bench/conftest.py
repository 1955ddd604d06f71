"""`pytest bench`: synonyms for test names, and the machine and version in saved runs."""

from __future__ import annotations

from typing import Any

import pytest

import tilejit
from bench.synonyms import words_for
from bench.timing import conditions, machine


def pytest_itemcollected(item: pytest.Item) -> None:
    """Let `-k` find a test by synonyms of the words in its name."""
    item.extra_keyword_matches.update(words_for(item.name))


def pytest_benchmark_update_machine_info(config: pytest.Config, machine_info: dict[str, Any]) -> None:
    """Add the version, the machine and its conditions to saved runs, to tell them apart."""
    machine_info["tilejit"] = {"version": tilejit.__version__, **machine(), **conditions()["versions"]}
