"""Run the tests on a copy of the project that contains one mutant."""

from __future__ import annotations

import os
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from itertools import count
from pathlib import Path

from tests.tools.kernel_store import OWN_STORE
from tests.tools.mutants.mutant import Mutant, StaleMutantError, by_likelihood, locate, mutated, sources

OWN_TEST = "test_mutants.py"
"""The test that compares the list of mutants with the sources; it fails on every mutated copy."""

PASSED = (0, 5)
"""pytest's exit codes when nothing failed: all tests passed, or none were selected."""

UNKNOWN = 4
"""pytest's exit code when there is no such test."""

_FAILED = re.compile(r"^(?:FAILED|ERROR) (\S.*?)(?: - .*)?$", re.MULTILINE)
_CRASHED = re.compile(r'^  File ".*/(tests/\S+\.py)", line \d+ in (test_\w+)$', re.MULTILINE)
"""A line of the stack that Python prints when a process ends by a signal."""
_TIMED_OUT = re.compile(r"^(?:FAILED|ERROR) .* - Failed: Timeout", re.MULTILINE)


@dataclass(frozen=True, slots=True)
class Outcome:
    """What became of a mutant.

    Attributes:
        result: "killed", "timeout" (killed as well: the tests hung), "survived", "stale", "unproven" (the
            test that failed also fails without the mutant), or "untested" (no test file was run).
        by: the first test that failed, or what ended the run.
        seconds: how long the tests ran.
        paths: what pytest was given.
    """

    result: str
    by: str = ""
    seconds: float = 0.0
    paths: tuple[str, ...] = field(default=(), compare=False)

    @property
    def is_killed(self) -> bool:
        """Whether the tests noticed the mutant."""
        return self.result in ("killed", "timeout")


