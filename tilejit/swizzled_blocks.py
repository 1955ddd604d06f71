"""Swizzled layouts block by block: packed without the swizzle in cache, swizzled from there; and back.

A swizzle permutes the pieces of one period of memory, whatever the layout below it is. What is copied box by
box, each for one value of the bits that choose, is two plain copies this way: the whole layout without the
swizzle, to or from a part of it that stays in cache, and memory to memory, piece by piece.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from math import prod

from codegen import AccessMap, CopyProgram, Element, Leaf, Root, ceil_div, machine
from tilejit.block_grid import BlockGrid, Dims, Ends
from tilejit.blocks import LEAST_BYTES, BlockProgram
from tilejit.layout.cute.function import Function, Mode
from tilejit.layout.cute.swizzle import Swizzle
from tilejit.layout.cute.swizzled import chain, swizzled_roots
from tilejit.layout.cute_shape import CuteShape, Spec
from tilejit.memory import LINE_BYTES, bytes_map
from tilejit.programs import compiled_part, outgrows_caches

BLOCK_BYTES = min(256 << 10, machine().second_cache_bytes // 4)
"""What a block takes in cache: with what is read and written beside it, less than a second cache."""

MOST_COLUMNS = 1 << 12
"""Columns that a block is transposed by, a line of each row at one time: the hardware follows 32 rows, not
64. Halves packed in columns: 0.3 of memcpy by tiles of several lines each way, 0.5 by those (Zen 5, 2026-11).
"""

Run = tuple[int, int, int]
"""(count, step in the block, step in the buffer), in elements."""


@dataclass(frozen=True, slots=True)
class _Digit:
    """A digit of a dimension of a block: how many, its stride in the block and in the buffer."""

    dim: int
    count: int
    near: int
    far: int


@dataclass(frozen=True, slots=True)
class _Plan:
    """A swizzled layout over an array of those strides in bytes, and how both are cut into blocks."""

    spec: CuteShape
    strides: Dims
    swizzle: Swizzle
    period: int
    modes: tuple[Mode, ...]

    @property
    def itemsize(self) -> int:
        """Bytes of an element on both sides."""
        return self.spec.dtype.itemsize

    def grains(self) -> Dims:
        """The fewest elements along each dimension after which the layout below repeats itself."""
        return tuple(prod(n for n, _ in mode[:-1]) for mode in self.modes)

    def digits(self, extents: Dims) -> tuple[_Digit, ...] | None:
        """The digits of a block, the nearest first, as close together in it as they can be.

        None where the block is no whole number of digits, or does not fill periods.
        """
        found: list[tuple[int, int, int]] = []
        for dim, (mode, extent) in enumerate(zip(self.modes, extents, strict=True)):
            for size, stride in mode:
                count = min(size, extent)
                if extent % count or stride <= 0:
                    return None
                extent //= count
                found += [(stride, dim, count)] if count > 1 else []
            if extent > 1:
                return None
        out: list[_Digit] = []
        near = reach = 1
        for stride, dim, count in sorted(found):
            if stride < self.period:
                fits = stride == reach
            else:
                fits = stride >= reach and not (stride % self.period or near % self.period)
            if not fits:
                return None
            out.append(_Digit(dim, count, near, stride))
            near, reach = near * count, stride * count
            if reach > self.period and reach % self.period:
                return None
        return tuple(out) if near % self.period == 0 else None

    def extents(self) -> Dims | None:
        """Blocks as long along the array's rows as they may be, then along the other dimensions; the other
        way round where those fill no periods.
        """
        dims, grains = self.spec.dimensions, self.grains()
        if any(n % g for n, g in zip(dims, grains, strict=True)):
            return None
        by_rows = sorted(range(len(dims)), key=lambda d: abs(self.strides[d]))
        for order in (by_rows, by_rows[::-1]):
            out = list(grains)
            for d in order:
                room = BLOCK_BYTES // self.itemsize // prod(out)
                out[d] = _even(dims[d] // grains[d], room) * grains[d] if room else out[d]
            if prod(out) * self.itemsize <= 2 * BLOCK_BYTES and self.digits(tuple(out)):
                return tuple(out)
        return None


def _even(count: int, room: int) -> int:
    """Grains of `count` that fit, an even share of them where that is no less than half."""
    most = min(count, max(room, 1))
    return next((n for n in range(most, most // 2, -1) if count % n == 0), most)


def swizzled_in_blocks(
    direct: CopyProgram, pads: Callable[[], CopyProgram], spec: Spec, strides: Dims, *, packs: bool
) -> BlockProgram | None:
    """The copy between an array of those strides and a swizzled layout block by block; None where blocks
    cannot be cut, or gain nothing.

    `pads` makes the program of the padding. What moves through memory is the same as without blocks.
    """
    plan = _plan_of(spec, strides)
    if plan is None or not gains(direct, packs=packs):
        return None
    extents = plan.extents()
    steps = _steps(plan, extents) if extents else None
    if extents is None or steps is None:
        return None
    grid = BlockGrid(plan.spec.dimensions, extents)
    if not grid.is_of_few_sorts:
        return None
    programs: dict[Ends, tuple[CopyProgram, CopyProgram]] = {}
    for ends in grid.ends():
        made = _programs(plan, grid, steps, ends, packs=packs)
        if made is None:
            return None
        programs[ends] = made
    sides = steps if packs else (steps[1], steps[0])
    size = prod(extents) * plan.itemsize
    return BlockProgram(pads(), grid, sides, programs, direct.bounds, size)


def _plan_of(spec: Spec, strides: Dims) -> _Plan | None:
    if not isinstance(spec, CuteShape) or 0 in spec.dimensions or spec.bits != 8 * spec.dtype.itemsize:
        return None
    found = spec.function.swizzle
    if found is None or found[0] or not found[1].bits or 2 * spec.size_in_bytes < LEAST_BYTES:
        return None
    swizzle = found[1]
    period = 1 << (swizzle.bits + swizzle.base + abs(swizzle.shift))
    modes = tuple(_used(mode, n) for mode, n in zip(spec.function.modes, spec.dimensions, strict=True))
    return _Plan(spec, strides, swizzle, period, modes)


def _used(mode: Mode, extent: int) -> Mode:
    """The digits of a mode that an extent reaches, those that follow each other as one."""
    out: list[tuple[int, int]] = []
    weight = 1
    for size, stride in mode:
        if weight >= extent or size == 1:
            continue
        size = min(size, ceil_div(extent, weight))
        weight *= size
        if out and stride == out[-1][0] * out[-1][1]:
            out[-1] = out[-1][0] * size, out[-1][1]
        else:
            out.append((size, stride))
    return tuple(out) or ((1, 1),)


def gains(direct: CopyProgram, *, packs: bool) -> bool:
    """Whether blocks are faster: where most bytes are transposed, or come out of a buffer box by box.

    Transposed, boxes run at 0.03 to 0.3 of memcpy and blocks at 0.3 to 0.65; out of a buffer, lines from
    pieces at 0.35 to 0.6 and blocks at 0.6 to 0.85 (Zen 5, 2026-11). Lines that are gathered, and those that
    are put into a buffer from pieces, need no blocks.
    """
    modes = {x.step.schedule.mode for x in direct.launches if x.fill is None}
    return bool(modes) and "gather" not in modes and not (packs and modes <= {"pieces", "run"})


def _steps(plan: _Plan, extents: Dims) -> tuple[Dims, Dims] | None:
    """Bytes from one block to the next along each dimension, of the array and of the buffer.

    None where the buffer's are no whole periods.
    """
    far = []
    for mode, extent, grain in zip(plan.modes, extents, plan.grains(), strict=True):
        size, stride = mode[-1]
        step = extent // grain * stride if extent // grain < size else 0
        if step % plan.period:
            return None
        far.append(step * plan.itemsize)
    near = (e * s for e, s in zip(extents, plan.strides, strict=True))
    return tuple(near), tuple(far)


def _programs(
    plan: _Plan, grid: BlockGrid, steps: tuple[Dims, Dims], ends: Ends, *, packs: bool
) -> tuple[CopyProgram, CopyProgram] | None:
    """Of one sort of block: into cache, and out of it."""
    starts, cut = grid.box(ends)
    digits = plan.digits(cut)
    if digits is None:
        return None
    numbers = [start // extent for start, extent in zip(starts, grid.extents, strict=True)]
    array_at, buffer_at = (sum(k * step for k, step in zip(numbers, side, strict=True)) for side in steps)
    array = _moved(bytes_map(cut, plan.strides, plan.itemsize), array_at)
    between, memory = _plain(plan, cut, digits), _memory(plan, digits, buffer_at)
    if memory is None:
        return None
    element = Element(plan.spec.primitive_type, plan.spec.bits)
    streams = outgrows_caches(2 * plan.spec.size_in_bytes)
    near, far = memory
    there, back = ((array, between), (near, far)) if packs else ((far, near), (between, array))
    size = (LINE_BYTES // plan.itemsize or 1, MOST_COLUMNS) if packs else None
    return (
        compiled_part(*there, element, element, streams=False, virtual_vector_size=size),
        compiled_part(*back, element, element, streams=streams),
    )


def _moved(access: AccessMap, at: int) -> AccessMap:
    low, stop = access.bounds
    return replace(access, base=access.base + at, bounds=(low + at, stop + at))


def _plain(plan: _Plan, extents: Dims, digits: tuple[_Digit, ...]) -> AccessMap:
    """The block in cache: the layout without its swizzle, its digits close together."""
    roots = []
    for dim, extent in enumerate(extents):
        own = {d.far: (d.count, d.near) for d in digits if d.dim == dim}
        mode = tuple(own[stride] for _, stride in plan.modes[dim] if stride in own)
        roots.append(Root((dim,), chain(mode, extent)))
    size = prod(extents)
    return AccessMap(extents, tuple(roots), 0, plan.spec.bits, plan.spec.bits, (0, size))


def _memory(plan: _Plan, digits: tuple[_Digit, ...], at: int) -> tuple[AccessMap, AccessMap] | None:
    """The block in cache and the buffer as arrays of periods: side by side there, swizzled here."""
    period, bits = plan.period, plan.spec.bits
    outer = [_above(run, period) for run in _runs(digits) if run[0] * run[2] > period]
    found = swizzled_roots(Function((((period, 1),),), ((0, plan.swizzle),)), (period,))
    if found is None or len(found[1]) != 1:
        return None
    dims = (*(n for n, _, _ in reversed(outer)), period)
    near, far = (
        [Root((k,), Leaf(run[0], run[side])) for k, run in enumerate(reversed(outer))] for side in (1, 2)
    )
    rank, base = len(outer), at * 8 // bits
    stop = sum((n - 1) * step for n, _, step in outer) + period
    swizzled = (*far, Root((rank,), found[1][0].tree))
    return (
        AccessMap(dims, (*near, Root((rank,), Leaf(period, 1))), 0, bits, bits, (0, prod(dims))),
        AccessMap(dims, swizzled, base + found[0], bits, bits, (base, base + stop)),
    )


def _runs(digits: tuple[_Digit, ...]) -> list[Run]:
    """The digits, those as one that follow each other in the buffer, as they all do in the block.

    What is less than a period is one run then, though no single digit may end where a period does.
    """
    out: list[Run] = []
    for digit in digits:
        if out and digit.far == out[-1][0] * out[-1][2]:
            out[-1] = out[-1][0] * digit.count, *out[-1][1:]
        else:
            out.append((digit.count, digit.near, digit.far))
    return out


def _above(run: Run, period: int) -> Run:
    """What a run has outside a period."""
    count, near, far = run
    inside = max(period // far, 1)
    return count // inside, near * inside, far * inside
