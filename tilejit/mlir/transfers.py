"""Read transfers between vectors and arrays, which access only lanes inside the array and the mask."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from xdsl.dialects.builtin import ArrayAttr, IntegerAttr, MemRefType, VectorType
from xdsl.ir import Operation, SSAValue
from xdsl.ir.affine import AffineConstantExpr, AffineDimExpr, AffineMap

from codegen import (
    ArrayElement,
    Index,
    Load,
    Op,
    Statement,
    Store,
    Value,
    add_indices,
    dataclass,
    scale_index,
)
from tilejit.mlir.dtypes import View, is_integer
from tilejit.mlir.lanes import Limits, Nest, zero
from tilejit.mlir.meanings import Counted, Held
from tilejit.mlir.places import Unsupported
from tilejit.mlir.scope import Scope
from tilejit.mlir.types import dtype_of, element_of, shape_text, vector_shape


@dataclass(frozen=True, slots=True)
class Transfer:
    """The lanes of a vector in an array.

    base    the subscripts of the first lane
    dims    for each dimension of the vector, the dimension of the view that it traverses; None to repeat
    inside  for each dimension of the vector, whether the text promises that all lanes are inside the array
    mask    the lanes to access; None for all
    order   for each dimension of the mask, the dimension of the vector
    steps   elements from lane to lane in each dimension; () if all are 1
    """

    view: View
    base: tuple[Index, ...]
    dims: tuple[int | None, ...]
    inside: tuple[bool, ...]
    mask: SSAValue | None = None
    order: tuple[int, ...] = ()
    steps: tuple[int, ...] = ()

    def subscripts(self, lanes: Sequence[Index]) -> tuple[Index, ...]:
        """The array's subscripts of a lane."""
        where = list(self.base)
        for dim, lane, step in zip(self.dims, lanes, self.steps or (1,) * len(lanes), strict=True):
            if dim is not None:
                where[dim] = add_indices(where[dim], scale_index(lane, step))
        return self.view.subscripts(where)

    def limits(self, scope: Scope) -> Limits:
        """The bounds of the lanes: the array's sizes, and the limits of a mask of the first lanes."""
        limits = [self._sizes(dim, inside) for dim, inside in zip(self.dims, self.inside, strict=True)]
        if self.mask is not None:
            meaning = scope.meaning(self.mask)
            if isinstance(meaning, Counted):
                for k, several in zip(self.order, meaning.limits, strict=True):
                    limits[k] += several
        return tuple(limits)

    def _sizes(self, dim: int | None, inside: bool) -> tuple[Index, ...]:
        if dim is None or inside:
            return ()
        return tuple(add_indices(size, scale_index(self.base[dim], -1)) for size in self.view.sizes[dim])

    def where(self, nest: Nest) -> Value | None:
        """The condition for accessing a lane; None if bounds express it."""
        if self.mask is None or isinstance(nest.scope.meaning(self.mask), Counted):
            return None
        return nest.at(self.mask, tuple(nest.lanes[k] for k in self.order))


def _transfer_read(op: Operation, scope: Scope, out: list[Statement], line: int) -> None:
    (result,) = op.results
    rank = rank_of(op, 0)
    indices, given = op.operands[1 : 1 + rank], op.operands[1 + rank :]
    if len(given) > 2:
        raise Unsupported("vector.transfer_read has too many operands", "write a padding value and a mask")
    transfer = _transfer(op, op.operands[0], indices, result, given[1] if len(given) > 1 else None, scope)
    dtype = dtype_of(element_of(result.type))
    padding = scope.value(given[0]) if given else zero(dtype)
    read_lanes(result, transfer, lambda nest: padding, (scope, out, line))


def _transfer_write(op: Operation, scope: Scope, out: list[Statement], line: int) -> None:
    value = op.operands[0]
    rank = rank_of(op, 1)
    indices, given = op.operands[2 : 2 + rank], op.operands[2 + rank :]
    transfer = _transfer(op, op.operands[1], indices, value, given[0] if given else None, scope)
    if None in transfer.dims:
        raise Unsupported("vector.transfer_write repeats a dimension", "name d0, d1 … in its permutation map")
    write_lanes(value, transfer, (scope, out, line))