@dataclass(slots=True)
class Trial:
    """A copy of the project in which mutants are planted and tested one after the other.

    Attributes:
        root: the copy.
        store: a cache folder for compiled kernels, kept between mutants.
        limit: seconds after which a run of the tests counts as hung.
        processes: pytest's `-n`, or None for the configured number.
        tests: paths given to pytest, relative to `root`; all test files if empty.
        likely: whether to stop after the test files that are likely to notice a mutant.
        full: whether to run the tests with `--full`.
    """

    root: Path
    store: Path
    limit: float
    processes: int | None = None
    tests: tuple[str, ...] = ()
    likely: bool = False
    full: bool = False
    _proven: dict[str, bool] = field(default_factory=dict)
    _seconds: Iterator[int] = field(default_factory=lambda: count(1))

    def run(self, mutant: Mutant) -> Outcome:
        """Plant the mutant, run the tests until one fails, and restore the source."""
        texts = sources(self.root)
        try:
            module = locate(mutant, texts)
        except StaleMutantError as error:
            return Outcome("stale", str(error))
        began = time.monotonic()
        with self._store_for(mutant) as store:
            self._write(module, mutated(mutant, texts[module]))
            try:
                outcome = self._tested(self._stages(mutant, module), store)
            finally:
                self._write(module, texts[module])
        if outcome.is_killed and not self._passes_without(outcome.by, outcome.paths):
            outcome = Outcome("unproven", outcome.by)
        return Outcome(outcome.result, outcome.by, round(time.monotonic() - began, 1))

    def _stages(self, mutant: Mutant, module: Path) -> list[list[str]]:
        """What pytest is given, run after run: the files most likely to notice, then all others."""
        if self.tests:
            return [list(self.tests)]
        files = [file for file in sorted((self.root / "tests").rglob("test_*.py")) if file.name != OWN_TEST]
        stages = by_likelihood(mutant, module, self.root, files)[: 1 if self.likely else 2]
        return [[str(file.relative_to(self.root)) for file in stage] for stage in stages if stage]

    def _tested(self, stages: Sequence[Sequence[str]], store: Path) -> Outcome:
        if not stages:
            return Outcome("untested", "no test file is likely to notice it; run without --likely")
        for paths in stages:
            code, output = self._pytest(paths, store)
            failed, crashed = _FAILED.search(output), _CRASHED.search(output)
            if code is None:
                return Outcome("timeout", f"no end after {self.limit:.0f} s", paths=tuple(paths))
            if code not in PASSED:
                by = failed[1] if failed else f"pytest ended with {code}"
                if crashed and not failed:
                    by = f"{crashed[1]}::{crashed[2]}"
                return Outcome("timeout" if _TIMED_OUT.search(output) else "killed", by, paths=tuple(paths))
        return Outcome("survived")

    def _passes_without(self, test: str, paths: Sequence[str]) -> bool:
        """Whether a test passes on the restored sources, so that its failure is the mutant's.

        Where the output names no test, all of `paths` must pass.
        """
        named = [test] if "::" in test or test.endswith(".py") else list(paths)
        test = " ".join(named)
        if test not in self._proven:
            code, _ = self._pytest(named, self.store)
            if code == UNKNOWN:  # its name has more than fits the summary, so all tests of the file run
                code, _ = self._pytest([test.partition("::")[0]], self.store)
            self._proven[test] = code in PASSED
        return self._proven[test]

    def _pytest(self, paths: Sequence[str], store: Path) -> tuple[int | None, str]:
        """pytest's exit code, None if it hung, and what it printed."""
        environment = {name: value for name, value in os.environ.items() if name != OWN_STORE}
        environment |= {"PYTHONPATH": str(self.root), "XDG_CACHE_HOME": str(store)}
        command = [sys.executable, "-m", "pytest", "-x", "-q", "-rfE", "-p", "no:cacheprovider"]
        command += ["--full"] * self.full
        command += [] if self.processes is None else ["-n", str(self.processes)]
        return self._ended([*command, *paths], environment)

    def _ended(self, command: Sequence[str], environment: dict[str, str]) -> tuple[int | None, str]:
        """A command's exit code and output; it and its children are killed at the limit."""
        # A file rather than a pipe: a child that outlives the command would keep a pipe open.
        with tempfile.TemporaryFile() as printed:
            process = subprocess.Popen(
                command,
                cwd=self.root,
                env=environment,
                stdin=subprocess.DEVNULL,
                stdout=printed,
                stderr=subprocess.STDOUT,
                start_new_session=True,
            )
            code: int | None = None
            try:
                code = process.wait(self.limit)
            except subprocess.TimeoutExpired:
                pass
            finally:
                if code is None:
                    os.killpg(process.pid, signal.SIGKILL)
                    process.wait()
            printed.seek(0)
            return code, printed.read().decode(errors="replace")

    def _write(self, module: Path, text: str) -> None:
        """Write a module with a time of its own: Python compares whole seconds to find stale bytecode."""
        module.write_text(text, encoding="utf-8")
        seconds = int(time.time()) - 1_000_000 + next(self._seconds)
        os.utime(module, (seconds, seconds))

    @contextmanager
    def _store_for(self, mutant: Mutant) -> Iterator[Path]:
        if not mutant.own_store:
            yield self.store
            return
        with tempfile.TemporaryDirectory(prefix="tilejit-mutant-") as folder:
            store = Path(folder) / "store"
            store.mkdir(mode=0o700)
            yield store


@contextmanager
def copied(project: Path) -> Iterator[Path]:
    """A temporary copy of the files that git tracks, as they are now."""
    command = ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"]
    listed = subprocess.run(command, cwd=project, check=True, capture_output=True).stdout
    with tempfile.TemporaryDirectory(prefix="tilejit-mutants-") as folder:
        root = Path(folder) / "project"
        for name in filter(None, listed.decode().split("\0")):
            if (project / name).is_file():
                (root / name).parent.mkdir(parents=True, exist_ok=True)
                shutil.copy2(project / name, root / name)
        yield root
