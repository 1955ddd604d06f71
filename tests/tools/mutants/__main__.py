"""Plant one bug after the other in a copy of the project and run the tests until one fails.

    python -m tests.tools.mutants                          # all mutants, the default run of the tests
    python -m tests.tools.mutants --full                   # the complete run of the tests
    python -m tests.tools.mutants --list
    python -m tests.tools.mutants --only fence-dropped --tests tests/codegen/emit/test_goldens.py

Results are kept: a run that was interrupted goes on where it ended, as long as the sources are the same.
A mutant that was named with `--only` always runs again. The exit code is 0 if no mutant is stale and all
but one in twenty are killed.
"""

from __future__ import annotations

import argparse
import json
import sys
import tempfile
from collections.abc import Collection, Mapping, Sequence
from dataclasses import asdict
from pathlib import Path

from tests.tools.mutants.compiler import COMPILER
from tests.tools.mutants.library import LIBRARY
from tests.tools.mutants.mutant import Mutant, sources_digest
from tests.tools.mutants.trial import Outcome, Trial, copied

PROJECT = Path(__file__).resolve().parents[3]
MUTANTS = {mutant.name: mutant for mutant in (*COMPILER, *LIBRARY)}
SPARED = 20
"""One mutant in this many may survive."""
INTERRUPTED = 130
"""The exit code of shells after Ctrl-C."""


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command line."""
    asked = _arguments(arguments)
    chosen = [MUTANTS[name] for name in asked.only] if asked.only else list(MUTANTS.values())
    if asked.list:
        for mutant in chosen:
            print(f"{mutant.name:32} {mutant.breaks}")
        return 0
    try:
        found = run_all(chosen, asked)
    except KeyboardInterrupt:
        print("interrupted; a new run skips finished mutants unless --only names them", file=sys.stderr)
        return INTERRUPTED
    print(table(chosen, found))
    return exit_code(found.values())


def run_all(chosen: Sequence[Mutant], asked: argparse.Namespace) -> dict[str, Outcome]:
    """The outcome of each mutant; those that the results file already has are not run again."""
    store = asked.results.parent / "store"
    store.mkdir(mode=0o700, exist_ok=True)
    found: dict[str, Outcome] = {}
    with copied(asked.project) as root:
        trial = Trial(root, store, asked.limit, asked.processes, tuple(asked.tests), asked.likely, asked.full)
        run = {
            "sources": sources_digest(root),
            "tests": asked.tests,
            "likely": asked.likely,
            "full": asked.full,
        }
        known = {} if asked.only else read_results(asked.results, run)
        for number, mutant in enumerate(chosen, 1):
            outcome = known.get(mutant.name) or trial.run(mutant)
            if mutant.name not in known:
                line = {"mutant": mutant.name, **asdict(outcome), **run}
                del line["paths"]
                with asked.results.open("a", encoding="utf-8") as file:
                    file.write(json.dumps(line) + "\n")
            found[mutant.name] = outcome
            print(f"{number}/{len(chosen)} {_row(mutant.name, outcome)}", flush=True)
    return found


def read_results(results: Path, run: Mapping[str, object]) -> dict[str, Outcome]:
    """The outcomes of an earlier run on the same sources with the same tests; the last line counts."""
    found: dict[str, Outcome] = {}
    lines = results.read_text(encoding="utf-8").splitlines() if results.exists() else []
    for line in lines:
        try:
            kept = json.loads(line)
        except ValueError:  # the run ended while it wrote this line
            continue
        if {key: kept.get(key) for key in run} == run:
            found[kept["mutant"]] = Outcome(kept["result"], kept["by"], kept["seconds"])
    return found


def table(chosen: Sequence[Mutant], found: Mapping[str, Outcome]) -> str:
    """A row for each mutant, survivors with what they break, and the count."""
    rows = [_row(mutant.name, found[mutant.name]) for mutant in chosen]
    missed = [m for m in chosen if not found[m.name].is_killed]
    rows += [""] * bool(missed) + [f"not killed: {m.name}: {m.breaks}" for m in missed]
    killed = sum(outcome.is_killed for outcome in found.values())
    hung = sum(outcome.result == "timeout" for outcome in found.values())
    return "\n".join(["", *rows, "", f"{killed} of {len(found)} killed, {hung} of them by a timeout"])


def exit_code(outcomes: Collection[Outcome]) -> int:
    """0 if enough mutants were killed and no result is in doubt."""
    missed = sum(not outcome.is_killed for outcome in outcomes)
    doubtful = any(outcome.result in ("stale", "unproven", "untested") for outcome in outcomes)
    return int(doubtful or missed * SPARED > len(outcomes))


def _row(name: str, outcome: Outcome) -> str:
    return f"{name:32} {outcome.result:9} {outcome.seconds:7.1f} s  {outcome.by}"


def _arguments(arguments: Sequence[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        prog="python -m tests.tools.mutants",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    kept = Path(tempfile.gettempdir()) / "tilejit-mutants" / "results.jsonl"
    parser.add_argument("--results", type=Path, default=kept, metavar="FILE", help=f"JSON lines; {kept}")
    parser.add_argument("--only", nargs="+", default=[], choices=MUTANTS, metavar="NAME")
    parser.add_argument("--list", action="store_true", help="print the mutants and what they break")
    parser.add_argument(
        "--processes", type=int, metavar="N", help="pytest's -n; the configured number if absent"
    )
    parser.add_argument(
        "--tests", nargs="+", default=[], metavar="PATH", help="what to run; all tests if absent"
    )
    parser.add_argument("--full", action="store_true", help="run the tests with --full")
    parser.add_argument("--likely", action="store_true", help="run only test files that are likely to notice")
    parser.add_argument("--limit", type=float, default=1800, help="seconds after which a run counts as hung")
    parser.add_argument("--project", type=Path, default=PROJECT, help=argparse.SUPPRESS)
    asked = parser.parse_args(arguments)
    if not asked.list:
        try:
            asked.results.parent.mkdir(parents=True, exist_ok=True)
            asked.results.open("a").close()
        except OSError as error:
            parser.error(
                f"cannot write results to {str(asked.results)!r}: {error.strerror}; name another file"
            )
    return asked


if __name__ == "__main__":
    sys.exit(main())