def _load(op: Operation, scope: Scope, out: list[Statement], line: int) -> None:
    """vector.load: all lanes are in the array."""
    (result,) = op.results
    transfer = _last(op.operands[0], op.operands[1:], result, scope)
    nothing = zero(dtype_of(element_of(result.type)))
    read_lanes(result, transfer, lambda nest: nothing, (scope, out, line))


def _store(op: Operation, scope: Scope, out: list[Statement], line: int) -> None:
    transfer = _last(op.operands[1], op.operands[2:], op.operands[0], scope)
    write_lanes(op.operands[0], transfer, (scope, out, line))


def _masked_load(op: Operation, scope: Scope, out: list[Statement], line: int) -> None:
    (result,) = op.results
    *indices, mask, other = op.operands[1:]
    transfer = _last(op.operands[0], indices, result, scope, mask)
    read_lanes(result, transfer, lambda nest: nest.at(other), (scope, out, line))


def _masked_store(op: Operation, scope: Scope, out: list[Statement], line: int) -> None:
    *indices, mask, value = op.operands[1:]
    write_lanes(value, _last(op.operands[0], indices, value, scope, mask), (scope, out, line))


def read_lanes(
    result: SSAValue,
    transfer: Transfer,
    padding: Callable[[Nest], Value],
    place: tuple[Scope, list[Statement], int],
) -> None:
    """Copy the accessed lanes; all other lanes get the padding."""
    scope, out, line = place
    shape = vector_shape(result.type)
    memref = scope.hold(result, dtype_of(element_of(result.type)), shape)
    limits = transfer.limits(scope)
    nest = Nest(scope, shape, line)
    where = transfer.where(nest)
    if where is not None or any(limits):
        rest = Nest(scope, shape, line)
        rest.store(memref, padding(rest))
        # With one bound in one dimension, the other lanes start there.
        only = limits[0] if len(shape) == 1 and len(limits[0]) == 1 and where is None else ()
        out += rest.loops(first=only)
    name = transfer.view.memref.name
    nest.store(memref, Load(name, transfer.subscripts(nest.lanes), memref.dtype), where)
    out += nest.loops(limits)

    def elements(lanes: Sequence[Index]) -> Index:
        return ArrayElement(name, transfer.subscripts(lanes), memref.dtype)

    exact = is_integer(memref.dtype) and where is None
    scope.values[result] = Held(memref, elements if exact else None)


def write_lanes(value: SSAValue, transfer: Transfer, place: tuple[Scope, list[Statement], int]) -> None:
    """Store the accessed lanes."""
    scope, out, line = place
    nest = Nest(scope, vector_shape(value.type), line)
    where = both(scope.where, transfer.where(nest))
    name = transfer.view.memref.name
    nest.body.append(Store(name, transfer.subscripts(nest.lanes), nest.at(value), where=where))
    out += nest.loops(transfer.limits(scope))


def both(a: Value | None, b: Value | None) -> Value | None:
    """Whether both conditions hold; None if there are none."""
    if a is None or b is None:
        return b if a is None else a
    return Op("and", (a, b), "i1")


def rank_of(op: Operation, at: int) -> int:
    """The number of dimensions of a memref operand."""
    kind = op.operands[at].type if len(op.operands) > at else None
    if not isinstance(kind, MemRefType):
        raise Unsupported(
            f"expected a memref as operand {at} of {op.name}", "read from, and write to, memrefs"
        )
    return len(kind.get_shape())


def _transfer(
    op: Operation,
    array: SSAValue,
    indices: Sequence[SSAValue],
    vector: SSAValue,
    mask: SSAValue | None,
    scope: Scope,
) -> Transfer:
    """A transfer with its permutation map and in_bounds."""
    view, shape = scope.array(array), vector_shape(vector.type)
    check_elements(array, vector)
    rank = len(view.sizes)
    if "permutation_map" in op.properties:
        dims = _dims(op.properties["permutation_map"], rank)
    elif len(shape) <= rank:
        dims = tuple(range(rank - len(shape), rank))
    else:
        raise Unsupported(
            f"{vector.type} has more dimensions than {view.memref.name}",
            "write a permutation_map with 0 for repeated dimensions",
        )
    if len(dims) != len(shape):
        raise Unsupported(
            f"the permutation map has {len(dims)} results for {vector.type}",
            "write one result for each dimension of the vector",
        )
    inside = _promises(op, len(dims))
    for dim, promised in zip(dims, inside, strict=True):
        if dim is not None and not promised and indices[dim] in scope.elements:
            raise Unsupported(
                "the transfer starts at an index from memory and may exceed the end",
                "write in_bounds = [true]",
            )
    # A mask has the array's dimensions.
    order = tuple(k for _, k in sorted((dim, k) for k, dim in enumerate(dims) if dim is not None))
    if mask is not None:
        check_shape(mask, tuple(shape[k] for k in order))
    return Transfer(view, tuple(map(scope.subscript, indices)), dims, inside, mask, order)


