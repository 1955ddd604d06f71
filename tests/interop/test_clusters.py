"""Two worker processes: what they write, what is left if one is killed, and how much memory they hold."""

from __future__ import annotations

import os
import signal
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import tilejit as tj

pytest.importorskip("distributed", reason="the extra dask is not installed")
pytest.importorskip("zarr", "3.1", reason="the extra dask is not installed")

from distributed import Client

from tests.tools.clusters import COLUMNS, LAYOUT, cluster, measure, numbered
from tilejit.interop.dask import from_zarr, pack

CHUNK = (128, COLUMNS)  # 4 MiB
ROWS = 1500


@pytest.fixture(scope="module")
def client() -> Iterator[Client]:
    with cluster(memory=2) as client:
        yield client


def slowed(block: Any, started: str) -> Any:
    """The block, after a while. A file signals that the first one has started."""
    Path(started).touch()
    time.sleep(0.2)
    return block


def kill_one_when(client: Client, started: Path) -> int:
    """Send SIGKILL to a worker that is computing, and return its process id."""
    victim: int = next(iter(client.run(os.getpid).values()))
    while not started.exists():
        time.sleep(0.01)
    os.kill(victim, signal.SIGKILL)
    return victim


@pytest.mark.full
def test_a_killed_worker_loses_nothing(client: Client, tmp_path: Path) -> None:
    """Two workers make, pack and store arrays, and one is killed meanwhile."""
    x = numbered(ROWS, CHUNK)
    slow = x.map_blocks(slowed, started=str(tmp_path / "started"), dtype=x.dtype, meta=x._meta)
    write = pack(slow, LAYOUT).to_zarr(tmp_path / "z", compute=False)
    future = client.compute(write)
    victim = kill_one_when(client, tmp_path / "started")
    assert not future.done()
    future.result(timeout=240)
    assert victim not in client.run(os.getpid).values()
    assert int((from_zarr(tmp_path / "z").unpack() != x).sum().compute()) == 0


@pytest.mark.full
def test_a_flat_file_by_two_processes(client: Client, tmp_path: Path) -> None:
    x = numbered(ROWS // 3, CHUNK)
    pack(x, LAYOUT).to_flat(tmp_path / "x.bin", piece_bytes=1 << 20)
    whole = tj.pack(x.compute(), LAYOUT).buffer
    assert np.array_equal(np.fromfile(tmp_path / "x.bin", np.uint32), whole)


@pytest.mark.full
def test_a_format_that_only_the_client_registered(client: Client) -> None:
    """Workers get the layout, not its name."""
    tj.register_format("known-here", lambda dtype, dims: "{1,0:T(16,64)}")
    x = numbered(300, (100, 4096))
    t = pack(x, "known-here")
    assert t.chunk.dimensions == (112, 4096)
    assert np.array_equal(t.unpack().compute(), x.compute())


@pytest.mark.full
def test_memory_stays_flat(client: Client, tmp_path: Path) -> None:
    """200 MB go through in chunks of 4 MiB; a copy of all of it anywhere would be detected."""
    found = measure(0.2, CHUNK, str(tmp_path))
    assert found.wrong == 0
    assert found.peak - found.idle < 150e6, found
