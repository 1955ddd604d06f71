"""Ctrl-C in a first call ends that call, and later calls of the process work."""

from __future__ import annotations

import sys
from pathlib import Path

import numpy as np
import pytest

from codegen.support.interrupts import MESSAGE
from tests.tools.oracle import run_python

INTERRUPT_AT = """
import signal, sys, threading

signal.signal(signal.SIGINT, signal.default_int_handler)  # background jobs of shells ignore it

def interrupt_at(file, name, act=lambda: signal.raise_signal(signal.SIGINT)):
    "Act when code of that name in that file next begins to run, in any thread."
    def on_event(frame, event, _):
        code = frame.f_code
        if event == "call" and code.co_name == name and code.co_filename.endswith(file):
            threading.setprofile(None)
            sys.setprofile(None)
            act()
    threading.setprofile(on_event)
    sys.setprofile(on_event)
"""
"""The functions of other libraries at which interrupts did the most harm: each broke all later calls."""

IN_ONE_PROCESS = (
    INTERRUPT_AT
    + """
import numpy as np, tilejit as tj

x = np.arange(70 * 300, dtype=np.float32).reshape(70, 300)
tiles = np.pad(x, ((0, 2), (0, 84))).reshape(9, 8, 3, 128).swapaxes(1, 2)

def interrupted(call):
    try:
        call()
    except KeyboardInterrupt:
        return True

# The import of Numba, with a message after a second.
said = threading.Event()

class Terminal:
    text = ""
    def write(self, text):
        self.text += text
        if "\\n" in self.text:
            said.set()
    def flush(self):
        pass

def press_and_wait():
    signal.raise_signal(signal.SIGINT)
    signal.raise_signal(signal.SIGINT)
    assert said.wait(60)

sys.stderr, terminal = Terminal(), sys.stderr
interrupt_at("numba/core/errors.py", "<module>", press_and_wait)
assert interrupted(lambda: tj.pack(x, "{1,0:T(8,128)}"))
sys.stderr, told = terminal, sys.stderr
assert told.text == "tilejit: finishing a compilation before the interrupt\\n", told.text
assert (tj.pack(x, "{1,0:T(8,128)}").buffer.reshape(9, 3, 8, 128) == tiles).all()

# Numba reads its registries.
interrupt_at("numba/core/utils.py", "sublist_iterator")
assert interrupted(lambda: tj.transpose(x))
assert (tj.transpose(x) == x.T).all()

# A library of LLVM is freed. The handler of the caller is used, and stays.
presses = []
signal.signal(signal.SIGINT, handler := lambda number, frame: presses.append(number))
interrupt_at("llvmlite/binding/ffi.py", "close")
assert (tj.elementwise(lambda a: a * 2)(x) == x * 2).all()
assert presses == [signal.SIGINT] and signal.getsignal(signal.SIGINT) is handler
signal.signal(signal.SIGINT, signal.default_int_handler)

# Another thread compiles: Ctrl-C ends the main thread's call at once, and the other call goes on.
compiling, pressed, sums = threading.Event(), threading.Event(), []

def wait_for_press():
    compiling.set()
    assert pressed.wait(60)

def wait_for_result():
    assert compiling.wait(60)
    signal.raise_signal(signal.SIGINT)

interrupt_at("numba/core/utils.py", "sublist_iterator", wait_for_press)
thread = threading.Thread(target=lambda: sums.append(tj.elementwise(lambda a: a + 2)(x)))
thread.start()
assert interrupted(wait_for_result)
assert thread.is_alive()
pressed.set()
thread.join()
assert (sums[0] == x + 2).all()
print("works")
"""
)


def test_interrupts_wait_until_a_kernel_is_compiled(tmp_path: Path) -> None:
    done = run_python(IN_ONE_PROCESS, TILEJIT_CACHE_DIR=str(tmp_path), timeout=300)
    assert done.stdout == "works\n", done.stderr
    assert not done.stderr.replace(f"{MESSAGE}\n", "")  # on a busy machine, later steps also print it


COMMAND = (
    INTERRUPT_AT
    + """
from tilejit.cli import main
interrupt_at(*sys.argv.pop(1).split(":"))
main()
"""
)


@pytest.mark.full
@pytest.mark.parametrize(
    ("point", "command"),
    [
        ("tilejit/cli/commands.py:<module>", "demo --mib 1"),
        ("numba/core/errors.py:<module>", "demo --mib 1"),
        ("numba/core/utils.py:sublist_iterator", "pack x.npy out.npy --layout tpu"),
    ],
)
def test_ctrl_c_ends_a_command_with_one_line(point: str, command: str, tmp_path: Path) -> None:
    np.save(tmp_path / "x.npy", np.arange(70 * 300, dtype=np.float32).reshape(70, 300))
    settings = {"cwd": tmp_path, "timeout": 300, "TILEJIT_CACHE_DIR": str(tmp_path / "store")}
    done = run_python(COMMAND, point, *command.split(), **settings)  # type: ignore[arg-type]
    lines = [line for line in done.stderr.splitlines() if line != MESSAGE]
    resume = "  the next run starts again; a run that can be continued: tilejit pack --resume x.npy out.npy"
    assert (done.returncode, lines[0]) == (130, "tilejit: interrupted")
    assert lines[1:] in ([], [f"{resume} --layout tpu"])
    assert done.stdout == "" or command.startswith("demo")
    assert not (tmp_path / "out.npy").exists()


EVERY_100_MS = """
import os, signal, sys, tempfile, threading, time, traceback
import numpy as np
import tilejit as tj

x = np.arange(70 * 300, dtype=np.float32).reshape(70, 300)
signal.signal(signal.SIGINT, signal.default_int_handler)

calling = threading.Event()

def press(seconds):
    "Press Ctrl-C after that processor time of the first call, and once more later."
    calling.wait()
    begin = time.process_time()
    for at in (seconds, 2 * seconds + 0.05):
        while time.process_time() < begin + at:
            time.sleep(0.002)
        os.kill(os.getpid(), signal.SIGINT)

def child(seconds):
    "Whether the first call ended before the interrupts."
    threading.Thread(target=press, args=(seconds,), daemon=True).start()
    interrupts = 0
    while True:
        try:
            calling.set()
            result = tj.transpose(x)
            signal.signal(signal.SIGINT, signal.SIG_IGN)
            assert (result == x.T).all()
            return interrupts == 0
        except KeyboardInterrupt:
            interrupts += 1

def run(seconds, folder):
    "Fork a process with its own empty store; whether its first call ended before the interrupts."
    if process := os.fork():
        return os.waitstatus_to_exitcode(os.waitpid(process, 0)[1])
    os.environ["TILEJIT_CACHE_DIR"] = folder
    code = 2
    try:
        code = int(child(seconds))
    except BaseException:
        traceback.print_exc()
    finally:
        os._exit(code)

for step in range(1000):
    seconds = 0.1 * step
    with tempfile.TemporaryDirectory() as folder:
        code = run(seconds, folder)
    assert code in (0, 1), (seconds, code)
    if code:
        break
assert step > 5
print("works")
"""


@pytest.mark.full
@pytest.mark.timeout(1800)
@pytest.mark.skipif(sys.platform == "win32", reason="forks")
def test_a_cold_first_call_may_be_interrupted_at_any_time(tmp_path: Path) -> None:
    """Every 100 ms. The tests above interrupt at the functions where an interrupt did harm."""
    done = run_python(EVERY_100_MS, TMPDIR=str(tmp_path))
    assert done.returncode == 0, done.stderr
    assert done.stdout == "works\n"
