"""Memory of a process that keeps copying: `python -m tests.faults.memory --calls 1000000 --shapes 10000`.

Calls are of every kind, on arrays that stay the same. Shapes are all different. A run begins by filling the
caches, which are bounded. After that, the second half must not hold 2 MiB more than the first. The machine
code of kernels stays in memory until the process ends, so the number of kernels is printed and their memory
is allowed for.
"""

from __future__ import annotations

import argparse
import ctypes
import gc
import os
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from statistics import median_low

import numpy as np

import tilejit as tj
from codegen.runtime import kernel
from codegen.support.caching import MOST_BOUND

FLAT_BYTES = 2 << 20
SAMPLES = 40
WARM_UP_SHAPES = 8 * MOST_BOUND
"""Before memory is looked at. A cache has at most 4 * MOST_BOUND entries; each shape brings some caches an
entry, others only each second one.
"""

FEWEST_ROWS, MOST_ROWS, MOST_COLUMNS = 2, 600, 3600
"""Of a shape. Few rows are as frequent as many, columns are not, so that small shapes do not run out: where
late shapes are larger than early ones, what caches hold of each grows too.
"""

CODE_PER_OBJECT = 4
"""A kernel's memory relative to its object file, which is kept; its sections have separate pages."""

LAYOUTS = (
    ("f4", "{1,0:T(8,128)}"),
    ("f4", "{0,1}"),
    ("f4", "{1,0:T(*,1024)}"),
    ("u2", "{1,0:T(8,128)(2,1)}"),
    ("i1", "{0,1:T(32,128)(4,1)}"),
    ("f8", "{1,0:T(8,8)}"),
    ("f2", "{1,0:T(16,16)}"),
    ("?", "{1,0:T(32,128)(32,1)E(1)}"),
    ("c8", "{0,1:T(8,128)}"),
    ("f4", "(m mi) n -> m n mi, mi=6"),
)


@dataclass
class Meter:
    """Memory over a run, and the kernels that were loaded in it."""

    sizes: list[int] = field(default_factory=list)
    code: list[int] = field(default_factory=list)
    kernels: int = 0
    code_bytes: int = 0

    def __post_init__(self) -> None:
        load = kernel._load

        def counted(name: str, object_code: bytes) -> None:
            self.kernels += 1
            self.code_bytes += CODE_PER_OBJECT * len(object_code)
            load(name, object_code)

        kernel._load = counted
        self._trim = getattr(ctypes.CDLL(None), "malloc_trim", None)

    def sample(self) -> None:
        """Take a sample after freeing unused memory."""
        gc.collect()
        if self._trim:
            self._trim(0)
        pages = int(Path("/proc/self/statm").read_text().split()[1])
        self.sizes.append(pages * os.sysconf("SC_PAGESIZE"))
        self.code.append(self.code_bytes)

    def growth(self) -> int:
        """The difference of the medians of the second and the first half, without kernels' code."""
        beside = [size - code for size, code in zip(self.sizes, self.code, strict=True)]
        half = len(beside) // 2
        return median_low(beside[half:]) - median_low(beside[:half]) if half else 0

    def report(self, what: str, seconds: float) -> bool:
        """Print the figures, and return whether memory stayed flat."""
        growth = self.growth()
        mib = [round(size / 2**20, 1) for size in self.sizes]
        late = self.code_bytes - self.code[0]
        print(
            f"{what} in {seconds:.0f} s: resident {mib[0]} MiB with caches full, {min(mib)} to {max(mib)} "
            f"since; {growth / 2**20:+.2f} MiB from half to half; {self.kernels} kernels loaded, "
            f"{late / 2**20:.2f} MiB allowed for those after the caches were full",
            flush=True,
        )
        return growth <= FLAT_BYTES


Calls = list[Callable[[], object]]


