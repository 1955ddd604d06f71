"""Peak memory: the output and two MiB per thread, after the kernels are loaded. The system enforces it."""

from __future__ import annotations

import sys
from subprocess import run

import pytest

from tests.tools.oracle import environment

pytestmark = pytest.mark.skipif(not sys.platform.startswith("linux"), reason="RLIMIT_AS as Linux counts it")

SLACK = 1 << 20
"""The growth allowed for Python's own heap, which requests arenas of one MiB from the system."""

CODE = """
import ctypes, gc, resource, sys
import numpy as np
import tilejit as tj

text, slack = sys.argv[1], int(sys.argv[2])

def copy(what, text, threads):
    shape = tj.Shape.parse(text)
    if what == "pack":
        x = np.ones(shape.dimensions, shape.dtype)
        return lambda: tj.pack(x, shape, threads=threads), shape.size_in_bytes
    t = tj.TiledArray(np.zeros(shape.size_in_bytes // (1 if shape.packed else shape.dtype.itemsize),
                               np.uint8 if shape.packed else shape.dtype), shape)
    if what == "unpack":
        return lambda: tj.unpack(t, threads=threads), int(np.prod(shape.dimensions)) * shape.dtype.itemsize
    if what == "one element":
        return lambda: t[(1,) * t.ndim], 0
    if what == "cast":
        x = np.ones(shape.dimensions, np.complex128)
        return lambda: tj.pack(x, shape, threads=threads, casting="unsafe"), shape.size_in_bytes
    raise AssertionError(what)

def vm_size():
    with open("/proc/self/statm") as file:
        return int(file.read().split()[0]) * resource.getpagesize()

def check(what, threads):
    work, size = copy(what, text, threads)
    work()
    gc.collect()
    ctypes.CDLL(None).malloc_trim(0)
    limit = vm_size() + size + threads * (2 << 20) + slack
    before = resource.getrlimit(resource.RLIMIT_AS)
    resource.setrlimit(resource.RLIMIT_AS, (limit, before[1]))
    work()
    resource.setrlimit(resource.RLIMIT_AS, before)
    print(what, threads, "done")

for run in sys.argv[3:]:
    what, threads = run.split(":")
    check(what, int(threads))
"""

CASES = {
    "plain": "f32[3000,700]{1,0:T(8,128)}",
    "transposed": "f32[3000,700]{0,1:T(8,128)}",
    "nested": "bf16[6000,700]{1,0:T(8,128)(2,1)}",
    "packed": "s4[6400,640]{1,0:T(64,128)(8,1)E(4)}",
    "merged": "f32[4000,30,14]{2,1,0:T(*,*,128)}",
    "later star": "f32[800,30,14]{2,1,0:T(8,128)(*,*,3,2,128)}",
    "tables": "f32[700,3000,2]{2,0,1:T(*,6,2)}",
}


RUNS = [(what, threads) for what in ("pack", "unpack", "cast") for threads in (1, 2)] + [("one element", 1)]


@pytest.mark.full
@pytest.mark.parametrize("case", CASES)
def test_peak(case: str) -> None:
    """Each copy runs twice.

    The first loads kernels and starts threads, and the limit holds for the second.
    """
    settings = environment(
        MALLOC_ARENA_MAX="1", MALLOC_MMAP_THRESHOLD_="65536", MALLOC_TRIM_THRESHOLD_="65536"
    )
    runs = [f"{what}:{threads}" for what, threads in RUNS]
    command = [sys.executable, "-W", "ignore", "-c", CODE, CASES[case], str(SLACK), *runs]
    done = run(command, env=settings, capture_output=True, text=True, check=False)
    assert done.stdout.splitlines() == [f"{what} {threads} done" for what, threads in RUNS], done.stderr
