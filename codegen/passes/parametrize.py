"""Turn sizes into arguments of the kernel, so that one kernel serves many shapes."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace

from codegen.ir.strided_box import Element, Side
from codegen.schedule.directives import (
    Assemble,
    Directive,
    Groups,
    LanesBeyond,
    PrefetchTile,
    Reorder,
    Stage,
    Table,
    Tile,
)
from codegen.schedule.offset_tables import OffsetTable, RowGroups
from codegen.schedule.panels import Panel
from codegen.schedule.schedule import COLUMNS, ROWS, Schedule
from codegen.schedule.transfer_loops import LaneReads, Loop, Size
from codegen.schedule.transfers import Gather, Moves, Transfer, TransferNest
from codegen.support.dataclasses import dataclass
from codegen.support.lookups import expect

NAMES = "abcdefgh"
"""Names of the loops around a transfer in the source of a kernel, which many copies share."""


@dataclass(frozen=True, slots=True)
class Parametrized:
    """A nest whose sizes are names, and the values of the names in argument order."""

    nest: TransferNest
    sizes: tuple[tuple[str, int], ...]

    def __str__(self) -> str:
        return str(self.nest)


def parametrize_sizes(
    nest: TransferNest, is_literal: Callable[[str], bool] = lambda name: False
) -> Parametrized:
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

    loops = tuple(
        _loop(size, name, x, reads=not nest.fills)
        for name, x in zip(loop_names(nest), nest.loops, strict=True)
    )
    transfer = _transfer(size, nest.transfer)
    entries = size("entries", nest.entries) if nest.entries else 0
    return Parametrized(TransferNest(loops, transfer, entries, nest.unit_bits), tuple(values.items()))


def loop_names(nest: TransferNest) -> tuple[str, ...]:
    """A kernel's names for the loops around a transfer: letters, or their own names if over super-vectors."""
    names = iter(NAMES)
    return tuple(x.axis if x.axis in (ROWS, COLUMNS) else _another(names) for x in nest.loops)


def _another(names: Iterator[str]) -> str:
    return expect(names, "a name for another loop", NAMES)


_Sizes = Callable[[str, Size], Size]


def _loop(size: _Sizes, name: str, loop: Loop, *, reads: bool = True) -> Loop:
    """Every loop has a stride on both sides, so that gaps do not need another kernel."""
    extent, dst = size(f"{name}_extent", loop.extent), size(f"{name}_dst", loop.dst)
    return Loop(name, extent, size(f"{name}_src", loop.src) if reads else 0, dst)


def _transfer(size: _Sizes, transfer: Transfer) -> Transfer:
    """The transfer with its sizes as names; widths, tiles and blocks are literals of the code."""
    match transfer:
        case Moves():
            return _moves(size, transfer)
        case Gather():
            return replace(transfer, segments=None, buffer_bytes=size("buffer_bytes", transfer.buffer_bytes))


def axis_names(nest: TransferNest, schedule: Schedule) -> str:
    """The axis of the copy for each loop of its kernel: "a = d2, i = d0, j = d1".

    row, column    those of a transpose
    inside         the axes that other transfers take
    """
    inner, names = nest.transfer, iter(NAMES)
    if schedule.transpose is None:
        named = zip(loop_names(nest), nest.loops, strict=True)
        own = [f"{name} = {loop.axis}" for name, loop in named if name != loop.axis]
        return ", ".join([*own, f"inside = {' '.join(schedule.inner)}"] if schedule.inner else own)
    assert isinstance(inner, Moves)
    outer = [x.axis for x in inner.around if not inner.tiles(x.axis)]
    cut = schedule.transpose
    sides = [f"layer = {cut.layers}"] if cut.layers else []
    sides += [f"row = {' '.join(cut.rows)}", f"column = {' '.join(cut.columns)}"]
    return ", ".join([*(f"{_another(names)} = {axis}" for axis in outer), *sides])


def _moves(size: _Sizes, moves: Moves) -> Moves:
    """Sizes that decide how super-vectors look remain literals; elements that are only moved are unsigned.

    These are the extents of axes that are in super-vectors as a whole, and the strides of a packed side.
    """
    directed = {*moves.lanes, *(tile.axis for tile in moves.obeying(Tile))}
    directed |= {x.axis for x in moves.loops if x.src_table}
    names, around = iter(NAMES), {x.axis for x in moves.around if not moves.tiles(x.axis)}
    letters = {x.axis: _another(names) for x in moves.loops if x.axis in around}

    def stride(x: Loop, side: Side) -> Size:
        is_literal = x.axis in directed and x.axis in moves.packed(side)
        return x.stride(side) if is_literal else size(f"{x.axis}_{side}", x.stride(side))

    def named(x: Loop) -> Loop:
        if x.axis in letters:
            return _loop(size, letters[x.axis], x)
        extent = x.extent if x.axis in moves.whole else size(f"{x.axis}_extent", x.extent)
        src = stride(x, "src") if moves.source and not x.src_table else 0
        dst = stride(x, "dst") if not x.dst_table else 0
        return Loop(x.axis, extent, src, dst, x.src_table and OffsetTable(), x.dst_table and OffsetTable())

    target, source = moves.target, moves.source
    if moves.convert is None and all(x.bits >= 8 for x in (target, source) if x):
        target, source = _unsigned(target), source and _unsigned(source)
    loops = tuple(map(named, moves.loops))
    directives = tuple(_at_run_time(size, directive, letters) for directive in moves.directives)
    return replace(moves, loops=loops, target=target, source=source, directives=directives)


def _at_run_time(size: _Sizes, directive: Directive, letters: dict[str, str]) -> Directive:
    """A directive without the contents of tables, with names for sizes and for the loops around."""
    match directive:
        case Table(side):
            return Table(side, OffsetTable())
        case Assemble():
            tables = OffsetTable(), OffsetTable()
            return replace(directive, steps=size("steps", directive.steps), tables=tables)
        case Groups():
            return Groups(RowGroups())
        case Reorder(loops):
            return Reorder(tuple(letters.get(name, name) for name in loops))
        case LanesBeyond(reads):
            limits = "closed_start", "closed_stop", "open_offset"
            return LanesBeyond(LaneReads(*(size(name, getattr(reads, name)) for name in limits)))
        case Tile(axis, level="panel"):
            panel = size(f"{axis}_panel_size", directive.size), size(f"{axis}_panels", directive.count)
            return Tile(axis, panel[0], "panel", panel[1])
        case Stage(Panel() as panel):
            return Stage(_panel(size, panel))
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
