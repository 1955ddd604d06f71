"""Read memref operations: allocations, sizes, casts and views."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from xdsl.dialects.builtin import DYNAMIC_INDEX, DenseArrayBase, IndexType, MemRefType
from xdsl.dialects.utils import get_dynamic_index_list
from xdsl.ir import Operation, SSAValue

from codegen import Affine, Index, IndexValue, index_symbols
from tilejit.mlir.dtypes import MemRef, View, number_of
from tilejit.mlir.maps import results
from tilejit.mlir.places import Unsupported
from tilejit.mlir.scope import Extremum, Scope
from tilejit.mlir.types import dtype_of, is_strided, static_sizes


def access(
    op: Operation, array: SSAValue, indices: Sequence[SSAValue], scope: Scope
) -> tuple[MemRef, tuple[Index, ...]]:
    """The memref that a load or a store accesses, and its subscripts."""
    view = scope.array(array)
    subscripts = tuple(map(scope.subscript, indices))
    if "map" in op.properties:
        subscripts = results(op.properties["map"].data, subscripts)
    if len(subscripts) != len(view.sizes):
        raise Unsupported(
            f"{view.memref.name} has {len(view.sizes)} dimensions, but {len(subscripts)} subscripts",
            "write one subscript for each dimension",
        )
    return view.memref, view.subscripts(subscripts)


def _allocate(op: Operation, scope: Scope) -> None:
    """memref.alloc: an internal array; inside a loop, all iterations share it."""
    type_ = op.results[0].type
    given = iter(op.operands)
    static = static_sizes(type_)
    if static.count(None) != len(op.operands):
        raise Unsupported(
            f"the allocation has {len(op.operands)} sizes, but its type has {static.count(None)} `?`",
            "write one size for each `?`",
        )
    sizes = [scope.index(next(given)) if size is None else Affine(size) for size in static]
    inner = sorted(set().union(*map(index_symbols, sizes)) & scope.loops)
    if inner:
        raise Unsupported(
            f"the size of an allocation depends on {inner[0]}, the index of a loop",
            "allocate before the loop, as large as any iteration needs",
        )
    memref = MemRef(scope.fresh(op.results[0], "buffer"), dtype_of(type_.element_type), tuple(sizes))
    scope.allocations.append(memref)
    if isinstance(type_.element_type, IndexType):
        scope.of_indices.add(memref.name)
    scope.values[op.results[0]] = memref


def _dim(op: Operation, scope: Scope) -> None:
    """memref.dim: the size of a dimension."""
    view, which = scope.array(op.operands[0]), scope.index(op.operands[1])
    number = number_of(which)
    if number is None or not 0 <= number < len(view.sizes):
        raise Unsupported(
            f"({which}) is not a dimension of {view.memref.name}, which has {len(view.sizes)}",
            "write the number of a dimension as an arith.constant",
        )
    sizes = view.sizes[number]
    scope.values[op.results[0]] = IndexValue(sizes[0]) if len(sizes) == 1 else Extremum("min", sizes)


def _cast(op: Operation, scope: Scope) -> None:
    """memref.cast: the same array; its own sizes still apply."""
    source, target = op.operands[0].type, op.results[0].type
    if (
        not isinstance(source, MemRefType)
        or not isinstance(target, MemRefType)
        or source.element_type != target.element_type
        or len(source.get_shape()) != len(target.get_shape())
        or any(a != b for a, b in zip(static_sizes(source), static_sizes(target), strict=True)
               if None not in (a, b))
    ):  # fmt: skip
        raise Unsupported(
            f"memref.cast from {source} to {target} is not supported",
            "cast between memrefs with the same element type, rank and static sizes",
        )
    scope.values[op.results[0]] = scope.meaning(op.operands[0])


def _subview(op: Operation, scope: Scope) -> None:
    """memref.subview: the elements of an array from an offset on, with a step in each dimension."""
    base = scope.array(op.operands[0])
    offsets, sizes, steps = _lists(op)
    rank = len(base.sizes)
    result = op.results[0].type
    if {len(offsets), len(sizes), len(steps), len(result.get_shape())} != {rank}:
        raise Unsupported(
            f"a view of {base.memref.name} must have its {rank} dimensions",
            "write an offset, a size and a stride for each dimension of the memref",
        )
    first = base.subscripts([_index(offset, scope) for offset in offsets])
    numbers = [_number(step, scope) for step in steps]
    moves = tuple((k, own * step) for (k, own), step in zip(base.moves, numbers, strict=True))
    scope.values[op.results[0]] = View(base.memref, first, moves, tuple(_several(n, scope) for n in sizes))


def _reinterpret_cast(op: Operation, scope: Scope) -> None:
    """memref.reinterpret_cast of a one-dimensional array with the same elements."""
    base = scope.array(op.operands[0])
    offsets, sizes, steps = _lists(op)
    if len(base.sizes) != 1 or base.moves != ((0, 1),) or is_strided(op.operands[0].type):
        raise Unsupported(
            f"memref.reinterpret_cast of {base.memref.name} is not supported",
            "cast a contiguous memref of one dimension, or write memref.subview",
        )
    if len(offsets) != 1 or len(sizes) != len(steps) or len(op.results[0].type.get_shape()) != len(sizes):
        raise Unsupported(
            "the lists of memref.reinterpret_cast differ in length",
            "write one offset, and a size and a stride for each dimension of the result",
        )
    first = base.subscripts([_index(offsets[0], scope)])
    moves = tuple((0, _number(step, scope)) for step in steps)
    scope.values[op.results[0]] = View(base.memref, first, moves, tuple(_several(n, scope) for n in sizes))


def _lists(op: Operation) -> list[list[SSAValue | int]]:
    """The offsets, sizes and strides; each is static or dynamic."""
    counts = [int(n) for n in op.properties["operandSegmentSizes"].get_values()]
    operands = list(op.operands[counts[0] :])
    out = []
    for name, count in zip(("offsets", "sizes", "strides"), counts[1:], strict=True):
        static = op.properties[f"static_{name}"]
        assert isinstance(static, DenseArrayBase)
        given, operands = operands[:count], operands[count:]
        out.append(get_dynamic_index_list(static.get_values(), given, DYNAMIC_INDEX))
    return out


def _index(value: SSAValue | int, scope: Scope) -> Index:
    return Affine(value) if isinstance(value, int) else scope.index(value)


def _several(value: SSAValue | int, scope: Scope) -> tuple[Index, ...]:
    return (Affine(value),) if isinstance(value, int) else scope.several(value)


def _number(value: SSAValue | int, scope: Scope) -> int:
    index = _index(value, scope)
    number = number_of(index)
    if number is None:
        raise Unsupported(f"the stride ({index}) is not a number", "write an arith.constant")
    return number


MEMREFS: Mapping[str, Callable[[Operation, Scope], None]] = {
    **dict.fromkeys(("memref.alloc", "memref.alloca"), _allocate),
    "memref.dim": _dim,
    "memref.cast": _cast,
    "memref.subview": _subview,
    "memref.reinterpret_cast": _reinterpret_cast,
}
"""Operations that return an array or its size."""
