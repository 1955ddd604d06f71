"""Progress bars on stderr for long operations: progress, speed, and the remaining time."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from threading import Timer
from typing import TYPE_CHECKING, Any

from tilejit.cli.output import console, is_terminal

if TYPE_CHECKING:
    from rich.console import Console
    from rich.progress import Progress

    from tilejit.copies.warming import OnStep

DELAY_SECONDS = 0.5
"""Seconds before a bar appears; shorter operations show none."""
WIDE = 70
"""The fewest columns in which a bar has a title."""
AT_ONCE = 8 << 20
"""The most bytes of one write. A larger step counts bytes that an earlier run wrote."""


@contextmanager
def progress(total: int, name: str, *, quiet: bool = False) -> Iterator[Callable[[int], None]]:
    """A bar of bytes with rate and remaining time; call its result with the bytes of each write."""
    out = _terminal(quiet)
    if out is None:
        yield lambda done: None
        return
    from rich import progress as rich

    columns: list[Any] = [rich.BarColumn(None), rich.TaskProgressColumn()]
    if out.width >= WIDE:
        columns = [rich.TextColumn("{task.description}", markup=False), *columns, rich.DownloadColumn()]
    columns += [rich.TransferSpeedColumn(), rich.TimeRemainingColumn(compact=True)]
    bar = _bar(columns, out)
    task = bar.add_task(name if len(name) <= 24 else name[:21] + "...", total=total)
    there = 0

    def advance(done: int) -> None:
        nonlocal there
        there += done
        if done > AT_ONCE:  # bytes of an earlier run do not count toward the rate
            bar.reset(task, completed=there)
        else:
            bar.advance(task, done)

    with _shown_late(bar):
        yield advance


@contextmanager
def steps(name: str, *, quiet: bool = False, still: bool = False) -> Iterator[OnStep]:
    """A bar of steps; its result takes the finished steps, their total, and the name of the next one.

    Args:
        name: the text before the bar.
        quiet: whether there is no bar.
        still: whether the bar only moves when it is called, so that steps can be timed.
    """
    out = _terminal(quiet)
    if out is None:
        yield lambda done, total, now: None
        return
    from rich import progress as rich

    columns: list[Any] = [rich.TextColumn("{task.description}", markup=False), rich.BarColumn(None)]
    columns += [rich.MofNCompleteColumn(), rich.TimeRemainingColumn(compact=True)]
    if out.width >= WIDE:
        columns.append(rich.TextColumn("{task.fields[now]}", markup=False))
    bar = _bar(columns, out, still)
    task = bar.add_task(name if len(name) <= 16 else name[:13] + "...", total=None, now="")
    most = out.width // 2

    def on_step(done: int, total: int, now: str) -> None:
        bar.update(
            task, completed=done, total=total, now=now if len(now) <= most else now[: most - 3] + "..."
        )
        if still and bar.live.is_started:
            bar.refresh()

    with _shown_late(bar):
        yield on_step


def _terminal(quiet: bool) -> Console | None:
    """The terminal of stderr, if it can move its cursor."""
    if quiet or not is_terminal(sys.stderr) or os.environ.get("TERM") in ("dumb", "unknown"):
        return None
    out = console(stderr=True)
    return out if out.is_terminal else None


def _bar(columns: list[Any], out: Console, still: bool = False) -> Progress:
    from rich.progress import Progress

    # Standard output may be a file or a pipe; its bytes must not be printed above a bar.
    return Progress(*columns, console=out, transient=True, redirect_stdout=False, auto_refresh=not still)


@contextmanager
def _shown_late(bar: Progress) -> Iterator[None]:
    """Show a bar after some time, even without any calls, as while a kernel is compiled."""
    timer = Timer(DELAY_SECONDS, bar.start)
    timer.daemon = True
    timer.start()
    try:
        yield
    finally:
        timer.cancel()
        timer.join()
        if bar.live.is_started:
            bar.stop()
