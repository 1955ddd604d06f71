"""Loops over the lanes of vectors, which compute the value of each lane where it is stored."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import field
from functools import partial

from xdsl.dialects.builtin import IndexType, VectorType
from xdsl.ir import Operation, SSAValue

from codegen import (
    Affine,
    Const,
    For,
    Index,
    IndexValue,
    Load,
    Local,
    Op,
    Statement,
    Store,
    Value,
    add_indices,
    dataclass,
    index_symbol,
    scale_index,
)
from tilejit.mlir.arithmetic import arithmetic
from tilejit.mlir.dtypes import INDEX, MemRef
from tilejit.mlir.index_arithmetic import INDEX_ARITHMETIC, without_sign
from tilejit.mlir.maps import bounded
from tilejit.mlir.meanings import Counted, Held, Lanewise, Moved, Progression, Splat
from tilejit.mlir.places import Unsupported
from tilejit.mlir.scope import Scope
from tilejit.mlir.selected_indices import selected_index
from tilejit.mlir.types import dtype_of, element_of, shape_text, vector_shape

Limits = tuple[tuple[Index, ...], ...]
"""Additional bounds of the lanes, for each dimension of a vector."""

INDEX_LANES: Mapping[str, Callable[[Index, Index], Index]] = {
    name: make for name, make in INDEX_ARITHMETIC.items() if name != "arith.ceildivsi"
}
"""Operations on vectors of indices that are index expressions."""

OF_TWO = ("atan2", "hypot", "copysign", "mod", "pow", "floordiv")
"""TileJIT's own operations with two operands."""


@dataclass(slots=True)
class Nest:
    """Loops over the lanes of vectors of one shape, while their body is built.

    lanes   the loop indices
    body    the statements so far
    known   the values of lanes that already have a name
    mixed   whether a lane reads other lanes of a vector, so that the loops must not overwrite it
    """

    scope: Scope
    shape: tuple[int, ...]
    line: int
    lanes: tuple[Index, ...] = ()
    body: list[Statement] = field(default_factory=list)
    known: dict[tuple[SSAValue, tuple[Index, ...]], Value] = field(default_factory=dict)
    mixed: bool = False

    def __post_init__(self) -> None:
        self.lanes = tuple(index_symbol(self.scope.fresh(None, "lane")) for _ in self.shape)

    def at(self, value: SSAValue, lanes: tuple[Index, ...] | None = None) -> Value:
        """A lane of a vector as a named value; without `lanes`, the current lane of the loops."""
        if not isinstance(value.type, VectorType):
            return self.scope.value(value)
        key = value, self.lanes if lanes is None else lanes
        if key not in self.known:
            self.known[key] = self.scope.let(value, self.lane(*key), self.body)
        return self.known[key]

    def lane(self, value: SSAValue, lanes: tuple[Index, ...]) -> Value:
        """The value of a lane of a vector."""
        match self.scope.meaning(value):
            case Held(memref):
                self.mixed |= lanes != self.lanes
                return Load(memref.name, lanes, memref.dtype)
            case Splat(number):
                return number
            case Counted(limits):
                return counted(limits, lanes)
            case Progression() as numbers:
                number, dtype = IndexValue(_number_in(numbers, lanes)), dtype_of(element_of(value.type))
                return number if dtype == INDEX else Op("cast", (number,), dtype)
            case Moved(source, moves):
                return self.at(source, tuple(Affine() if k is None else lanes[k] for k in moves))
            case Lanewise(op):
                return lanewise(op, [self.at(operand, lanes) for operand in op.operands])
        raise AssertionError(f"lanes: no rule for {type(self.scope.meaning(value)).__name__}")

    def store(self, memref: MemRef, value: Value, where: Value | None = None) -> None:
        """Store a value into an array that holds a vector."""
        self.body.append(Store(memref.name, self.lanes, value, where=where))

    def loops(self, limits: Limits = (), first: tuple[Index, ...] = ()) -> list[Statement]:
        """The loops over the lanes.

        Args:
            limits: additional upper bounds for each dimension; () for all lanes.
            first: additional lower bounds of the first dimension.
        """
        made = self.body
        for k in reversed(range(len(self.shape))):
            lower = (Affine(0), *(first if k == 0 else ()))
            upper = (Affine(self.shape[k]), *(limits[k] if limits else ()))
            (name, _), *_ = self.lanes[k].terms  # type: ignore[union-attr]
            made = [For(name, lower, upper, 1, tuple(made), line=self.line)]
        return made


def counted(limits: Limits, lanes: Sequence[Index]) -> Value:
    """Whether a lane is below every limit."""
    held: Value = Const(True, "i1")
    for lane, several in zip(lanes, limits, strict=True):
        for limit in several:
            test = Op("lt", (IndexValue(lane), IndexValue(limit)), "i1")
            held = test if isinstance(held, Const) else Op("and", (held, test), "i1")
    return held


def _number_in(numbers: Progression, lanes: Sequence[Index]) -> Index:
    """The number that a progression has in a lane."""
    total: Index = Affine(numbers.start)
    for lane, step in zip(lanes, numbers.steps, strict=True):
        total = add_indices(total, scale_index(lane, step))
    return total


