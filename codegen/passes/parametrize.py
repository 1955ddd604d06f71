"""Turn sizes into arguments of the kernel, so that one kernel serves many shapes."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import replace

from codegen.ir.strided_box import SIDES, Side, StridedBox
from codegen.schedule.copy_nest import CopyNest
from codegen.schedule.directives import (
    Assemble,
    Directive,
    Gather,
    Parallel,
    Reorder,
    Table,
    Tile,
)
from codegen.schedule.loops import LaneReads, Loop, Size, int_size
from codegen.schedule.offset_tables import OffsetTable
from codegen.schedule.schedule import Schedule
from codegen.schedule.staged_block import StagedBlock
from codegen.support.dataclasses import dataclass

LETTERS = "abcdefgh"
"""Names of the outer loops of a kernel, which copies share whose axes have other names."""


@dataclass(frozen=True, slots=True)
class Parametrized:
    """A nest whose sizes are names, and the values of the names in argument order."""

    nest: CopyNest
    sizes: tuple[tuple[str, int], ...]

    def __str__(self) -> str:
        return str(self.nest)


def parametrize_sizes(
    nest: CopyNest, names: Sequence[str], is_literal: Callable[[str], bool] = lambda name: False
) -> Parametrized:
    """Replace the sizes of a nest by names, except those that a layout fixes.

    before:  for tile_i in 9: dst += 4096, src += 9600: for i in 8:
               dst += 512, src += 1200: for x in 512:                      dst[x] = src[x]
    after:   for a in a_extent: dst += a_dst, src += a_src: for b in 8:
               dst += 512, src += b_src: for x in 512:                     dst[x] = src[x]

    names       of the outer loops
    is_literal  whether another size of that name remains a number
    """
    values: dict[str, int] = {}

    def size(name: str, value: Size) -> Size:
        if not isinstance(value, int):
            raise AssertionError(f"{name} is already parametrized")
        if is_literal(name):
            return value
        values[name] = value
        return name

    fixed = {side: fixed_strides(nest, side) for side in SIDES}

    def outer(name: str, loop: Loop) -> Loop:
        """Every loop has a stride on both sides, so that gaps do not need another kernel.

        Extents of loops in a block are arguments: unrolled by LLVM, they cost up to 7 % (Zen 4, 2026-11).
        """

        def stride(side: Side) -> Size:
            is_fixed = loop.axis in fixed[side]
            return loop.stride(side) if is_fixed else size(f"{name}_{side}", loop.stride(side))

        in_code = loop.fixed and loop.axis not in nest.in_block
        extent = loop.extent if in_code else size(f"{name}_extent", loop.extent)
        dst = stride("dst")
        return Loop(name, extent, stride("src") if nest.source else 0, dst)

    own = {x.axis: name for name, x in zip(names, nest.around, strict=True)}
    around = tuple(outer(own[x.axis], x) for x in nest.around)
    made = replace(_inner(size, nest, fixed), around=around)
    if block := made.staged_block:
        groups = tuple((own[axis], pitch) for axis, pitch in block.around)
        made = replace(made, staged_block=replace(block, around=groups))
    tiles = (x for x in nest.obeying(Tile) if x.axis in own)
    own |= {x.index: replace(x, axis=own[x.axis]).index for x in tiles}
    directives = tuple(_at_run_time(size, directive, nest, own) for directive in nest.directives)
    entries = size("entries", nest.entries) if nest.entries else 0
    return Parametrized(replace(made, directives=directives, entries=entries), tuple(values.items()))


def loop_letters(nest: CopyNest) -> tuple[str, ...]:
    """The names of the outer loops of a nest in kernels that other copies share: letters."""
    return tuple(LETTERS[: len(nest.around)])


def loop_axes(nest: CopyNest) -> tuple[str, ...]:
    """The names of the outer loops of a nest for readers: those of its axes."""
    return tuple(x.axis for x in nest.around)


def fixed_strides(nest: CopyNest, side: Side) -> frozenset[str]:
    """The axes whose strides on a side a layout fixes: in tiles whose elements follow each other.

    for tile in n: for i in 8: for j in 128:  dst += 4096, dst += 512, dst += 4       f32: all three
    """
    element = nest.source if side == "src" else nest.target
    left = [x for x in (*nest.around, *nest.loops) if not x.table(side)]
    found: list[str] = []
    step = element.bits // nest.unit_bits if element else 0
    while step and (x := next((x for x in left if x.stride(side) in (step, -step)), None)):
        left.remove(x)
        if x.fixed or found:
            found.append(x.axis)
        step *= x.fixed and int_size(x.extent)
    return frozenset(found)


def axis_names(nest: CopyNest, schedule: Schedule, box: StridedBox) -> str:
    """The axes of a box that its kernel loops over, and their extents: "tile_i (3), column = j (128)".

    A run counts bytes: "tile_i (3), x = bytes of j (128)".
    """
    outer = (f"{x.axis} ({x.extent})" for x in nest.around)
    return ", ".join((*outer, *(x.text(box.extents) for x in schedule.loops)))


_Sizes = Callable[[str, Size], Size]


def _inner(size: _Sizes, nest: CopyNest, fixed: Mapping[Side, Collection[str]]) -> CopyNest:
    """The nest with names for the sizes of its inner loops; elements that are only moved are unsigned.

    Sizes that decide how super-vectors look remain literals: the extents of axes that are in super-vectors as
    a whole, and the strides of a packed side.
    """
    directed = {*nest.lanes, *(tile.axis for tile in nest.obeying(Tile))}
    directed |= {x.axis for x in nest.loops if x.src_table}

    def stride(x: Loop, side: Side) -> Size:
        is_literal = x.axis in fixed[side] or (x.axis in directed and x.axis in nest.packed(side))
        return x.stride(side) if is_literal else size(f"{x.axis}_{side}", x.stride(side))

    def named(x: Loop) -> Loop:
        is_literal = x.axis in nest.whole or x.fixed
        extent = x.extent if is_literal else size(f"{x.axis}_extent", x.extent)
        src = stride(x, "src") if nest.source and not x.src_table else 0
        dst = stride(x, "dst") if not x.dst_table else 0
        return Loop(x.axis, extent, src, dst, x.src_table and OffsetTable(), x.dst_table and OffsetTable())

    target, source = nest.target, nest.source
    if nest.convert is None and all(x.bits >= 8 for x in (target, source) if x):
        target, source = target.unsigned, source and source.unsigned
    block, reads = nest.staged_block, nest.reads
    if block and nest.stages_rows:
        block = _staged_block(size, block)
    if reads:
        limits = "closed_start", "closed_stop", "open_offset"
        reads = LaneReads(*(size(name, getattr(reads, name)) for name in limits))
    loops = tuple(map(named, nest.loops))
    return replace(nest, loops=loops, target=target, source=source, staged_block=block, reads=reads)


def _at_run_time(size: _Sizes, directive: Directive, nest: CopyNest, own: Mapping[str, str]) -> Directive:
    """A directive without the contents of tables, with names for sizes and for the loops around."""
    match directive:
        case Table(side):
            return Table(side, OffsetTable())
        case Assemble():
            tables = OffsetTable(), OffsetTable()
            return replace(directive, steps=size("steps", directive.steps), tables=tables)
        case Parallel(loop):
            return Parallel(own.get(loop, loop))
        case Reorder(loops):
            return Reorder(tuple(own.get(name, name) for name in loops))
        case Tile() if directive in _sized_by_copies(nest):
            return replace(directive, size=size(f"{directive.index}_size", directive.size))
        case Tile(axis):
            return replace(directive, axis=own.get(axis, axis))
        case Gather(buffer_bytes):
            return Gather(size("buffer_bytes", buffer_bytes), None)
    return directive


def _sized_by_copies(nest: CopyNest) -> tuple[Tile, ...]:
    """The tiles of inner loops whose sizes are arguments, since they depend on more than a layout."""
    depends = nest.stages_rows or nest.obeying(Assemble)
    around = [x.axis for x in nest.around]
    return tuple(x for x in nest.outer_tiles if depends and x.axis not in around)


def _staged_block(size: _Sizes, block: StagedBlock) -> StagedBlock:
    """A block without the contents of tables, with names for sizes."""
    return replace(
        block,
        pitch=OffsetTable() if isinstance(block.pitch, OffsetTable) else size("staged_pitch", block.pitch),
        run_columns=size("columns_per_run", block.run_columns),
        size_bytes=size("staged_bytes", block.size_bytes),
        runs=block.runs and OffsetTable(),
        staged_runs=block.staged_runs and OffsetTable(),
    )
