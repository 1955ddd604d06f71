"""Directives: how the loops of a copy or kernel run. Passes obey them and make no choices.

Vectorize(column=32, row=2), Tail("column", "shift", sizes=(16, 8, 1)), Stream("begun")
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal, TypeAlias, TypeVar, get_args

from codegen.ir.streams import Stream
from codegen.ir.strided_box import Side
from codegen.schedule.loops import Size
from codegen.schedule.offset_tables import OffsetTable
from codegen.schedule.segments import Segments
from codegen.support.dataclasses import as_call, dataclass

REST: Literal["rest"] = "rest"
"""The size of a tail that runs all remaining iterations at once, by an instruction."""


OVERLAPPING = ("shift", "clamp")
"""The tails that repeat iterations, which must not read what others write."""


@dataclass(frozen=True, slots=True)
class Tile:
    """Run a loop in blocks of `size` iterations. A loop over them, "row_tile" or "row_strip", is outside.

    Of two for an axis, the second splits the blocks of the first; neither size must divide the other. In a
    kernel, loops over blocks are around all loops that have some, unless Reorder says otherwise. A size that
    depends on the copy is an argument of the kernel, whose loop counts the blocks.
    """

    axis: str
    size: Size
    level: Literal["tile", "strip"] = "tile"

    __str__ = as_call

    @property
    def index(self) -> str:
        """The name of the loop over the blocks."""
        return f"{self.axis}_{self.level}"


@dataclass(frozen=True, slots=True)
class Reorder:
    """The order of loops, outermost first."""

    loops: tuple[str, ...]

    def __str__(self) -> str:
        return f"Reorder({', '.join(f'{name!r}' for name in self.loops)})".replace("'", '"')


@dataclass(frozen=True, slots=True)
class Parallel:
    """Threads share the iterations of a loop, such as "row_tile".

    In copies, "entry" is the loop over the entries of tables, and "block" the one over assembled rows.
    """

    loop: str

    __str__ = as_call


@dataclass(frozen=True, slots=True)
class Diagonal:
    """Each super-vector of the last loop also moves on by one of the loop around it, around its tile.

    Super-vectors of one row, and those of one column, share cache sets at many pitches.
    """

    __str__ = as_call


@dataclass(frozen=True, slots=True)
class Stage:
    """Tiles go through a block of scratch, from which full lines are stored wherever result rows begin.

    The `StagedBlock` of the nest says where they lie there. If tiles have parts of result rows, the innermost
    loop over tiles is that of rows. Without tiles of rows, they have complete ones. Loops inside those over
    tiles fill one block, and leave it in the order of the destination.

    separate  whether each column of a register block of complete rows has its own address, and not one from
              the columns before it
    """

    separate: bool = False

    __str__ = as_call


@dataclass(frozen=True, slots=True)
class LanesBeyond:
    """Rows are shorter than a lane: super-vectors load full lanes, of which the elements of a row are stored.

    Super-vectors that may not read full lanes, as the nest's `LaneReads` say, move element by element.
    """

    __str__ = as_call


@dataclass(frozen=True, slots=True)
class Vectorize:
    """Run iterations of loops at once, as the lanes of a super-vector.

    lanes  the iterations of each loop, outermost first
    """

    lanes: tuple[tuple[str, int], ...]

    def __str__(self) -> str:
        return f"Vectorize({', '.join(f'{axis}={count}' for axis, count in self.lanes)})"


@dataclass(frozen=True, slots=True)
class Registers:
    """Run the super-vectors of a loop of a kernel in blocks of registers.

    lanes     lanes of a register along the loop
    count     registers of a block
    rows      the loop of whose iterations a block has as many as lanes: some accesses are transposed; "" if a
              block has one row
    whole     whether a block is one value in the source, which LLVM splits into registers
    streamed  the array whose full lines the only store to it writes past the cache, or ""
    """

    axis: str
    lanes: int
    count: int = 1
    rows: str = ""
    whole: bool = False
    streamed: str = ""

    __str__ = as_call


@dataclass(frozen=True, slots=True)
class Relax:
    """Let float operations on registers of a kernel be contracted and reassociated."""

    __str__ = as_call


@dataclass(frozen=True, slots=True)
class Tail:
    """How the iterations of a vectorized loop run that fill no super-vector.

    how    shift   the last super-vector begins early enough to be full; narrower ones if there are too few
           clamp   the same, in one loop with a limit of the index: large super-vectors share their code
           narrow  narrower super-vectors follow
           mask, scalar, assume_divisible    as `tilejit.kernel` has them
    sizes  the iterations of narrower super-vectors of a copy, widest first; the last is 1 or `REST`. There
           are none if all iterations fill a super-vector
    """

    axis: str
    how: Literal["shift", "clamp", "narrow", "mask", "scalar", "assume_divisible"]
    sizes: tuple[int | Literal["rest"], ...] = ()

    __str__ = as_call


@dataclass(frozen=True, slots=True)
class Table:
    """Joined digits on a side: line k of its elements begins at entry k of a table of offsets."""

    side: Side
    offsets: OffsetTable

    def __str__(self) -> str:
        return f'Table("{self.side}")'


@dataclass(frozen=True, slots=True)
class Assemble:
    """Assemble rows from parts of 16 source bytes, whose bytes are put in order.

    A row has the bytes of some iterations of a loop, which follow each other in the destination. It is
    written by registers. The last rows begin early enough to be full.

    axis      the loop
    rows      how many are assembled at once, from the same offsets and in the same orders
    steps     iterations per row
    register  bytes per register
    parts     parts per register
    tables    of the nest: where the parts of each register begin in the source of a row, and the orders of
              their bytes, 8 per number
    """

    axis: str
    rows: int
    steps: Size
    register: int
    parts: int
    tables: tuple[OffsetTable, OffsetTable] = (OffsetTable(), OffsetTable())

    def __str__(self) -> str:
        sizes = f"rows={self.rows}, steps={self.steps}, register={self.register}, parts={self.parts}"
        return f'Assemble("{self.axis}", {sizes})'


@dataclass(frozen=True, slots=True)
class CopyBlock:
    """Copy a run of this many bytes or more by the instruction `copy_block`, which is memcpy."""

    least: int

    __str__ = as_call


@dataclass(frozen=True, slots=True)
class Prefetch:
    """Request the lines that a later iteration of a loop reads, while this one runs.

    loop      a loop of super-vectors or elements; "entry" for the entries of tables; "tile" for all loops
              over tiles: the next one is requested while lines of this one are stored
    distance  from one to the other: entries, one tile, or bytes of the source in other loops; the name of the
              argument if each call passes it
    chunks    the distance in chunks of a table, which counts instead if it has more of them; 0 for none
    """

    loop: str
    distance: Size
    chunks: int = 0

    __str__ = as_call


@dataclass(frozen=True, slots=True)
class Gather:
    """Assemble segments of the destination in a buffer in the first cache; write full lines past the cache.

    It covers all boxes of a copy, so that no line is written twice. Tables hold the chunks of each segment.

    buffer_bytes  of the buffer
    segments      the chunks of each segment, including padding; None once they come as run-time tables
    """

    buffer_bytes: Size
    segments: Segments | None

    def __str__(self) -> str:
        return "Gather()"


@dataclass(frozen=True, slots=True)
class Request:
    """Request the lines of the source, which a later copy reads, instead of copying them."""

    __str__ = as_call


Directive: TypeAlias = (
    Tile
    | Reorder
    | Parallel
    | Diagonal
    | Stage
    | Stream
    | Vectorize
    | Registers
    | Relax
    | Tail
    | LanesBeyond
    | Table
    | Assemble
    | CopyBlock
    | Prefetch
    | Gather
    | Request
)

KINDS: tuple[type[Directive], ...] = get_args(Directive)
"""The classes of all directives, in the order in which those of a transpose are listed."""

D = TypeVar("D", bound=Directive)


def lanes_of(directives: Sequence[Directive]) -> dict[str, int]:
    """The iterations of each loop that run at once."""
    return {axis: count for x in directives if isinstance(x, Vectorize) for axis, count in x.lanes}


class Directed:
    """Queries on a list of directives, shared by schedules and nests."""

    __slots__ = ()

    directives: tuple[Directive, ...]

    def obeying(self, kind: type[D]) -> tuple[D, ...]:
        """The directives of a kind."""
        return tuple(x for x in self.directives if isinstance(x, kind))

    @property
    def stream(self) -> bool:
        """Whether lines are stored past the cache."""
        return any(x.form != "aligned" for x in self.obeying(Stream))

    @property
    def carried(self) -> bool:
        """Whether blocks of a transpose complete lines with bytes of the blocks before them."""
        return any(x.form == "carried" for x in self.obeying(Stream))

    @property
    def staged(self) -> bool:
        """Whether tiles go through a block of scratch."""
        return bool(self.obeying(Stage))

    @property
    def stages_rows(self) -> bool:
        """Whether tiles of a transpose do with complete result rows."""
        return self.transposes and self.staged and not self.tiles("row")

    @property
    def transposes(self) -> bool:
        """Whether registers transpose blocks: super-vectors have some of the iterations of two loops."""
        return self.short or sum(self.tail(axis) is not None for axis in self.lanes) > 1

    @property
    def short(self) -> bool:
        """Whether source rows are shorter than a lane."""
        return bool(self.obeying(LanesBeyond))

    @property
    def shared(self) -> str:
        """The loop that threads share; "" if they share none."""
        return next((x.loop for x in self.obeying(Parallel)), "")

    @property
    def order(self) -> tuple[str, ...]:
        """The order of all loops, if they have been reordered."""
        return next((x.loops for x in self.obeying(Reorder)), ())

    @property
    def lanes(self) -> dict[str, int]:
        """The iterations of each loop that run at once."""
        return lanes_of(self.directives)

    def tail(self, axis: str) -> Tail | None:
        """How the iterations of a vectorized loop run that fill no super-vector; None if all of them do."""
        return next((x for x in self.obeying(Tail) if x.axis == axis), None)

    def tiles(self, axis: str) -> tuple[Tile, ...]:
        """The levels of blocks of an axis, the outermost first."""
        return tuple(x for x in self.obeying(Tile) if x.axis == axis)
