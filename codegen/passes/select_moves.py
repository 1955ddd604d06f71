"""Select the instructions that move super-vectors of a copy, by where their lanes are on both sides."""

from __future__ import annotations

from dataclasses import replace
from math import prod

from codegen.ir.building import let, loop, plus, quotient, times
from codegen.ir.element_types import bits_of
from codegen.ir.index import Affine, Index, index_symbol, index_symbols, substitute_index
from codegen.ir.instructions import instruction, takes_blocks
from codegen.ir.lines import LINE_BYTES
from codegen.ir.names import names_of
from codegen.ir.nodes import Alloc, Call, For, Function, If, Let, Statement, Store, View
from codegen.ir.rewriting import Access, Body, rewrite_body, substituted
from codegen.ir.strided_box import Side
from codegen.ir.values import Each, Entries, Load, Local, Op, Value, VectorShape
from codegen.passes.lane_orders import Lane, Placed, placed, reordered
from codegen.passes.loop_bounds import iterations
from codegen.passes.sides import FILL
from codegen.passes.strided_groups import placed_as
from codegen.schedule.copy_nest import CopyNest
from codegen.schedule.directives import Stage

CONVERTED = "converted"
"""Scratch that holds the converted rows of one block."""


def select_moves(function: Function, nest: CopyNest) -> Function:
    """Access adjacent lanes as they are in memory, and reorder them in between.

    before:  dst[4*column] = src[2*column] [32, 2]               2 lanes of src are row_src apart
    after:   block = src[2*column] [2, 32]; dst[4*column] = interleaved(block) [64]

    If the lines of a side are at the entries of a table, they are the rows of its super-vector:

    after:   line = 4*column // 64; dst[line_offsets[line..]] = interleaved(block) [2, 32]

    Dimensions of a transpose are rows and columns at any pitch. A loop that runs a part of a super-vector
    becomes an instruction for any number of bytes; in a transpose, it stores the rows that exist.
    """
    body = selected(function.body, apart=nest.transposes)
    if any(x.separate for x in nest.obeying(Stage)):
        body = rewrite_body(body, _with_addresses)
    if CONVERTED in names_of(body):
        body = (Alloc(CONVERTED, prod(nest.lanes.values()) * nest.target.bits // 8), *body)
    return replace(function, body=body)


def selected(body: Body, *, apart: bool = False, count: Index | None = None) -> Body:
    """A body with instructions for its super-vectors.

    apart  whether adjacent dimensions are not joined
    count  the iterations of its super-vector, if these are a part
    """
    made: list[Statement] = []
    before: tuple[View | Let, ...] = ()
    for node in body:
        match node:
            case View() | Let():
                before = *before, node
                continue
            case Store(value=value) if value.shape:
                made += _moved(node, before, apart, count)
            case For(index, lower=(first,), upper=(last,), body=inside) if node.size > 1:
                part = iterations(first, last, node.step // node.size)
                once = (substituted(x, index, first) for x in inside)
                made += selected((*before, *once), apart=apart, count=part)
            case For(body=inside):
                made += *before, replace(node, body=selected(inside, apart=apart))
            case If(tests, then, otherwise):
                branches = (selected(each, apart=apart) for each in (then, otherwise))
                made += *before, If(tests, *branches)
            case _:
                made += *before, node
        before = ()
    return *made, *before


def _with_addresses(node: Statement) -> Body:
    """A store of a block that computes the address of each of its rows."""
    match node:
        case Store(steps=(int() | str() as pitch, step), first=None):
            return (replace(node, steps=(Each(pitch), step)),)
    return (node,)


def _moved(store: Store, before: tuple[View | Let, ...], apart: bool, count: Index | None) -> Body:
    """The load of a super-vector, what converts and reorders its lanes, and the store.

    before  the views and locals in front of it; those that are parts of addresses are dropped
    """
    match store.value:
        case (Load() as load) | Op(_, (Load() as load,)):
            pass
        case Local() if count is not None:
            end, name = _end("tail", store)
            return *before, *end, Call("fill_part", (name, count, *map(index_symbol, FILL)))
        case _:
            return *before, store
    to, at = _resolved(store, before), _resolved(load, before)
    left = tuple(x for x in before if not _is_part_of_address(x))
    if count is not None and not apart:
        return *left, *_part(to, at, count)
    if min(bits_of(store.value.dtype), bits_of(load.dtype)) < 8:
        return *left, *_packed(to, at)
    width, source_width = (bits_of(x.dtype) // 8 for x in (store.value, load))
    lanes = tuple(map(Lane, load.shape, at.steps, to.steps))
    sides: tuple[tuple[Side, Load | Store], ...] = ("src", at), ("dst", to)
    flat = tuple(side for side, access in sides if _in_lines(access, before))
    found = reordered(lanes, source_width, width, apart=apart, flat=flat)
    lines, vector, shape = _in_memory(at, found.load, source_width, before)
    vector = replace(vector, shape=shape)
    made, value = _converted(store.value, vector)
    if len(value.shape) > 1 and (found.instructions or value != vector):
        made, value = _named(made, value)
    for name, result in found.instructions:
        value = Op(name, (value,), value.dtype, result)
    if len(value.shape) > len(vector.shape):
        made, value = _named(made, value)
    carry = store.carry and _carry(store.carry, to, found.store)
    to_lines, to, shape = _in_memory(to, found.store, width, before)
    if isinstance(value, Op):
        value = replace(value, shape=shape)
    return *left, *to_lines, *lines, *made, replace(to, value=value, first=count, carry=carry)


def _carry(before: Load, store: Store, rows: Placed) -> Load:
    """What is before the rows of a super-vector, in the order of the rows in memory."""
    (pitch,) = (own for own, step in zip(before.steps, store.steps, strict=True) if step == rows.steps[0])
    return replace(before, shape=rows.shape, steps=(pitch, *rows.steps[1:]))


def _is_part_of_address(node: View | Let) -> bool:
    """Whether a view has other units or lines than its buffer, or a local has an entry for each lane."""
    if isinstance(node, View):
        return bool(node.unit_bits or node.lines)
    return node.value.dtype == "i64" and bool(node.value.shape)


def _resolved(access: Access, before: Body) -> Access:
    """An access to bytes of a buffer, whose steps are entries of tables; lines at entries stay a view.

    before:  x_offset = x_offsets[x] [16]; src[x_offset + 8*row] [16, 2]      steps 0, 8
    after:   src[8*row] [16, 2]                                               steps x_offsets[x..], 8
    """
    access = replace(access, subscripts=(plus(*access.subscripts),))
    for node in before:
        (at,) = access.subscripts
        match node:
            case View(access.array, buffer, offset) if node.unit_bits:  # of packed elements
                access = replace(access, array=buffer, subscripts=(offset,))
            case Let(name, Load(table, (first,), dims=(_, *_) as dims)) if name in index_symbols(at):
                entries, own = Entries(table, first), zip(access.steps, dims, strict=True)
                steps = tuple(step if dim is None else entries for step, dim in own)
                access = replace(access, subscripts=(substitute_index(at, name, Affine()),), steps=steps)
    return access


def _in_lines(access: Load | Store, before: Body) -> View | None:
    """The view of an access whose lines are at entries of a table; None if it has none."""
    return next((x for x in before if isinstance(x, View) and x.name == access.array and x.lines), None)


def _in_memory(access: Access, found: Placed, width: int, before: Body) -> tuple[Body, Access, VectorShape]:
    """The access to lanes as they are in memory, with their shape; lines at entries are rows."""
    access = placed_as(access, found)
    if (view := _in_lines(access, before)) is None:
        return (), access, found.shape
    line = let("line", quotient(plus(*access.subscripts), LINE_BYTES))
    steps = Entries(view.lines, index_symbol(line.name)), width
    access = replace(access, array=view.buffer, subscripts=(Affine(),), steps=steps)
    return (line,), access, (prod(found.shape) * width // LINE_BYTES, LINE_BYTES // width)


def _part(store: Store, load: Load, count: Index) -> Body:
    """A part of a super-vector, by an instruction for any number of bytes."""
    written, read, name = bits_of(store.value.dtype), bits_of(load.dtype), "copy_part"
    if min(written, read) < 8:
        name = f"pack_part_{written}" if written < read else f"unpack_part_{read}"
    (to, dst), (at, src) = (_end(f"{x.array}_at", x) for x in (store, load))
    return *to, *at, Call(name, (dst, src, count))


def _end(name: str, access: Load | Store) -> tuple[Body, str]:
    """The view of an access, and its name; a view that begins where its buffer does is the buffer."""
    (at,) = access.subscripts
    return ((), access.array) if at == Affine() else ((View(name, access.array, at),), name)


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
        if not isinstance(value, Op):
            return load
        instruction(value.name).check_operands([load])
        return replace(value, operands=(load,), shape=load.shape)

    by_rows = isinstance(value, Op) and len(block.shape) == 2 and not takes_blocks(value.name)
    if not by_rows:
        return (), widened(block)
    (rows, columns), (pitch, step) = block.shape, block.steps
    before: Body = (View("src_row", block.array, times("k", pitch)),) if isinstance(pitch, int | str) else ()
    if isinstance(pitch, Entries):
        entry = Let("row_offset", Load(pitch.table, (plus(pitch.first, "k"),), "i64"))
        before = entry, View("src_row", block.array, index_symbol(entry.name))
    row = widened(replace(block, array="src_row", shape=(columns,), steps=(step,)))
    width = bits_of(row.dtype) // 8
    elements, row_bytes = Local("elements", row.dtype, row.shape), columns * width
    store = Store(CONVERTED, (times("k", row_bytes),), elements, steps=(width,))
    again = View("converted_rows", CONVERTED, Affine(), opaque=True)
    made = Load(again.name, (Affine(),), row.dtype, block.shape, steps=(row_bytes, width))
    return (loop("k", 0, rows, *before, Let("elements", row), store), again), made


def _packed(store: Store, load: Load) -> Body:
    """Codes that are packed into bytes, or unpacked: contiguous ones, or rows of them."""
    written, read = bits_of(store.value.dtype), bits_of(load.dtype)
    packs, bits = written < read, min(written, read)
    steps = [(n, step) for n, step in zip(load.shape, (load if packs else store).steps, strict=True) if n > 1]
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
    codes = replace(placed_as(load, here), dtype="bits8", shape=here.shape)
    block = Local("block", "bits8", there.shape)
    value = Op(name, (codes,), block.dtype, block.shape)
    return Let(block.name, value), replace(placed_as(store, there), value=block)
