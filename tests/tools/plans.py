"""Plan random copies for random machines without compiling: `python -m tests.tools.plans --cases 1000`.

Schedules depend on caches, thresholds and the CPU level, so one machine sees few of them. Every plan is
checked: each schedule takes every axis of the box that it is applied to, once. The first launch of each
kernel is proven to stay within its storages. Nothing is compiled or copied.
"""

from __future__ import annotations

import argparse
import sys
import warnings
from collections import Counter
from collections.abc import Iterator
from contextlib import ExitStack
from dataclasses import dataclass, field
from math import prod

import numpy as np

import tests.tools.strategies as random_of
from codegen import (
    AccessMap,
    CopyOptions,
    CopyProgram,
    CopyRequest,
    Element,
    FallbackWarning,
    footprint_bytes,
    may_stage,
)
from codegen.ir.strided_box import StridedBox
from codegen.maps.permuted import PermutedMap
from codegen.pipeline.calibrate import streamed_from
from codegen.pipeline.copies import compile_copy
from codegen.pipeline.proofs import prove_launch
from codegen.pipeline.staged_copy import staged_copy
from codegen.pipeline.verify import verify_copy
from codegen.schedule.check_nest import check_nest
from codegen.schedule.machine import REGISTERS, Machine, described
from codegen.schedule.schedule import Schedule, VectorSize
from tests.tools.strategies import Pick, chance, one_of
from tilejit.arrays.memory import bytes_map
from tilejit.layout.cute_shape import CuteShape, Spec
from tilejit.layout.indexing import access_map
from tilejit.layout.permuted import permuted_map
from tilejit.programs.compiled import array_element, buffer_element

MIB = 1 << 20
FIRST_CACHES = (8, 32 << 10), (12, 48 << 10)
"""Ways and bytes."""
SECOND_CACHES = 256 << 10, 512 << 10, 1 * MIB, 2 * MIB, 4 * MIB
LAST_CACHES = 0, 8 * MIB, 32 * MIB, 96 * MIB, 300 * MIB
STREAMED_FROM = 2 * MIB, 4 * MIB, 8 * MIB, 16 * MIB, 32 * MIB, 64 * MIB

CASES_PER_MACHINE = 50
"""Consecutive cases that share a machine: caches are emptied for each one."""

MOST_BITS = 27
"""The largest arrays have up to 2**27 bytes. Nothing allocates them."""

SHORT = (2, 2, 3, 3, 4, 5, 6, 7, 8, 8, 9, 12, 16)
LONG = (
    *(15, 17, 24, 31, 32, 33, 48, 63, 64, 65, 66, 100, 128),
    *(168, 255, 256, 300, 370, 512, 1000, 1024, 4096, 4097),
)
VECTOR_SIZES: tuple[VectorSize, ...] = (
    *(1, 3, 16, 64, 100, 256, 1024, 1 << 20),
    *((16, 32), (7, 5), (1, 1), (64, 64), (32, 256), (1024, 1024), (1 << 17, 8), (1, 1 << 20)),
)
CONVERSIONS = (
    *(("f32", "bf16"), ("bf16", "f32"), ("f32", "f16"), ("f64", "f32"), ("f32", "f64"), ("s8", "f32")),
    *(
        ("u8", "u16"),
        ("u16", "u8"),
        ("s64", "s32"),
        ("s32", "s64"),
        ("u8", "f32"),
        ("f64", "s8"),
        ("u8", "f64"),
    ),
)


class PlanError(AssertionError):
    """A plan is wrong, or there is none."""


@dataclass
class Seen:
    """What the plans of a run have in common: how often each kind occurs, and the proven kernels."""

    counts: Counter[str] = field(default_factory=Counter)
    proven: set[tuple[str, type]] = field(default_factory=set)