def lanewise(op: Operation, operands: list[Value]) -> Value:
    """The result of an operation in one lane.

    Raises:
        Unsupported: kernels have no such operation.
    """
    element = element_of(op.results[0].type)
    dtype = dtype_of(element)
    if isinstance(element, IndexType) and op.name in INDEX_LANES:
        indices = [index_of(operand) for operand in operands]
        if None not in indices and (found := _affine(op.name, indices)) is not None:
            return IndexValue(found)
    return computed(op, operands, dtype)


def computed(op: Operation, operands: Sequence[Value], dtype: str) -> Value:
    """The result of an operation on numbers.

    Raises:
        Unsupported: kernels have no such operation.
    """
    if op.name == "vector.fma" or op.name.startswith("tilejit."):
        return Op(op.name.partition(".")[2], tuple(operands), dtype)
    predicate = op.properties["predicate"].value.data if "predicate" in op.properties else 0
    return arithmetic(op.name, operands, dtype, predicate)


def zero(dtype: str) -> Const:
    """The value of poison, and of lanes outside an array if the text has no padding."""
    return Const(False if dtype == "i1" else 0 if dtype[0] in "iu" else 0.0, dtype)


def check_foreign(op: Operation) -> None:
    """Raise for one of TileJIT's own operations with wrong operands.

    Raises:
        Unsupported: the operands are wrong.
    """
    name = op.name.removeprefix("tilejit.")
    count = 3 if name == "fma" else 2 if name in OF_TWO else 1
    kinds = [x.type for x in (*op.operands, *op.results)]
    if name != op.name and (len(op.operands) != count or any(kind != kinds[0] for kind in kinds)):
        plural = "s" * (count > 1)
        raise Unsupported(
            f"{op.name} has wrong operands", f"write {count} operand{plural} of its result's type"
        )


def lane_index(value: SSAValue, lanes: Sequence[Index], scope: Scope, mask: SSAValue | None) -> Index | None:
    """A lane of a vector of integers as an index expression; None if there is none.

    The expression may contain elements of arrays, because kernels do not store to arrays of subscripts.

    Args:
        value: the vector.
        lanes: the lane, which the mask selects.
        scope: the known values.
        mask: the mask; None for all lanes.
    """
    match scope.meaning(value):
        case Held(_, elements, own) if elements is not None and own in (None, mask):
            return elements(lanes)
        case Splat(number):
            return index_of(number)
        case Progression() as numbers:
            return _number_in(numbers, lanes)
        case Moved(source, moves):
            if isinstance(source.type, VectorType):
                source_lanes = [Affine() if k is None else lanes[k] for k in moves]
                return lane_index(source, source_lanes, scope, None)
        case Lanewise(op):
            return _computed_index(op, partial(lane_index, lanes=lanes, scope=scope, mask=mask))
    return None


def _computed_index(op: Operation, index: Callable[[SSAValue], Index | None]) -> Index | None:
    """The result of an operation on index expressions, if it is exact."""
    if op.name == "arith.select" and _is_wide(op):
        return selected_index(op, index)
    if op.name == "arith.index_castui" and _is_wide(op):
        (given,) = op.operands
        of = index(given)
        return None if of is None else without_sign(of, given.type)
    widens = op.name == "arith.extsi" or (op.name == "arith.index_cast" and _is_wide(op))
    if not widens and not (op.name in INDEX_LANES and _is_wide(op)):
        return None
    operands = [index(operand) for operand in op.operands]
    if None in operands:
        return None
    return operands[0] if widens else _affine(op.name, operands)


def _is_wide(op: Operation) -> bool:
    return dtype_of(element_of(op.results[0].type)) == INDEX


def index_of(value: Value) -> Index | None:
    """A number as an index expression; None if it is not one."""
    match value:
        case IndexValue(index):
            return index
        case Const(number, "i64"):
            return Affine(int(number))
    return None


def _affine(name: str, indices: Sequence[Index | None]) -> Index | None:
    a, b = indices
    assert a is not None
    assert b is not None
    try:
        return bounded(INDEX_LANES[name](a, b))
    except Unsupported:
        return None


def check_lanewise(op: Operation) -> None:
    """Check that kernels support an operation on vectors.

    Raises:
        Unsupported: kernels do not support it, or the shapes of its operands differ.
    """
    shape = vector_shape(op.results[0].type)
    for operand in op.operands:
        if isinstance(operand.type, VectorType) and vector_shape(operand.type) != shape:
            raise Unsupported(
                f"{op.name} has operands of {shape_text(vector_shape(operand.type))} lanes, "
                f"but its result has {shape_text(shape)}",
                "write vectors of one shape",
            )
    check_foreign(op)
    names = [Local(f"x{k}", dtype_of(element_of(x.type))) for k, x in enumerate(op.operands)]
    if op.name != "arith.select" and any(not isinstance(x.type, VectorType) for x in op.operands):
        raise Unsupported(f"{op.name} mixes numbers and vectors", "write vector.broadcast of the number")
    lanewise(op, list(names))
