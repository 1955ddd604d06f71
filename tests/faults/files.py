"""Files to pack, what packing them must leave, and the command run in children with injected faults."""

from __future__ import annotations

import os
import signal
import sys
import traceback
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from functools import wraps
from importlib import import_module
from pathlib import Path
from typing import Any

import numpy as np
from safetensors.numpy import save_file

import tilejit.cli
from tests.files.containers import model

OLD = b"what was there before\n" * 1000
TEMPORARY = ".tilejit-*"
ABSENT, KEPT, WHOLE, BROKEN = "absent", "old", "complete", "broken"

OUTSIDE = 70
"""Exit code of a forked child that got a signal outside the command."""

HELD = {signal.SIGINT, signal.SIGTERM}
"""Signals that a fork handles only in the command itself."""


@dataclass(frozen=True)
class Job:
    """A file to pack. `whole` is the output of an undisturbed run."""

    source: Path
    target: Path
    layout: str
    whole: bytes

    @property
    def command(self) -> list[str]:
        return ["pack", str(self.source), str(self.target), "--layout", self.layout]

    def prepare(self, *, there: bool) -> None:
        """Make the destination absent, or a file with old contents."""
        self.target.unlink(missing_ok=True)
        if there:
            self.target.write_bytes(OLD)

    def state(self) -> str:
        """The current state of the destination."""
        if not self.target.exists():
            return ABSENT
        found = self.target.read_bytes()
        return KEPT if found == OLD else WHOLE if found == self.whole else BROKEN

    def leftovers(self) -> list[Path]:
        """Temporary files beside the destination."""
        return sorted(self.target.parent.glob(TEMPORARY))


@dataclass(frozen=True)
class Ended:
    """How a child ended: its exit code or minus the signal, and its stderr."""

    code: int
    said: str


def jobs(directory: Path, *, megabytes: int = 4, file: Path | None = None, layout: str = "tpu") -> list[Job]:
    """A .npy file and a checkpoint of that many megabytes, or the given file; each packed once."""
    sources = [file] if file else [_array(directory, megabytes), _model(directory, megabytes)]
    found = []
    for source in sources:
        target = directory / f"packed{source.suffix}"
        job = Job(source, target, layout, b"")
        ended = run(job.command, directory)
        if ended.code:
            raise SystemExit(f"{source} cannot be packed: {ended.said}")
        found.append(Job(source, target, layout, target.read_bytes()))
        _import_for(job, directory)
    return found


def _import_for(job: Job, directory: Path) -> None:
    """Import what a run imports late. Otherwise each fork would, which takes longer than the pack."""
    names = directory / "modules"
    child = os.fork()
    if not child:
        _run_here(job.command, directory / "stderr", None)
        names.write_text("\n".join(sys.modules))
        os._exit(0)
    os.waitpid(child, 0)
    for name in names.read_text().split():
        if name != "__main__":
            with suppress(ImportError):
                import_module(name)


def _array(directory: Path, megabytes: int) -> Path:
    path = directory / "array.npy"
    values = np.random.default_rng(1).random((250 * megabytes, 1001), np.float32)
    np.save(path, values)
    return path


def _model(directory: Path, megabytes: int) -> Path:
    """Ten small tensors of many types, and large ones."""
    path = directory / "model.safetensors"
    rng = np.random.default_rng(2)
    large = {f"layer.{k}": rng.random((251, 1001), np.float32) for k in range(megabytes)}
    save_file({**model(), **large}, path)
    return path


def run(command: list[str], directory: Path, before: Callable[[], None] | None = None) -> Ended:
    """Run the command in a fork to its end. `before` runs there first."""
    said = directory / "stderr"
    return finish(start(command, said, before), said)


def start(command: list[str], said: Path, before: Callable[[], None] | None = None) -> int:
    """Start the command in a fork of this process, which saves the imports, and return its process id."""
    sys.stdout.flush()
    sys.stderr.flush()
    signal.pthread_sigmask(signal.SIG_BLOCK, HELD)
    child = os.fork()
    if child:
        signal.pthread_sigmask(signal.SIG_UNBLOCK, HELD)
        return child
    try:
        code = _run_here(command, said, before)
    except BaseException:
        code = OUTSIDE
    os._exit(code)


def finish(child: int, said: Path) -> Ended:
    code = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
    return Ended(code, complaints(said.read_text()) if said.exists() else "")


def _run_here(command: list[str], said: Path, before: Callable[[], None] | None) -> int:
    handle = os.open(said, os.O_WRONLY | os.O_CREAT | os.O_TRUNC)
    os.dup2(handle, 2)
    os.dup2(os.open(os.devnull, os.O_WRONLY), 1)
    signal.signal(signal.SIGINT, signal.default_int_handler)
    _hold_signals_outside_the_command()
    sys.argv = ["tilejit", *command]
    try:
        if before:
            before()
        tilejit.cli.main()
        code = 0
    except SystemExit as end:
        code = end.code if isinstance(end.code, int) else 0
    except BaseException as error:
        inside = any(
            "tilejit" in Path(frame.filename).parts for frame in traceback.extract_tb(error.__traceback__)
        )
        if not inside:
            return OUTSIDE
        traceback.print_exc()
        code = 1
    with suppress(OSError):
        sys.stderr.flush()
    return code


def _hold_signals_outside_the_command() -> None:
    """Handle these signals only between the reading of arguments and the end of the command.

    A fork that imports nothing spends much of its time before and after: it sets handlers, and pydantic, with
    which typer reads arguments, sometimes drops exceptions raised in it. Separate processes handle signals at
    any moment.
    """
    for registered in tilejit.cli.app.registered_commands:
        if registered.callback:
            registered.callback = _interruptible(registered.callback)


def _interruptible(function: Callable[..., Any]) -> Callable[..., Any]:
    @wraps(function)
    def command(*arguments: Any, **keywords: Any) -> Any:
        signal.pthread_sigmask(signal.SIG_UNBLOCK, HELD)
        try:
            return function(*arguments, **keywords)
        finally:
            signal.pthread_sigmask(signal.SIG_BLOCK, HELD)

    return command


def complaints(text: str) -> str:
    """What a command printed on stderr, without its notes on a packed file."""
    notes = ("unpack it with: ", "tiles are mostly empty: ", "  a layout with smaller tiles ")
    return "".join(line for line in text.splitlines(keepends=True) if not line.startswith(notes))


def one_message(text: str) -> bool:
    """Whether the text is one error message of the command line, and nothing else."""
    first, *more = text.splitlines() or [""]
    return first.startswith("tilejit: ") and all(line.startswith("  ") for line in more)
