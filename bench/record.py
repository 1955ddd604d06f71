"""`python -m bench record`: the time of every schedule of every case, for `python -m bench regret`.

The file has one line for the machine, and one for each case:

    {"case": "transposes u32 [513,513] by [1,0]", "kind": "transposes", "bytes": 2105352, "memcpy_us": 51.2,
     "spread": 1.02, "facts": {...}, "parts": ["outer none |", "row = j |", ...],
     "schedules": [[0.83, [0, 1, 4]], ...]}

A schedule is its share of memcpy, and the numbers of the parts of its text. The first one is what TileJIT
chose then. The share is null if there was no time to compile it. "spread" is the median round of memcpy in
multiples of the fastest one.
"""

from __future__ import annotations

import gc
import json
import os
import re
import statistics
import subprocess
import sys
import time
import warnings
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from itertools import count
from pathlib import Path
from typing import Annotated, Any

import numpy as np
import typer
from rich.console import Console

from bench import saved
from bench.corpus import Recorded, cases
from bench.interrupts import remembered_interrupts
from bench.jobs import UNTOUCHED
from bench.measure import WrongAnswer
from bench.measure import described as error_text
from bench.peers import Call
from bench.report import NOISY
from bench.space import Space
from bench.timing import conditions, interleaved, memcpy, today
from bench.timing import machine as machine_facts
from codegen import FallbackWarning, KernelError, Machine, described, machine, streamed_from

MEMCPY = "memcpy"
INTERRUPTED = 130
LARGE_BYTES = 1 << 30
"""A copy of this size asks for the measured size from which copies stream."""

NEIGHBORS = 17
"""How many cases of similar sizes tell how long memcpy takes."""

Json = dict[str, Any]


@dataclass(frozen=True, slots=True)
class Method:
    """How to measure a case: at most so many rounds, and so many seconds to compile and again to measure."""

    rounds: int
    seconds: float


def main(
    file: Annotated[
        Path | None,
        typer.Option(help="the file of records; by default, that of this machine in bench/results"),
    ] = None,
    only: Annotated[str, typer.Option(help="only cases with this text in their names")] = "",
    level: Annotated[str, typer.Option(help="the CPU level, such as avx2; by default, the highest")] = "",
    rounds: Annotated[int, typer.Option(min=1, help="rounds per case; the fastest counts")] = 9,
    budget: Annotated[
        float, typer.Option(help="seconds per case to compile schedules, and as many to measure them")
    ] = 8.0,
    seconds: Annotated[float, typer.Option(help="start no case after this many seconds")] = float("inf"),
    again: Annotated[
        bool,
        typer.Option(
            "--again", help="first drop the cases that other work slowed down, to measure them again"
        ),
    ] = False,
) -> None:
    """Measure every schedule of every case of the corpus, and add the cases to a file of records.

    All schedules of a case take turns with memcpy, on one thread, after the bytes that they write were
    compared. A second call continues where the first one stopped, also after Ctrl-C. The exit code is 1 if a
    case fails.
    """
    name = f"record-{_slug(machine_facts()['name'])}-{_level(level)}.jsonl"
    path = file or saved.FOLDER / name
    head, console, ends = begin(path), Console(stderr=True), time.monotonic() + seconds
    _, lines = read(path)
    if again:
        dropped = {name for name in disturbed(lines) if only in name}
        lines = [line for line in lines if line["case"] not in dropped]
        path.write_text("".join(map(_text, (head, *lines))))
    known = {line["case"] for line in lines}
    queue = [case for case in cases() if only in case.name and case.name not in known]
    console.print(f"{path}: {len(known)} cases, {len(queue)} to measure", highlight=False, soft_wrap=True)
    note = {} if commit() == head["commit"] else {"commit": commit()}
    failed = False
    try:
        with remembered_interrupts() as check, described(Machine(**head["schedules_for"])):
            for done, case in enumerate(queue):
                if time.monotonic() > ends:
                    break
                line = measured(case, Method(rounds, budget)) | note
                append(path, line)
                gc.collect()
                check()
                failed |= "problem" in line
                console.print(f"{done + 1}/{len(queue)} {_summary(line)}", highlight=False, soft_wrap=True)
    except KeyboardInterrupt:
        raise typer.Exit(INTERRUPTED) from None
    if failed:
        raise typer.Exit(1)


def _level(name: str) -> str:
    """The CPU level. If another one is given, this process starts again: imports have read TILEJIT_CPU."""
    try:
        known = machine().level
    except KernelError as error:
        raise typer.BadParameter(str(error)) from None
    if name and known != name.lower():
        os.environ["TILEJIT_CPU"] = name
        os.execv(sys.executable, [sys.executable, "-m", "bench", *sys.argv[1:]])
    return known


