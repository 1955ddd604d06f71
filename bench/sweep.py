"""Workloads at many super-vector sizes, which take turns with memcpy.

    python -m bench sweep --plot sweep.svg
    python -m bench sweep --only transpose

Each answer is checked before timing starts. A row is one size of one workload. "auto" is one of the sizes.
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
from bench.jobs import UNTOUCHED, Case, Job
from bench.measure import LEARNING_CALLS, Method, Row, checked, described
from bench.peers import Call
from bench.timing import Timing, interleaved, memcpy
from codegen import read_vector_sizes, sizes_in_elements

SUITE = "sweep"
AUTO = "auto"
Size: TypeAlias = int | str | tuple[int | str, ...]
SIZES: tuple[Size, ...] = (
    *(16, 64, 256, 1024, 4096, AUTO, 16384),
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
"""The sizes in the table of kernels of `python -m bench.elementwise`."""
SEED = 7
Points: TypeAlias = list[tuple[str, float]]
"""(virtual_vector_size, GB/s)."""


def add(a: Array, b: Array, c: Array) -> None:
    """A kernel with two dimensions."""
    for i in range(a.shape[0]):
        for j in range(a.shape[1]):
            c[i, j] = a[i, j] + b[i, j] + 1 + 2


def triad(a: Array, b: Array, c: Array) -> None:
    """A kernel with one dimension."""
    for i in range(a.shape[0]):
        c[i] = a[i] + 2 * b[i]


def transposed(a: Array, c: Array) -> None:
    """A kernel whose store walks along the other dimension."""
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
class Arrays:
    """The arrays of a workload, the right bytes of `out`, and the call for each size on these arrays."""

    moved_bytes: int
    out: Array
    expected: Array
    call_for: Callable[[Any], Call]

    def job(self, size: Size) -> Job:
        """One size as a job."""
        return Job(self.moved_bytes, self.out, self.expected, lambda: self.call_for(size), {})


@dataclass(frozen=True, slots=True)
class Workload:
    """A workload to measure at each size. `make` gets the number of threads."""

    name: str
    dtype: Any
    make: Callable[[int], Arrays]
    sizes: tuple[Size, ...] = SIZES


def workloads(quick: bool = False) -> list[Workload]:
    """Copies of every kind, packs, kernels and reductions, in cache and out of it."""
    side, small = (512, 256) if quick else (2048, 512)
    few, many = small * 64, side * side
    f32, u32 = np.float32, np.uint32
    one = tuple(size for size in SIZES if not isinstance(size, tuple))
    return [
        Workload("copy u32 rows", u32, partial(_rows, side, u32)),
        Workload("copy u32 every other", u32, partial(_every_other, many // 2, u32), one),
        *(
            Workload(f"transpose u{8 * w} {n}x{n}", f"u{w}", partial(_transposed, (n, n), f"u{w}"))
            for w, n in ((1, side), (2, side), (4, small), (4, side), (8, side))
        ),
        Workload("transpose u32 5 rows", u32, partial(_transposed, (5, many // 5), u32)),
        Workload("pack f32 T(8,128)", f32, partial(_packed, side, f32, "{1,0:T(8,128)}")),
        Workload("pack bf16 T(8,128)(2,1)", BF16, partial(_packed, side, BF16, "{1,0:T(8,128)(2,1)}")),
        Workload("pack u8 {0,1:T(8,128)}", np.uint8, partial(_packed, side, np.uint8, "{0,1:T(8,128)}")),
        Workload(f"kernel add f32 {small}x{small}", f32, partial(_kernel, add, small, 2, f32)),
        Workload(f"kernel add f32 {side}x{side}", f32, partial(_kernel, add, side, 2, f32)),
        Workload(f"kernel triad f32 {few}", f32, partial(_kernel, triad, few, 1, f32), one),
        Workload(f"kernel triad f64 {many}", np.float64, partial(_kernel, triad, many, 1, np.float64), one),
        Workload(f"kernel transposed f32 {small}", f32, partial(_transposed_kernel, small, f32)),
        Workload(f"kernel sum f32 {many}", f32, partial(_summed, many), one),
        Workload(f"expression f32 {many}", f32, partial(_expression, many), one),
        Workload(f"expression sum f32 {many}", f32, partial(_expression_sum, many), one),
    ]


def cases(quick: bool) -> list[Case]:
    """A case for each size of each workload, for `pytest bench`."""

    def job(workload: Workload, size: Size, threads: int) -> Job:
        return workload.make(threads).job(size)

    return [
        Case(SUITE, each.name, f"virtual_vector_size={shown(size, each.dtype)}", partial(job, each, size))
        for each in workloads(quick)
        for size in each.sizes
    ]


def measure(workload: Workload, method: Method) -> list[Row]:
    """One row per size. Sizes take turns on the same arrays. Rows record failures and wrong answers.

    Figures are from the fastest round, because other processes can cost more than the sizes differ.
    """
    arrays = workload.make(method.threads)
    rows, runs, first = [], {}, {}
    for size in workload.sizes:
        name = shown(size, workload.dtype)
        try:
            started = time.perf_counter()
            run = arrays.call_for(size)
            first[name] = checked(run, arrays.job(size)) - started
        except Exception as error:  # a bug at one size must not discard the figures of the others
            nothing = Timing(float("nan"), float("nan"))
            row = Row(SUITE, workload.name, name, 0, 0.0, nothing, nothing, problem=described(error))
            rows.append(row)
            continue
        runs[name] = run
        for _ in range(LEARNING_CALLS):
            run()
    copy = memcpy(arrays.moved_bytes // 2, method.threads)
    times = interleaved({"memcpy": copy, **runs}, method.rounds) if runs else {}
    for name in runs:
        figures = first[name], _fastest(times[name]), _fastest(times["memcpy"])
        rows.append(Row(SUITE, workload.name, name, arrays.moved_bytes, *figures))
    return rows


def _fastest(timing: Timing) -> Timing:
    return Timing(timing.least, timing.least)


def shown(size: Size, dtype: Any) -> str:
    """256, 32x256, 2*hw = 32"""
    if size == AUTO:
        return AUTO
    if isinstance(size, str):
        elements = sizes_in_elements(read_vector_sizes(size, 1, ""), 8 * np.dtype(dtype).itemsize)
        return f"{size} = {elements[0]}"
    return "x".join(map(str, size)) if isinstance(size, tuple) else str(size)


def _rows(side: int, dtype: Any, threads: int) -> Arrays:
    """Rows on both sides are followed by gaps."""
    x, room = filled((side, side + 16), dtype), aligned((side, side + 32), dtype)
    return _planned(room[:, :side], x[:, :side], room, threads)


def _every_other(count: int, dtype: Any, threads: int) -> Arrays:
    out = aligned((count,), dtype)
    return _planned(out, filled((2 * count,), dtype)[::2], out, threads)


def _transposed(shape: tuple[int, int], dtype: Any, threads: int) -> Arrays:
    out = aligned(shape[::-1], dtype)
    return _planned(out, filled(shape, dtype).T, out, threads)


def _planned(dst: Array, src: Array, out: Array, threads: int) -> Arrays:
    """A copy into an array that begins where `out` does. Bytes between its rows stay unchanged."""
    whole = out.copy()
    flat_bytes(whole)[:] = UNTOUCHED
    np.lib.stride_tricks.as_strided(whole, dst.shape, dst.strides)[...] = src

    def call_for(size: Any) -> Call:
        plan = tj.plan_copy(dst, src, virtual_vector_size=size, threads=threads)
        return lambda: plan(dst, src)

    return Arrays(2 * src.size * src.itemsize, out, _bytes(whole), call_for)


def _packed(side: int, dtype: Any, layout: str, threads: int) -> Arrays:
    x = filled((side, side), dtype)
    wanted = tj.pack(x, layout).buffer
    out = aligned((wanted.size,), dtype)

    def call_for(size: Any) -> Call:
        return lambda: tj.pack(x, layout, out=out, virtual_vector_size=size, threads=threads)

    return Arrays(x.nbytes + out.nbytes, out, _bytes(wanted), call_for)


def _kernel(python: Callable[..., None], side: int, rank: int, dtype: Any, threads: int) -> Arrays:
    a, b, c = filled((side,) * rank, dtype), filled((side,) * rank, dtype), aligned((side,) * rank, dtype)

    def call_for(size: Any) -> Call:
        kernel = tj.kernel(virtual_vector_size=size, parallel=threads)(python)
        return lambda: kernel(a, b, c)

    return Arrays(3 * a.nbytes, c, _bytes(a + b + 1 + 2 if rank == 2 else a + 2 * b), call_for)


def _transposed_kernel(side: int, dtype: Any, threads: int) -> Arrays:
    a, c = filled((side, side), dtype), aligned((side, side), dtype)

    def call_for(size: Any) -> Call:
        kernel = tj.kernel(virtual_vector_size=size, parallel=threads)(transposed)
        return lambda: kernel(a, c)

    return Arrays(2 * a.nbytes, c, _bytes((a + 1).T), call_for)


def _summed(count: int, _: int) -> Arrays:
    a, c = _few_numbers(count), aligned((1,), np.float32)

    def call_for(size: Any) -> Call:
        kernel = tj.kernel(virtual_vector_size=size, vectorize_reductions=True)(total)
        return lambda: kernel(a, c)

    return Arrays(a.nbytes, c, _bytes(np.array([a.sum(dtype="f8")], "f4")), call_for)


def _expression(count: int, threads: int) -> Arrays:
    a, b, c = _few_numbers(count), _few_numbers(count), aligned((count,), np.float32)

    def call_for(size: Any) -> Call:
        run = tj.elementwise(lambda x, y: x * 2 + y, virtual_vector_size=size, parallel=threads)
        return lambda: run(a, b, out=c)

    return Arrays(3 * a.nbytes, c, _bytes(a * 2 + b), call_for)


def _expression_sum(count: int, threads: int) -> Arrays:
    a, c = _few_numbers(count), aligned((1,), np.float32)

    def call_for(size: Any) -> Call:
        reduce = tj.elementwise(lambda x: x.sum(), virtual_vector_size=size, parallel=threads)

        def run() -> None:
            c[0] = reduce(a)

        return run

    return Arrays(a.nbytes, c, _bytes(np.array([a.sum(dtype="f8")], "f4")), call_for)


def _few_numbers(count: int) -> Array:
    """Small integers, whose sums are exact in any order."""
    out = aligned((count,), np.float32)
    out[...] = np.arange(count) % 3
    return out


def _bytes(x: Array) -> Array:
    return np.ascontiguousarray(x).reshape(-1).view(np.uint8).copy()


def best_of(rows: Sequence[Row]) -> Iterator[tuple[str, list[Row], Row, Row | None]]:
    """Each workload's name, its valid rows, the fastest of them, and the row of "auto"."""
    for name in dict.fromkeys(row.group for row in rows):
        own = [row for row in rows if row.group == name and not row.problem]
        if own:
            auto = next((row for row in own if row.case == AUTO), None)
            yield name, own, max(own, key=lambda row: row.rate), auto


def sweep(dtype: Any, rounds: int) -> Points:
    """a+b+1+2 over a matrix of a million elements; all sizes take turns. Answers are checked first.

    Raises:
        AssertionError: an answer is wrong.
    """
    rng = np.random.default_rng(SEED)
    a, b, c = (rng.random((1000, 1000)).astype(dtype) for _ in range(3))
    kernels = {str(size): tj.kernel(virtual_vector_size=size)(add) for size in KERNEL_SIZES}
    for name, kernel in kernels.items():
        c[...] = 0
        kernel(a, b, c)
        assert np.array_equal(c, a + b + 1 + 2), f"virtual_vector_size={name}: the answer is wrong"
    calls = {name: lambda kernel=kernel: kernel(a, b, c) for name, kernel in kernels.items()}
    times = interleaved(calls, rounds)
    return [(name, 3 * a.nbytes / timing.median / 1e9) for name, timing in times.items()]
