"""The judge of one input: what it may raise, the work it may take, the memory it may use.

Work is counted in lines of Python, so that the answer does not depend on the machine. An input that takes
noticeable time runs again under a counter. A time limit with a wide margin catches long calls of C code.
"""

from __future__ import annotations

import gc
import os
import re
import resource
import sys
import time
import traceback
import tracemalloc
from contextlib import suppress

from codegen.support.caching import clear_caches
from codegen.support.errors import TilejitError
from tests.fuzz.targets import Target
from tests.tools.extent import EXTENT, extent

MOST_LINES = 500_000
"""Lines of Python that an input may execute: 10 to 50 ms."""
COUNTED_SECONDS = 0.005
"""CPU time of the thread above which lines are counted."""
MOST_SECONDS = 2.0
"""CPU time of the thread that an input may take if time counts, with a wide margin."""
MOST_BYTES = 64 << 20
BATCH = 256
"""Inputs between two garbage collections, whose time counts for no input."""


def is_timed() -> bool:
    """Whether seconds count: in a soak, and outside test runs. Other tests count only work."""
    return extent() == "soak" or EXTENT not in os.environ


class Judge:
    """Tries inputs of one target.

    >>> judge = Judge(TARGETS["shape"])
    >>> judge(b"f32[2")     # None: refused as it should be
    >>> judge.outcome       # "']' is missing after the dimensions: the text ends"

    Attributes:
        slack: how many times as much work an input may take, for instrumented code.
        outcome: the kind of the last answer, without digits; the plain engine looks for new ones.
    """

    def __init__(self, target: Target, slack: float = 1.0) -> None:
        self.target, self.slack = target, slack
        self.run = target.open()
        self.outcome = ""
        self._count = self._resident = 0
        gc.collect()
        gc.freeze()
        gc.disable()

    def __call__(self, data: bytes) -> str | None:
        """What is wrong with the handling of an input, or None."""
        if self._count % BATCH == 0:
            gc.collect()
            self._resident = resident_bytes()
        self._count += 1
        begin = time.thread_time()
        wrong = self._answer(data)
        seconds = time.thread_time() - begin
        if wrong:
            return wrong
        most = MOST_SECONDS * self.slack
        if is_timed() and seconds > most and (again := self.seconds(data)) > most:
            return f"slow: {min(seconds, again):.1f} s"
        if seconds > COUNTED_SECONDS and (slow := self.of_work(data)):
            return slow
        if peak_bytes() - self._resident > MOST_BYTES:
            self._resident = resident_bytes()
            return self.of_memory(data)
        return None

    def of_memory(self, data: bytes) -> str | None:
        """What is wrong with the memory that an input takes, or None."""
        used = self.traced_bytes(data)
        return f"memory: {used >> 20} MiB" if used > MOST_BYTES else None

    def traced_bytes(self, data: bytes) -> int:
        """The peak memory of an input by Python's count, with empty caches."""
        clear_caches()
        tracemalloc.start()
        try:
            self._answer(data)
            return tracemalloc.get_traced_memory()[1]
        finally:
            tracemalloc.stop()

    def of_work(self, data: bytes) -> str | None:
        """What is wrong with the work that an input takes, or None."""
        lines = self.lines(data)
        return f"slow: {lines:,} lines" if lines > MOST_LINES * self.slack else None

    def seconds(self, data: bytes) -> float:
        """The CPU time of an input, with its modules imported and empty caches."""
        clear_caches()
        begin = time.thread_time()
        self._answer(data)
        return time.thread_time() - begin

    def lines(self, data: bytes) -> int:
        """The number of Python lines that an input executes, with empty caches."""
        clear_caches()
        count = 0

        def trace(frame: object, event: str, argument: object) -> object:
            nonlocal count
            count += event == "line"
            return trace

        before = sys.gettrace()
        sys.settrace(trace)
        try:
            self._answer(data)
        finally:
            sys.settrace(before)
        return count

    def _answer(self, data: bytes) -> str | None:
        try:
            said = self.run(data)
        except TilejitError as error:
            self.outcome = _kind(str(error))
            return None
        except Exception as error:
            self.outcome = type(error).__name__
            last = traceback.extract_tb(error.__traceback__)[-1]
            place = f"{os.path.basename(last.filename)}:{last.lineno}"
            return f"{type(error).__name__} at {place}: {str(error)[:200]}"
        self.outcome = _kind(said) if said else "taken"
        return None


def _kind(message: str) -> str:
    first = message.partition("\n")[0]
    return re.sub(r"'[^']*'|\"[^\"]*\"|[0-9]+", "", first)[:60]


def resident_bytes() -> int:
    """The current memory of the process.

    Its peak is reset here, if the system allows it.
    """
    if not sys.platform.startswith("linux"):
        return sys.maxsize  # then only the corpus's memory is counted
    with suppress(OSError), open("/proc/self/clear_refs", "w") as file:
        file.write("5")
    with open("/proc/self/statm") as file:
        return int(file.read().split()[1]) * resource.getpagesize()


def peak_bytes() -> int:
    """The peak of the process's memory."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss << 10
