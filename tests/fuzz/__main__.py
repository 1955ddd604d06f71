"""`python -m tests.fuzz TARGET --runs N [--seconds S]`: fuzz until the inputs or the time are used up.

    python -m tests.fuzz all --runs 100000         # as tests do: each target its share
    python -m tests.fuzz shape --runs 10000000
    python -m tests.fuzz cute --runs 200000 --keep # and keep what reaches something new

It uses atheris (`pip install ".[fuzz]"`) if installed; `--plain` selects the engine without it. The exit code
is 1 if an input raises anything but TilejitError, or takes more than 500,000 lines of Python or 64 MiB.
"""

from __future__ import annotations

import argparse
import os
import sys
import tempfile
from pathlib import Path

from tests.fuzz.engines import SEED, fuzz, is_guided
from tests.fuzz.targets import TARGETS


def main() -> int:
    """Fuzz what the command line asks for; return 1 if something was found."""
    asked = _arguments()
    with tempfile.TemporaryDirectory(prefix="tilejit-fuzz-", dir=_memory()) as folder:
        os.environ["TMPDIR"] = tempfile.tempdir = folder  # for child processes too
        os.environ["TILEJIT_CACHE_DIR"] = tempfile.mkdtemp(prefix="store-")
        return _fuzzed(asked)


def _memory() -> str | None:
    """A folder in memory, if there is one, because rewriting files on a disk takes most of the time."""
    return "/dev/shm" if os.access("/dev/shm", os.W_OK) else None


def _fuzzed(asked: argparse.Namespace) -> int:
    names = list(TARGETS) if asked.target == "all" else [asked.target]
    bad = 0
    print(f"seed {asked.seed}", flush=True)
    for name in names:
        runs = asked.runs if len(names) == 1 else -(-asked.runs * TARGETS[name].share // 100_000)
        found = fuzz(name, runs, asked.seconds, asked.seed, plainly=asked.plain, keep=asked.keep)
        engine = "plain" if asked.plain or not is_guided() else "atheris"
        print(f"{name:8} {found.runs:9,} inputs {found.seconds:7.1f} s  {engine}  {len(found.finds)} finds")
        for data, wrong in found.finds.items():
            print(f"  {wrong}\n    {data[:200]!r}{'…' if len(data) > 200 else ''}")
            if asked.finds:
                asked.finds.mkdir(parents=True, exist_ok=True)
                (asked.finds / f"{name}-{bad}").write_bytes(data)
            bad += 1
        sys.stdout.flush()
    return bool(bad)


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        prog="python -m tests.fuzz", description=(__doc__ or "").partition("\n")[0]
    )
    parser.add_argument("target", choices=["all", *TARGETS])
    parser.add_argument(
        "--runs", type=int, default=100_000, help="inputs; `all` shares them among the targets"
    )
    parser.add_argument("--seconds", type=float, help="seconds after which each target ends")
    parser.add_argument("--seed", type=int, default=SEED)
    parser.add_argument("--plain", action="store_true", help="without atheris")
    parser.add_argument("--keep", action="store_true", help="add inputs with new outcomes to the corpus")
    parser.add_argument("--finds", type=Path, help="a folder for inputs that fail")
    return parser.parse_args()


if __name__ == "__main__":
    sys.exit(main())
