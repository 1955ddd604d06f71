"""Select the saved figures that the charts and tables of the documentation show."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from bench.saved import Figure, Mean, Run, latest, mean_of

MAIN = "Zen 4"
"""The machine of the charts that show one machine."""
PEERS = {"numpy": "NumPy", "torch": "torch", "jax": "jax", "mkl": "MKL"}
RIVALS = ("numpy", "torch", "jax")
OUT_OF_CACHE_MB = 50

Runs = Sequence[Run]

SUMMARY = (
    ("transposes", "64-128 MB, even pitch", "Transpose, even pitch", "64-128 MB"),
    ("transposes", "64-128 MB, odd pitch", "Transpose, odd pitch", "64-128 MB"),
    ("transposes", "256 MB, even pitch", "Transpose 256 MB, even", ""),
    ("transposes", "256 MB, odd pitch", "Transpose 256 MB, odd", ""),
    ("transposes", "in cache, 256²", "Transpose 256x256", ""),
    ("transposes", "1000²", "Transpose 1000x1000", ""),
    ("permutations", "all", "Permute", "published cases"),
    ("image orders", "NHWC to NCHW", "NHWC to NCHW", ""),
    ("image orders", "NCHW to NHWC", "NCHW to NHWC", ""),
    ("packs", "all", "Pack, unpack", "3 layouts"),
    ("formats", "even shapes", "Formats, even shapes", ""),
    ("formats", "uneven shapes", "Formats, uneven shapes", ""),
    ("sub-byte", "pack", "Pack 1 and 4 bits", ""),
    ("sub-byte", "unpack", "Unpack 1 and 4 bits", ""),
    ("casts", "flat", "Cast", "same order"),
    ("casts", "transposed", "Cast, transpose", ""),
)
"""Table, group, the label in charts and tables, and its addition in tables."""

RELAYOUT = "named formats"
MOVES = (
    ("relayout", RELAYOUT, "Relayout", "any named format to any other"),
    ("relayout", "swizzled", "Swizzled layouts", "pack and unpack"),
    ("tiles in random order", "gather", "Gather tiles", "random order"),
    ("tiles in random order", "scatter", "Scatter tiles", "random order"),
)


def by_kind(runs: Runs) -> list[tuple[str, str, list[Figure]]]:
    """The kinds of copies on the front page: a label, a note, and cases that all peers have."""
    kinds = (
        ("Pack, unpack", "formats", ""),
        ("Transpose", "transposes", ""),
        ("Permute", "permutations", ""),
        ("Cast", "casts", "flat"),
        ("Cast, transpose", "casts", "transposed"),
    )
    found = []
    for label, name, group in kinds:
        cases = [
            figure
            for figure in latest(runs, name, MAIN).table(name)
            if figure.group.startswith(group)
            and figure.mb >= OUT_OF_CACHE_MB
            and {*RIVALS} <= {*figure.times}
        ]
        found.append((label, f"{len(cases)} cases", cases))
    return found


def mean_on(runs: Runs, machine: str, name: str, group: str) -> Mean | None:
    """A group's means on a machine.

    They come from the newest run with its cases, or else are the saved ones; None if there are neither.
    """
    mine = [run for run in runs if machine in run.machine]
    for run in reversed(mine):
        cases = [f for f in run.table(name) if _belongs(f, group)]
        if cases and not [m for m in run.means if (m.table, m.group) == (name, group)]:
            return mean_of(cases, group)
        if cases:
            return run.mean(name, group)
    saved = [m for run in mine for m in run.means if (m.table, m.group) == (name, group)]
    return saved[-1] if saved else None


def _belongs(figure: Figure, group: str) -> bool:
    """Whether a case belongs to a group. Relayouts between named formats are those that are not swizzled."""
    return group in (figure.group, "all") or (group == RELAYOUT and figure.group != "swizzled")


def routines_run(runs: Runs) -> Run:
    """The newest run of NumPy's routines; on one day, the run that kept only means."""
    found = [run for run in runs if run.routine_means or run.table("dropin")]
    return max(found, key=lambda run: (run.date, bool(run.routine_means)))


def routine_times(run: Run) -> dict[str, float]:
    """Speedups over NumPy by size. Plans are a separate group and are omitted."""
    if run.routine_means:
        return {mean["group"]: mean["times"]["numpy"] for mean in run.routine_means}
    cases = [f for f in run.table("dropin") if not f.group.endswith("plans")]
    sizes = dict.fromkeys(f.group for f in cases)
    return {size: mean_of([f for f in cases if f.group == size], size).times["numpy"] for size in sizes}


def expressions_run(runs: Runs) -> Run:
    """The newest run with every expression, on one thread."""
    return [run for run in runs if run.expressions and run.threads == 1][-1]


def cold_start_run(runs: Runs) -> Run:
    """The newest run of cold starts that also timed `import numpy`.

    Raises:
        LookupError: there is no such run.
    """
    found = [run for run in runs if "import numpy" in run.cold_start_ms]
    if not found:
        raise LookupError("no saved run timed `import numpy` beside the first copies")
    return found[-1]


def vector_sizes_run(runs: Runs) -> Run:
    """The newest run over sizes of super-vectors."""
    return [run for run in runs if run.vector_sizes][-1]


def where(used: Iterable[Run]) -> str:
    """Machines in order, and the dates of their runs, the first and the last one if there are many.

    "AMD EPYC (Zen 4), 2026-11-22 to 2026-11-26; AMD EPYC (Zen 5), 2026-11-21 and 2026-11-22"
    """
    dates: dict[str, set[str]] = {}
    for run in used:
        dates.setdefault(run.machine, set()).add(run.date)
    return "; ".join(f"{machine}, {_days(sorted(days))}" for machine, days in sorted(dates.items()))


def _days(dates: list[str]) -> str:
    return f"{dates[0]} to {dates[-1]}" if len(dates) > 2 else " and ".join(dates)
