"""Lower a nest to scalar loops, as the copy defines them; later passes obey its directives."""

from __future__ import annotations

from codegen.ir.building import let, loop, plus, times
from codegen.ir.element_types import dtype_of
from codegen.ir.index import index_symbol
from codegen.ir.lines import LINE_BYTES
from codegen.ir.nodes import ArrayArg, BufferArg, Function, Let, ScalarArg, Statement, View
from codegen.ir.rewriting import Body
from codegen.ir.strided_box import SIDES, Side
from codegen.ir.values import Load
from codegen.passes.gather_segments import lower_gather
from codegen.passes.peel_vectors import OTHERS_OFFSET
from codegen.passes.scalar_statement import inner_loops
from codegen.passes.sides import first_sides, sides_of, viewed
from codegen.schedule.copy_nest import CopyNest, table_arguments
from codegen.schedule.directives import CopyBlock, Directive, Gather, Parallel, Table, Tail
from codegen.schedule.loops import Loop, int_size
from codegen.schedule.offset_tables import LINE_TABLE, OFFSET_TABLES
from codegen.schedule.segments import SEGMENT_PADDING


def lower_copy(nest: CopyNest, arguments: tuple[str, ...], name: str) -> Function:
    """The scalar loops of a nest.

    arguments  the names of the kernel's arguments, in the order of its table
    name       the kernel's name

    before:  for a in a_extent, dst += a_dst, src += a_src: for x in x_extent, dst += 1, src += 1: dst = src
    after:   for a in 0..a_extent:
               dst_a = dst + a * a_dst; src_a = src + a * a_src
               for x in 0..x_extent:  dst_a[x] = src_a[x]
    """
    axes = [*(["entry"] if nest.entries else []), *(x.axis for x in nest.around)]
    at = "".join(f"{axis}, " for axis in axes)
    before: Body = ()
    if nest.obeying(Gather):
        before, body, what = lower_gather(nest, first_sides(nest))
    else:
        body, what = _inner(nest), _what(nest, at)
    unit = "bits" if nest.unit_bits == 1 else "bytes"
    elements = [f"Element by element, strides in {unit}"] * ({*map(type, nest.directives)} <= {Parallel})
    obeyed = (str(x) for x in nest.directives if not _never(x, nest))
    summary = f"{what}. {', '.join((*elements, *obeyed))}."
    tables = table_arguments(nest)
    given = tuple(ArrayArg(a, "i64", 1, "C") if a in tables else ScalarArg(a, "i64") for a in arguments)
    padding = (BufferArg(SEGMENT_PADDING),) if nest.obeying(Gather) else ()
    buffers = (*(BufferArg(side, nest.unit_bits) for side in SIDES), *padding)
    return Function(name, given, (*before, *_around(nest, body)), buffers=buffers, summary=summary)


def _never(directive: Directive, nest: CopyNest) -> bool:
    """Whether literal sizes leave nothing to a tail, or to a copy of long runs."""
    match directive:
        case Tail(axis):
            sizes = nest.axis(axis).extent, *(x.size for x in nest.tiles(axis))
            return all(isinstance(size, int) and size % nest.lanes[axis] == 0 for size in sizes)
        case CopyBlock(least):
            extent = nest.loops[-1].extent
            return isinstance(extent, int) and extent < least
    return False


def _inner(nest: CopyNest) -> Body:
    """The inner loops, after what super-vectors of short rows need."""
    body = inner_loops(nest, sides_of(nest))
    if nest.short and nest.others:
        body = (let(OTHERS_OFFSET, plus(*(times(x.axis, x.src) for x in nest.others))), *body)
    return body


def _around(nest: CopyNest, body: Body) -> Body:
    """The loops that view both sides, and the one over table entries.

    Views of a loop around others are opaque, and those around several loops. This is faster, because LLVM
    then keeps no pointer for each loop and access.
    """
    loops = *nest.around, *viewed(nest)
    chunks = any(x.src_table for x in nest.loops)
    opaque = nest.transposes or nest.goes_back or (nest.stream and chunks)
    bases = ["_entry" if nest.entries else "", *(f"_{x.axis}" for x in loops)]
    for k, x in reversed(list(enumerate(loops))):
        views = _views(nest, x, bases[k], opaque=opaque or k < len(loops) - 1)
        body = (loop(x.axis, 0, x.extent, *views, *body),)
    return (loop("entry", 0, nest.entries, *_entry(nest), *body),) if nest.entries else body


def _views(nest: CopyNest, around: Loop, base: str, *, opaque: bool) -> list[Statement]:
    """The views of both sides in one iteration of a loop; `base` is the suffix of the views around it."""
    sides = [("dst", around.dst)] if not nest.requests else []
    sides += [("src", around.src)] if not nest.fills else []
    if nest.transposes:
        sides.reverse()
    return [
        View(f"{side}_{around.axis}", f"{side}{base}", times(around.axis, stride), opaque)
        for side, stride in sides
    ]


def _entry(nest: CopyNest) -> list[Statement]:
    """The views of both sides at one entry of the offset tables."""
    out: list[Statement] = []
    for side, table in zip(("src", "dst"), OFFSET_TABLES, strict=True):
        if side == "dst" or not nest.fills:
            offset = Let(table.removesuffix("s"), Load(table, (index_symbol("entry"),), "i64"))
            out += [offset, View(f"{side}_entry", side, index_symbol(offset.name))]
    return out


def _what(nest: CopyNest, at: str) -> str:
    """What moves, for readers: dst[a, column, row] = src[a, row, column], column < n, row < 2, u16.

    at  the axes around, each with a comma
    """
    ranges = "".join(f", {x.axis} < {x.extent}" for x in nest.loops[len(viewed(nest)) :])
    if nest.requests:
        return f"src[{at}{_indices(nest, 'src')}]{ranges}"
    return f"dst[{at}{_indices(nest, 'dst')}] = {_value(nest, at)}{ranges}, {nest.target.name}"


def _value(nest: CopyNest, at: str) -> str:
    """The value of an element, for readers: bf16(f32 src[…])."""
    if nest.source is None:
        return "padding"
    element = f"src[{at}{_indices(nest, 'src')}]"
    match nest.convert:
        case (source, _) if source.startswith("swap "):
            return f"swap_{nest.source.bits}({element})"
        case (source, target):
            return f"{dtype_of(target)}({dtype_of(source)} {element})"
    bits = nest.target.bits
    return element if bits == nest.source.bits else f"bits{bits}({element})"


def _indices(nest: CopyNest, side: Side) -> str:
    """The indices of an element on a side, those with the smallest literal strides last.

    With a table of lines: line_offsets[(2*column + row) // 32], (2*column + row) % 32
    """

    def stride(x: Loop) -> int:
        step = x.stride(side)
        return step if isinstance(step, int) and not x.table(side) else 1 << 62

    def index(x: Loop) -> str:
        if x.table(side):
            return f"{x.table_name}[{x.axis}]"
        return f"{'-' * (stride(x) < 0)}{x.axis}"

    for table in nest.obeying(Table):
        if table.side == side:
            width, line = nest.target.bits // 8, LINE_BYTES // (nest.target.bits // 8)
            elements = plus(*(times(x.axis, int_size(x.stride(side)) // width) for x in nest.loops))
            return f"{LINE_TABLE}[({elements}) // {line}], ({elements}) % {line}"
    return ", ".join(map(index, sorted(nest.loops, key=lambda x: -abs(stride(x)))))
