"""The super-vectors of scalar statements: iterations of some loops at once, as lanes."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from math import prod
from typing import NamedTuple, TypeAlias, TypeVar

from codegen.analysis.bodies import flat
from codegen.ir.building import loop, minus, plus, times
from codegen.ir.element_types import bits_of
from codegen.ir.index import Affine, Index, Mod, Sum, index_symbol, index_symbols, substitute_index
from codegen.ir.instructions import takes_blocks
from codegen.ir.integer_operators import number_in
from codegen.ir.lines import LINE_BYTES
from codegen.ir.nodes import Call, For, Let, Statement, Store, View
from codegen.ir.rewriting import Body, map_indices, map_value
from codegen.ir.strided_box import Side
from codegen.ir.values import Each, Entries, IndexValue, Load, Local, Op, Step, Value
from codegen.ir.visit import distance, loads
from codegen.passes.lane_orders import Lane, Placed, placed, reordered
from codegen.passes.tails import LEFT
from codegen.support.dataclasses import dataclass

PATTERN = Local("pattern", "bits8", (LINE_BYTES,))
"""A line of padding."""

CONVERTED = "converted"
"""Scratch that holds the converted rows of one block."""

Access = TypeVar("Access", Load, Store)

Lanes: TypeAlias = Mapping[str, int]
"""The iterations of each loop that run at once, in the order of the loops."""


def super_vector(body: Body, lanes: Lanes) -> Body:
    """The statements for iterations of some loops at once; those of inner loops run as a whole.

    before:  for row in 0..2: dst[4*column + 2*row] = src[2*column + row_src*row]
    after:   block = src[2*column] [2, 32]                                     {column: 32, row: 2}
             dst[4*column] = interleaved(block) [64]

    The distances between lanes are those of the subscripts, or entries of a table. If the lines of a side are
    at entries, they are the rows of the super-vector:

    before:  line = (4*column + 2*row) // 64; dst[line_offsets[line] + (4*column + 2*row) % 64] = …
    after:   line = 4*column // 64;           dst[line_offsets[line..]] = interleaved(block) [2, 32]
    """
    made = _scalar(body, lanes)
    match made.move:
        case Call("prefetch_line"):
            return body
        case Call("fill_part", (str(view), *_)):
            place = made.place(view, Affine())
            return (Store(place.array, (place.offset,), PATTERN, (0,), (1,)),)
        case Store() as store:
            (load,) = loads(store.value)
            is_packed = min(bits_of(store.value.dtype), bits_of(load.dtype)) < 8
            return *made.before, *(_packed if is_packed else _moved)(made, store, load)
    raise AssertionError(f"super_vector: no rule for {made.move}")


def rest_of(body: Body, lanes: Lanes) -> Body:
    """The iterations that are `left`, by an instruction for any number of bytes."""
    made, left = _scalar(body, lanes), index_symbol(LEFT)
    match made.move:
        case Call("fill_part", (str(view), _, *fill)):
            place = made.place(view, Affine())
            return View("tail", place.array, place.offset), Call("fill_part", ("tail", left, *fill))
        case Store() as store:
            (load,) = loads(store.value)
            written, read, name = bits_of(store.value.dtype), bits_of(load.dtype), "copy_part"
            if min(written, read) < 8:
                name = f"pack_part_{written}" if written < read else f"unpack_part_{read}"
            places = [made.place(x.array, *x.subscripts) for x in (store, load)]
            ends = [View(f"{x.array}_at", x.array, made.first(x.offset)) for x in places]
            return *ends, Call(name, (*(x.name for x in ends), left))
    raise AssertionError(f"rest_of: no rule for {made.move}")


def _moved(made: _Scalar, store: Store, load: Load) -> Body:
    """The load, what converts and reorders its lanes, and the store."""
    width, source_width = (bits_of(x.dtype) // 8 for x in (store.value, load))
    to, at = (made.place(x.array, *x.subscripts) for x in (store, load))
    lanes = tuple(Lane(n, made.step(at, axis), made.step(to, axis)) for axis, n in made.lanes.items())
    sides: tuple[tuple[Side, _Place], ...] = ("src", at), ("dst", to)
    flat = tuple(side for side, place in sides if place.lines is not None)
    found = reordered(lanes, source_width, width, apart=made.is_block, flat=flat)
    read, written = at.in_lines(found.load, source_width), to.in_lines(found.store, width)
    vector = replace(made.access(load, at, read), shape=read.shape)
    before, value = _converted(store.value, vector)
    if len(value.shape) > 1 and (found.instructions or value != vector):
        before, value = _named(before, value)
    for name, shape in found.instructions:
        value = Op(name, (value,), value.dtype, shape)
    if len(value.shape) > len(vector.shape):
        before, value = _named(before, value)
    if isinstance(value, Op):
        value = replace(value, shape=written.shape)
    return *before, replace(made.access(store, to, written), value=value, first=made.few)


def _named(before: Body, block: Value) -> tuple[Body, Value]:
    """A block of rows in a local, after some statements."""
    return (*before, Let("block", block)), Local("block", block.dtype, block.shape)


def _converted(value: Value, block: Load) -> tuple[Body, Value]:
    """A value of elements with a super-vector in place of the loaded one.

    A conversion that cannot take blocks goes through scratch row by row: LLVM would start it in all rows
    before finishing it in the first, and spill intermediate values. Rows are read back at an opaque address,
    which keeps LLVM from removing their stores.

    after:   for k in 0..16: src_row = src + row_src * k
               converted[k] = convert_f32_to_f16(src_row[row, column] [16])
             block = converted [16, 16]
    """

    def widened(load: Load) -> Value:
        return map_value(value, lambda x: load if isinstance(x, Load) else replace(x, shape=load.shape))

    by_rows = isinstance(value, Op) and len(block.shape) == 2 and not takes_blocks(value.name)
    if not by_rows:
        return (), widened(block)
    (rows, columns), (pitch, step) = block.shape, block.steps
    before: Body = (View("src_row", block.array, times("k", pitch)),) if isinstance(pitch, int | str) else ()
    if isinstance(pitch, Entries):
        entry = Let("row_offset", Load(pitch.table, (plus(pitch.first, "k"),), "i64"))
        before = entry, View("src_row", block.array, index_symbol(entry.name))
    row = widened(replace(block, array="src_row", shape=(columns,), dims=(0,), steps=(step,)))
    width = bits_of(row.dtype) // 8
    elements, row_bytes = Local("elements", row.dtype, row.shape), columns * width
    store = Store(CONVERTED, (times("k", row_bytes),), elements, (0,), (width,))
    again = View("converted_rows", CONVERTED, Affine(), opaque=True)
    made = Load(again.name, (Affine(),), row.dtype, block.shape, (0, 0), (row_bytes, width))
    return (loop("k", 0, rows, *before, Let("elements", row), store), again), made


def _packed(made: _Scalar, store: Store, load: Load) -> Body:
    """Codes that are packed into bytes, or unpacked: contiguous ones, or rows of them."""
    written, read = bits_of(store.value.dtype), bits_of(load.dtype)
    to, at = (made.place(x.array, *x.subscripts) for x in (store, load))
    packs, bits = written < read, min(written, read)
    steps = [(n, made.step(at if packs else to, axis)) for axis, n in made.lanes.items() if n > 1]
    found = tuple(placed(tuple(Lane(n, step, step) for n, step in steps), "src", 1))
    loose = found[0 if [*found[0].order] == sorted(found[0].order) else -1]  # rows may be adjacent
    if loose.first:  # codes that go backward are rows of one
        ((count, step),) = steps
        loose = Placed((count, 1), (step, 1), 0, ())
    packed = Placed((prod(loose.shape) * bits // 8,), (1,), 0, ())
    name = f"packed_{bits}" if packs else f"unpacked_{bits}"
    if len(loose.shape) > 1:
        name = f"{name}_from_rows" if packs else f"{name}_into_{loose.shape[0]}_rows"
        pitch, step = loose.steps
        assert isinstance(pitch, int | str), "rows are steps apart"
        loose = loose._replace(steps=(Each(pitch), step))
    here, there = (loose, packed) if packs else (packed, loose)
    codes = replace(made.access(load, at, here), dtype="bits8", shape=here.shape)
    block = Local("block", "bits8", there.shape)
    value = Op(name, (codes,), block.dtype, block.shape)
    return Let(block.name, value), replace(made.access(store, to, there), value=block)


class _Place(NamedTuple):
    """Where one iteration reads or writes.

    Attributes:
        array: the buffer, which the body does not view.
        offset: there; that of its byte for a packed element.
        lines: the entries that its lines are at, if any; `offset` counts as if they were adjacent.
    """

    array: str
    offset: Index
    lines: Entries | None

    def in_lines(self, found: Placed, width: int) -> Placed:
        """A super-vector whose rows are lines, if they are at entries."""
        if self.lines is None:
            return found
        rows = prod(found.shape) * width // LINE_BYTES
        return Placed((rows, LINE_BYTES // width), (self.lines, width), 0, ())


@dataclass(frozen=True, slots=True)
class _Scalar:
    """The move of one iteration.

    move     the store or the call
    lanes    the iterations of each loop that run at once
    before   locals that all lanes share
    views    the views of the body
    entries  the entries of tables that differ from lane to lane, by the names of their locals
    starts   the first iterations of inner loops
    few      the iterations of an inner loop that has fewer than lanes; None if there is none
    """

    move: Store | Call
    lanes: Lanes
    before: Body
    views: Mapping[str, View]
    entries: Mapping[str, Entries]
    starts: Mapping[str, Index]
    few: Index | None

    def place(self, array: str, offset: Index) -> _Place:
        """Where an iteration reads or writes."""
        while array in self.views:
            view = self.views[array]
            array, offset = view.buffer, view.offset if view.unit_bits else plus(view.offset, offset)
        match offset:
            case Sum(((Mod(within), 1),), Affine(0, ((name, 1),))) if name in self.entries:
                return _Place(array, within, self.entries[name])
        return _Place(array, offset, None)

    @property
    def is_block(self) -> bool:
        """Whether lanes of several loops, or some of an inner one, are rows and columns at any pitch."""
        return len(self.lanes) > len(self.starts) + 1 or self.few is not None

    def access(self, access: Access, place: _Place, found: Placed) -> Access:
        """The load or the store of a super-vector."""
        first = Affine() if place.lines else plus(self.first(place.offset), found.first)
        dims = (0,) * len(found.shape)
        return replace(access, array=place.array, subscripts=(first,), dims=dims, steps=found.steps)

    def first(self, index: Index) -> Index:
        """An index in the first lane, without the entries of tables that are steps."""
        for name in self.entries:
            index = substitute_index(index, name, Affine())
        for axis, start in self.starts.items():
            index = substitute_index(index, axis, start)
        return index

    def step(self, place: _Place, axis: str) -> Step:
        """The distance from lane to lane."""
        for name in index_symbols(place.offset) & self.entries.keys():
            entries = self.entries[name]
            if axis in index_symbols(entries.first):
                return replace(entries, first=self.first(entries.first))
        return distance(place.offset, axis)


def _scalar(body: Body, lanes: Lanes) -> _Scalar:
    """The move of one iteration of a body whose loops all run as lanes."""
    views, entries, starts = dict[str, View](), dict[str, Entries](), dict[str, Index]()
    before, moves, moving, few = list[Statement](), list[Store | Call](), {*lanes}, None
    for node in flat(body):
        match node:
            case For(axis, (first,), (last,)):
                starts[axis], count = first, minus(last, first)
                few = few if number_in(count) == lanes[axis] else count
            case View(name):
                views[name] = node
            case Let(name, Load(table, (at,), "i64")) if moving & index_symbols(at):
                entries[name] = Entries(table, at)
            case Let(name, IndexValue(index)):
                moving |= {name} if moving & index_symbols(index) else set()
                before.append(node)
            case Let():
                before.append(node)
            case Store() | Call():
                moves.append(node)
            case _:
                raise AssertionError(f"super_vector: no rule for {node}")
    if len(moves) != 1:
        raise AssertionError(f"super_vector: expected one statement that moves elements, got {len(moves)}")
    made = _Scalar(moves[0], lanes, (), views, entries, starts, few)
    kept = (map_indices(x, made.first) for x in before)
    return replace(made, before=tuple(kept))
