"""A fork while another thread compiles, plans or imports: the child can still compile and copy."""

from __future__ import annotations

import pytest

from tests.tools.oracle import run_python

PROGRAM = """
import os, signal, threading, time
import numpy as np
import tilejit as tj

signal.alarm(60)
x = np.arange(40 * 50, dtype=np.float32).reshape(40, 50)
compiling = threading.Thread(target=tj.pack, args=(x, "{0,1:T(8,16)(2,1)}"))
compiling.start()
time.sleep(0.05)
child = os.fork()
if child == 0:
    signal.alarm(60)
    t = tj.pack(x.astype(np.int16), "{1,0:T(4,8)(4,1)}")
    os._exit(0 if (t.unpack() == x).all() else 1)
compiling.join()
print(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))
"""


@pytest.mark.full
def test_a_child_forked_during_compilation_can_compile() -> None:
    result = run_python(PROGRAM, TILEJIT_NO_CACHE="1")
    assert result.stdout.strip() == "0", result.stderr


BESIDE_NUMBA = """
import os, signal, threading, time
import numba
import numpy as np
import tilejit as tj

signal.alarm(100)
x = np.arange(40 * 50, dtype=np.float32).reshape(40, 50)
tj.pack(x, "{1,0:T(8,16)}")
entered, compiled = threading.Event(), threading.Event()

class Slow(numba.core.event.Listener):
    # Inside Numba's lock, which it takes while it compiles.
    def on_start(self, event):
        if threading.current_thread() is other and not entered.is_set():
            entered.set()
            time.sleep(0.5)

    def on_end(self, event):
        pass

numba.core.event.register("numba:compile", Slow())
other = threading.Thread(target=lambda: (numba.njit(lambda a: a + 1)(1), compiled.set()))
other.start()
entered.wait()
child = os.fork()
if child == 0:
    signal.alarm(30)
    t = tj.pack(x.astype(np.int16), "{1,0:T(4,8)(4,1)}")
    os._exit(0 if (t.unpack() == x).all() else 1)
other.join()
print(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]), compiled.is_set())
"""


def test_a_child_forked_while_numba_compiles_can_compile() -> None:
    result = run_python(BESIDE_NUMBA, timeout=200, TILEJIT_NO_CACHE="1")
    assert result.stdout.strip() == "0 True", result.stderr


PLANNING = """
import os, signal, threading
import numpy as np
import tilejit as tj

signal.alarm(100)
source = np.arange(700 * 701, dtype=np.uint32).reshape(700, 701)
stop = False

def plan(offset):
    k = 0
    while not stop:
        k += 1
        part = source[: 400 + k % 300, : 300 + offset]
        tj.copyto(np.empty(part.shape[::-1], np.uint32), part.T)

threads = [threading.Thread(target=plan, args=(k,)) for k in range(3)]
for thread in threads:
    thread.start()
codes = []
for n in range(20):
    child = os.fork()
    if child == 0:
        signal.alarm(20)
        part = source[:, : 250 + n]
        copied = np.empty(part.shape[::-1], np.uint32)
        tj.copyto(copied, part.T)
        os._exit(0 if (copied == part.T).all() else 1)
    codes.append(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))
stop = True
for thread in threads:
    thread.join()
print(codes)
"""


@pytest.mark.full
def test_a_child_forked_while_threads_plan_can_copy() -> None:
    """The child waits for no lock that another thread held at the fork."""
    result = run_python(PLANNING)
    assert result.stdout.strip() == str([0] * 20), result.stderr


WHILE_POOLS_ARE_IMPORTED = """
import os, signal, sys, threading, time
from codegen.support.locks import compiler_lock

signal.alarm(60)
assert "concurrent.futures.thread" not in sys.modules
taken = threading.Event()

def late():
    with compiler_lock:
        taken.set()
        time.sleep(0.3)
        import concurrent.futures.thread

importing = threading.Thread(target=late)
importing.start()
taken.wait()
child = os.fork()
signal.alarm(60)
importing.join() if child else None
from concurrent.futures import ThreadPoolExecutor
with ThreadPoolExecutor(2) as pool:
    assert list(pool.map(abs, [-1, 2])) == [1, 2]
if child == 0:
    os._exit(0)
print(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))
"""


def test_a_fork_while_thread_pools_are_imported() -> None:
    """The lock is neither released by a thread that did not take it, nor kept."""
    # Python 3.12 and later warn about every fork in a process with threads.
    result = run_python(WHILE_POOLS_ARE_IMPORTED, flags=("-W", "ignore::DeprecationWarning"))
    assert (result.stdout, result.stderr) == ("0\n", "")
