"""The IR of kernels on one page: loops with affine bounds around stores of values, scalar or super-vectors.

A value has a dtype, named as MLIR does ("f32", "bf16", "i32", "u8", "i1" for booleans), and a shape: () for
scalars, (256,) or (32, 256) for super-vectors. The same nodes serve both, so one printer, one interpreter and
one emitter do.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Literal, TypeAlias

from codegen.ir.index import Index

VectorShape: TypeAlias = tuple[int, ...]

COMBINERS = ("add", "mul", "min", "max", "and", "or", "xor")
"""What reductions combine by."""


@dataclass(frozen=True, slots=True)
class ArrayArg:
    """An array argument. order: "C" or "F" where it is contiguous that way, "" where strides say it."""

    name: str
    dtype: str
    rank: int
    order: Literal["C", "F", ""] = ""


@dataclass(frozen=True, slots=True)
class ScalarArg:
    """A number that is given at each call; integers may stand in index expressions, by their names."""

    name: str
    dtype: str


@dataclass(frozen=True, slots=True)
class Const:
    """A number; as a super-vector a splat of it."""

    value: int | float | bool
    dtype: str
    shape: VectorShape = ()


@dataclass(frozen=True, slots=True)
class Local:
    """What a Let or a loop's Carried of that name holds; or a scalar argument."""

    name: str
    dtype: str
    shape: VectorShape = ()


@dataclass(frozen=True, slots=True)
class IndexValue:
    """An index expression as a number.

    A super-vector where `along` names loop indices, one a vector dimension or "" for none: lane k of that
    dimension has the index plus k steps.
    """

    index: Index
    dtype: str = "i64"
    shape: VectorShape = ()
    along: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Load:
    """An element, or a super-vector (vector.transfer_read).

    dims    for each vector dimension the subscript that walks with it, counted from 0; None repeats the value
    steps   elements from lane to lane of each vector dimension, in that subscript; 1 unless loops step
    along   of a gather (vector.gather), in which each lane has subscripts of its own: the loop index that
            each vector dimension goes along, "" for none, as in IndexValue; it has no dims and steps
    """

    array: str
    subscripts: tuple[Index, ...]
    dtype: str
    shape: VectorShape = ()
    dims: tuple[int | None, ...] = ()
    steps: tuple[int, ...] = ()
    along: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Op:
    """Arithmetic, comparisons, conversions, functions, by name, element by element.

    add sub mul div floordiv mod pow neg abs min max and or xor not shl shr | eq ne lt le gt ge |
    select(condition, then, otherwise) | cast | sqrt exp exp2 expm1 log log2 log10 log1p sin cos tan asin acos
    atan atan2 sinh cosh tanh asinh acosh atanh cbrt hypot floor ceil trunc rint copysign fma
    broadcast (a scalar to a super-vector; or a super-vector of the outer loops, whose dimensions are then the
    first of the result, along those of the inner loops: its element [a] stands in every lane [a, b])

    depth   operations that stand one in another, this one too
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
    """All lanes of a super-vector combined, then with a scalar: vector.reduction."""

    combiner: str
    vector: Value
    start: Value
    dtype: str
    shape: VectorShape = ()


Value: TypeAlias = Const | Local | IndexValue | Load | Op | Reduce


@dataclass(frozen=True, slots=True)
class Let:
    """A name for a value, from here to the end of the body it stands in; given once."""

    name: str
    value: Value


@dataclass(frozen=True, slots=True)
class Store:
    """An element, or a super-vector (vector.transfer_write) as in Load.

    accumulate  a combiner where the element is combined with the value ("C[i] += x"), else ""
    where       an i1 of the value's shape: only where it is true anything is stored; None for everywhere
    """

    array: str
    subscripts: tuple[Index, ...]
    value: Value
    dims: tuple[int | None, ...] = ()
    steps: tuple[int, ...] = ()
    accumulate: str = ""
    where: Value | None = None

    @property
    def values(self) -> tuple[Value, ...]:
        """What is stored, and where."""
        return (self.value,) if self.where is None else (self.value, self.where)


@dataclass(frozen=True, slots=True)
class Carried:
    """A local that goes from one iteration to the next.

    It is `start` before the first and gets `update` at the end of each; behind the loop the name means what
    the last left. combiner: what reduces, or "" where it is no reduction.
    """

    name: str
    start: Value
    update: Value
    combiner: str = ""


@dataclass(frozen=True, slots=True)
class For:
    """index from the largest of `lower` while below the least of `upper`.

    With a negative step from the least of `lower` while above the largest of `upper`: each bounds it.

    size    iterations of the loop before that one of this takes: 1, or a size of the super-vector, and then
            `step` is `size` times as much. What is left at the end is masked: lane k of the vector dimension
            counts while index + k * step / size is inside.
    line    of the source, for messages

    The text may say that a loop is `parallel`, each iteration apart, or a `reduction` in any order.
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


Statement: TypeAlias = For | Let | Store


@dataclass(frozen=True, slots=True)
class Function:
    """A kernel: its arguments in the order of the Python function, its statements, what it returns."""

    name: str
    arguments: tuple[ArrayArg | ScalarArg, ...]
    body: tuple[Statement, ...]
    results: tuple[Value, ...] = ()

    def array(self, name: str) -> ArrayArg:
        """An array argument by its name."""
        return next(a for a in self.arguments if isinstance(a, ArrayArg) and a.name == name)
