"""Cases of the soak, in processes that guard pages may end."""

from __future__ import annotations

from subprocess import run
from sys import executable

import pytest

from tests.tools.extent import examples, lower_levels
from tests.tools.guard import Guarded
from tests.tools.oracle import environment
from tests.tools.soak.__main__ import main

CHUNKS = 2


@pytest.mark.full
@pytest.mark.parametrize("chunk", range(CHUNKS))
def test_soak(chunk: int, seed: int) -> None:
    cases = examples(30, full=1500)
    assert f"{cases} cases" in soaked("--seed", seed, "--first", chunk * cases, "--cases", cases)


@pytest.mark.full
@pytest.mark.parametrize("level", lower_levels())
def test_soak_at_lower_levels(level: str, seed: int) -> None:
    cases = examples(20, full=1000)
    assert f"{cases} cases" in soaked("--seed", seed + 1, "--cases", cases, "--level", level)


def soaked(*options: object) -> str:
    """The output of a run of the soak, in which every case must hold."""
    command = [executable, "-m", "tests.tools.soak", *map(str, options), "--keep-going"]
    done = run(command, env=environment(), capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


@pytest.mark.full
def test_the_soak_names_the_case_that_ends_the_process() -> None:
    """Touching a guard page is a crash, and the parent names the case."""
    code = (
        "import sys, tests.tools.soak.cases as cases, tests.tools.soak.__main__ as soak\n"
        "def touch(bench, seed, number, kinds):\n"
        "    if number == 7:\n"
        "        bench.source.bytes.ctypes.data\n"
        "        import ctypes; ctypes.string_at(bench.source.bytes.ctypes.data - 1, 1)\n"
        "cases.run_case = touch\n"
        "sys.exit(soak.main(sys.argv[1:]))\n"
    )
    command = [executable, "-c", code, "--seed", "1", "--first", "3", "--cases", "20"]
    import os

    handle = os.memfd_create("progress")
    os.write(handle, bytes(8))
    done = run(
        [*command, "--worker", "1", str(handle)],
        env=environment(),
        capture_output=True,
        pass_fds=[handle],
        check=False,
    )
    number = int.from_bytes(os.pread(handle, 8, 0), "little")
    os.close(handle)
    assert done.returncode < 0
    assert number == 7


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ("--cases 0", "expected an integer of at least 1, got '0'"),
        ("--jobs 0", "expected an integer of at least 1, got '0'"),
        ("--seed -1", "expected an integer of at least 0, got '-1'"),
        ("--first x", "expected an integer of at least 0, got 'x'"),
        ("--seconds 0", "expected a positive number of seconds, got '0'"),
        ("--kinds copy,cpoy", "unknown kind 'cpoy'; choose from by_index, cast, copy, "),
        ("--level mmx", "invalid choice: 'mmx'"),
    ],
)
def test_mistakes_in_options(options: str, said: str, capsys: pytest.CaptureFixture[str]) -> None:
    """A mistake is an error, not a run without cases."""
    with pytest.raises(SystemExit) as ended:
        main(options.split())
    assert ended.value.code == 2
    printed = capsys.readouterr()
    assert printed.out == ""
    usage, error = printed.err.splitlines()
    assert usage == "usage: python -m tests.tools.soak [options]"
    assert said in error


@pytest.mark.full
def test_a_run_has_at_least_one_case() -> None:
    """However short its time and however many its jobs."""
    said = soaked("--cases", 1, "--jobs", 3, "--seconds", 1e-9, "--kinds", "copy")
    assert "\n1 cases in" in said


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
