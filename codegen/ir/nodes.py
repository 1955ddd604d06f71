"""Statements of the loop IR: loops with affine bounds around stores of scalars or super-vectors.

A value has a dtype with its MLIR name ("f32", "bf16", "i32", "u8", "i1" for booleans) and a shape: () for
scalars, (256,) or (32, 256) for super-vectors. The same nodes serve both, so one printer, one interpreter and
one emitter suffice.

Copies move elements without computing with them. Their dtypes are "bits8" … "bits512", converted or not, and
their sides never overlap. They address flat buffers: `BufferArg`, `View`, and steps known at run time. Copies
also use `If` and `Call`.
"""

from __future__ import annotations

from typing import Literal, TypeAlias

from codegen.ir.index import Index
from codegen.ir.values import (
    Load,
    Step,
    Value,
)
from codegen.support.dataclasses import dataclass
from codegen.support.lookups import expect

RESULTS = "results:"
"""The operand that the results of a function are written to, 8 bytes each. No argument has a colon."""

MANY = 1 << 62
"""More iterations than any super-vector has."""

COMBINERS = ("add", "mul", "min", "max", "and", "or", "xor")
"""The operations that reductions combine with."""


@dataclass(frozen=True, slots=True)
class ArrayArg:
    """An array argument.

    order    "C" or "F" if it is contiguous in that order, "" for arbitrary strides
    strides  bytes from one element to the next along each dimension, None where only calls know them; () if
             only those of the contiguous dimension are known
    """

    name: str
    dtype: str
    rank: int
    order: Literal["C", "F", ""] = ""
    strides: tuple[int | None, ...] = ()


@dataclass(frozen=True, slots=True)
class ScalarArg:
    """A number passed at each call; index expressions may refer to integers by name."""

    name: str
    dtype: str


@dataclass(frozen=True, slots=True)
class BufferArg:
    """Flat storage, addressed in units of `unit_bits` bits: 8 for bytes, 1 for elements that share bytes.

    The subscripts of a load or a store are offsets in units, which are added; the steps of its lanes are in
    units too.
    """

    name: str
    unit_bits: int = 8


@dataclass(frozen=True, slots=True)
class Let:
    """A name for a value, from here to the end of the enclosing body; assigned once.

    A branch of an `If` may assign an earlier name again, with the same dtype and shape; the body of a loop,
    what the loop carries. A name that both branches of an `If` assign is known after it; so is a view that
    both define.
    """

    name: str
    value: Value


@dataclass(frozen=True, slots=True)
class Store:
    """An element, or a super-vector (vector.transfer_write) as in Load.

    accumulate  the combiner if the element is combined with the value ("C[i] += x"), else ""
    where       an i1 mask of the value's shape that selects the lanes to store; None stores all
    first       only the first lanes are stored, this many, or the first rows of several; None for all
    along       only for a scatter (vector.scatter), where each lane has its own subscripts, as in Load
    offsets     the distance of each lane from the address, for a scatter to a buffer; None for steps
    streamed    whether the lines bypass the cache; the address is a multiple of a line, without `carry`
    carry       the 64 bytes before each row, if rows begin anywhere in a line. Only the line that a row
                completes is stored, and the last bytes of the row are carried on, for the row that follows it
    """

    array: str
    subscripts: tuple[Index, ...]
    value: Value
    dims: tuple[int | None, ...] = ()
    steps: tuple[Step, ...] = ()
    accumulate: str = ""
    where: Value | None = None
    first: Index | None = None
    streamed: bool = False
    along: tuple[str, ...] = ()
    offsets: Value | None = None
    carry: Load | None = None

    @property
    def values(self) -> tuple[Value, ...]:
        """The stored value and, if there are any, the mask, the offsets and the carried bytes."""
        values = self.value, self.where, self.offsets, self.carry
        return tuple(each for each in values if each is not None)

    def old(self, dtype: str) -> Load:
        """The load of the elements that the store replaces, of this dtype."""
        shape = self.value.shape
        return Load(self.array, self.subscripts, dtype, shape, self.dims, self.steps, self.along)


@dataclass(frozen=True, slots=True)
class Carried:
    """A local that is carried from one iteration to the next.

    It is `start` before the first iteration and becomes `update` at the end of each. After the loop, the name
    refers to the final value. combiner: the operation of a reduction, "" if it is not a reduction.
    """

    name: str
    start: Value
    update: Value
    combiner: str = ""


