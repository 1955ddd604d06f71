"""Values of the loop IR: constants, loads, and operations on numbers, registers and super-vectors."""

from __future__ import annotations

from dataclasses import field
from typing import Literal, TypeAlias

from codegen.ir.index import Affine, Index
from codegen.support.dataclasses import dataclass

VectorShape: TypeAlias = tuple[int, ...]


@dataclass(frozen=True, slots=True)
class Entries:
    """Steps from a table: lane k of a super-vector is `table[first + k]` units from its subscript.

    half: "low" or "high" if an entry packs two unsigned numbers of 32 bits, of which one is the step.
    """

    table: str
    first: Index
    half: Literal["", "low", "high"] = ""


@dataclass(frozen=True, slots=True)
class Each:
    """The distance between rows when the address of each row is computed from the first one.

    Otherwise a block of many rows has a new base every four rows, which must then be loaded in order. This
    saves registers for addresses, but costs time if rows are used one after another.
    """

    step: int | str


Step: TypeAlias = int | str | Entries | Each | Affine
"""The distance between lanes: a number, an integer's name, a table with an entry for each lane, or a sum."""


@dataclass(frozen=True, slots=True)
class Const:
    """A number, or a super-vector with that number in every lane."""

    value: int | float | bool
    dtype: str
    shape: VectorShape = ()


@dataclass(frozen=True, slots=True)
class Local:
    """The value of the Let, the loop's Carried or the scalar argument with that name."""

    name: str
    dtype: str
    shape: VectorShape = ()


@dataclass(frozen=True, slots=True)
class IndexValue:
    """An index expression as a number.

    It is a super-vector if `along` names a loop index for each vector dimension, or "" for none: lane k of
    that dimension has the index plus k steps. Once loops are split into registers, `steps` holds the distance
    from lane to lane instead.
    """

    index: Index
    dtype: str = "i64"
    shape: VectorShape = ()
    along: tuple[str, ...] = ()
    steps: tuple[int, ...] = ()


@dataclass(frozen=True, slots=True)
class Load:
    """An element, or a super-vector (vector.transfer_read).

    dims    for each vector dimension, the number of the subscript that varies along it; None to repeat
    steps   elements from lane to lane of each vector dimension, in that subscript; 1 unless loops step
    along   only for a gather (vector.gather), where each lane has its own subscripts: the loop index of each
            vector dimension, "" for none, as in IndexValue; a gather has no dims or steps
    first   only the first lanes are loaded, this many, or the first rows of several; None for all
    offsets the distance of each lane from the address, for a gather from a buffer; None for steps
    """

    array: str
    subscripts: tuple[Index, ...]
    dtype: str
    shape: VectorShape = ()
    dims: tuple[int | None, ...] = ()
    steps: tuple[Step, ...] = ()
    along: tuple[str, ...] = ()
    first: Index | None = None
    offsets: Value | None = None


@dataclass(frozen=True, slots=True)
class Op:
    """An elementwise operation by name: arithmetic, comparison, conversion or function.

    add sub mul div floordiv mod pow neg abs min max and or xor not shl shr | eq ne lt le gt ge |
    select(condition, then, otherwise) | cast (to bits1: is it not zero? to bits2 and bits4: its low bits) |
    sqrt exp exp2 expm1 log log2 log10 log1p sin cos tan asin acos atan atan2 sinh cosh tanh asinh acosh atanh
    cbrt hypot floor ceil trunc rint copysign fma |
    fast_add fast_sub fast_mul fast_div (these may be contracted and reassociated) |
    round_to_odd (f64 to f32, so that rounding the result to f16 rounds once in effect) |
    broadcast (a scalar to a super-vector; or a super-vector of the outer loops along the inner loops: its
    dimensions come first in the result, so every lane [a, b] holds its element [a]) |
    first (the first lanes, as many as the operand says) | repeat (a register in each row of a block) |
    transpose (a block) | stack_2 stack_3 … (registers as the rows of a block) | row_0 row_1 … (of a block) |
    register (the first register of a super-vector) |
    with_register (a super-vector whose first register is replaced) |
    reduce_add reduce_mul … (all lanes of a register combined) |
    scan_add scan_mul … (each lane of a super-vector combined with all before it; `combiners` names these) |
    below_1 below_2 … (lanes of the upper halves of blocks get the last lane of the lower half, the others
    those of a second register) | slide(a, b) (the last lane of a, then those of b but the last) | last

    depth   levels of nested operations, including this one
    """

    name: str
    operands: tuple[Value, ...]
    dtype: str
    shape: VectorShape = ()
    depth: int = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        depth = 1 + max((x.depth for x in self.operands if isinstance(x, Op)), default=0)
        object.__setattr__(self, "depth", depth)


@dataclass(frozen=True, slots=True)
class Reduce:
    """Combine all lanes of a super-vector with each other and with a scalar: vector.reduction."""

    combiner: str
    vector: Value
    start: Value
    dtype: str
    shape: VectorShape = ()


Value: TypeAlias = Const | Local | IndexValue | Load | Op | Reduce
