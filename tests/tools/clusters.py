"""More data than memory on two worker processes: `python -m tests.tools.clusters --gigabytes 20 --memory 2`.

The workers make an array block by block, pack it, and store it to zarr. Then they read it back, and every
element is compared with its original. `--memory` is the most gigabytes that all processes together may hold
at any time; the run fails beyond it. The output has the rates, the peak, and its excess over the memory
before the first block.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import dask
import dask.array as da
import numpy as np
import psutil
from distributed import Client, LocalCluster

from tilejit.interop.dask import TiledDask, from_zarr, pack

LAYOUT = "{1,0:T(8,128)}"
COLUMNS = 8192
MEGABYTE = 1 << 20


@dataclass
class Watch:
    """The memory that this process and all its descendants hold, in bytes: at first, and at most."""

    idle: int = 0
    peak: int = 0

    def look(self) -> int:
        """The memory that they hold now. Shared pages count in each process."""
        me = psutil.Process()
        total = 0
        for process in (me, *me.children(recursive=True)):
            try:
                total += process.memory_info().rss
            except psutil.Error:
                continue
        self.peak = max(self.peak, total)
        return total

    @contextmanager
    def watching(self) -> Iterator[None]:
        """Sample repeatedly while the block runs."""
        ended = threading.Event()

        def look() -> None:
            while not ended.wait(0.05):
                self.look()

        self.idle = self.look()
        thread = threading.Thread(target=look, daemon=True)
        thread.start()
        try:
            yield
        finally:
            ended.set()
            thread.join()
            self.look()


def numbered(rows: int, chunk: tuple[int, int]) -> Any:
    """A lazy array of rows x COLUMNS u32 whose elements encode their position."""
    sizes = tuple((*(e for _ in range((n - 1) // e)), n - (n - 1) // e * e) for n, e in _cut(rows, chunk))
    return da.map_blocks(
        block_of, chunk=chunk, chunks=sizes, dtype=np.uint32, meta=np.empty((0, 0), np.uint32)
    )


def _cut(rows: int, chunk: tuple[int, int]) -> list[tuple[int, int]]:
    return [(rows, min(rows, chunk[0])), (COLUMNS, min(COLUMNS, chunk[1]))]


def block_of(*, chunk: tuple[int, int], block_info: Any) -> np.ndarray[Any, np.dtype[np.uint32]]:
    """The elements of a box: their numbers in the whole array, scrambled."""
    (top, bottom), (left, right) = block_info[None]["array-location"]
    first = np.arange(top, bottom, dtype=np.uint32)[:, None] * np.uint32(COLUMNS)
    out = first + np.arange(left, right, dtype=np.uint32)
    out *= np.uint32(2654435761)
    return out


@contextmanager
def cluster(memory: float, **keywords: Any) -> Iterator[Client]:
    """Two workers with one thread each. `memory` is in gigabytes, for all processes together."""
    settings = {"distributed.comm.timeouts.connect": "120s", "distributed.worker.memory.spill": False}
    with (
        dask.config.set(settings),
        LocalCluster(
            n_workers=2,
            threads_per_worker=1,
            processes=True,
            dashboard_address=None,
            memory_limit=int(memory * 1e9 / 2),
            **keywords,
        ) as workers,
        Client(workers) as client,
    ):
        yield client


@dataclass(frozen=True)
class Measured:
    """The results of a run, in bytes and seconds."""

    nbytes: int
    writing: float
    reading: float
    wrong: int
    idle: int
    peak: int

    def __str__(self) -> str:
        rate, back = (self.nbytes / s / 1e6 for s in (self.writing, self.reading))
        return (
            f"{self.nbytes / 1e9:.2f} GB: made, packed and stored in {self.writing:.1f} s ({rate:.0f} MB/s), "
            f"read back and compared in {self.reading:.1f} s ({back:.0f} MB/s), {self.wrong} elements wrong\n"
            f"all processes held {self.peak / 1e9:.3f} GB at most, "
            f"{(self.peak - self.idle) / 1e9:.3f} GB more than before"
        )


def measure(gigabytes: float, chunk: tuple[int, int], folder: str) -> Measured:
    """Pack, store, read back and compare, on the workers of the current client."""
    rows = max(1, round(gigabytes * 1e9 / (4 * COLUMNS)))
    # Kernels and modules are loaded before memory is watched.
    _store_and_compare(numbered(2 * chunk[0], chunk), chunk, f"{folder}/first.zarr")
    watch = Watch()
    with watch.watching():
        x = numbered(rows, chunk)
        writing, reading, wrong = _store_and_compare(x, chunk, f"{folder}/whole.zarr")
    return Measured(x.nbytes, writing, reading, wrong, watch.idle, watch.peak)


def _store_and_compare(x: Any, chunk: tuple[int, int], path: str) -> tuple[float, float, int]:
    began = time.monotonic()
    pack(x, LAYOUT, chunks=chunk).to_zarr(path)
    middle = time.monotonic()
    found: TiledDask = from_zarr(path)
    wrong = int((found.unpack() != x).sum().compute())
    return middle - began, time.monotonic() - middle, wrong


def main(arguments: list[str] | None = None) -> int:
    """Return 0 if every element is right and memory sufficed."""
    parser = argparse.ArgumentParser(prog="python -m tests.tools.clusters", description=__doc__)
    parser.add_argument("--gigabytes", type=float, default=0.2, help="of the array")
    parser.add_argument("--memory", type=float, default=2.0, help="gigabytes for all processes together")
    parser.add_argument("--chunk", type=int, default=32, help="megabytes of a chunk")
    parser.add_argument("--folder", help="where the array is stored temporarily")
    options = parser.parse_args(arguments)
    height = max(8, options.chunk * MEGABYTE // (4 * COLUMNS) // 8 * 8)
    with tempfile.TemporaryDirectory(dir=options.folder) as folder, cluster(options.memory):
        found = measure(options.gigabytes, (height, COLUMNS), folder)
    print(found)
    return 0 if found.wrong == 0 and found.peak <= options.memory * 1e9 else 1


if __name__ == "__main__":
    sys.exit(main())
