"""`tilejit demo`: pack a matrix for a TPU, check it, compare its speed, and draw a small layout."""

from __future__ import annotations

from collections.abc import Callable
from statistics import median
from time import perf_counter
from typing import TYPE_CHECKING, Annotated, Any

import typer

from codegen import TilejitError, dataclass
from tilejit.cli.output import console, print_json, print_lines, style_of
from tilejit.cli.pictures import print_picture
from tilejit.cli.progress import steps

if TYPE_CHECKING:
    from tilejit.arrays.memory import Array
    from tilejit.copies.warming import OnStep

COLUMNS = 8192
ROWS_PER_MIB = (1 << 20) // (2 * COLUMNS)
REPETITIONS = 5
STEPS = 7
"""Steps of the progress bar: numbers, first calls, the check, and four timings."""
FIGURE = "f32[3,5]{1,0:T(2,2)}"


@dataclass(frozen=True, slots=True)
class Timing:
    """One way to copy: its median seconds, and the bytes that it reads and writes."""

    name: str
    seconds: float
    moved_bytes: int

    @property
    def gb_per_second(self) -> float:
        """Bytes read and written per second, in 10^9."""
        return self.moved_bytes / self.seconds / 1e9


def demo(
    mib: Annotated[
        int, typer.Option("--mib", metavar="N", min=1, max=1 << 16, help="Size of the bf16 matrix in MiB.")
    ] = 64,
    threads: Annotated[
        int | None,
        typer.Option("--threads", metavar="N", min=1, help="Threads; by default one for each CPU."),
    ] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print the timings as JSON.")] = False,
) -> None:
    """Pack a matrix for a TPU and time it.

    The result is checked against NumPy's, and the speeds are compared with NumPy and memcpy.
    """
    from codegen import thread_count

    layout = f"bf16[{mib * ROWS_PER_MIB},{COLUMNS}]{{1,0:T(8,128)(2,1)}}"
    count = thread_count(threads, mib << 21)
    with steps("demo", quiet=as_json, still=True) as on_step:
        first_seconds, timings = measure(mib, layout, threads, on_step)
    if as_json:
        rows = [{"name": t.name, "seconds": t.seconds, "gb_per_second": t.gb_per_second} for t in timings]
        print_json({"layout": layout, "threads": count, "first_seconds": first_seconds, "timings": rows})
        return
    from tilejit.layout.shape import Shape

    out = console()
    print_lines(out, layout)
    print_lines(out, f"{mib} MiB, {count} thread{'s' if count > 1 else ''}, same bytes as NumPy")
    print_lines(out, f"the first calls took {first_seconds:.2f} s longer")
    out.print(_table(timings, plain=not style_of(out).color))
    out.print()
    figure = Shape.parse(FIGURE)
    assert isinstance(figure, Shape)
    print_picture(figure)


def measure(
    mib: int, layout: str, threads: int | None, on_step: OnStep = lambda done, total, now: None
) -> tuple[float, tuple[Timing, ...]]:
    """Check the result, then time; return the extra seconds of the first pack and unpack, and the timings.

    Raises:
        TilejitError: the packed bytes differ from NumPy's.
    """
    import ml_dtypes
    import numpy as np

    import tilejit
    from tilejit.arrays.memory import empty

    shape = (mib * ROWS_PER_MIB, COLUMNS)
    on_step(0, STEPS, "random numbers")
    bits = np.random.default_rng(0).integers(0, 1 << 16, shape, np.uint16)
    x = bits.view(ml_dtypes.bfloat16)
    packed, by_numpy = empty((x.size,), x.dtype), empty((x.size,), np.uint16)
    back, copied = empty(shape, x.dtype), empty(shape, np.uint16)

    def pack() -> None:
        tilejit.pack(x, layout, out=packed, threads=threads)

    def unpack() -> None:
        tilejit.unpack(packed, layout, out=back, threads=threads)

    on_step(1, STEPS, "first calls")
    first = _seconds(pack) + _seconds(unpack)
    on_step(2, STEPS, "comparison with NumPy")
    numpy_pack(bits, by_numpy)
    if not np.array_equal(packed.view(np.uint16), by_numpy) or not np.array_equal(back.view(np.uint16), bits):
        raise TilejitError(
            "TileJIT and NumPy packed different bytes\n  report this with the output of `tilejit cache info`"
        )
    timings = []
    runs = {
        "TileJIT pack": pack,
        "TileJIT unpack": unpack,
        "NumPy pack": lambda: numpy_pack(bits, by_numpy),
        "memcpy": lambda: np.copyto(copied, bits),
    }
    for done, (name, run) in enumerate(runs.items(), 3):
        on_step(done, STEPS, name)
        timings.append(Timing(name, median(_seconds(run) for _ in range(REPETITIONS)), 2 * x.nbytes))
    return max(0.0, first - timings[0].seconds - timings[1].seconds), tuple(timings)


def numpy_pack(x: Array, out: Array) -> None:
    """Pack a matrix of complete tiles into a flat array in {1,0:T(8,128)(2,1)}, with NumPy."""
    rows, columns = x.shape
    digits = x.reshape(rows // 8, 4, 2, columns // 128, 128).transpose(0, 3, 1, 4, 2)
    out.reshape(digits.shape)[...] = digits


def _seconds(run: Callable[[], Any]) -> float:
    start = perf_counter()
    run()
    return perf_counter() - start


def _table(timings: tuple[Timing, ...], plain: bool) -> Any:
    from rich import box
    from rich.table import Table

    table = Table(box=box.ASCII if plain else box.SIMPLE_HEAD, pad_edge=False)
    table.add_column("", no_wrap=True)
    table.add_column("ms", justify="right")
    table.add_column("GB/s", justify="right")
    table.add_column("memcpy", justify="right")
    memcpy = timings[-1]
    for t in timings:
        share = t.gb_per_second / memcpy.gb_per_second
        table.add_row(t.name, f"{1e3 * t.seconds:.2f}", f"{t.gb_per_second:.1f}", f"{share:.0%}")
    return table
