"""Memory, disks and outputs that run out under the command line: `python -m tests.faults.limits`.

Each case succeeds with exit code 0, or fails with exit code 1 and one message. The destination is as before
or complete, and no temporary file is left.
"""

from __future__ import annotations

import argparse
import random
import resource
import shutil
import subprocess
import sys
import tempfile
from collections import Counter
from collections.abc import Callable
from functools import partial
from pathlib import Path

from tests.cli.running import COMMAND
from tests.faults.files import ABSENT, KEPT, WHOLE, Ended, Job, complaints, jobs, one_message, run
from tests.tools.oracle import environment

PAGE = resource.getpagesize()
MOST_SPARE = 96 << 20
"""The most bytes of memory that a run gets beyond what it has."""

SKIPPED = "skipped"


def out_of_memory(job: Job, directory: Path, rng: random.Random, there: bool) -> str:
    """Limit the address space to some bytes more than the process has when the command begins."""
    spare = int(MOST_SPARE * rng.random() ** 2)
    return _limited(job, directory, partial(_limit_memory, spare), there, f"{spare} bytes of memory")


def full_disk(job: Job, directory: Path, rng: random.Random, there: bool) -> str:
    """Limit the size of files. Python ignores SIGXFSZ, so writing fails as on a full disk."""
    most = int(1.2 * len(job.whole) * rng.random())
    limit = partial(resource.setrlimit, resource.RLIMIT_FSIZE, (most, most))
    return _limited(job, directory, limit, there, f"files of {most} bytes")


def small_disk(job: Job, directory: Path, rng: random.Random, there: bool) -> str:
    """Use a file system that is too small, if one can be mounted."""
    unshare, place = shutil.which("unshare"), directory / "small"
    if not unshare:
        return SKIPPED
    place.mkdir(exist_ok=True)
    size = 4096 * rng.randrange(1, 200)
    inside = [*COMMAND, *job.command[:2], str(place / job.target.name), *job.command[3:]]
    script = (
        f'mount -t tmpfs -o size={size} tmpfs "$1" || exit 77\nd=$1; shift\n"$@" >/dev/null\n'
        'code=$?\nls -A "$d"\nexit $code'
    )
    done = subprocess.run(
        [unshare, "-m", "sh", "-c", script, "sh", str(place), *inside],
        capture_output=True,
        text=True,
        env=environment(),
        check=False,
    )
    if done.returncode == 77 or "unshare" in done.stderr:
        return SKIPPED
    if done.returncode != 1 or not one_message(done.stderr) or "No space left" not in done.stderr:
        raise AssertionError(f"ended with {done.returncode}, {done.stderr!r}")
    if done.stdout:
        raise AssertionError(f"it left {done.stdout!r}")
    return "refused"


def _limited(job: Job, directory: Path, limit: Callable[[], None], there: bool, what: str) -> str:
    job.prepare(there=there)
    ended = run(job.command, directory, limit)
    state = job.state()
    good = ended.code == 0 and state == WHOLE and not ended.said
    refused = ended.code == 1 and state == (KEPT if there else ABSENT) and one_message(ended.said)
    if not (good or refused) or job.leftovers():
        left = len(job.leftovers())
        raise AssertionError(
            f"{job.source.name} with {what}: ended with {ended.code}, the destination is {state}, "
            f"{left} temporary files, said {ended.said[-2000:]}"
        )
    again = run(job.command, directory)
    if again.code or job.state() != WHOLE:
        raise AssertionError(f"{what}: the next run ended with {again.code}: {again.said}")
    return "done" if good else "refused"


def _limit_memory(spare: int) -> None:
    used = int(Path("/proc/self/statm").read_text().split()[0]) * PAGE
    resource.setrlimit(resource.RLIMIT_AS, (used + spare, used + spare))


PRINTING = (
    ("formats",),
    ("show", "bf16[64,256]{1,0:T(8,128)(2,1)}", "--json"),
    ("view", "bf16[64,256]{1,0:T(8,128)(2,1)}", "-o", "-"),
    ("explain", "C", "f32[1000,300]{1,0:T(8,128)}", "--stage", "source"),
    ("cache", "info"),
    ("--help",),
)
"""Commands that print."""