def _last(
    array: SSAValue, indices: Sequence[SSAValue], vector: SSAValue, scope: Scope, mask: SSAValue | None = None
) -> Transfer:
    """A transfer along the last dimensions that lies completely inside the array."""
    view, shape = scope.array(array), vector_shape(vector.type)
    check_elements(array, vector)
    rank = len(view.sizes)
    if len(shape) > rank or len(indices) != rank:
        raise Unsupported(
            f"{vector.type} at {len(indices)} indices does not fit {view.memref.name}, which has rank {rank}",
            "write an index for each dimension, and a vector of at most as many",
        )
    if mask is not None:
        check_shape(mask, shape)
    dims = tuple(range(rank - len(shape), rank))
    order = tuple(range(len(shape)))
    return Transfer(view, tuple(map(scope.subscript, indices)), dims, (True,) * len(shape), mask, order)


def _dims(attribute: object, rank: int) -> tuple[int | None, ...]:
    """The array's dimension for each dimension of the vector, None for a repeated one.

    (d0, d1) -> (d1, 0) of an array with two dimensions -> 1, None
    """
    found = getattr(attribute, "data", None)
    if not isinstance(found, AffineMap) or found.num_dims != rank or found.num_symbols:
        raise Unsupported(
            f"expected a permutation map of {rank} dimensions, like the memref",
            f"write an affine_map with {rank} dimensions and without symbols",
        )
    dims: list[int | None] = []
    for e in found.results:
        match e:
            case AffineDimExpr() if e.position not in dims:
                dims.append(e.position)
            case AffineConstantExpr(0):
                dims.append(None)
            case _:
                raise Unsupported(f"({e}) in a permutation map is not supported", "write d0, d1 …, or 0")
    return tuple(dims)


def _promises(op: Operation, count: int) -> tuple[bool, ...]:
    """in_bounds: for each dimension, whether all lanes are inside the array; False without the attribute."""
    given = op.properties.get("in_bounds")
    if given is None:
        return (False,) * count
    listed = given.data if isinstance(given, ArrayAttr) else ()
    truths = [each.value.data for each in listed if isinstance(each, IntegerAttr)]
    if len(truths) != count:
        raise Unsupported(
            f"expected {count} entries of in_bounds",
            "write true or false for each dimension of the vector",
        )
    return tuple(map(bool, truths))


def check_elements(array: SSAValue, vector: SSAValue) -> None:
    """Raise if the element types of an array and a vector differ."""
    kind = array.type
    if not isinstance(kind, MemRefType) or not isinstance(vector.type, VectorType):
        raise Unsupported(
            f"expected a memref and a vector, got {kind} and {vector.type}", "write a memref and a vector"
        )
    if kind.element_type != vector.type.element_type:
        raise Unsupported(
            f"{kind} and {vector.type} have different element types", "write the same type for both"
        )


def check_shape(value: SSAValue, shape: tuple[int, ...]) -> None:
    """Raise if a vector has another shape."""
    if vector_shape(value.type) != shape:
        raise Unsupported(
            f"{value.type} and the vector have different shapes", f"write a vector of {shape_text(shape)}"
        )


TRANSFERS: Mapping[str, Callable[[Operation, Scope, list[Statement], int], None]] = {
    "vector.transfer_read": _transfer_read,
    "vector.transfer_write": _transfer_write,
    "vector.load": _load,
    "vector.store": _store,
    "vector.maskedload": _masked_load,
    "vector.maskedstore": _masked_store,
}
"""Operations of the vector dialect that access arrays."""

WRITES = (
    "tilejit.scatter",
    "vector.scatter",
    "tilejit.transfer_write",
    "vector.transfer_write",
    "vector.store",
    "vector.maskedstore",
)