@dataclass(frozen=True, slots=True)
class For:
    """A loop whose index runs from the largest of `lower` while it is below the smallest of `upper`.

    With a negative step, it runs from the smallest of `lower` while it is above the largest of `upper`.

    size        scalar iterations per iteration: 1, or a size of the super-vector, which multiplies `step`.
                Lanes past the end are masked: lane k of the vector dimension is active while
                index + k * step / size is within the bounds.
    line        the source line, for messages
    parallel    whether the source declares the iterations independent
    reduction   whether the source declares a reduction that may run in any order
    scan        whether the source declares a scan whose terms may be combined in any grouping
    min_distance  iterations fewer than this apart are declared independent: MANY if the source declares the
                loop vectorizable; 1 declares nothing
    lanes       lanes per register, once its super-vectors are sized as blocks of registers; 0 before
    live        the local that counts the active lanes of an iteration, "" if all are active
    fewest, most  how many iterations the loop has at least and at most, as the pass that made it promises
    """

    index: str
    lower: tuple[Index, ...]
    upper: tuple[Index, ...]
    step: int
    body: tuple[Statement, ...]
    carried: tuple[Carried, ...] = ()
    parallel: bool = False
    size: int = 1
    line: int = 0
    reduction: bool = False
    lanes: int = 0
    live: str = ""
    fewest: int = 0
    most: int = MANY
    scan: bool = False
    min_distance: int = 1

    @property
    def promise(self) -> str:
        """The declaration that iterations are independent, or near ones, as in the source; "" without one."""
        if self.parallel or self.min_distance == MANY:
            return "parallel" if self.parallel else "vectorizable"
        return f"min_distance({self.min_distance})" if self.min_distance > 1 else ""


@dataclass(frozen=True, slots=True)
class View:
    """A name for a buffer from an offset on, in units: memref.subview.

    opaque    whether the compiler treats the address as unknown. Otherwise strength reduction keeps a
              register per loop and access live through the entire nest.
    unit_bits the units that the name counts: 8 or 1; 0 for those of the buffer
    lines     the table with the offset of each line, whose lines the name counts as adjacent; "" without one
    """

    name: str
    buffer: str
    offset: Index
    opaque: bool = False
    unit_bits: int = 0
    lines: str = ""


@dataclass(frozen=True, slots=True)
class Alloc:
    """Memory of this thread, on a line boundary; its bytes are undefined.

    size_bytes  or the name of an argument
    space       "stack" for a few rows, whose size is a number; "scratch" for tiles, whose memory the caller
                lends: a function has at most one
    """

    name: str
    size_bytes: int | str
    space: Literal["stack", "scratch"] = "stack"


@dataclass(frozen=True, slots=True)
class Prefetch:
    """Request the lines of a super-vector that a later iteration loads; they may be outside the storage."""

    load: Load


@dataclass(frozen=True, slots=True)
class Compare:
    """A comparison of two index expressions: lt, le, gt, ge, eq or ne."""

    left: Index
    relation: Literal["lt", "le", "gt", "ge", "eq", "ne"]
    right: Index


@dataclass(frozen=True, slots=True)
class If:
    """Run `body` if all comparisons and i1 values hold, else `otherwise`: scf.if."""

    tests: tuple[Compare | Value, ...]
    body: tuple[Statement, ...]
    otherwise: tuple[Statement, ...] = ()


@dataclass(frozen=True, slots=True)
class Call:
    """Run an instruction that accesses memory itself; `instructions.py` declares them.

    Operands that are strings are buffers, the others are integers.
    """

    instruction: str
    operands: tuple[str | Index, ...] = ()


Statement: TypeAlias = For | Let | Store | View | Alloc | Prefetch | If | Call


@dataclass(frozen=True, slots=True)
class Function:
    """A kernel: its arguments in the order of the Python function, its statements and its results.

    buffers  the flat storage of a copy: its sides, and arguments that are addresses of storage
    summary  one line for readers: what moves, how, and how much
    """

    name: str
    arguments: tuple[ArrayArg | ScalarArg, ...]
    body: tuple[Statement, ...]
    results: tuple[Value, ...] = ()
    buffers: tuple[BufferArg, ...] = ()
    summary: str = ""

    def array(self, name: str) -> ArrayArg:
        """The array argument with that name."""
        arrays = (a for a in self.arguments if isinstance(a, ArrayArg))
        return expect((a for a in arrays if a.name == name), f"array {name}", self.name)

    @property
    def operands(self) -> tuple[str, ...]:
        """The order of the addresses in the kernel's table of operands.

        They are the buffers of a lowered function, except those that are arguments. Another one has its
        arrays, and last its results, if it has any.
        """
        if self.buffers:
            others = {argument.name for argument in self.arguments}
            return tuple(buffer.name for buffer in self.buffers if buffer.name not in others)
        arrays = (a.name for a in self.arguments if isinstance(a, ArrayArg))
        return (*arrays, RESULTS) if self.results else tuple(arrays)
