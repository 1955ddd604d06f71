"""Short versions of `tests.faults.kills`, `limits`, `crowd` and `memory`."""

from __future__ import annotations

import os
import sys
from pathlib import Path
from subprocess import PIPE, Popen, run

import pytest

from tests.cli.running import COMMAND
from tests.faults.memory import FLAT_BYTES, Meter
from tests.tools.extent import examples, is_full
from tests.tools.oracle import environment

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="limits and signals of Linux")


def succeeds(module: str, *arguments: object, **variables: str) -> str:
    """Run a module of this package, which must end with 0, and return its output."""
    command = [sys.executable, "-m", f"tests.faults.{module}", *map(str, arguments)]
    done = run(command, env=environment(**variables), capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


@pytest.mark.full
@pytest.mark.parametrize(("name", "times"), [("KILL", 12), ("INT", 6), ("TERM", 6)])
def test_killed_runs(name: str, times: int, seed: int) -> None:
    told = succeeds("kills", "--signal", name, "--times", times, "--seed", seed, "--megabytes", 1)
    assert f"SIG{name} {times} times" in told
    assert "0 failures" in told


@pytest.mark.full
def test_exhausted_resources(seed: int) -> None:
    told = succeeds("limits", "--times", examples(3, full=12), "--seed", seed)
    assert "out of memory" in told
    assert "FAILED" not in told


@pytest.mark.full
def test_crowds_of_threads_and_forks() -> None:
    many = (64, 2, 1, 2, 3) if is_full() else (16, 1, 0, 1, 1)
    names = ("--threads", "--forks", "--spawned", "--layouts", "--stores")
    options = (*(word for pair in zip(names, many, strict=True) for word in pair), "--rounds", 2)
    assert succeeds("crowd", *options).count("exit code 0") == many[-1]


@pytest.mark.full
def test_memory_stays_flat_over_calls_and_shapes() -> None:
    """Few of each: caches are not full yet, but nothing may grow fast either."""
    told = succeeds("memory", "--calls", 20_000)
    assert "20000 calls" in told


@pytest.mark.full
def test_the_meter_detects_kept_memory() -> None:
    meter, kept = Meter(), []
    for _ in range(20):
        kept.append(bytearray(os.urandom(1 << 18)))
        meter.sample()
    assert meter.growth() > FLAT_BYTES
    del kept


@pytest.mark.full
def test_ctrl_c_is_one_line(tmp_path: Path) -> None:
    """While a command runs, here on a file of functions that takes long."""
    slow = tmp_path / "functions.py"
    slow.write_text("import sys, time\nprint('runs', flush=True)\ntime.sleep(60)\n")
    with Popen(
        [*COMMAND, "vectorize", str(slow)], stdout=PIPE, stderr=PIPE, text=True, env=environment()
    ) as child:
        assert child.stdout is not None
        assert child.stderr is not None
        assert child.stdout.readline() == "runs\n"
        child.send_signal(2)
        assert child.stderr.read() == "tilejit: interrupted\n"
        assert child.wait(60) == 130
