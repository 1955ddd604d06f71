"""`tilejit pack` killed at random moments: `python -m tests.faults.kills --times 1000 --signal KILL`.

At any moment, the destination is absent or old, as it was before, or complete, and the next run succeeds.
Ctrl-C (INT) and TERM also leave no temporary file, and print at most one line. One run in FRESH is a separate
process from the start of Python on. The others are forks of a process that has imported everything.
"""

from __future__ import annotations

import argparse
import os
import random
import re
import signal
import subprocess
import sys
import tempfile
import time
from collections import Counter
from contextlib import suppress
from pathlib import Path

from tests.cli.running import COMMAND
from tests.faults.files import (
    ABSENT,
    BROKEN,
    KEPT,
    OUTSIDE,
    WHOLE,
    Ended,
    Job,
    complaints,
    finish,
    jobs,
    run,
    start,
)
from tests.tools.oracle import environment

FRESH = 10
IN_MAIN = re.compile(r'tilejit[^"]*", line \d+, in main')
LOST = re.compile(
    r"Exception ignored in: <function _get_module_lock\..*\nTraceback .*\n  File \"<frozen importlib.*\n"
    r"KeyboardInterrupt: ?\n\n?"
)
"""What Python prints if an interrupt arrives while its imports clean up; then it drops the interrupt."""
SAYS = {"INT": r"tilejit: interrupted\n(  the next run .*: tilejit .*\n)?", "TERM": "", "KILL": ""}


class Victims:
    """Runs of some jobs that are killed, and the failures found."""

    def __init__(self, todo: list[Job], directory: Path, name: str, seed: int) -> None:
        self.todo, self.directory, self.name = todo, directory, name
        self.number = getattr(signal, f"SIG{name}")
        self.random = random.Random(f"{seed} {name}")
        self.counts: Counter[str] = Counter()
        self.failures: list[str] = []
        self.seconds = {job.source: self._seconds(job, fresh=False) for job in todo}
        self.fresh_seconds = {job.source: self._seconds(job, fresh=True) for job in todo}

    def _seconds(self, job: Job, *, fresh: bool) -> float:
        """How long the command takes here, undisturbed."""
        began = time.monotonic()
        ended = self._run(job, fresh, delay=None)
        if ended.code:
            raise SystemExit(f"undisturbed the command ended with {ended.code}: {ended.said}")
        return time.monotonic() - began

    def kill(self, turn: int) -> None:
        """Kill one run, check what it leaves, and run again."""
        job = self.todo[turn % len(self.todo)]
        fresh, there = turn % FRESH == FRESH - 1, turn // len(self.todo) % 2 == 0
        job.prepare(there=there)
        usual = (self.fresh_seconds if fresh else self.seconds)[job.source]
        delay = self.random.uniform(0, 1.1 * usual)
        ended = self._run(job, fresh, delay)
        state = job.state()
        self.counts[state] += 1
        self.counts["after the end"] += ended.code == 0
        wrong = self._wrong(ended, fresh)
        if state not in ((KEPT if there else ABSENT), WHOLE):
            wrong.append(f"the destination is {state}")
        if state != WHOLE and ended.code == 0:
            wrong.append("it ended with 0 and wrote nothing")
        left = job.leftovers()
        self.counts["temporary files"] += len(left)
        if left and self.name != "KILL":
            wrong.append(f"{len(left)} temporary files are left")
        again = run(job.command, self.directory)
        if again.code or job.state() != WHOLE:
            wrong.append(
                f"the next run ended with {again.code}, the destination is {job.state()}: {again.said}"
            )
        for path in left:
            path.unlink()
        if wrong:
            how = f"turn {turn}, {job.source.name}, {'fresh' if fresh else 'forked'}, after {delay:.4f} s"
            self.failures.append(f"{how}: {'; '.join(wrong)}\n{ended.said}")

    def _wrong(self, ended: Ended, fresh: bool) -> list[str]:
        """What is wrong with how it ended."""
        if ended.code in (0, -self.number if self.name == "KILL" else 128 + self.number):
            said = SAYS[self.name] if ended.code else ""
            return (
                []
                if re.fullmatch(said, LOST.sub("", ended.said))
                else [f"with code {ended.code} it said {ended.said[:400]!r}"]
            )
        early = ended.code == OUTSIDE if not fresh else self._before_main(ended)
        self.counts["before main"] += early
        return [] if early else [f"exit code {ended.code}"]

    def _before_main(self, ended: Ended) -> bool:
        """Whether a fresh process was ended while Python started or imported the package."""
        by_python = ended.code in (-self.number, 1) and not IN_MAIN.search(ended.said)
        return by_python and "in _exit" not in ended.said

    def _run(self, job: Job, fresh: bool, delay: float | None) -> Ended:
        said = self.directory / "stderr"
        if not fresh:
            child = start(job.command, said)
            if delay is not None:
                time.sleep(delay)
                os.kill(child, self.number)
            return finish(child, said)
        with said.open("wb") as file:
            process = subprocess.Popen(
                [*COMMAND, *job.command], stdout=subprocess.DEVNULL, stderr=file, env=environment()
            )
            if delay is not None:
                time.sleep(delay)
                process.send_signal(self.number)
            return Ended(process.wait(120), complaints(said.read_text()))


def main(arguments: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.faults.kills", description=__doc__)
    parser.add_argument("--times", type=int, default=1000)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--signal", choices=[*SAYS, "all"], default="KILL")
    parser.add_argument("--megabytes", type=int, default=4, help="of the files that are made")
    parser.add_argument("--file", type=Path, help="a .npy or .safetensors file of your own")
    parser.add_argument("--layout", default="tpu")
    options = parser.parse_args(arguments)
    good = True
    for name in SAYS if options.signal == "all" else (options.signal,):
        with tempfile.TemporaryDirectory() as directory:
            here = Path(directory)
            todo = jobs(here, megabytes=options.megabytes, file=options.file, layout=options.layout)
            victims = Victims(todo, here, name, options.seed)
            began = time.monotonic()
            done = 0
            with suppress(KeyboardInterrupt):  # what was found until then is printed
                for turn in range(options.times):
                    victims.kill(turn)
                    done = turn + 1
            took = time.monotonic() - began
        counts = victims.counts
        print(
            f"SIG{name} {done} times, seed {options.seed}, {took:.0f} s: destination "
            + ", ".join(f"{state} {counts[state]}" for state in (ABSENT, KEPT, WHOLE, BROKEN))
            + f"; after the end {counts['after the end']}, before main {counts['before main']}; "
            f"temporary files {counts['temporary files']}; {len(victims.failures)} failures",
            flush=True,
        )
        print("\n".join(victims.failures[:10]), end="\n" if victims.failures else "", flush=True)
        good = good and not victims.failures and done == options.times
    return 0 if good else 1


if __name__ == "__main__":
    sys.exit(main())
