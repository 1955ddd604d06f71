"""Turn a scalar nest and its schedule into a kernel, and the kernel into a launch."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from math import prod

from codegen.analysis.ranges import affine_range
from codegen.ir.copies.nodes import (
    Elementwise,
    LoopNest,
    Transpose,
    TransposeTiles,
    group_table,
    joined_tables,
    line_table,
    refs,
)
from codegen.ir.copies.rewriting import int_size
from codegen.ir.copies.tiles import GROUP_ARGUMENTS, LINE_TABLE, PREFETCH_ARGUMENT
from codegen.maps.refine import PairTable
from codegen.passes.pad_rank import pad_rank
from codegen.passes.parametrize import parametrize_sizes
from codegen.passes.select_transfer import super_vectorize
from codegen.passes.specialize import specialize_sizes
from codegen.runtime.copy_calls import (
    FILL_ARGUMENTS,
    GRID_ARGUMENTS,
    OFFSET_ARGUMENTS,
    SCRATCH,
    Pattern,
    PrefetchCall,
    calls_for,
)
from codegen.runtime.kernel import Step, kernel_for
from codegen.runtime.launch import Launch
from codegen.schedule.choose_transpose import VectorSize, misaligned
from codegen.schedule.schedule import Schedule

SCHEDULED = (super_vectorize, pad_rank)
"""The passes that take a schedule, in order."""

STRUCTURE, SIZES = "structure", "sizes"
"""Values of `specialize`: one kernel per structure, or one per structure and sizes."""

Observer = Callable[[str, LoopNest], None]


def step_of(
    nest: LoopNest,
    schedule: Schedule,
    *,
    specialize: str = STRUCTURE,
    tables: bool = False,
    observe: Observer | None = None,
) -> Step:
    """Run a strip-mined scalar nest through the scheduled passes and find its kernel."""
    observe = observe or nobody
    vectorized = nest
    for run in SCHEDULED:
        vectorized = run(vectorized, schedule)
        observe(run.__name__, vectorized)
    parametrized, sizes = parametrize_sizes(vectorized)
    observe("parametrize_sizes", parametrized)
    fixed = _literal_sizes(nest, schedule, dict(sizes), specialize)
    parametrized = specialize_sizes(parametrized, fixed)
    observe("specialize_sizes", parametrized)
    sizes = tuple((name, value) for name, value in sizes if name not in fixed)
    inner = vectorized.innermost
    front = OFFSET_ARGUMENTS if tables else ()
    grid = GRID_ARGUMENTS if isinstance(inner, Transpose) else ()
    lines = (LINE_TABLE,) if line_table(inner) else tuple(joined_tables(inner))
    panel = (SCRATCH,) if isinstance(inner, TransposeTiles) and inner.staged else ()
    groups = GROUP_ARGUMENTS if group_table(inner) else ()
    fills = FILL_ARGUMENTS if refs(inner)[0] is None else ()
    distance = (PREFETCH_ARGUMENT,) if isinstance(inner, Elementwise) and inner.prefetch else ()
    names = (*front, *grid, *lines, *panel, *groups, *fills, *distance, *(name for name, _ in sizes))
    kernel = kernel_for(parametrized, names)
    return Step(nest, schedule, vectorized, kernel, sizes)


def _literal_sizes(
    nest: LoopNest, schedule: Schedule, sizes: dict[str, int], specialize: str
) -> dict[str, int]:
    """The sizes that become literals: all of them, only the length of full strips, or none."""
    if specialize == SIZES:
        return sizes
    full_strips = any(x.axis in schedule.inner and x.extent == schedule.strip for x in nest.loops)
    return {"count": sizes["count"]} if schedule.strip and full_strips and "count" in sizes else {}


def nobody(name: str, nest: LoopNest) -> None:
    """An observer that does nothing."""


def launch_of(
    step: Step,
    tables: tuple[PairTable, ...] = (),
    fill: Pattern | None = None,
    bounds: tuple[tuple[int, int], tuple[int, int]] = ((0, 0), (0, 0)),
    reach: tuple[int, int, int, int] = (0, 0, 0, 0),
) -> Launch:
    """The launch of a box whose nest has a kernel.

    bounds  [low, stop) of source and destination, in units
    reach   of one table entry, as `reach_of` returns it
    """
    src, dst = refs(step.scalar.innermost)
    src_at, dst_at = int_size(src.const) if src else 0, int_size(dst.const)
    unit_bits = step.vectorized.buffer("dst").unit_bits
    if step.scalar.buffer("dst").unit_bits == 1 and unit_bits == 8:
        src_at, dst_at = src_at // 8, dst_at // 8
    calls = calls_for(step, src_at, tables, bounds, reach)
    trips = _trips(step.vectorized, tables)
    scale = 8 // step.scalar.buffer("dst").unit_bits
    src_bytes, dst_bytes = ((low // scale, -(-stop // scale)) for low, stop in bounds)
    return Launch(
        step, calls, src_at, dst_at, trips, fill, serial=unit_bits == 1, bounds=(src_bytes, dst_bytes)
    )


def _trips(nest: LoopNest, tables: tuple[PairTable, ...]) -> int:
    """How many iterations threads share: table entries, tiles, or trips of the first loop."""
    if tables:
        return prod(t.extent for t in tables)
    inner = nest.innermost
    if isinstance(inner, Transpose) and inner.grid:
        return inner.grid.count
    if isinstance(inner, TransposeTiles):
        return inner.trips
    return int_size(nest.loops[0].extent)


def with_alternative(launch: Launch, size: VectorSize | None, make: Callable[[Schedule], Launch]) -> Launch:
    """The launch with a fallback for destinations that are not aligned to a cache line."""
    otherwise = misaligned(launch.step.schedule, launch.step.scalar, size)
    return replace(launch, misaligned=make(otherwise)) if otherwise else launch


def with_prefetch(launch: Launch, distance: int) -> Launch:
    """The same row conversion, which also prefetches `distance` bytes ahead of its reads."""
    step = step_of(launch.step.scalar, replace(launch.step.schedule, prefetch=True))
    return replace(launch, step=step, calls=PrefetchCall(distance))


def reach_of(nest: LoopNest) -> tuple[int, int, int, int]:
    """The units that a scalar nest touches: [low, stop) of the source, then of the destination.

    A missing source has zeros.
    """
    out: list[int] = []
    for ref in refs(nest.innermost):
        if ref is None:
            out += [0, 0]
            continue
        digits = [(int_size(x.extent), int_size(ref.stride(x.axis))) for x in nest.loops]
        low, high = affine_range(int_size(ref.const), digits)
        buffer = nest.buffer(ref.buffer)
        out += [low, high + buffer.element.bits // buffer.unit_bits]
    return out[0], out[1], out[2], out[3]


def run_part(launches: tuple[Launch, ...], src: int, dst: int, alive: object, part: int, parts: int) -> None:
    """Run one thread's share of every box; `alive` is only kept referenced."""
    for launch in launches:
        launch.run(src, dst, part, parts)
