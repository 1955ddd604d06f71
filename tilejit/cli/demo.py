"""`tilejit demo`: pack a matrix for a TPU, check it, compare its speed, and draw a small layout."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from itertools import pairwise
from statistics import median
from time import perf_counter
from typing import TYPE_CHECKING, Annotated, Any

import typer

from codegen import TilejitError, dataclass
from tilejit.cli.output import console, print_json, print_lines, style_of
from tilejit.cli.pictures import print_picture
from tilejit.cli.progress import steps
from tilejit.support.units import counted

if TYPE_CHECKING:
    from rich.console import Console

    from tilejit.arrays.memory import Array
    from tilejit.copies.warming import OnStep

COLUMNS, TILE_ROWS = 8192, 8
ROWS_PER_MIB = (1 << 20) // (2 * COLUMNS)
ROUNDS = 8
"""Each copy is timed once per round, in odd rounds from the last row of the table to the first."""
STEPS = 3 + ROUNDS
"""Steps of the progress bar: numbers, first calls, the check, and the rounds."""
WIDE = 48
"""The fewest columns in which the timings are a table."""
VARIES = 2
"""How many times its shortest time the longest time of memcpy takes only if other programs disturb it."""
PLAIN = ("TileJIT copy", "memcpy")
"""Copies that keep the layout. The faster one is the yardstick."""
ABOUT = (
    "Shares are of the faster plain copy of the same matrix: memcpy is np.copyto, and TileJIT copy is "
    "tj.copyto, which writes large results past the cache. GB/s counts bytes read and written."
)
FIGURE = "f32[3,5]{1,0:T(2,2)}"


@dataclass(frozen=True, slots=True)
class Timing:
    """One way to copy: its threads, the seconds of each run, and the bytes that a run reads and writes."""

    name: str
    threads: int
    runs: tuple[float, ...]
    moved_bytes: int

    @property
    def seconds(self) -> float:
        """The median."""
        return median(self.runs)

    @property
    def gb_per_second(self) -> float:
        """Bytes read and written per second, in 10^9."""
        return self.moved_bytes / self.seconds / 1e9


def demo(
    mib: Annotated[
        int, typer.Option("--mib", metavar="N", min=1, max=1 << 16, help="Size of the bf16 matrix in MiB.")
    ] = 64,
    threads: Annotated[
        int, typer.Option("--threads", metavar="N", min=1, max=64, help="Threads of every copy.")
    ] = 1,
    as_json: Annotated[bool, typer.Option("--json", help="Print the timings as JSON.")] = False,
) -> None:
    """Pack a matrix for a TPU and time it.

    The result is checked against NumPy's, and the speeds are compared with NumPy and memcpy, all on the same
    number of threads.
    """
    layout = f"bf16[{mib * ROWS_PER_MIB},{COLUMNS}]{{1,0:T(8,128)(2,1)}}"
    with steps("demo", quiet=as_json, still=True) as on_step:
        first_seconds, timings = measure(mib, layout, threads, on_step)
    if as_json:
        rows = [
            {"name": t.name, "threads": t.threads, "seconds": t.seconds, "gb_per_second": t.gb_per_second}
            for t in timings
        ]
        print_json({"layout": layout, "first_seconds": first_seconds, "timings": rows})
        return
    from tilejit.layout.shape import Shape

    out = console()
    print_lines(out, layout)
    out.print(
        f"{mib} MiB, packed to the same bytes as by NumPy. The first calls took {first_seconds:.2f} s "
        f"longer, to compile or load kernels. Times are medians of {ROUNDS} alternating runs, in memory that "
        "was written before."
    )
    _print_timings(out, timings)
    out.print(ABOUT)
    memcpy = timings[-1]
    if max(memcpy.runs) > VARIES * min(memcpy.runs):
        out.print(
            f"memcpy took from {1e3 * min(memcpy.runs):.2f} to {1e3 * max(memcpy.runs):.2f} ms, so other "
            "programs slow this machine down. Repeat the demo when it is idle."
        )
    out.print()
    figure = Shape.parse(FIGURE)
    assert isinstance(figure, Shape)
    print_picture(figure)


def measure(
    mib: int, layout: str, threads: int, on_step: OnStep = lambda done, total, now: None
) -> tuple[float, tuple[Timing, ...]]:
    """Check the results, then time; return the extra seconds of the first pack and unpack, and the timings.

    Raises:
        TilejitError: the packed bytes differ from NumPy's.
    """
    import ml_dtypes
    import numpy as np

    import tilejit
    from tilejit.arrays.memory import empty

    shape = (mib * ROWS_PER_MIB, COLUMNS)
    on_step(0, STEPS, "random numbers")
    bits = empty(shape, np.uint16)
    bits[...] = np.random.default_rng(0).integers(0, 1 << 16, shape, np.uint16)
    x = bits.view(ml_dtypes.bfloat16)
    packed, by_numpy = (empty((x.size,), np.uint16) for _ in range(2))
    back, copied = (empty(shape, np.uint16) for _ in range(2))
    for result in (packed, by_numpy, back, copied):
        result.fill(1)  # maps the pages, so that no copy is timed with page faults
    bf16_packed, bf16_back = packed.view(x.dtype), back.view(x.dtype)

    def copy_with_numpy(rows: slice) -> None:
        np.copyto(copied[rows], bits[rows])

    def pack_with_numpy(rows: slice) -> None:
        numpy_pack(bits[rows], by_numpy.reshape(shape)[rows].reshape(-1))

    with ThreadPoolExecutor(threads) as pool:
        parts = parts_of_rows(shape[0], threads)
        runs: dict[str, Callable[[], object]] = {
            "TileJIT pack": lambda: tilejit.pack(x, layout, out=bf16_packed, threads=threads),
            "TileJIT unpack": lambda: tilejit.unpack(bf16_packed, layout, out=bf16_back, threads=threads),
            "TileJIT copy": lambda: tilejit.copyto(copied, bits, threads=threads),
            "NumPy pack": lambda: on_threads(pool, pack_with_numpy, parts),
            "memcpy": lambda: on_threads(pool, copy_with_numpy, parts),
        }
        on_step(1, STEPS, "first calls")
        first = _seconds(runs["TileJIT pack"]) + _seconds(runs["TileJIT unpack"])
        on_step(2, STEPS, "comparison with NumPy")
        runs["NumPy pack"]()
        _compare(packed, by_numpy)
        _compare(back, bits)
        for name in PLAIN:
            copied.fill(1)
            runs[name]()
            _compare(copied, bits)
        for run in runs.values():
            run()  # machine code that answers repeated calls is compiled at the second one
        seconds: dict[str, list[float]] = {name: [] for name in runs}
        for k in range(ROUNDS):
            on_step(3 + k, STEPS, f"round {k + 1}")
            for name in reversed(runs) if k % 2 else runs:
                seconds[name].append(_seconds(runs[name]))
    timings = tuple(Timing(name, threads, tuple(seconds[name]), 2 * x.nbytes) for name in runs)
    return max(0.0, first - timings[0].seconds - timings[1].seconds), timings


def _compare(one: Array, other: Array) -> None:
    if not (one == other).all():
        raise TilejitError(
            "TileJIT and NumPy packed different bytes\n  report this with the output of `tilejit cache info`"
        )


def parts_of_rows(rows: int, threads: int) -> list[slice]:
    """The rows of a matrix of complete tiles, in parts of whole tiles.

    (64, 3) -> [slice(0, 16), slice(16, 40), slice(40, 64)]
    """
    tiles = rows // TILE_ROWS
    return [slice(*ends) for ends in pairwise(tiles * k // threads * TILE_ROWS for k in range(threads + 1))]


def on_threads(pool: ThreadPoolExecutor, copy: Callable[[slice], None], parts: list[slice]) -> None:
    """Copy each part on a thread, the last one on this thread."""
    others = pool.map(copy, parts[:-1])
    copy(parts[-1])
    deque(others, maxlen=0)


def numpy_pack(x: Array, out: Array) -> None:
    """Pack a matrix of complete tiles into a flat array in {1,0:T(8,128)(2,1)}, with NumPy."""
    rows, columns = x.shape
    digits = x.reshape(rows // TILE_ROWS, 4, 2, columns // 128, 128).transpose(0, 3, 1, 4, 2)
    out.reshape(digits.shape)[...] = digits


def _seconds(run: Callable[[], Any]) -> float:
    start = perf_counter()
    run()
    return perf_counter() - start


def _print_timings(out: Console, timings: tuple[Timing, ...]) -> None:
    """Print a table, or two lines per row on narrow terminals."""
    best = max(t.gb_per_second for t in timings if t.name in PLAIN)
    cells = [
        (
            t.name,
            str(t.threads),
            f"{1e3 * t.seconds:.2f}",
            f"{t.gb_per_second:.1f}",
            f"{t.gb_per_second / best:.0%}",
        )
        for t in timings
    ]
    if out.width >= WIDE:
        out.print(_table(cells, plain=not style_of(out).color))
        return
    for name, threads, ms, speed, share in cells:
        out.print(f"{name}, {counted(int(threads), 'thread')}\n  {ms} ms, {speed} GB/s, share {share}")


def _table(cells: Sequence[tuple[str, ...]], plain: bool) -> Any:
    from rich import box
    from rich.table import Table

    table = Table(box=box.ASCII if plain else box.SIMPLE_HEAD, pad_edge=False)
    table.add_column("", no_wrap=True)
    for name in ("threads", "ms", "GB/s", "share"):
        table.add_column(name, justify="right", no_wrap=True)
    for row in cells:
        table.add_row(*row)
    return table
