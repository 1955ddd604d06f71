"""Turn sizes into arguments of the kernel, so that one kernel serves many shapes."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace

from codegen.ir.strided_box import Element, Side, StridedBox
from codegen.schedule.copy_nest import CopyNest
from codegen.schedule.directives import (
    Assemble,
    Directive,
    Gather,
    Groups,
    Parallel,
    PrefetchTile,
    Reorder,
    Table,
    Tile,
)
from codegen.schedule.loops import LaneReads, Loop, Size, int_size
from codegen.schedule.offset_tables import OffsetTable, RowGroups
from codegen.schedule.panels import Panel
from codegen.schedule.schedule import COLUMNS, ROWS, Joined, Schedule
from codegen.support.dataclasses import dataclass
from codegen.support.lookups import expect

NAMES = "abcdefgh"
"""Names of the outer loops in the source of a kernel, which many copies share."""


@dataclass(frozen=True, slots=True)
class Parametrized:
    """A nest whose sizes are names, and the values of the names in argument order."""

    nest: CopyNest
    sizes: tuple[tuple[str, int], ...]

    def __str__(self) -> str:
        return str(self.nest)


def parametrize_sizes(nest: CopyNest, is_literal: Callable[[str], bool] = lambda name: False) -> Parametrized:
    """Replace the sizes of a nest by names.

    before:  for i in 9: dst += 512, src += 1200:            for x in 512: dst[x] = src[x]
    after:   for a in a_extent: dst += a_dst, src += a_src:  for x in x_extent: dst[x] = src[x]

    is_literal  whether the size of that name remains a number
    """
    values: dict[str, int] = {}

    def size(name: str, value: Size) -> Size:
        if not isinstance(value, int):
            raise AssertionError(f"{name} is already parametrized")
        if is_literal(name):
            return value
        values[name] = value
        return name

    names = loop_names(nest)
    reads = nest.source is not None
    around = tuple(_loop(size, name, x, reads=reads) for name, x in zip(names, nest.around, strict=True))
    made = replace(_inner(size, nest), around=around)
    letters = {x.axis: name for name, x in zip(names, nest.around, strict=True)}
    directives = tuple(_at_run_time(size, directive, nest, letters) for directive in nest.directives)
    entries = size("entries", nest.entries) if nest.entries else 0
    return Parametrized(replace(made, directives=directives, entries=entries), tuple(values.items()))


def loop_names(nest: CopyNest) -> tuple[str, ...]:
    """A kernel's names for the outer loops: letters, or their own names if over super-vectors."""
    names = iter(NAMES)
    return tuple(x.axis if x.axis in (ROWS, COLUMNS) else _another(names) for x in nest.around)


def _another(names: Iterator[str]) -> str:
    return expect(names, "a name for another loop", NAMES)


_Sizes = Callable[[str, Size], Size]


def _loop(size: _Sizes, name: str, loop: Loop, *, reads: bool = True) -> Loop:
    """Every loop has a stride on both sides, so that gaps do not need another kernel."""
    extent, dst = size(f"{name}_extent", loop.extent), size(f"{name}_dst", loop.dst)
    return Loop(name, extent, size(f"{name}_src", loop.src) if reads else 0, dst)


def axis_names(nest: CopyNest, schedule: Schedule, box: StridedBox) -> str:
    """The axes of a box that its kernel loops over, and their extents: "a = tile_i (3), column = j (128)".

    A run counts bytes: "a = tile_i (3), x = bytes of j (128)".
    """
    named = zip(loop_names(nest), (x.axis for x in nest.around), strict=True)
    outer = (Joined(name, (axis,)) for name, axis in named if name != axis)
    return ", ".join(x.text(box.extents) for x in (*outer, *schedule.loops))


def _inner(size: _Sizes, nest: CopyNest) -> CopyNest:
    """The nest with names for the sizes of its inner loops; elements that are only moved are unsigned.

    Sizes that decide how super-vectors look remain literals: the extents of axes that are in super-vectors as
    a whole, and the strides of a packed side.
    """
    directed = {*nest.lanes, *(tile.axis for tile in nest.obeying(Tile))}
    directed |= {x.axis for x in nest.loops if x.src_table}

    def stride(x: Loop, side: Side) -> Size:
        is_literal = x.axis in directed and x.axis in nest.packed(side)
        return x.stride(side) if is_literal else size(f"{x.axis}_{side}", x.stride(side))

    def named(x: Loop) -> Loop:
        extent = x.extent if x.axis in nest.whole else size(f"{x.axis}_extent", x.extent)
        src = stride(x, "src") if nest.source and not x.src_table else 0
        dst = stride(x, "dst") if not x.dst_table else 0
        return Loop(x.axis, extent, src, dst, x.src_table and OffsetTable(), x.dst_table and OffsetTable())

    target, source = nest.target, nest.source
    if nest.convert is None and all(x.bits >= 8 for x in (target, source) if x):
        target, source = _unsigned(target), source and _unsigned(source)
    panel, reads = nest.panel and _panel(size, nest.panel), nest.reads
    if reads:
        limits = "closed_start", "closed_stop", "open_offset"
        reads = LaneReads(*(size(name, getattr(reads, name)) for name in limits))
    loops = tuple(map(named, nest.loops))
    return replace(nest, loops=loops, target=target, source=source, panel=panel, reads=reads)


def _at_run_time(size: _Sizes, directive: Directive, nest: CopyNest, letters: dict[str, str]) -> Directive:
    """A directive without the contents of tables, with names for sizes and for the loops around."""
    match directive:
        case Table(side):
            return Table(side, OffsetTable())
        case Assemble():
            tables = OffsetTable(), OffsetTable()
            return replace(directive, steps=size("steps", directive.steps), tables=tables)
        case Groups():
            return Groups(RowGroups())
        case Parallel(loop):
            return Parallel(letters.get(loop, loop))
        case Reorder(loops):
            return Reorder(tuple(letters.get(name, name) for name in loops))
        case Tile(axis, int() as wide, "panel"):
            count = -(-int_size(nest.axis(axis).extent) // wide)
            return Tile(axis, size(f"{axis}_panel_size", wide), "panel", size(f"{axis}_panels", count))
        case Gather(buffer_bytes):
            return Gather(size("buffer_bytes", buffer_bytes), None)
        case PrefetchTile(int() as lines):
            return PrefetchTile(size("requests", lines))
    return directive


def _panel(size: _Sizes, panel: Panel) -> Panel:
    """A panel without the contents of tables, with names for sizes."""
    return replace(
        panel,
        pitch=OffsetTable() if isinstance(panel.pitch, OffsetTable) else size("panel_pitch", panel.pitch),
        run_columns=size("columns_per_run", panel.run_columns),
        size_bytes=size("panel_bytes", panel.size_bytes),
        runs=panel.runs and OffsetTable(),
        panel_runs=panel.panel_runs and OffsetTable(),
    )


def _unsigned(element: Element) -> Element:
    return Element(f"u{element.bits}", element.bits)