def operations() -> Calls:
    """Calls of every kind, the last two different each time. Their results are discarded."""
    x = np.arange(24 * 40, dtype=np.float32).reshape(24, 40)
    t, s = tj.pack(x, "{1,0:T(8,128)}"), tj.pack(x.astype(np.int8), "{1,0:T(8,16)(4,1)}")
    packed, back, turned = np.empty_like(t.buffer), np.empty_like(x), np.empty((40, 24), np.float32)
    plan = tj.plan_copy(turned, x.T)
    add = tj.elementwise(lambda a, b: a * 2 + b)
    total = tj.elementwise(lambda a: np.sum(a, axis=1))

    @tj.kernel
    def shifted(a, b, k):  # type: ignore[no-untyped-def]
        for i in range(a.shape[0]):
            for j in range(a.shape[1]):
                b[i, j] = a[i, j] + k

    count = iter(range(1 << 60))

    def refused() -> None:
        try:
            tj.pack(x, f"{{1,{next(count) % 5000 + 2}}}")
        except tj.LayoutError:
            return

    def written() -> None:
        t[3, 4] = 1.0
        t[2:9, ::2] = 2.0

    return [
        lambda: tj.pack(x, "{1,0:T(8,128)}"),
        lambda: tj.pack(x, t.layout, out=packed, threads=2),
        lambda: tj.unpack(t),
        lambda: tj.unpack(packed, t.layout, out=back),
        lambda: tj.relayout(t, "{0,1:T(4,4)}"),
        lambda: tj.copyto(turned, x.T),
        lambda: tj.copyto(turned, x.T, where=turned > 3),
        lambda: tj.take(x, [3, 1, 2], axis=0),
        lambda: tj.pad(x, 2),
        lambda: plan(turned, x.T),
        lambda: tj.ascontiguousarray(x.T),
        lambda: tj.concatenate([x, x], axis=1),
        lambda: t[3, 4],
        lambda: t[2:9, ::2],
        written,
        lambda: tj.gather_tiles(s, [2, 0, 1]),
        lambda: add(x, x),
        lambda: add(x, x[0], out=back),
        lambda: total(x),
        lambda: shifted(x, back, 0.5),
        lambda: tj.TiledArray.from_buffer(packed, t.layout),
        lambda: tj.linear_index(t.layout, (2, 3)),
        refused,
        lambda: shifted(x, back, next(count) % 5000),
    ]


def calls(count: int, meter: Meter) -> None:
    """That many calls in turn, after those that fill the caches."""
    todo, every = operations(), max(1, count // SAMPLES)
    for k in range(-(MOST_BOUND + 100) * len(todo), count):
        todo[k % len(todo)]()
        if k >= 0 and k % every == 0:
            meter.sample()


def shapes(count: int, meter: Meter, seed: int, warm_up: int) -> None:
    """That many different shapes after those of the warm-up: packed, unpacked, transposed, computed with."""
    rng = np.random.default_rng(seed)
    double = tj.elementwise(lambda a: a * 2)
    every, seen, done = max(1, count // SAMPLES), np.zeros((MOST_ROWS + 1, MOST_COLUMNS + 1), bool), -warm_up

    @tj.kernel
    def scaled(a, b):  # type: ignore[no-untyped-def]
        for i in range(a.shape[0]):
            for j in range(a.shape[1]):
                b[i, j] = a[i, j] * 0.5

    while done < count:
        rows = int(np.exp(rng.uniform(np.log(FEWEST_ROWS), np.log(MOST_ROWS))))
        columns = int(rng.integers(1, MOST_COLUMNS + 1))
        if seen[rows, columns]:
            continue
        dtype, layout = LAYOUTS[done % len(LAYOUTS)]
        x = np.zeros((rows, columns), dtype)
        t = tj.pack(x, layout)
        tj.unpack(t)
        tj.relayout(t, "{0,1}")
        tj.copyto(np.empty((columns, rows), dtype), x.T)
        y = np.zeros((rows, columns), np.float32)
        double(y)
        scaled(y, y.copy())
        seen[rows, columns] = True
        done += 1
        if done >= 0 and done % every == 0:
            meter.sample()


def main(arguments: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.faults.memory", description=__doc__)
    parser.add_argument("--calls", type=int, default=0)
    parser.add_argument("--shapes", type=int, default=0)
    parser.add_argument("--warm-up", type=int, default=WARM_UP_SHAPES, help="shapes before those that count")
    parser.add_argument("--seed", type=int, default=0)
    options = parser.parse_args(arguments)
    good = True
    print(f"seed {options.seed}", flush=True)
    for count, what in ((options.calls, "calls"), (options.shapes, "shapes")):
        if not count:
            continue
        meter, began = Meter(), time.monotonic()
        if what == "calls":
            calls(count, meter)
        else:
            shapes(count, meter, options.seed, options.warm_up)
        good &= meter.report(f"{count} {what}", time.monotonic() - began)
    return 0 if good else 1


if __name__ == "__main__":
    sys.exit(main())