def check_plans(seed: int, first: int, cases: int, seen: Seen) -> Iterator[str]:
    """Plan that many copies; yield what is wrong with each plan that has a fault."""
    with ExitStack() as stack, warnings.catch_warnings(action="error", category=FallbackWarning):
        for number in range(first, first + cases):
            if number == first or number % CASES_PER_MACHINE == 0:
                stack.close()
                machine = random_machine(seed, number // CASES_PER_MACHINE)
                stack.enter_context(described(machine))
            pick = random_of.picker(np.random.default_rng((seed, number)))
            request, permuted = random_copy(pick)
            try:
                check_plan(request, permuted, seen, whole=chance(pick, 20))
            except Exception as error:
                again = f"python -m tests.tools.plans --seed {seed} --first {number} --cases 1"
                yield f"case {number}: {type(error).__name__}: {error}\n  {request}\n  {machine}\n  {again}"


def random_machine(seed: int, number: int) -> Machine:
    """A CPU level, with caches and a threshold that need not fit together."""
    pick = random_of.picker(np.random.default_rng((seed, number, 1)))
    level = one_of(pick, tuple(REGISTERS))
    ways, first = one_of(pick, FIRST_CACHES)
    return Machine(
        *(level, *REGISTERS[level], ways, one_of(pick, SECOND_CACHES), one_of(pick, LAST_CACHES), first),
        stream_bytes=one_of(pick, STREAMED_FROM),
        joins_bytes=bool(chance(pick, 2)),
    )


def random_copy(pick: Pick) -> tuple[CopyRequest, PermutedMap | None]:
    """A copy between arrays, or to or from a tiled layout.

    Returns its request, and the layout if it is swizzled.
    """
    if not chance(pick, 3):
        return _requested(pick, *_arrays(pick)), None
    spec = _spec(pick)
    tiled = access_map(spec), buffer_element(spec)
    if chance(pick, 3):
        most = 8 * prod(spec.dimensions)
        other = random_of.shape(pick, dtype=spec.primitive_type, dims=spec.dimensions, most=most)
        packs, permuted = False, None
        (src, source), (dst, target) = tiled, (access_map(other), buffer_element(other))
    else:
        element = array_element(spec)
        width = element.bits // 8
        steps = random_of.strides(pick, spec.dimensions, width, broadcast=False, reach=1 << 30)
        array = bytes_map(spec.dimensions, steps, width), element
        packs, permuted = chance(pick, 2), permuted_map(spec) if isinstance(spec, CuteShape) else None
        (src, source), (dst, target) = (array, tiled) if packs else (tiled, array)
    request = _requested(pick, src, dst, source, target, padded=not chance(pick, 3))
    return request, permuted


def _spec(pick: Pick) -> Spec:
    most = 1 << max(pick(2, MOST_BITS - 5), pick(2, MOST_BITS - 5))
    if chance(pick, 4):
        return random_of.cute_shape(pick, swizzled=chance(pick, 2), most=most)
    return random_of.shape(pick, most=most)


def _requested(
    pick: Pick, src: AccessMap, dst: AccessMap, source: Element, target: Element, *, padded: bool = False
) -> CopyRequest:
    """The request with random options."""
    candidate = pick(0, 30) if chance(pick, 4) else 0

    def numbered(_: StridedBox, schedules: tuple[Schedule, ...]) -> Schedule:
        return schedules[candidate % len(schedules)]

    options = CopyOptions(
        threads=one_of(pick, (1, 1, 2, 3, 8)),
        virtual_vector_size=one_of(pick, VECTOR_SIZES) if chance(pick, 8) else None,
        stream_bytes=streamed_from(footprint_bytes(src, dst)),
        pick=numbered if candidate else None,
    )
    padding = bytes(-(-target.bits // 8)) if padded else None
    is_moved = source == target and target.bits in (16, 32, 64)
    return CopyRequest(src, dst, source, target, is_moved and chance(pick, 12), padding, options)


def _arrays(pick: Pick) -> tuple[AccessMap, AccessMap, Element, Element]:
    """Two strided arrays: permuted, reversed, broadcast, with padding, at any distance of rows."""
    if chance(pick, 5):
        names = one_of(pick, CONVERSIONS)
        source, target = (Element(name, int(name.lstrip("bfsu"))) for name in names)
    else:
        source = target = Element(name := f"u{one_of(pick, (8, 16, 32, 64, 128))}", int(name[1:]))
    room = (1 << max(pick(6, MOST_BITS), pick(6, MOST_BITS))) * 8 // target.bits
    dims: list[int] = []
    for _ in range(pick(2, 6)):
        fits = [n for n in (SHORT if chance(pick, 2) else LONG) if n <= room]
        if not fits:
            break
        dims.append(one_of(pick, fits))
        room //= dims[-1]
    if room > 1 and chance(pick, 2):
        dims.append(min(room, pick(2, 1 << 20)))
    sides = [
        _strides(pick, dims, x.bits // 8, broadcast=x is source and k == 0)
        for k, x in enumerate((source, target))
    ]
    src, dst = (bytes_map(tuple(dims), s, x.bits // 8) for s, x in zip(sides, (source, target), strict=True))
    return src, dst, source, target


def _strides(pick: Pick, dims: list[int], itemsize: int, *, broadcast: bool) -> tuple[int, ...]:
    """Mostly a permuted contiguous array; else one of `strategies.strides`."""
    if chance(pick, 3):
        return random_of.strides(pick, tuple(dims), itemsize, broadcast=broadcast, reach=1 << 30)
    out, step = [0] * len(dims), itemsize
    for d in random_of.permutation(pick, len(dims)):
        out[d] = -step if chance(pick, 12) else step
        step *= dims[d]
    return tuple(out)


def check_plan(request: CopyRequest, permuted: PermutedMap | None, seen: Seen, *, whole: bool) -> None:
    """Plan a copy in one pass and, if the compiler thinks that it is faster, in two; check every launch.

    whole: also check the boxes of the copy, and prove all launches
    """
    program = compile_copy(request)
    if whole:
        verify_copy(program.boxed)
    _check(program, seen, whole=whole)
    options = request.options
    if request.swap or options.pick or options.virtual_vector_size:
        return
    if not may_stage(footprint_bytes(program.src, program.dst)):
        return
    elements = request.source, request.target
    found = staged_copy(
        program, *elements, padding=request.padding, threads=options.threads, permuted=permuted
    )
    if found is None:
        return
    seen.counts["in two stages"] += 1
    for stage in (x for step in found.blocks.copies for x in step.programs.values()):
        _check(stage, seen, whole=False)


def _check(program: CopyProgram, seen: Seen, *, whole: bool) -> None:
    launches = *program.first, *program.launches
    for launch in (x for each in launches for x in (each, each.misaligned) if x):
        schedule = launch.step.schedule
        seen.counts[" ".join(x.name for x in schedule.loops) or "joined boxes"] += 1
        seen.counts["misaligned"] += launch.misaligned is not None
        if not launch.step.is_joined:
            check_axes(launch.step.box, schedule)
            check_nest(launch.step.nest)
        kind = launch.step.kernel.name, type(launch.calls)
        if whole or kind not in seen.proven:
            seen.proven.add(kind)
            prove_launch(launch)


def check_axes(box: StridedBox, schedule: Schedule) -> None:
    """Check that the loops of a schedule are the axes of the box, each of them once."""
    taken = [*schedule.outer, *schedule.inner]
    axes = [axis.name for axis in box.axes]
    if Counter(taken) != Counter(axes):
        raise PlanError(f"expected the axes {sorted(axes)}, got {sorted(taken)}: {schedule}")


def main(arguments: list[str] | None = None) -> int:
    """Plan copies and print what is wrong; return 0 if all plans are right."""
    parser = argparse.ArgumentParser(
        prog="python -m tests.tools.plans", usage="%(prog)s [options]", description=__doc__
    )
    parser.add_argument("--cases", type=int, default=2000)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--first", type=int, default=0, help="number of the first case")
    options = parser.parse_args(arguments)
    seen, failures = Seen(), 0
    for text in check_plans(options.seed, options.first, options.cases, seen):
        print(text, flush=True)
        failures += 1
    print(
        f"{options.cases} plans of seed {options.seed}: {failures} failed, {len(seen.proven)} kernels proven"
    )
    print("  " + ", ".join(f"{name} {count}" for name, count in sorted(seen.counts.items())))
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main())
