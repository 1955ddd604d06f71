"""By default, one case in 24 of the tests that pack: kernels take long to compile."""

from __future__ import annotations

from collections import Counter

import pytest

STEP = 24


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Mark the other cases of each parametrized test as full, but not refusals, which compile nothing."""
    cases: Counter[str] = Counter()
    for item in items:
        if not item.nodeid.startswith("tests/catalog/") or not hasattr(item, "callspec"):
            continue
        test = item.nodeid.partition("[")[0]
        if cases[test] % STEP and not test.endswith("refused"):
            item.add_marker(pytest.mark.full)
        cases[test] += 1
