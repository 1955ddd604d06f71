"""The IR of kernels on one page: loops with affine bounds around stores of scalars or super-vectors.

A value has a dtype with its MLIR name ("f32", "bf16", "i32", "u8", "i1" for booleans) and a shape: () for
scalars, (256,) or (32, 256) for super-vectors. The same nodes serve both, so one printer, one interpreter and
one emitter suffice.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Literal, TypeAlias

from codegen.ir.index import Index

VectorShape: TypeAlias = tuple[int, ...]

COMBINERS = ("add", "mul", "min", "max", "and", "or", "xor")
"""The operations that reductions combine with."""


@dataclass(frozen=True, slots=True)
class ArrayArg:
    """An array argument. order: "C" or "F" if it is contiguous in that order, "" for arbitrary strides."""

    name: str
    dtype: str
    rank: int
    order: Literal["C", "F", ""] = ""


@dataclass(frozen=True, slots=True)
class ScalarArg:
    """A number passed at each call; index expressions may refer to integers by name."""

    name: str
    dtype: str


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
    that dimension has the index plus k steps.
    """

    index: Index
    dtype: str = "i64"
    shape: VectorShape = ()
    along: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Load:
    """An element, or a super-vector (vector.transfer_read).

    dims    for each vector dimension, the number of the subscript that varies along it; None to repeat
    steps   elements from lane to lane of each vector dimension, in that subscript; 1 unless loops step
    along   only for a gather (vector.gather), where each lane has its own subscripts: the loop index of each
            vector dimension, "" for none, as in IndexValue; a gather has no dims or steps
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
    """An elementwise operation by name: arithmetic, comparison, conversion or function.

    add sub mul div floordiv mod pow neg abs min max and or xor not shl shr | eq ne lt le gt ge |
    select(condition, then, otherwise) | cast | sqrt exp exp2 expm1 log log2 log10 log1p sin cos tan asin acos
    atan atan2 sinh cosh tanh asinh acosh atanh cbrt hypot floor ceil trunc rint copysign fma
    broadcast (a scalar to a super-vector; or a super-vector of the outer loops along the inner loops: its
    dimensions come first in the result, so every lane [a, b] holds its element [a])

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


@dataclass(frozen=True, slots=True)
class Let:
    """A name for a value, from here to the end of the enclosing body; assigned once."""

    name: str
    value: Value


@dataclass(frozen=True, slots=True)
class Store:
    """An element, or a super-vector (vector.transfer_write) as in Load.

    accumulate  the combiner if the element is combined with the value ("C[i] += x"), else ""
    where       an i1 mask of the value's shape that selects the lanes to store; None stores all
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
        """The stored value and, if there is one, the mask."""
        return (self.value,) if self.where is None else (self.value, self.where)


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
    """A kernel: its arguments in the order of the Python function, its statements and its results."""

    name: str
    arguments: tuple[ArrayArg | ScalarArg, ...]
    body: tuple[Statement, ...]
    results: tuple[Value, ...] = ()

    def array(self, name: str) -> ArrayArg:
        """The array argument with that name."""
        return next(a for a in self.arguments if isinstance(a, ArrayArg) and a.name == name)
