"""Time several ways of doing one thing, turn by turn, so that all of them see the same machine."""

from __future__ import annotations

import platform
import statistics
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

import numpy as np


@dataclass(frozen=True, slots=True)
class Timing:
    """Seconds of one way: the least and the median of all rounds."""

    least: float
    median: float


def interleaved(ways: Mapping[str, Callable[[], object]], rounds: int) -> dict[str, Timing]:
    """Run every way once to warm up, then `rounds` times in turn."""
    for run in ways.values():
        run()
    seconds: dict[str, list[float]] = {name: [] for name in ways}
    for _ in range(rounds):
        for name, run in ways.items():
            start = time.perf_counter()
            run()
            seconds[name].append(time.perf_counter() - start)
    return {name: Timing(min(s), statistics.median(s)) for name, s in seconds.items()}


def aligned(shape: tuple[int, ...], dtype: np.dtype, line: int = 64) -> np.ndarray:
    """An array of zeros that starts on a cache line, its pages touched."""
    dtype = np.dtype(dtype)
    size = int(np.prod(shape)) * dtype.itemsize
    raw = np.zeros(size + line, np.uint8)
    raw[:] = 0
    start = -raw.ctypes.data % line
    return raw[start : start + size].view(dtype).reshape(shape)


def machine() -> dict[str, str]:
    """What the figures were measured on."""
    facts = {"cpu": _cpu(), "python": platform.python_version()}
    for package in ("numpy", "numba", "llvmlite", "ml_dtypes"):
        try:
            facts[package] = version(package)
        except PackageNotFoundError:
            facts[package] = "not installed"
    facts["date"] = time.strftime("%Y-%m-%d")
    return facts


def _cpu() -> str:
    """The processor's name with family and model, since virtual machines shorten the name."""
    try:
        lines = Path("/proc/cpuinfo").read_text().splitlines()
    except OSError:
        return platform.processor() or platform.machine()
    fields = dict(line.split(":", 1) for line in lines if ":" in line)
    facts = {key.strip(): value.strip() for key, value in fields.items()}
    return f"{facts.get('model name')} family {facts.get('cpu family')} model {facts.get('model')}"
