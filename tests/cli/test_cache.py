"""`tilejit cache warm` and `tilejit cache verify`."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from codegen.backend.store import PLANS_PER_PROCESS, KernelStore
from codegen.pipeline.calibrate import remember
from codegen.schedule.machine import STREAM_BYTES
from codegen.support.cpu import cpu_level
from tests.cli.running import child
from tests.tools.oracle import printed
from tilejit.copies.warming import shapes

NO_STORE = {"TILEJIT_NO_CACHE": "1"}

PACKS = """
import sys
import numpy as np
import tilejit as tj
from codegen.backend.store import default_store
for dims in ((64, 256), (37, 101), (1200, 900)):
    for dtype in (np.int8, np.uint8):
        x = np.arange(dims[0] * dims[1]).reshape(dims).astype(dtype)
        assert (tj.unpack(tj.pack(x, "aiter-preshuffle")) == x).all()
print(default_store().hits > 0, default_store().misses, "numba" in sys.modules)
"""


@pytest.mark.full
def test_a_warm_format_is_packed_without_a_compiler(tmp_path: Path) -> None:
    store = tmp_path / "store"
    store.mkdir(mode=0o700)
    remember(KernelStore(store), STREAM_BYTES, cpu_level().name)  # measuring also compiles kernels
    told = json.loads(
        child("cache", "warm", "aiter-preshuffle", "--json", TILEJIT_CACHE_DIR=str(store)).stdout
    )
    counts = told["aiter-preshuffle"]
    assert counts["compiled"] > 2
    assert counts["copies"] > 20
    assert len(list(store.glob("plan-*.note"))) > PLANS_PER_PROCESS
    assert printed(PACKS, store).split() == ["True", "0", "False"]
    again = child("cache", "warm", "aiter-preshuffle", TILEJIT_CACHE_DIR=str(store)).stdout
    assert (
        again
        == f"aiter-preshuffle: 0 kernels compiled, {counts['compiled'] + counts['stored']} already stored\n"
    )


@pytest.mark.full
@pytest.mark.parametrize("formats", [("nowhere",), ("tpu", "blis-a, nr=3"), ("blis-a, mr=0",), ("tpu,",)])
def test_wrong_formats_compile_nothing(formats: tuple[str, ...], tmp_path: Path) -> None:
    store = tmp_path / "store"
    result = child("cache", "warm", *formats, TILEJIT_CACHE_DIR=str(store))
    assert result.returncode == 2
    assert result.stderr.startswith("tilejit: ")
    assert result.stdout == ""
    assert not list(store.glob("*.kernel"))


@pytest.mark.full
@pytest.mark.parametrize("command", ["warm", "verify"])
def test_commands_without_a_store_give_the_reason(command: str) -> None:
    result = child("cache", command, **NO_STORE)
    assert result.returncode == 1
    assert "TILEJIT_NO_CACHE is set" in result.stderr


@pytest.mark.full
def test_verify_names_and_removes_damaged_entries(tmp_path: Path) -> None:
    store, where = tmp_path / "store", {"TILEJIT_CACHE_DIR": str(tmp_path / "store")}
    code = "import numpy as np, tilejit as tj; tj.pack(np.ones((40, 50), np.float32), '{1,0:T(8,128)}')"
    printed(code, store)
    first = sorted(store.glob("*.kernel"))[0]
    count = len(list(store.glob("*.kernel")))
    sound = child("cache", "verify", **where)
    assert sound.returncode == 0
    notes = len(list(store.glob("*.note")))
    assert notes >= count  # the source of each kernel, the program, and digests
    assert sound.stdout.splitlines() == [f"intact     {count} kernels, {notes} notes", "damaged    0"]

    first.write_bytes(first.read_bytes()[:-1])
    found = child("cache", "verify", **where)
    assert found.returncode == 1
    assert found.stderr == ""
    assert f"  {first.name}: its checksum is wrong" in found.stdout
    assert first.exists()
    told = json.loads(child("cache", "verify", "--json", **where).stdout)
    assert told["kernels"] == count - 1
    assert list(told["damaged"]) == [first.name]
    assert told["removed"] == 0

    repaired = child("cache", "verify", "--repair", **where)
    assert repaired.returncode == 0
    assert repaired.stdout.splitlines()[-1] == "removed    1"
    assert not first.exists()
    printed(code, store)
    assert first.exists()


def test_warmed_shapes_are_even_and_uneven() -> None:
    """Dimensions are uneven alone and together: last tiles nearly full, of one index, of full words."""
    even, *uneven = shapes((16, 256), 1 << 20)
    assert even == (1024, 1024)
    assert {(rows % 16, columns % 256) for rows, columns in uneven} >= {(15, 255), (0, 255), (1, 0), (1, 1)}
    assert any(columns % 256 and columns % 4 == 0 for _, columns in uneven)
    assert len({even, *uneven}) == 1 + len(uneven)
    assert all(n > 0 for dims in shapes((1, 2, 3, 4), 1) for n in dims)
