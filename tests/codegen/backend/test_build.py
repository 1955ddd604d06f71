"""TileJIT's builds do not change how Numba compiles other code of the process."""

from __future__ import annotations

import gc
from collections.abc import Iterator
from sys import platform

import pytest

from codegen.backend.build import numba_ir
from codegen.support.errors import KernelError
from tests.tools.oracle import run_python

KERNEL = """
from codegen.backend.build import build, numba_ir
from codegen.support.cpu import cpu_level

COPY = (
    "def {0}(operands, scratch, sizes, begin, end):\\n    src, dst = addresses_2(operands)\\n"
    "    copy_block(dst, src, min(end - begin, 99))\\n"
)
"""

AFTER = (
    KERNEL
    + """
build("first", COPY.format("first"), cpu_level())
import numba
import numpy as np

@numba.njit
def fibonacci(n):
    return n if n < 2 else fibonacci(n - 1) + fibonacci(n - 2)

@numba.njit
def smallest(values):
    return min(values[0], values.copy()[-1] // 3)

@numba.cfunc("int64(int64)")
def third(n):
    return min(n // 3, 7)

assert (fibonacci(11), smallest(np.arange(4, 9)), third.ctypes(11)) == (89, 2, 3)
build("second", COPY.format("second"), cpu_level())
assert (fibonacci(np.float32(5)), smallest(np.ones(3))) == (5, 0)
"""
)

BESIDE = (
    KERNEL
    + """
import numba
from threading import Thread

right = []

def compile_and_call(k):
    for n in range(2):
        right.append(numba.njit(lambda x: min(x, 9) * k + n)(11) == 9 * k + n)

threads = [Thread(target=compile_and_call, args=(k,)) for k in range(3)]
for thread in threads:
    thread.start()
for k in range(4):
    numba_ir(f"kernel_{k}", COPY.format(f"kernel_{k}"))
for thread in threads:
    thread.join()
assert right == [True] * 6, right
"""
)


@pytest.mark.full
@pytest.mark.parametrize("code", [AFTER, BESIDE], ids=["after a kernel", "beside kernels"])
def test_functions_of_other_code_run(code: str) -> None:
    """Numba makes machine code of everything but kernels, whatever the two have in common."""
    done = run_python(code)
    assert done.returncode == 0, done.stderr


@pytest.fixture(params=[True, False], ids=["collected", "not collected"])
def collected(request: pytest.FixtureRequest) -> Iterator[bool]:
    """Whether the garbage collector is enabled when the build begins."""
    before = gc.isenabled()
    (gc.enable if request.param else gc.disable)()
    yield request.param
    (gc.enable if before else gc.disable)()


def test_a_build_leaves_the_garbage_collector_as_it_was(collected: bool) -> None:
    name = f"empty_{collected}"
    numba_ir(name, f"def {name}(operands, scratch, sizes, begin, end):\n    pass\n")
    assert gc.isenabled() == collected
    with pytest.raises(KernelError, match="Numba rejects the kernel wrong"):
        numba_ir("wrong", "def wrong(operands, scratch, sizes, begin, end):\n    return sizes.nothing\n")
    assert gc.isenabled() == collected


LOOPS = """
def loops(operands, scratch, sizes, begin, end):
    src, dst = addresses_2(operands)
    step, rows = int64_at(sizes, 0), int64_at(sizes, 1)
    for i in range(begin, end):
        for j in range(rows):
            a, b = src + i * step, dst + (j * 8 if j > 3 else i)
            move_u32_at(b, 0, a, 0)
"""


MANY = """
import ctypes, gc
from pathlib import Path
from codegen.backend.build import build
from codegen.support.cpu import cpu_level
from tests.codegen.backend.test_build import LOOPS

def resident():
    gc.collect()
    ctypes.CDLL(None).malloc_trim(0)
    return 4096 * int(Path("/proc/self/statm").read_text().split()[1])

for k in range(40):
    if k == 10:
        before = resident()
    build("loops", f"{LOOPS}# {k}", cpu_level())
print((resident() - before) // 30)
"""


@pytest.mark.full
@pytest.mark.skipif(platform != "linux", reason="memory is read from /proc")
def test_builds_leave_little_memory_allocated() -> None:
    """LLVM's pass managers are freed: a kernel keeps some KiB, not a quarter of a MiB."""
    done = run_python(MANY)
    assert done.returncode == 0, done.stderr
    assert int(done.stdout) < 64 << 10
