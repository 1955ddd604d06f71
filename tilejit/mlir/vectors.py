"""Convert the vector dialect to loops over lanes, which become super-vectors when they run.

    %x = vector.transfer_read %A[%i], %pad              for lane in max(0, A.shape[0] - i)..256: x[lane] = pad
        : memref<?xf32>, vector<256xf32>                for lane in 0..min(256, A.shape[0] - i):
                                                            x[lane] = A[i + lane]
    %y = arith.addf %x, %x : vector<256xf32>            (computed where it is stored)
    vector.transfer_write %y, %C[%i]                    for lane in 0..min(256, C.shape[0] - i):
        : vector<256xf32>, memref<?xf32>                    C[i + lane] = x[lane] + x[lane]

Reads are copied, so that later writes do not affect them, even if arrays share memory.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from math import prod

import numpy as np
from xdsl.dialects.builtin import DenseIntOrFPElementsAttr, VectorType, i1
from xdsl.dialects.func import FuncOp
from xdsl.ir import Operation, SSAValue

from codegen import Affine, Carried, Const, For, Load, Local, Op, Statement, Store, Value
from tilejit.mlir.arithmetic import arithmetic
from tilejit.mlir.dtypes import INDEX, MemRef, is_integer
from tilejit.mlir.gathers import GATHERS
from tilejit.mlir.lanes import Nest, check_lanewise, zero
from tilejit.mlir.meanings import Counted, Held, Lanewise, Moved, Progression, Splat
from tilejit.mlir.places import Unsupported
from tilejit.mlir.plain_text import numbers_of
from tilejit.mlir.scope import Scope
from tilejit.mlir.transfers import TRANSFERS
from tilejit.mlir.types import constant_of, dtype_of, element_of, vector_shape

DEEPEST = 64
"""The deepest nesting of operations; the vector of a deeper one is stored in an array."""

MOST_LISTED = 4096
"""The most lanes that a constant may list, unless they have constant steps."""

REDUCTIONS = {
    "add": ("arith.addf", "arith.addi"),
    "mul": ("arith.mulf", "arith.muli"),
    **dict.fromkeys(("minf", "minimumf"), ("arith.minimumf", "")),
    **dict.fromkeys(("maxf", "maximumf"), ("arith.maximumf", "")),
    "minnumf": ("arith.minnumf", ""),
    "maxnumf": ("arith.maxnumf", ""),
    **{name: ("", f"arith.{name}") for name in ("minsi", "minui", "maxsi", "maxui")},
    **{name: ("", f"arith.{name}i") for name in ("and", "or", "xor")},
}
"""The operation on floats, and on integers, for each kind of vector.reduction."""


def is_vectorial(op: Operation) -> bool:
    """Whether an operation itself, without the operations inside it, takes or returns vectors."""
    values = (*op.operands, *op.results)
    return op.name.startswith("vector.") or any(isinstance(v.type, VectorType) for v in values)


def widest(function: FuncOp) -> tuple[int, ...]:
    """The super-vector shape for a function: that of its largest vector, if all have the same rank.

    For vectors of different ranks it is the largest last dimension; () for a function without vectors.
    """
    values = [value for op in function.walk() for value in (*op.operands, *op.results)]
    values += [argument for block in function.body.blocks for argument in block.args]
    vectors = [value.type for value in values if isinstance(value.type, VectorType)]
    # A mask of columns becomes a mask of rows if a transfer transposes.
    numbers = [kind for kind in vectors if kind.element_type != i1] or vectors
    shapes = dict.fromkeys(map(vector_shape, numbers))
    if len({len(shape) for shape in shapes}) == 1:
        return max(shapes, key=prod)
    return (max(shape[-1] for shape in shapes),) if shapes else ()


def vector_operation(op: Operation, scope: Scope, out: list[Statement], line: int) -> None:
    """Read one operation on vectors: its effects become statements, and each of its results gets a meaning.

    Raises:
        Unsupported: kernels cannot express it.
    """
    for value in (*op.operands, *op.results):
        vector_shape(value.type)
    if op.name in TRANSFERS:
        TRANSFERS[op.name](op, scope, out, line)
    elif op.name in GATHERS:
        GATHERS[op.name](op, scope, out, line)
    elif op.name in VECTORS:
        VECTORS[op.name](op, scope, out, line)
    elif op.name.startswith(("arith.", "math.", "tilejit.")) and len(op.results) == 1:
        _compute(op, scope, out, line)
    else:
        raise Unsupported(
            f"{op.name} is not supported",
            "write vector.transfer_read, vector.transfer_write, vector.broadcast, vector.create_mask, "
            "vector.reduction, and operations of arith and math",
        )


def held(value: SSAValue, scope: Scope, out: list[Statement], line: int) -> MemRef:
    """The array that holds a vector; a new one if it has none yet."""
    meaning = scope.meaning(value)
    return meaning.memref if isinstance(meaning, Held) else copied(value, scope, out, line)


def copied(value: SSAValue, scope: Scope, out: list[Statement], line: int) -> MemRef:
    """A new array with the lanes of a vector."""
    nest = Nest(scope, vector_shape(value.type), line)
    memref = scope.hold(value, dtype_of(element_of(value.type)), nest.shape)
    nest.store(memref, nest.at(value))
    out += nest.loops()
    return memref


def updated(pairs: Sequence[tuple[SSAValue, MemRef]], scope: Scope, out: list[Statement], line: int) -> None:
    """Store vectors into the arrays that hold the carried values of a loop, as if all at once."""
    shapes = {vector_shape(value.type) for value, _ in pairs}
    nest = Nest(scope, min(shapes, default=()), line)
    if len(shapes) == 1:
        lanes = [nest.at(value) for value, _ in pairs]
        for (_, memref), lane in zip(pairs, lanes, strict=True):
            nest.store(memref, lane)
        if not nest.mixed:
            out += nest.loops()
            return
    made = [copied(value, scope, out, line) for value, _ in pairs]
    for source, (value, memref) in zip(made, pairs, strict=True):
        nest = Nest(scope, vector_shape(value.type), line)
        nest.store(memref, Load(source.name, nest.lanes, source.dtype))
        out += nest.loops()


def selected(
    result: SSAValue,
    holds: Value,
    sides: tuple[SSAValue, SSAValue],
    scope: Scope,
    out: list[Statement],
    line: int,
) -> None:
    """A vector selected by a condition."""
    nest = Nest(scope, vector_shape(result.type), line)
    then, otherwise = map(nest.at, sides)
    memref = scope.hold(result, then.dtype, nest.shape)
    nest.store(memref, Op("select", (holds, then, otherwise), then.dtype))
    out += nest.loops()
    scope.values[result] = Held(memref)


def _compute(op: Operation, scope: Scope, out: list[Statement], line: int) -> None:
    """Arithmetic, computed lane by lane where the result is used."""
    if op.name == "arith.constant":
        _constant(op, scope, out, line)
        return
    check_lanewise(op)
    depth = 1 + max((_depth(operand, scope) for operand in op.operands), default=0)
    (result,) = op.results
    scope.values[result] = Lanewise(op, depth)
    if depth > DEEPEST:
        scope.values[result] = Held(copied(result, scope, out, line))


def _depth(value: SSAValue, scope: Scope) -> int:
    match scope.meaning(value):
        case Lanewise(_, depth):
            return depth
        case Moved(source):
            return 1 + _depth(source, scope)
    return 0


def _constant(op: Operation, scope: Scope, out: list[Statement], line: int) -> None:
    """The same number in all lanes, numbers with constant steps, or a list of numbers."""
    value, (result,) = op.properties["value"], op.results
    shape, dtype = vector_shape(result.type), dtype_of(element_of(result.type))
    if not isinstance(value, DenseIntOrFPElementsAttr):
        raise Unsupported("the constant is not a vector", "write dense<1.0> : vector<8xf32>")
    if value.is_splat():
        first = next(iter(value.iter_attrs()))
        scope.values[result] = Splat(Const(constant_of(first, dtype), dtype))
        return
    numbers = [constant_of(each, dtype) for each in value.iter_attrs()]
    steps = _steps(numbers, shape) if is_integer(dtype) else None
    if steps is not None:
        scope.values[result] = Progression(int(numbers[0]), steps)
        return
    if len(numbers) > MOST_LISTED:
        raise Unsupported(
            f"a constant of {len(numbers)} lanes is not supported",
            f"list at most {MOST_LISTED}, or read them from a memref",
        )
    memref = scope.hold(result, dtype, shape)
    for where, number in zip(np.ndindex(*shape), numbers, strict=True):
        out.append(Store(memref.name, tuple(map(Affine, where)), Const(number, dtype)))
    scope.values[result] = Held(memref)


def _steps(numbers: Sequence[int | float | bool], shape: Sequence[int]) -> tuple[int, ...] | None:
    """The steps of numbers with constant differences along each dimension: 0, 2, 4, 6 -> (2,)"""
    first = int(numbers[0])
    steps = tuple(int(numbers[prod(shape[k + 1 :])]) - first if n > 1 else 0 for k, n in enumerate(shape))
    for where, number in zip(np.ndindex(*shape), numbers, strict=True):
        if number != first + sum(a * b for a, b in zip(where, steps, strict=True)):
            return None
    return steps


def _broadcast(op: Operation, scope: Scope, out: list[Statement], line: int) -> None:
    """A number in all lanes, or a vector repeated along new leading dimensions and dimensions of size 1."""
    (source,), (result,) = op.operands, op.results
    shape, have = vector_shape(result.type), vector_shape(source.type)
    _same_elements(op)
    if not have:
        scope.values[result] = Splat(scope.value(source))
        return
    before = len(shape) - len(have)
    if before < 0 or any(n not in (1, m) for n, m in zip(have, shape[before:], strict=True)):
        raise Unsupported(f"{source.type} does not broadcast to {result.type}", "write equal sizes, or 1")
    scope.values[result] = Moved(source, tuple(None if n == 1 else before + k for k, n in enumerate(have)))


def _same_elements(op: Operation) -> None:
    a, b = op.operands[0].type, op.results[0].type
    if element_of(a) != element_of(b) or not vector_shape(b):
        raise Unsupported(f"{op.name} from {a} to {b} is not supported", "write vectors of one element type")


def _shape_cast(op: Operation, scope: Scope, out: list[Statement], line: int) -> None:
    """Add or drop dimensions of size 1."""
    (source,), (result,) = op.operands, op.results
    have, shape = vector_shape(source.type), vector_shape(result.type)
    _same_elements(op)
    kept = [k for k, n in enumerate(shape) if n > 1]
    if [shape[k] for k in kept] != [n for n in have if n > 1]:
        raise Unsupported(
            f"{source.type} as {result.type} is not supported", "add or drop dimensions of size 1 only"
        )
    left = iter(kept)
    scope.values[result] = Moved(source, tuple(next(left) if n > 1 else None for n in have))


def _transpose(op: Operation, scope: Scope, out: list[Statement], line: int) -> None:
    (source,), (result,) = op.operands, op.results
    have, shape = vector_shape(source.type), vector_shape(result.type)
    order = numbers_of(op.properties["order"])
    _same_elements(op)
    if sorted(order) != list(range(len(have))) or shape != tuple(have[k] for k in order):
        raise Unsupported(
            f"{source.type} is not {result.type} with its dimensions in the order {list(order)}",
            "name each dimension once",
        )
    scope.values[result] = Moved(source, tuple(order.index(k) for k in range(len(have))))


def _create_mask(op: Operation, scope: Scope, out: list[Statement], line: int) -> None:
    (result,) = op.results
    _mask_shape(result, len(op.operands))
    scope.values[result] = Counted(tuple(map(scope.several, op.operands)))


def _constant_mask(op: Operation, scope: Scope, out: list[Statement], line: int) -> None:
    (result,) = op.results
    counts = numbers_of(op.properties["counts"])
    shape = _mask_shape(result, len(counts))
    if any(not 0 <= n <= size for n, size in zip(counts, shape, strict=True)):
        raise Unsupported(
            f"a mask of {list(counts)} lanes does not fit {result.type}", "write numbers from 0 to the size"
        )
    scope.values[result] = Counted(tuple((Affine(n),) for n in counts))


def _mask_shape(result: SSAValue, count: int) -> tuple[int, ...]:
    shape = vector_shape(result.type)
    if not shape or dtype_of(element_of(result.type)) != "i1" or len(shape) != count:
        raise Unsupported(
            f"the mask {result.type} has {count} numbers",
            "write a number for each dimension of a vector of i1",
        )
    return shape


def _step(op: Operation, scope: Scope, out: list[Statement], line: int) -> None:
    (result,) = op.results
    if len(vector_shape(result.type)) != 1 or dtype_of(element_of(result.type)) != INDEX:
        raise Unsupported(f"vector.step of {result.type} is not supported", "write vector<8xindex>")
    scope.values[result] = Progression(0, (1,))


def _reduction(op: Operation, scope: Scope, out: list[Statement], line: int) -> None:
    """Combine all lanes in order, from the given value or from the first lane."""
    source, *start = op.operands
    (result,) = op.results
    shape, dtype = vector_shape(source.type), dtype_of(element_of(source.type))
    kind = op.properties["kind"].data
    of_floats, of_integers = REDUCTIONS.get(kind, ("", ""))
    name = of_floats if dtype[0] in "fb" else of_integers
    if not name or len(shape) != 1 or result.type != element_of(source.type):
        raise Unsupported(
            f"vector.reduction <{kind}> from {source.type} to {result.type} is not supported",
            "reduce a vector of one dimension to its element type, by add, mul, minsi, maximumf …",
        )
    memref = held(source, scope, out, line)
    first = Load(memref.name, (Affine(0),), dtype)
    begin = scope.let(None, scope.value(start[0]) if start else first, out, "start")
    lane, total = scope.fresh(None, "lane"), Local(scope.fresh(result, "total"), dtype)
    update = arithmetic(name, [total, Load(memref.name, (Affine(0, ((lane, 1),)),), dtype)], dtype)
    lower, upper = (Affine(0 if start else 1),), (Affine(shape[0]),)
    carried = (Carried(total.name, begin, update),)
    out.append(For(lane, lower, upper, 1, (), carried, line=line))
    scope.values[result] = total


def _poison(op: Operation, scope: Scope, out: list[Statement], line: int) -> None:
    (result,) = op.results
    scope.values[result] = Splat(zero(dtype_of(element_of(result.type))))


VECTORS: Mapping[str, Callable[[Operation, Scope, list[Statement], int], None]] = {
    **dict.fromkeys(("vector.broadcast", "vector.splat"), _broadcast),
    "vector.shape_cast": _shape_cast,
    "vector.transpose": _transpose,
    "vector.create_mask": _create_mask,
    "vector.constant_mask": _constant_mask,
    "vector.step": _step,
    "vector.reduction": _reduction,
    "vector.fma": _compute,
    "ub.poison": _poison,
}
"""Vector operations that do not access an array."""
