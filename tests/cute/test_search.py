"""The algebra against its definitions: thousands of fixed cases, and Hypothesis's own."""

from __future__ import annotations

from collections import Counter
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.cute.judge import OPERATIONS, judged
from tests.cute.search import main
from tests.tools.extent import examples
from tests.tools.strategies import Pick, picker

CASES = 1500


@pytest.mark.full
@pytest.mark.parametrize("operation", OPERATIONS)
def test_fixed_cases(operation: str, seed: int) -> None:
    counts: Counter[str] = Counter()
    for number in range(CASES):
        counts[judged(operation, picker(np.random.default_rng((seed, number))))] += 1
    if operation in ("composition", "left_inverse", "complement"):
        judged_cases = CASES - counts["skipped"]
        assert judged_cases // 4 <= counts["none"] <= 3 * judged_cases // 4, counts
        assert judged_cases >= CASES // 2


@pytest.mark.full
@pytest.mark.parametrize("operation", OPERATIONS)
@settings(max_examples=examples(22, full=200))
@given(data=st.data())
def test_drawn_cases(operation: str, data: Any) -> None:
    pick: Pick = lambda low, high: data.draw(st.integers(low, high))  # noqa: E731
    judged(operation, pick)


def test_the_search_counts_and_reports(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["--cases", "50", "--seed", "3"]) == 0
    assert "seed 3, cases 0 to 49" in capsys.readouterr().out
