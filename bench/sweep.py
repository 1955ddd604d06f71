"""How the size of super-vectors counts: each workload at many sizes, which take turns with memcpy.

    python -m bench sweep --plot sweep.svg
    python -m bench sweep --only transpose

Each answer is checked before the clock. One row is one size of one workload; "auto" is one of the sizes.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, TypeAlias

import numpy as np

import tilejit as tj
from bench.arrays import BF16, Array, aligned, filled, flat_bytes
from bench.jobs import Case, Job
from bench.measure import LEARNING_CALLS, Method, Row, checked, described
from bench.peers import Way
from bench.timing import Timing, interleaved, memcpy
from codegen import read_vector_sizes, sizes_in_elements

SUITE = "sweep"
AUTO = "auto"
Size: TypeAlias = int | str | tuple[int | str, ...]
SIZES: tuple[Size, ...] = (
    *(AUTO, 16, 64, 256, 1024, 4096, 16384),
    *((4, 64), (16, 16), (32, 32), (64, 64), (32, 256)),
    *("4*hw", "16*hw", "l1/4"),
)
KERNEL_SIZES: tuple[Size, ...] = (
    8,
    16,
    32,
    64,
    128,
    256,
    512,
    1024,
    2048,
    4096,
    (4, 64),
    (8, 128),
    (32, 256),
)
"""Those of the table of kernels in `python -m bench.elementwise`."""
SEED = 7
UNTOUCHED = 0xA5
"""What bytes hold before the answer is checked."""
Points: TypeAlias = list[tuple[str, float]]
"""(virtual_vector_size, GB/s)."""


def add(a: Array, b: Array, c: Array) -> None:
    """A kernel of two dimensions."""
    for i in range(a.shape[0]):
        for j in range(a.shape[1]):
            c[i, j] = a[i, j] + b[i, j] + 1 + 2


def triad(a: Array, b: Array, c: Array) -> None:
    """A kernel of one dimension."""
    for i in range(a.shape[0]):
        c[i] = a[i] + 2 * b[i]


def turned(a: Array, c: Array) -> None:
    """A kernel whose store walks the other dimension."""
    for i in range(a.shape[0]):
        for j in range(a.shape[1]):
            c[j, i] = a[i, j] + 1


def total(a: Array, c: Array) -> None:
    """A reduction."""
    s = np.float32(0)
    for i in range(a.shape[0]):
        s += a[i]
    c[0] = s


@dataclass(frozen=True, slots=True)
class Workload:
    """What is measured at each size; `make` takes a size and threads, and returns arrays and the answer."""

    name: str
    dtype: Any
    make: Callable[[Size, int], Job]
    sizes: tuple[Size, ...] = SIZES


def workloads(quick: bool = False) -> list[Workload]:
    """Copies of every kind, packs, kernels and reductions, in cache and out of it."""
    side, small = (512, 256) if quick else (2048, 512)
    few, many = small * 64, side * side
    one = tuple(size for size in SIZES if not isinstance(size, tuple))
    return [
        Workload("copy u32 rows", np.uint32, _rows(side, np.uint32)),
        Workload("copy u32 every other", np.uint32, _every_other(side * side // 2, np.uint32), one),
        *(
            Workload(f"transpose u{8 * w} {n}x{n}", f"u{w}", _transposed(n, f"u{w}"))
            for w, n in ((1, side), (2, side), (4, small), (4, side), (8, side))
        ),
        Workload("transpose u32 5 rows", np.uint32, _short_rows(side * side // 5, np.uint32)),
        Workload("pack f32 T(8,128)", np.float32, _packed(side, np.float32, "T(8,128)")),
        Workload("pack bf16 T(8,128)(2,1)", BF16, _packed(side, BF16, "T(8,128)(2,1)")),
        Workload("pack u8 {0,1:T(8,128)}", np.uint8, _packed(side, np.uint8, "T(8,128)", "0,1")),
        Workload(f"kernel add f32 {small}x{small}", np.float32, _kernel(add, small, 2, np.float32)),
        Workload(f"kernel add f32 {side}x{side}", np.float32, _kernel(add, side, 2, np.float32)),
        Workload(f"kernel triad f32 {few}", np.float32, _kernel(triad, few, 1, np.float32), one),
        Workload(f"kernel triad f64 {many}", np.float64, _kernel(triad, many, 1, np.float64), one),
        Workload(f"kernel transposed f32 {small}", np.float32, _turned(small, np.float32)),
        Workload(f"kernel sum f32 {many}", np.float32, _summed(many), one),
        Workload(f"expression f32 {many}", np.float32, _expression(many), one),
        Workload(f"expression sum f32 {many}", np.float32, _expression_sum(many), one),
    ]


def cases(quick: bool) -> list[Case]:
    """A case for each size of each workload, for `pytest bench`."""
    return [
        Case(SUITE, each.name, f"virtual_vector_size={shown(size, each.dtype)}", partial(each.make, size))
        for each in workloads(quick)
        for size in each.sizes
    ]


def measure(workload: Workload, method: Method) -> list[Row]:
    """One row a size, all in turns; what fails or is wrong is said in the row."""
    rows, runs, first = [], {}, {}
    moved = 0
    for size in workload.sizes:
        name = shown(size, workload.dtype)
        try:
            started = time.perf_counter()
            job = workload.make(size, method.threads)
            run = job.ours()
            first[name] = checked(run, job) - started
        except Exception as error:  # a bug at one size must not cost the figures of all others
            nothing = Timing(float("nan"), float("nan"))
            row = Row(SUITE, workload.name, name, 0, 0.0, nothing, nothing, problem=described(error))
            rows.append(row)
            continue
        runs[name], moved = run, job.moved_bytes
        for _ in range(LEARNING_CALLS):
            run()
    copy = memcpy(moved // 2, method.threads)
    times = interleaved({"memcpy": copy, **runs}, method.rounds) if runs else {}
    for name in runs:
        figures = first[name], times[name], times["memcpy"]
        rows.append(Row(SUITE, workload.name, name, moved, *figures))
    return rows


def shown(size: Size, dtype: Any) -> str:
    """256, 32x256, 2*hw = 32"""
    if size == AUTO:
        return AUTO
    if isinstance(size, str):
        elements = sizes_in_elements(read_vector_sizes(size, 1, ""), 8 * np.dtype(dtype).itemsize)
        return f"{size} = {elements[0]}"
    return "x".join(map(str, size)) if isinstance(size, tuple) else str(size)


def _rows(side: int, dtype: Any) -> Callable[[Size, int], Job]:
    """Rows with room behind them on both sides."""

    def make(size: Size, threads: int) -> Job:
        x, room = filled((side, side + 16), dtype), aligned((side, side + 32), dtype)
        return _planned(room[:, :side], x[:, :side], room, size, threads)

    return make


def _every_other(count: int, dtype: Any) -> Callable[[Size, int], Job]:
    def make(size: Size, threads: int) -> Job:
        x, out = filled((2 * count,), dtype)[::2], aligned((count,), dtype)
        return _planned(out, x, out, size, threads)

    return make


def _transposed(side: int, dtype: Any) -> Callable[[Size, int], Job]:
    def make(size: Size, threads: int) -> Job:
        out = aligned((side, side), dtype)
        return _planned(out, filled((side, side), dtype).T, out, size, threads)

    return make


def _short_rows(count: int, dtype: Any) -> Callable[[Size, int], Job]:
    def make(size: Size, threads: int) -> Job:
        out = aligned((count, 5), dtype)
        return _planned(out, filled((5, count), dtype).T, out, size, threads)

    return make


def _planned(dst: Array, src: Array, out: Array, size: Any, threads: int) -> Job:
    """A copy into an array that begins where `out` does; bytes between its rows stay as they are."""
    whole = out.copy()
    flat_bytes(whole)[:] = UNTOUCHED
    np.lib.stride_tricks.as_strided(whole, dst.shape, dst.strides)[...] = src

    def ours() -> Way:
        plan = tj.plan_copy(dst, src, virtual_vector_size=size, threads=threads)
        return lambda: plan(dst, src)

    return Job(2 * src.size * src.itemsize, out, _bytes(whole), ours, {})


def _packed(side: int, dtype: Any, tiles: str, order: str = "1,0") -> Callable[[Size, int], Job]:
    def make(size: Size, threads: int) -> Job:
        x, layout = filled((side, side), dtype), f"{{{order}:{tiles}}}"
        wanted = tj.pack(x, layout)
        out = aligned((wanted.buffer.size,), dtype)

        def ours() -> Way:
            return lambda: tj.pack(x, layout, out=out, virtual_vector_size=size, threads=threads)  # type: ignore[call-overload]

        return Job(x.nbytes + out.nbytes, out, _bytes(wanted.buffer), ours, {})

    return make


def _kernel(python: Callable[..., None], side: int, rank: int, dtype: Any) -> Callable[[Size, int], Job]:
    def make(size: Size, threads: int) -> Job:
        a, b, c = filled((side,) * rank, dtype), filled((side,) * rank, dtype), aligned((side,) * rank, dtype)
        expected = _bytes(a + b + 1 + 2 if rank == 2 else a + 2 * b)
        kernel = tj.kernel(virtual_vector_size=size, parallel=threads)(python)
        return Job(3 * a.nbytes, c, expected, lambda: lambda: kernel(a, b, c), {})

    return make


def _turned(side: int, dtype: Any) -> Callable[[Size, int], Job]:
    def make(size: Size, threads: int) -> Job:
        a, c = filled((side, side), dtype), aligned((side, side), dtype)
        kernel = tj.kernel(virtual_vector_size=size, parallel=threads)(turned)
        return Job(2 * a.nbytes, c, _bytes((a + 1).T), lambda: lambda: kernel(a, c), {})

    return make


def _summed(count: int) -> Callable[[Size, int], Job]:
    def make(size: Size, threads: int) -> Job:
        a, c = _few_numbers(count), aligned((1,), np.float32)
        kernel = tj.kernel(virtual_vector_size=size, vectorize_reductions=True)(total)
        return Job(a.nbytes, c, _bytes(np.array([a.sum(dtype="f8")], "f4")), lambda: lambda: kernel(a, c), {})

    return make


def _expression(count: int) -> Callable[[Size, int], Job]:
    def make(size: Size, threads: int) -> Job:
        a, b, c = (_few_numbers(count), _few_numbers(count), aligned((count,), np.float32))
        run = tj.elementwise(lambda x, y: x * 2 + y, virtual_vector_size=size, parallel=threads)
        return Job(3 * a.nbytes, c, _bytes(a * 2 + b), lambda: lambda: run(a, b, out=c), {})

    return make


def _expression_sum(count: int) -> Callable[[Size, int], Job]:
    def make(size: Size, threads: int) -> Job:
        a, c = _few_numbers(count), aligned((1,), np.float32)
        reduce = tj.elementwise(lambda x: x.sum(), virtual_vector_size=size, parallel=threads)

        def run() -> None:
            c[0] = reduce(a)

        return Job(a.nbytes, c, _bytes(np.array([a.sum(dtype="f8")], "f4")), lambda: run, {})

    return make


def _few_numbers(count: int) -> Array:
    """Small whole numbers, whose sums are exact in any order."""
    out = aligned((count,), np.float32)
    out[...] = np.arange(count) % 3
    return out


def _bytes(x: Array) -> Array:
    return np.ascontiguousarray(x).reshape(-1).view(np.uint8).copy()


def best_of(rows: Sequence[Row]) -> Iterator[tuple[str, list[Row], Row, Row | None]]:
    """The name of each workload, its sound rows, the fastest of them, and that of "auto"."""
    for name in dict.fromkeys(row.group for row in rows):
        own = [row for row in rows if row.group == name and not row.problem]
        if own:
            auto = next((row for row in own if row.case == AUTO), None)
            yield name, own, max(own, key=lambda row: row.rate), auto


def sweep(dtype: Any, rounds: int) -> Points:
    """a+b+1+2 over a matrix of a million elements, all sizes in turns; answers are checked first.

    Raises:
        AssertionError: one is wrong.
    """
    rng = np.random.default_rng(SEED)
    a, b, c = (rng.random((1000, 1000)).astype(dtype) for _ in range(3))
    kernels = {str(size): tj.kernel(virtual_vector_size=size)(add) for size in KERNEL_SIZES}
    for name, kernel in kernels.items():
        c[...] = 0
        kernel(a, b, c)
        assert np.array_equal(c, a + b + 1 + 2), f"virtual_vector_size={name} is off"
    ways = {name: lambda kernel=kernel: kernel(a, b, c) for name, kernel in kernels.items()}
    times = interleaved(ways, rounds)
    return [(name, 3 * a.nbytes / timing.median / 1e9) for name, timing in times.items()]