def begin(path: Path) -> Json:
    """The first line of a file of records, which is written if the file is new; incomplete lines are cut off.

    Raises:
        typer.BadParameter: the file has records of another machine or level.
    """
    facts, level = machine_facts(), machine().level
    kept, _, _ = (path.read_text() if path.exists() else "").rpartition("\n")
    if not kept:
        # A size that is measured again might differ, and so would the schedules of later cases.
        schedules_for = asdict(machine()) | {"stream_bytes": streamed_from(LARGE_BYTES)}
        head = {"machine": facts, "level": level, "date": today(), "commit": commit()}
        path.write_text("")
        append(path, head | {"schedules_for": schedules_for, **conditions()})
        return read(path)[0]
    path.write_text(f"{kept}\n")
    found, _ = read(path)
    if (found["machine"], found["level"]) != (facts, level):
        raise typer.BadParameter(f"{path} holds records of another machine or level; name another file")
    return found


def read(path: Path) -> tuple[Json, list[Json]]:
    """The first line of a file of records, and the lines of its cases."""
    head, *lines = map(json.loads, path.read_text().splitlines())
    return head, lines


def append(path: Path, line: Json) -> None:
    """Add one line to a file of records."""
    with path.open("a") as file:
        file.write(_text(line))


def _text(line: Json) -> str:
    return json.dumps(saved.rounded(line), ensure_ascii=False, separators=(",", ":")) + "\n"


def disturbed(lines: Sequence[Json]) -> set[str]:
    """The cases that other work on the machine slowed down.

    memcpy varied, or took longer than in the cases of nearly the same size.
    """
    timed = sorted((x for x in lines if "problem" not in x), key=lambda x: x["bytes"])
    rates = [x["bytes"] / x["memcpy_us"] for x in timed]
    found = set()
    for k, line in enumerate(timed):
        first = max(0, min(k - NEIGHBORS // 2, len(timed) - NEIGHBORS))
        usual = statistics.median(rates[first : first + NEIGHBORS])
        if line["spread"] > NOISY or NOISY * rates[k] < usual:
            found.add(line["case"])
    return found


def commit() -> str:
    """The commit of the checkout, or "unknown"."""
    command = ["git", "-C", str(Path(__file__).parent), "rev-parse", "--short=12", "HEAD"]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    return done.stdout.strip() or "unknown"


def measured(case: Recorded, method: Method) -> Json:
    """The line of a case: the share of memcpy of each schedule, or the "problem" if it fails."""
    line: Json = {"case": case.name, "kind": case.kind}
    try:
        with warnings.catch_warnings(action="error", category=FallbackWarning):
            space = case.space()
            line |= {"bytes": space.moved_bytes, "facts": space.facts}
            line |= _times(space, method)
    except Exception as error:  # a bug in one case must not end the run
        line["problem"] = error_text(error)
    return line


def _times(space: Space, method: Method) -> Json:
    """All schedules take turns with memcpy. The fastest round of each counts."""
    out, makers = space.calls()
    ends, calls = time.monotonic() + method.seconds, dict[str, Call]()
    expected = None
    for text, make in makers.items():
        if calls and time.monotonic() > ends:
            break
        call = make()
        out[:] = UNTOUCHED
        call()
        if expected is None:
            expected = out.copy()
        elif not np.array_equal(out, expected):
            raise WrongAnswer(f"this schedule writes other bytes than the first one: {text}")
        calls[text] = call
    copy = memcpy(space.moved_bytes // 2)
    found = interleaved({MEMCPY: copy, **calls}, method.rounds, method.seconds, same_data=True)
    least = found[MEMCPY].least
    shares = {text: least / found[text].least if text in found else None for text in makers}
    return {"memcpy_us": 1e6 * least, "spread": found[MEMCPY].median / least, **packed_texts(shares)}


PART = re.compile(r"(?<=[|:]) |(?<=\),) ")
"""Between the parts of a text, whose parts often occur in other texts of the same case."""


def packed_texts(shares: dict[str, float | None]) -> Json:
    """Texts and numbers with the parts of the texts listed once."""
    split = {text: PART.split(text) for text in shares}
    numbers = dict(
        zip(dict.fromkeys(part for parts in split.values() for part in parts), count(), strict=False)
    )
    listed = [[share, [numbers[part] for part in split[text]]] for text, share in shares.items()]
    return {"parts": [*numbers], "schedules": listed}


def shares_of(line: Json) -> dict[str, float | None]:
    """The inverse of `packed_texts`: the share of memcpy by text, of what was chosen then first."""
    parts = line["parts"]
    return {" ".join(parts[k] for k in numbers): share for share, numbers in line["schedules"]}


def _summary(line: Json) -> str:
    if "problem" in line:
        return f"{line['case']}: {line['problem']}"
    chosen, *_ = shares = [*shares_of(line).values()]
    best = max(x for x in shares if x is not None)
    return f"{line['case']}: {len(shares)} schedules, chosen {chosen:.2f}, best {best:.2f} of memcpy"


def _slug(name: str) -> str:
    """AMD EPYC (Zen 4) -> zen-4"""
    return re.sub(r"[^a-z0-9]+", "-", name.lower().rpartition("(")[2]).strip("-")
