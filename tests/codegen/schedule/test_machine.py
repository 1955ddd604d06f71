"""TILEJIT_MACHINE replaces what schedules depend on; a wrong file is an error before anything is copied."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from codegen.schedule.machine import MACHINE_FACTS, read_machine
from codegen.support.errors import KernelError
from tests.tools.oracle import run_python

FACTS = {"first_cache_ways": 12, "second_cache_bytes": 2 << 20, "stream_bytes": 0}

COPY = """
import numpy as np
import tilejit as tj
x, z = np.arange(90000, dtype="u4").reshape(300, 300), np.zeros((300, 300), "u4")
plan = tj.plan_copy(z, x.T)
plan(z, x.T)
assert np.array_equal(z, x.T)
print("stream_" in "".join(kernel.source for kernel in plan.kernels))
"""


def written(folder: Path, text: str) -> str:
    path = folder / "machine.json"
    path.write_text(text)
    return str(path)


@pytest.mark.parametrize("streams", [False, True])
def test_schedules_are_those_of_the_given_machine(tmp_path: Path, streams: bool) -> None:
    facts = FACTS | {"stream_bytes": 0 if streams else 1 << 40}
    done = run_python(COPY, TILEJIT_MACHINE=written(tmp_path, json.dumps(facts)))
    assert done.stdout.split() == [str(streams)], done.stderr


def test_a_file_may_state_some_facts(tmp_path: Path) -> None:
    assert read_machine(written(tmp_path, json.dumps(FACTS))) == FACTS
    assert read_machine(written(tmp_path, "{}")) == {}


@pytest.mark.parametrize(
    ("text", "cause"),
    [
        ("", "Expecting value"),
        ("[]", "expected an object, got list"),
        ("[" * 100000, "recursion"),
        ('{"cores": 3}', "expected first_cache_bytes, .*got 'cores'"),
        ('{"register_bytes": 64}', "got 'register_bytes'"),
        ('{"first_cache_ways": 0}', "1 to 1023, got 0"),
        ('{"stream_bytes": -1}', "0 to 4611686018427387904, got -1"),
        ('{"stream_bytes": 1e9}', "got 1000000000.0"),
        ('{"stream_bytes": true}', "got true"),
        ('{"second_cache_bytes": 99999999999999999999}', "got 99999999999999999999"),
        ('{"first_cache_bytes": 1}', "4096 to 16777215, got 1"),
        ('{"second_cache_bytes": null}', "got null"),
    ],
    ids=range(12),
)
def test_other_files_are_refused(tmp_path: Path, text: str, cause: str) -> None:
    with pytest.raises(KernelError, match=f"(?i)TILEJIT_MACHINE=.*{cause}.*\n.*tilejit calibrate"):
        read_machine(written(tmp_path, text))


def test_a_missing_file_stops_the_first_copy(tmp_path: Path) -> None:
    done = run_python(COPY, TILEJIT_MACHINE=str(tmp_path / "nowhere"))
    assert done.returncode == 1
    assert "KernelError: TILEJIT_MACHINE=" in done.stderr


def test_calibrate_prints_what_such_a_file_states(tmp_path: Path) -> None:
    command = "from tilejit.cli import main; import sys; sys.argv[1:] = {}; sys.exit(main())"
    own = {"TILEJIT_CACHE_DIR": str(tmp_path / "store")}
    first = run_python(command.format(["calibrate", "--json"]), **own)
    facts: dict[str, Any] = json.loads(first.stdout)
    assert facts.keys() == MACHINE_FACTS.keys()
    given = written(tmp_path, json.dumps(facts | FACTS))
    again = run_python(command.format(["calibrate", "--json"]), TILEJIT_MACHINE=given, **own)
    assert json.loads(again.stdout) == facts | FACTS
    text = run_python(command.format(["calibrate"]), TILEJIT_MACHINE=given, **own).stdout
    assert "12 ways" in text
    assert "given by TILEJIT_MACHINE" in text
