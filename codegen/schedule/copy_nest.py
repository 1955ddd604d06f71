"""A box of a copy as loops around one statement, and directives that say how the loops run.

Sizes are numbers until `parametrize` turns them into names, whose values the kernel receives at run time.
Offsets are in bytes, or in bits for elements of packed storage that move one by one.
"""

from __future__ import annotations

from dataclasses import replace
from hashlib import sha256
from math import prod

from codegen.ir.lines import LINE_BYTES
from codegen.ir.strided_box import Element, Side
from codegen.schedule.directives import (
    Assemble,
    Directed,
    Directive,
    Gather,
    Parallel,
    Request,
    Table,
    Tail,
    Tile,
)
from codegen.schedule.loops import LaneReads, Loop, Size, int_size
from codegen.schedule.offset_tables import (
    LINE_TABLE,
    OFFSET_TABLES,
    PART_TABLES,
    OffsetTable,
)
from codegen.schedule.segments import SEGMENT_TABLES
from codegen.schedule.staged_block import MOST_STACK_BYTES, StagedBlock
from codegen.support.dataclasses import dataclass
from codegen.support.lookups import expect

BYTE = Element("u8", 8)
"""What moves where elements are moved as they are."""


@dataclass(frozen=True, slots=True)
class CopyNest(Directed):
    """Loops that move elements, convert them, or write padding.

    for a in 9: for column in columns: for row in 2:  dst[…] = src[…]    u16

    Codes of 1, 2 or 4 bits are packed into bytes, or unpacked, along the last loop, which has no stride on
    the packed side. In a nest that counts bits, they move one by one.

    loops       the inner loops, which directives name, outermost first
    target      the elements that are written
    source      the elements that are read; None if the padding value is written
    convert     the names of both element types of a conversion, after "swap " if bytes are reversed first
    directives  how the loops run
    around      the outer loops, outermost first
    entries     entries of the tables of offsets around all loops; 0 without tables
    unit_bits   8 if offsets are in bytes, 1 if they are in bits
    staged_block  where tiles lie in scratch, if they go through it
    reads       which super-vectors may read full lanes, if rows are shorter
    """

    loops: tuple[Loop, ...]
    target: Element
    source: Element | None
    convert: tuple[str, str] | None = None
    directives: tuple[Directive, ...] = ()
    around: tuple[Loop, ...] = ()
    entries: Size = 0
    unit_bits: int = 8
    staged_block: StagedBlock | None = None
    reads: LaneReads | None = None

    def axis(self, name: str) -> Loop:
        """The loop of an axis."""
        loops = *self.around, *self.loops
        return expect((x for x in loops if x.axis == name), f"a loop over {name}", loops)

    @property
    def others(self) -> tuple[Loop, ...]:
        """The loops around the blocks of a transpose: the outer ones, and one over layers."""
        return (*self.around, *(x for x in self.loops if self.transposes and x.axis not in self.lanes))

    @property
    def outer_tiles(self) -> tuple[Tile, ...]:
        """The outermost level of each axis that has tiles."""
        axes = (*self.around, *self.loops)
        return tuple(levels[0] for x in axes if (levels := self.tiles(x.axis)))

    @property
    def outer(self) -> tuple[str, ...]:
        """The loops over the outermost tiles, and the outer loops without tiles, in order.

        Of parts of rows that go through scratch, the loop over them is the last; others fill a block.
        """
        axes = [x.axis for x in self.around]
        found = {*(x.index for x in self.outer_tiles), *(axis for axis in axes if not self.tiles(axis))}
        outer = tuple(name for name in self.order or axes if name in found)
        rows = next(iter(self.lanes), "") if self.staged else ""
        last = next((outer.index(x.index) for x in self.tiles(rows) if x.index in outer), len(outer))
        return outer[: last + 1]

    @property
    def in_block(self) -> tuple[str, ...]:
        """The loops that fill one block of a stage: those inside the last of the outer ones."""
        last = self.outer[-1] if self.staged and self.outer else ""
        return self.order[self.order.index(last) + 1 :] if last in self.order else ()

    @property
    def shareable(self) -> tuple[str, ...]:
        """The loops that threads may share, outermost first.

        Each call runs some entries of a table. Other nests in bits have one thread, since iterations may
        share bytes. Parts of result rows that are staged or carried complete the lines of the parts before.
        """
        if self.entries or self.obeying(Gather):
            return ("entry",)
        if self.unit_bits == 1:
            return ()
        if self.carried or (self.staged and not self.stages_rows):
            return self.outer[:-1]
        return self.outer or tuple("block" for _ in self.obeying(Assemble))

    @property
    def trips(self) -> int:
        """Iterations of the loop that threads share; sizes are still numbers."""
        if self.shared in ("", "entry"):
            return int_size(self.entries) or 1
        sizes = {tile.index: (tile.axis, int_size(tile.size)) for tile in self.outer_tiles}
        for rows in self.obeying(Assemble) if not self.around else ():
            sizes["block"] = rows.axis, rows.rows * int_size(rows.steps)
        axis, size = sizes.get(self.shared, (self.shared, 1))
        return -(-int_size(self.axis(axis).extent) // size)

    @property
    def scratch_bytes(self) -> Size:
        """The size of the block or buffer that a call lends to the kernel; 0 without one.

        Blocks of a few rows are on the stack. Those of complete result rows have sizes that kernels share.
        """
        for gather in self.obeying(Gather):
            return gather.buffer_bytes
        if self.carried:  # a line for each column of the blocks of a tile
            (tile,), block = self.tiles("column"), self.lanes["column"]
            return -(-int_size(tile.size) // block) * block * LINE_BYTES
        size = self.staged_block.size_bytes if self.staged_block else 0
        return size if self.stages_rows or int_size(size) > MOST_STACK_BYTES else 0

    @property
    def requests(self) -> bool:
        """Whether lines of the source are requested, and nothing is stored."""
        return bool(self.obeying(Request))

    @property
    def fills(self) -> bool:
        """Whether the padding value is written, and no source is read."""
        return self.source is None

    @property
    def copies(self) -> bool:
        """Whether elements of whole bytes are moved as they are."""
        return (
            self.convert is None and self.source is not None and min(self.source.bits, self.target.bits) >= 8
        )

    @property
    def goes_back(self) -> bool:
        """Whether the source is read backward along an inner loop."""
        return any(isinstance(x.src, int) and x.src < 0 for x in self.loops)

    @property
    def whole(self) -> frozenset[str]:
        """The axes of which super-vectors have all iterations, so that their extents are literals."""
        tails = {tail.axis for tail in self.obeying(Tail)}
        return frozenset(x.axis for x in self.loops if x.extent == self.lanes.get(x.axis)) - tails

    def packed(self, side: Side) -> tuple[str, ...]:
        """The axes whose elements follow each other on a side, most minor first.

        They end with the first axis whose extent is not a literal.
        """
        element = self.source if side == "src" else self.target
        if element is None:
            return ()
        # Codes in bytes follow each other along whole axes.
        found = [x.axis for x in self.loops if element.bits < 8 and x.axis in self.whole]
        step = element.bits * prod(int_size(x.extent) for x in self.loops if x.axis in found) // 8
        left = sorted((x for x in self.loops if x.axis not in found), key=lambda x: x.axis in self.whole)
        while following := next((x for x in left if x.stride(side) in (step, -step)), None):
            found.append(following.axis)
            left.remove(following)
            if following.axis not in self.whole:
                break
            step *= int_size(following.extent)
        return tuple(found)

    @property
    def reads_in_order(self) -> bool:
        """Whether super-vectors are read one after the other, to the end of the loop."""
        is_packed = len(self.packed("src")) == len(self.loops) and not self.obeying(Table)
        return is_packed and not self.goes_back and bool(self.obeying(Tail))

    @property
    def statement(self) -> str:
        """The statement and the directives: dst = bf16(f32 src): Vectorize(x=32), Tail("x", "clamp")"""
        listed = ", ".join(map(str, self.directives)) or "element by element"
        if self.requests:
            return f"src: {listed}"
        value = f"{self.source.name} src" if self.source else "padding"
        value = "{1}({0} src)".format(*self.convert) if self.convert else value
        return f"dst = {value}: {listed}"

    def __str__(self) -> str:
        loops = [f"entry in table of {self.entries}:"] * bool(self.entries)
        loops += [_loop_text(x) for x in (*self.around, *self.loops)]
        lines = [f"{'    ' * depth}for {loop}" for depth, loop in enumerate(loops)]
        lines.append(f"{'    ' * len(loops)}{self.statement}")
        lines += [str(x.segments) for x in self.obeying(Gather) if x.segments]
        return "\n".join([*lines, ""])


def shared_among_threads(nest: CopyNest) -> CopyNest:
    """The nest, whose outermost loop threads share if no directive names another one."""
    first = () if nest.obeying(Parallel) else map(Parallel, nest.shareable[:1])
    return replace(nest, directives=(*nest.directives, *first))


def _loop_text(loop: Loop) -> str:
    """A loop as text."""
    sides = (f"{s} at {t}" if (t := loop.table(s)) else f"{s} += {loop.stride(s)}" for s in ("dst", "src"))
    return f"{loop.axis} in {loop.extent}, {', '.join(sides)}:"


def structure_digest(nest: CopyNest, arguments: tuple[str, ...]) -> str:
    """A digest of what makes a kernel: a nest whose sizes are names, and the names of its arguments."""
    return sha256(repr((nest, arguments)).encode()).hexdigest()


def kernel_name(nest: CopyNest, digest: str) -> str:
    """A descriptive name of the kernel of a nest with that `structure_digest`; it is unique."""
    return f"{_kind(nest)}_{digest[:12]}"


def _kind(nest: CopyNest) -> str:
    """What a nest does, in a word."""
    if nest.fills:
        return "fill"
    words: dict[str, object] = {
        "request": nest.requests,
        "gather": nest.obeying(Gather),
        "shuffle": nest.obeying(Assemble),
        "transpose": nest.transposes,
        "convert": nest.convert,
    }
    return next((word for word, found in words.items() if found), "copy")


def offset_tables(nest: CopyNest) -> dict[str, OffsetTable]:
    """The tables of offsets that a kernel reads, by the names of their arguments."""
    steps = {x.table_name: x.src_table or x.dst_table for x in nest.loops}
    for table in nest.obeying(Table):
        steps[LINE_TABLE] = table.offsets
    steps |= nest.staged_block.tables if nest.staged_block else {}
    for parts in nest.obeying(Assemble):
        steps |= zip(PART_TABLES, parts.tables, strict=True)
    return {name: step for name, step in steps.items() if step is not None}


def table_arguments(nest: CopyNest) -> frozenset[str]:
    """The arguments of a nest's kernel that are addresses of tables of 64-bit integers."""
    names = {*offset_tables(nest)}
    names |= {*OFFSET_TABLES} if nest.entries else set()
    names |= {*SEGMENT_TABLES} if nest.obeying(Gather) else set()
    return frozenset(names)
