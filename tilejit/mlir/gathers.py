"""Read gathers and scatters, and transfers that MLIR's permutation maps cannot express."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from xdsl.dialects.builtin import ArrayAttr, IntegerAttr, VectorType
from xdsl.ir import Operation, SSAValue

from codegen import Affine, ArrayElement, Index, Load, Statement, Store, Value, add_indices
from tilejit.mlir.dtypes import is_integer
from tilejit.mlir.lanes import Limits, Nest, lane_index, zero
from tilejit.mlir.meanings import Counted, Held
from tilejit.mlir.places import Unsupported
from tilejit.mlir.scope import Scope
from tilejit.mlir.transfers import (
    Transfer,
    both,
    check_elements,
    check_shape,
    rank_of,
    read_lanes,
    write_lanes,
)
from tilejit.mlir.types import dtype_of, element_of, vector_shape

PRINTED = "write it in the form that super_vectorize prints"


def _vector_gather(op: Operation, scope: Scope, out: list[Statement], line: int) -> None:
    """vector.gather: each lane's index is added to the last subscript."""
    (result,) = op.results
    *indices, moved, mask, other = op.operands[1:]
    if not indices:
        raise Unsupported("vector.gather of a memref without dimensions", "load its element")
    check_shape(other, vector_shape(result.type))
    lanes = [(len(indices) - 1, moved)]
    _gathered(op, indices, lanes, mask, lambda nest: nest.at(other), (scope, out, line))


def _own_gather(op: Operation, scope: Scope, out: list[Statement], line: int) -> None:
    """tilejit.gather: lanes have their own indices in several subscripts."""
    result = _result(op)
    rank, dims = rank_of(op, 0), _numbers(op, "dims")
    rest = op.operands[1 + rank :]
    if len(rest) != len(dims) + 1 or any(not 0 <= dim < rank for dim in dims):
        raise Unsupported("tilejit.gather has operands or lists of wrong lengths", PRINTED)
    nothing = zero(dtype_of(element_of(result.type)))
    lanes = list(zip(dims, rest, strict=False))
    _gathered(op, op.operands[1 : 1 + rank], lanes, rest[-1], lambda nest: nothing, (scope, out, line))


def _gathered(
    op: Operation,
    indices: Sequence[SSAValue],
    moved: Sequence[tuple[int, SSAValue]],
    mask: SSAValue,
    other: Callable[[Nest], Value],
    place: tuple[Scope, list[Statement], int],
) -> None:
    """Copy the lanes that a mask selects.

    Args:
        op: the gather.
        indices: the base of each subscript.
        moved: subscripts, each with the vector that lanes add to it.
        mask: the lanes to copy.
        other: the value of all other lanes.
        place: the scope, the statements so far, and the line of the operation.
    """
    scope, out, line = place
    (result,) = op.results
    shape = vector_shape(result.type)
    check_elements(op.operands[0], result)
    for each in (mask, *(lanes for _, lanes in moved)):
        check_shape(each, shape)
    view = scope.array(op.operands[0])
    base = [scope.subscript(index) for index in indices]
    memref = scope.hold(result, dtype_of(element_of(result.type)), shape)
    fill = Nest(scope, shape, line)
    fill.store(memref, other(fill))
    out += fill.loops()
    nest = Nest(scope, shape, line)
    where, limits = _masked(nest, mask)

    def subscripts(lanes: Sequence[Index]) -> tuple[Index, ...]:
        return view.subscripts(_moved_to(base, moved, mask, lanes, scope))

    def elements(lanes: Sequence[Index]) -> Index:
        return ArrayElement(view.memref.name, subscripts(lanes), memref.dtype)

    nest.store(memref, Load(view.memref.name, subscripts(nest.lanes), memref.dtype), where)
    out += nest.loops(limits)
    scope.values[result] = Held(memref, elements if is_integer(memref.dtype) else None, mask)


def _vector_scatter(op: Operation, scope: Scope, out: list[Statement], line: int) -> None:
    """vector.scatter: each lane's index is added to the last subscript; lanes are stored in order."""
    *indices, moved, mask, value = op.operands[1:]
    if not indices:
        raise Unsupported("vector.scatter to a memref without dimensions", "store its element")
    _scattered(op.operands[0], indices, [(len(indices) - 1, moved)], (mask, value), (scope, out, line))


def _own_scatter(op: Operation, scope: Scope, out: list[Statement], line: int) -> None:
    """tilejit.scatter: lanes have their own indices in several subscripts."""
    rank, dims = rank_of(op, 1), _numbers(op, "dims")
    rest = op.operands[2 + rank :]
    if len(rest) != len(dims) + 1 or any(not 0 <= dim < rank for dim in dims):
        raise Unsupported("tilejit.scatter has operands or lists of wrong lengths", PRINTED)
    lanes = list(zip(dims, rest, strict=False))
    operands = rest[-1], op.operands[0]
    _scattered(op.operands[1], op.operands[2 : 2 + rank], lanes, operands, (scope, out, line))


