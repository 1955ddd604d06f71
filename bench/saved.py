"""Saved results: one JSON file for each machine and day, with one or more runs in it.

    {"machine": {"name": "AMD EPYC (Zen 4)", ...}, "date": "2026-11-22", "runs": [{"rows": [...], ...}]}

`python -m bench --json FILE` and `python -m bench.elementwise --json FILE` write such files and add runs to
them. `python -m bench.charts` draws the charts and writes the tables of the documentation from all of them.
"""

from __future__ import annotations

import json
import statistics
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

FOLDER = Path(__file__).parent / "results"
Json = dict[str, Any]


@dataclass(frozen=True, slots=True)
class Figure:
    """One case: megabytes read and written, GB/s, share of memcpy, and the speedup over each peer."""

    table: str
    group: str
    case: str
    mb: float
    gb_per_s: float
    share: float
    times: Mapping[str, float]

    def share_of(self, peer: str) -> float:
        """The share of memcpy that a peer reaches."""
        return self.share / self.times[peer]


@dataclass(frozen=True, slots=True)
class Mean:
    """Geometric means over the cases of a group; `least` is the lowest share of memcpy."""

    table: str
    group: str
    cases: int
    share: float
    least: float
    times: Mapping[str, float]


@dataclass(frozen=True, slots=True)
class Expression:
    """One expression on arrays of `elements` elements: microseconds, and the speedup over each peer."""

    case: str
    dtype: str
    elements: int
    us: float
    times: Mapping[str, float]


@dataclass(frozen=True, slots=True)
class Run:
    """One run of a benchmark.

    `vector_sizes` holds GB/s by dtype and virtual_vector_size. The last three fields hold means from
    runs whose cases were not kept.
    """

    machine: str
    date: str
    command: str
    threads: int
    rounds: int
    note: str
    head: str
    figures: tuple[Figure, ...]
    means: tuple[Mean, ...]
    two_threads: tuple[Json, ...]
    expressions: tuple[Expression, ...]
    vector_sizes: Mapping[str, Sequence[tuple[str, float]]]
    expression_means: tuple[Json, ...]
    routine_means: tuple[Json, ...]
    cold_start_ms: Mapping[str, float]

    def table(self, name: str) -> tuple[Figure, ...]:
        """The cases of one table."""
        return tuple(figure for figure in self.figures if figure.table == name)

    def mean(self, table: str, group: str) -> Mean:
        """A group's saved means; for runs that saved none, those of its cases."""
        for mean in self.means:
            if (mean.table, mean.group) == (table, group):
                return mean
        return mean_of([f for f in self.table(table) if group in (f.group, "all")], group)


def mean_of(figures: Sequence[Figure], group: str) -> Mean:
    """Geometric means of these cases, which belong to one table."""
    peers = dict.fromkeys(name for figure in figures for name in figure.times)
    return Mean(
        figures[0].table,
        group,
        len(figures),
        statistics.geometric_mean([figure.share for figure in figures]),
        min(figure.share for figure in figures),
        {
            name: statistics.geometric_mean([f.times[name] for f in figures if name in f.times])
            for name in peers
        },
    )


def load(folder: Path = FOLDER) -> tuple[Run, ...]:
    """Every saved run, oldest first."""
    documents = [json.loads(path.read_text()) for path in sorted(folder.glob("*.json"))]
    documents.sort(key=lambda document: document["date"])
    return tuple(run for document in documents for run in runs_of(document))


def runs_of(document: Json) -> tuple[Run, ...]:
    """The runs of one file."""
    return tuple(_run(document, run) for run in document["runs"])


def _run(document: Json, run: Json) -> Run:
    machine = document["machine"]
    return Run(
        machine["name"],
        document["date"],
        run["command"],
        run["threads"],
        run["rounds"],
        run.get("note", ""),
        _head(document, run),
        tuple(
            Figure(r["table"], r["group"], r["case"], r["mb"], r["gb_per_s"], r["share"], r["times"])
            for r in run.get("rows", ())
        ),
        tuple(Mean(**group) for group in run.get("groups", ())),
        tuple(run.get("two_threads", ())),
        tuple(Expression(**each) for each in run.get("expressions", ())),
        {
            name: [(size, rate) for size, rate in points]
            for name, points in run.get("vector_sizes", {}).items()
        },
        tuple(run.get("expression_means", ())),
        tuple(run.get("routine_means", ())),
        run.get("cold_start_ms", {}),
    )


def _head(document: Json, run: Json) -> str:
    """The machine, the versions and the conditions of a run on one line."""
    machine = document["machine"]
    facts = {key: machine[key] for key in ("cpu", "caches") if machine.get(key)} | run.get("versions", {})
    facts |= {key.replace("_", " "): run[key] for key in ("huge_pages", "load") if key in run}
    return ", ".join(f"{key} {value}" for key, value in facts.items())


def latest(runs: Iterable[Run], table: str, machine: str = "") -> Run:
    """The newest run that has cases of a table, on any machine or on one.

    Raises:
        LookupError: no run has any.
    """
    found = [run for run in runs if run.table(table) and machine in run.machine]
    if not found:
        raise LookupError(f"no saved run has cases of {table!r}" + (f" on {machine}" if machine else ""))
    return found[-1]


def fits(path: Path, machine: Json, date: str) -> bool:
    """Whether a run of this machine and day can be saved there: the file is new, or holds such runs."""
    if not path.exists():
        return True
    document = json.loads(path.read_text())
    return bool(document["machine"] == machine and document["date"] == date)


def save(path: Path, machine: Json, date: str, run: Json) -> None:
    """Write a run to a new file, or add it to one that `fits`."""
    document: Json = {"machine": machine, "date": date, "runs": []}
    if path.exists():
        document = json.loads(path.read_text())
    document["runs"].append(rounded(run))
    path.write_text(as_text(document))


def as_text(document: Json) -> str:
    """A file's text with one line per case, so that diffs are readable."""
    runs = ",\n".join(
        "  {\n" + ",\n".join(f"   {_dumped(key)}: {_value(value)}" for key, value in run.items()) + "\n  }"
        for run in document["runs"]
    )
    machine, date = _dumped(document["machine"]), _dumped(document["date"])
    return f'{{\n "machine": {machine},\n "date": {date},\n "runs": [\n{runs}\n ]\n}}\n'


def _value(value: Any) -> str:
    if not isinstance(value, list) or not value:
        return _dumped(value)
    return "[\n" + ",\n".join(f"    {_dumped(each)}" for each in value) + "\n   ]"


def _dumped(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False)


def rounded(value: Any) -> Any:
    """Round floats to four significant digits, which is more than the runs reproduce."""
    if isinstance(value, dict):
        return {key: rounded(each) for key, each in value.items()}
    if isinstance(value, (list, tuple)):
        return [rounded(each) for each in value]
    return float(f"{value:.4g}") if isinstance(value, float) else value