def full_output(job: Job, directory: Path, rng: random.Random, there: bool) -> str:
    """Use /dev/full as standard output."""
    command = rng.choice([*PRINTING, tuple(job.command)])
    with open("/dev/full", "wb") as full:
        ended = _ended(command, stdout=full, stderr=subprocess.PIPE)
    if ended.code != 1 or ended.said != "tilejit: No space left on device: standard output\n":
        raise AssertionError(f"{command[0]}: ended with {ended.code}, {ended.said!r}")
    return "refused"


def full_errors(job: Job, directory: Path, rng: random.Random, there: bool) -> str:
    """Use /dev/full as stderr of a command that fails. Only the exit code reports the error."""
    with open("/dev/full", "wb") as full:
        ended = _ended(("show", "f32[3"), stdout=subprocess.PIPE, stderr=full)
    if ended.code != 2:
        raise AssertionError(f"ended with {ended.code}")
    return "refused"


def no_output(job: Job, directory: Path, rng: random.Random, there: bool) -> str:
    """Close standard output, as `>&-` does."""
    command = rng.choice([*PRINTING, tuple(job.command)])
    script = ["sh", "-c", 'exec "$@" >&-', "sh", *COMMAND, *command]
    done = subprocess.run(script, stderr=subprocess.PIPE, text=True, env=environment(), check=False)
    if done.returncode or complaints(done.stderr):
        raise AssertionError(f"{command[0]}: ended with {done.returncode}, {done.stderr!r}")
    return "done"


def closed_pipe(job: Job, directory: Path, rng: random.Random, there: bool) -> str:
    """A reader that closes the pipe after one byte, as in `| head -c 1`, causes no message."""
    command = rng.choice(PRINTING)
    with subprocess.Popen(
        [*COMMAND, *command], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=environment()
    ) as process:
        assert process.stdout is not None
        assert process.stderr is not None
        if rng.random() < 0.5:
            process.stdout.read(1)
        process.stdout.close()
        said, code = process.stderr.read(), process.wait(120)
    if code not in (0, 1) or said:
        raise AssertionError(f"{command[0]}: ended with {code}, {said!r}")
    return "done"


def _ended(command: tuple[str, ...], **streams: object) -> Ended:
    done = subprocess.run([*COMMAND, *command], text=True, env=environment(), check=False, **streams)  # type: ignore[call-overload]
    return Ended(done.returncode, complaints(done.stderr or ""))


CASES = {
    "out of memory": (out_of_memory, 100),
    "full disk": (full_disk, 100),
    "small disk": (small_disk, 5),
    "full standard output": (full_output, 12),
    "full stderr": (full_errors, 2),
    "no standard output": (no_output, 12),
    "closed pipe": (closed_pipe, 12),
}
"""The resources that run out, and the number of cases of each per hundred."""


def main(arguments: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.faults.limits", description=__doc__)
    parser.add_argument("--times", type=int, default=100, help="of each case that is quick")
    parser.add_argument("--seed", type=int, default=0)
    options = parser.parse_args(arguments)
    failed = 0
    print(f"seed {options.seed}", flush=True)
    with tempfile.TemporaryDirectory() as directory:
        here = Path(directory)
        todo = jobs(here)
        for name, (case, share) in CASES.items():
            rng, counts = random.Random(f"{options.seed} {name}"), Counter[str]()
            for turn in range(-(-options.times * share // 100)):
                try:
                    counts[case(todo[turn % len(todo)], here, rng, turn // len(todo) % 2 == 0)] += 1
                except AssertionError as error:
                    counts["FAILED"] += 1
                    print(f"{name}, turn {turn}: {error}", flush=True)
            failed += counts["FAILED"]
            print(f"{name:22s} {', '.join(f'{what} {n}' for what, n in sorted(counts.items()))}", flush=True)
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
