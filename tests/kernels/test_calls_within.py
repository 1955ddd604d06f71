"""Direct calls during which Python code runs: no freed memory is read, and no buffer is shared."""

from __future__ import annotations

from subprocess import run
from sys import executable

import pytest

from tests.tools.calls_within import CASES
from tests.tools.oracle import environment


@pytest.mark.full
@pytest.mark.parametrize("name", CASES)
def test_calls_within_calls(name: str) -> None:
    """In a separate process, which reading freed memory would end."""
    done = run(
        [executable, "-X", "faulthandler", "-m", "tests.tools.calls_within", name],
        env=environment(),
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    assert not done.stderr