def _scattered(
    array: SSAValue,
    indices: Sequence[SSAValue],
    moved: Sequence[tuple[int, SSAValue]],
    operands: tuple[SSAValue, SSAValue],
    place: tuple[Scope, list[Statement], int],
) -> None:
    """Store the lanes that a mask selects; `operands` are the mask and the value."""
    scope, out, line = place
    mask, value = operands
    check_elements(array, value)
    nest = Nest(scope, vector_shape(value.type), line)
    for each in (mask, *(lanes for _, lanes in moved)):
        check_shape(each, nest.shape)
    view = scope.array(array)
    where, limits = _masked(nest, mask)
    base = [scope.subscript(index) for index in indices]
    subscripts = view.subscripts(_moved_to(base, moved, mask, nest.lanes, scope))
    nest.body.append(Store(view.memref.name, subscripts, nest.at(value), where=both(scope.where, where)))
    out += nest.loops(limits)


def _masked(nest: Nest, mask: SSAValue) -> tuple[Value | None, Limits]:
    """A mask as a condition on the lanes, or as bounds of the lanes."""
    meaning = nest.scope.meaning(mask)
    if dtype_of(element_of(mask.type)) != "i1":
        raise Unsupported(f"{mask.type} is not a mask", "write a vector of i1")
    return (None, meaning.limits) if isinstance(meaning, Counted) else (nest.at(mask), ())


def _moved_to(
    base: list[Index],
    moved: Sequence[tuple[int, SSAValue]],
    mask: SSAValue,
    at: Sequence[Index],
    scope: Scope,
) -> list[Index]:
    """The subscripts of a lane that the mask selects."""
    where = list(base)
    for dim, lanes in moved:
        lane = lane_index(lanes, at, scope, mask)
        if lane is None:
            raise Unsupported(
                "lanes with indices that are computed from data are not supported",
                "read the indices from a memref, or compute sums and multiples of constants and loop indices",
            )
        where[dim] = lane if where[dim] == Affine() else add_indices(where[dim], lane)
    return where


def _own_read(op: Operation, scope: Scope, out: list[Statement], line: int) -> None:
    """tilejit.transfer_read: several dimensions of the vector traverse one of the array."""
    result = _result(op)
    transfer = _own_transfer(op, 0, result, scope)
    nothing = zero(dtype_of(element_of(result.type)))
    read_lanes(result, transfer, lambda nest: nothing, (scope, out, line))


def _own_write(op: Operation, scope: Scope, out: list[Statement], line: int) -> None:
    transfer = _own_transfer(op, 1, op.operands[0] if op.operands else None, scope)
    write_lanes(op.operands[0], transfer, (scope, out, line))


def _own_transfer(op: Operation, at: int, vector: SSAValue | None, scope: Scope) -> Transfer:
    """The lanes of TileJIT's own transfer: the array, a mask, and a subscript for each dimension."""
    rank = rank_of(op, at)
    dims, steps = _numbers(op, "dims"), _numbers(op, "steps")
    assert vector is not None, "an operation with an array has operands"
    check_elements(op.operands[at], vector)
    shape = vector_shape(vector.type)
    mask, *indices = op.operands[at + 1 :] or (vector,)
    check_shape(mask, shape)
    if (
        dtype_of(element_of(mask.type)) != "i1"
        or not len(dims) == len(steps) == len(shape)
        or len(indices) != rank
        or any(not -1 <= dim < rank for dim in dims)
    ):
        raise Unsupported(f"{op.name} has operands or lists of wrong lengths", PRINTED)
    return Transfer(
        scope.array(op.operands[at]),
        tuple(map(scope.subscript, indices)),
        tuple(None if dim < 0 else dim for dim in dims),
        (True,) * len(shape),
        mask,
        tuple(range(len(shape))),
        steps,
    )


def _result(op: Operation) -> SSAValue:
    if len(op.results) != 1 or not isinstance(op.results[0].type, VectorType):
        raise Unsupported(f"{op.name} must return one vector", PRINTED)
    found: SSAValue = op.results[0]
    return found


def _numbers(op: Operation, name: str) -> tuple[int, ...]:
    """The numbers of a list attribute."""
    given = op.attributes.get(name)
    listed = given.data if isinstance(given, ArrayAttr) else ()
    numbers = tuple(int(each.value.data) for each in listed if isinstance(each, IntegerAttr))
    if not numbers or len(numbers) != len(listed):
        raise Unsupported(f"{op.name} has no list of numbers named {name}", PRINTED)
    return numbers


GATHERS: Mapping[str, Callable[[Operation, Scope, list[Statement], int], None]] = {
    "vector.gather": _vector_gather,
    "vector.scatter": _vector_scatter,
    "tilejit.gather": _own_gather,
    "tilejit.scatter": _own_scatter,
    "tilejit.transfer_read": _own_read,
    "tilejit.transfer_write": _own_write,
}
"""Operations whose lanes have their own subscripts."""
