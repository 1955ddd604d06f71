"""Cases of the soak, in processes that guard pages may end."""

from __future__ import annotations

from subprocess import run
from sys import executable

import pytest

from tests.tools.extent import examples, lower_levels
from tests.tools.guard import Guarded
from tests.tools.oracle import environment

CHUNKS = 2


@pytest.mark.full
@pytest.mark.parametrize("chunk", range(CHUNKS))
def test_soak(chunk: int, seed: int) -> None:
    cases = examples(30, full=125)
    assert f"{cases} cases" in soaked("--seed", seed, "--first", chunk * cases, "--cases", cases)


@pytest.mark.full
@pytest.mark.parametrize("level", lower_levels())
def test_soak_at_lower_levels(level: str, seed: int) -> None:
    cases = examples(20, full=75)
    assert f"{cases} cases" in soaked("--seed", seed + 1, "--cases", cases, "--level", level)


def soaked(*options: object) -> str:
    """The output of a run of the soak, in which every case must hold."""
    command = [executable, "-m", "tests.tools.soak", *map(str, options), "--keep-going"]
    done = run(command, env=environment(), capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def test_canaries() -> None:
    arena = Guarded(5000)
    data = arena.place(100, at_end=True)
    data[:] = 1
    assert arena.untouched()
    arena.bytes[-101] = 0
    assert not arena.untouched()
    data = arena.place(100, at_end=False, gap=3)
    assert arena.untouched()
    arena.bytes[2] = 0
    assert not arena.untouched()
