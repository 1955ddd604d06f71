"""The vector type of generated kernels: a Numba type whose values are LLVM vectors, or arrays of them.

`load_f32x16(address) + splat_f32x16(2.0)` adds sixteen lanes. A vector of one lane is an LLVM scalar of
exactly that type. It does not widen as Numba's own numbers do, so kernels can compute element by element with
the same routines. Functions called by name also take Numba numbers as single lanes. Masks are "i1" vectors.
Elements that are only moved are unsigned integers of up to 512 bits; those over 64 bits are several 64-bit
lanes to LLVM.
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Iterable, Sequence
from typing import Any, TypeAlias

from llvmlite import ir
from numba import types
from numba.core.errors import TypingError
from numba.extending import lower_builtin, models, register_model, type_callable

from codegen.ir.families import SIGNED
from codegen.ir.lines import LINE_BYTES
from codegen.simd.register.intrinsics import Emit, Rule, routine
from codegen.simd.register.memory import vector
from codegen.simd.register.shuffles import concatenated, cut

MASK = "i1"

NUMBA = {
    "i1": types.boolean,
    **{f"i{n}": getattr(types, f"int{n}") for n in (8, 16, 32, 64)},
    **{f"u{n}": getattr(types, f"uint{n}") for n in (8, 16, 32, 64)},
    "f32": types.float32,
    "f64": types.float64,
}
"""The Numba scalar type of each dtype."""

_DTYPES = {kind: dtype for dtype, kind in NUMBA.items()}

Lanewise: TypeAlias = Callable[..., Any]
"""(builder, dtype of the operands, their LLVM values) -> LLVM value."""


class Vector(types.Type):
    """`lanes` numbers of a dtype: Vector("f32", 16) is <16 x float> to LLVM, Vector("f32", 1) is float.

    A block has several rows of these: Vector("f32", 4, 16) is [16 x <4 x float>], which LLVM keeps in
    registers.
    """

    def __init__(self, dtype: str, lanes: int, rows: int = 1) -> None:
        self.dtype, self.lanes, self.rows = dtype, lanes, rows
        self.element_bytes = max(bits_of(dtype) // 8, 1)
        self.row_bytes = self.element_bytes * lanes
        super().__init__(name=f"{dtype}x{f'{rows}x' if rows > 1 else ''}{lanes}")

    @property
    def row(self) -> Any:
        """The LLVM type of a row."""
        return llvm_kind(self.dtype, self.lanes)


@register_model(Vector)
class VectorModel(models.PrimitiveModel):
    """A value is one LLVM value, in registers and in memory."""

    def __init__(self, manager: Any, kind: Vector) -> None:
        llvm = ir.ArrayType(kind.row, kind.rows) if kind.rows > 1 else kind.row
        super().__init__(manager, kind, llvm)  # type: ignore[no-untyped-call]


def bits_of(dtype: str) -> int:
    """Bits of an element: 32 for "f32"."""
    return int(dtype[1:])


def is_signed(dtype: str) -> bool:
    """Whether a dtype is a signed integer."""
    return dtype in SIGNED


def element_kind(dtype: str) -> Any:
    """The LLVM type of one number, or of a part of an element over 64 bits."""
    match dtype:
        case "f32":
            return ir.FloatType()
        case "f64":
            return ir.DoubleType()
    return ir.IntType(min(bits_of(dtype), 64))


def llvm_kind(dtype: str, lanes: int) -> Any:
    """The LLVM type of a vector, or of the element for one lane."""
    return wide(element_kind(dtype), lanes * max(bits_of(dtype) // 64, 1))


def wide(element: Any, lanes: int) -> Any:
    """The LLVM vector type of `lanes` elements, or the element type for one lane."""
    return ir.VectorType(element, lanes) if lanes > 1 else element


def lanes_of(value: Any) -> int:
    """Lanes of an LLVM value."""
    return lanes_in(value.type)


def lanes_in(kind: Any) -> int:
    """Lanes of an LLVM type."""
    return int(kind.count) if isinstance(kind, ir.VectorType) else 1


def lanes_like(value: Any, element: Any) -> Any:
    """The LLVM type of another element with as many lanes as a value."""
    return wide(element, lanes_of(value))


def number(kind: Any, value: float) -> Any:
    """A constant, repeated in each lane of a vector."""
    return ir.Constant(kind, [value] * kind.count if isinstance(kind, ir.VectorType) else value)


def to_bytes(builder: Any, mask: Any) -> Any:
    """A mask as bytes of 0 and 1."""
    return builder.zext(mask, lanes_like(mask, ir.IntType(8)))


def from_bytes(builder: Any, value: Any) -> Any:
    """The mask of the bytes that are not 0."""
    return builder.icmp_unsigned("!=", value, number(value.type, 0))


def lane(builder: Any, value: Any, k: int) -> Any:
    """One lane of an LLVM value."""
    return builder.extract_element(value, ir.Constant(ir.IntType(32), k)) if lanes_of(value) > 1 else value


def joined(builder: Any, lanes: list[Any]) -> Any:
    """Combine scalars into one LLVM value, in order."""
    if len(lanes) == 1:
        return lanes[0]
    out = ir.Constant(ir.VectorType(lanes[0].type, len(lanes)), ir.Undefined)
    for k, scalar in enumerate(lanes):
        out = builder.insert_element(out, scalar, ir.Constant(ir.IntType(32), k))
    return out


def repeated(builder: Any, scalar: Any, lanes: int) -> Any:
    """Repeat a scalar in each lane."""
    if lanes == 1:
        return scalar
    undefined = ir.Constant(ir.VectorType(scalar.type, lanes), ir.Undefined)
    once = builder.insert_element(undefined, scalar, ir.Constant(ir.IntType(32), 0))
    return builder.shuffle_vector(once, undefined, number(ir.VectorType(ir.IntType(32), lanes), 0))


def intrinsic_of(
    builder: Any, name: str, result: Any, operands: list[Any], suffix: str = "", *, of: Any = None
) -> Any:
    """The LLVM intrinsic of that name for a type, by default the result's; `suffix` names a second type."""
    kind = result if of is None else of
    lanes = f"v{kind.count}" if isinstance(kind, ir.VectorType) else ""
    element = kind.element if lanes else kind
    full = ".".join(part for part in (name, f"{lanes}{element.intrinsic_name}", suffix) if part)
    known = builder.module.globals.get(full)
    return known or ir.Function(builder.module, ir.FunctionType(result, operands), full)


def llvm_function(builder: Any, name: str, *operands: Any) -> Any:
    """Call the LLVM intrinsic of that name on operands of one type."""
    kind = operands[0].type
    return builder.call(intrinsic_of(builder, name, kind, [kind] * len(operands)), operands)


def rows_of(kind: Any) -> int:
    """The rows of a block; 1 for any other Numba type."""
    return kind.rows if isinstance(kind, Vector) else 1


def row_of(builder: Any, value: Any, row: int) -> Any:
    """A row of a block; other values are the same for all rows."""
    return builder.extract_value(value, row) if isinstance(value.type, ir.ArrayType) else value


def all_rows(builder: Any, value: Any) -> list[Any]:
    """The rows of a block, or the only one of a vector."""
    count = value.type.count if isinstance(value.type, ir.ArrayType) else 1
    return [row_of(builder, value, k) for k in range(count)]


def from_rows(builder: Any, rows: Sequence[Any]) -> Any:
    """A block from its rows; one row is a vector."""
    if len(rows) == 1:
        return rows[0]
    block = ir.Constant(ir.ArrayType(rows[0].type, len(rows)), ir.Undefined)
    for k, row in enumerate(rows):
        block = builder.insert_value(block, row, k)
    return block


def lines_of(builder: Any, value: Any) -> list[Any]:
    """The bytes of each row, in vectors of a line at most."""
    rows = [lanes_as(builder, row, 8) for row in all_rows(builder, value)]
    return [
        cut(builder, row, first, min(row.type.count, LINE_BYTES))
        for row in rows
        for first in range(0, row.type.count, LINE_BYTES)
    ]


def from_lines(builder: Any, kind: Vector, lines: Sequence[Any]) -> Any:
    """A vector or a block from vectors of a line at most, of any elements.

    Raises:
        AssertionError: they are too many or too few.
    """
    each = max(kind.row_bytes // LINE_BYTES, 1)
    if len(lines) != each * kind.rows:
        raise AssertionError(f"{kind} has {each * kind.rows} lines, not {len(lines)}")
    rows = (concatenated(builder, lines[k : k + each]) for k in range(0, len(lines), each))
    return from_rows(builder, [builder.bitcast(row, kind.row) for row in rows])


def as_one(builder: Any, value: Any) -> Any:
    """The bytes of all rows in one LLVM vector."""
    return concatenated(builder, [lanes_as(builder, row, 8) for row in all_rows(builder, value)])


def from_one(builder: Any, kind: Vector, value: Any) -> Any:
    """A vector or a block from one LLVM value of the same size."""
    if kind.rows > 1:
        size = kind.row_bytes
        value = builder.bitcast(value, vector(8, kind.rows * size))
        rows = [cut(builder, value, k * size, size) for k in range(kind.rows)]
        return from_rows(builder, [builder.bitcast(row, kind.row) for row in rows])
    return builder.bitcast(value, kind.row)


def in_lines(dtype: str, lanes: int) -> Vector:
    """A vector of that many lanes; if it is longer than a line, a block of lines."""
    row = Vector(dtype, lanes)
    lines = max(row.row_bytes // LINE_BYTES, 1)
    return Vector(dtype, lanes // lines, lines)


def is_in_lines(kind: Any) -> bool:
    """Whether the rows of a vector or a block are whole lines."""
    return isinstance(kind, Vector) and kind.row_bytes % LINE_BYTES == 0


def in_rows(builder: Any, kind: Vector, value: Any) -> Any:
    """A vector or a block from its own rows, from a vector with all of its lanes, or from its lines."""
    count = value.type.count if isinstance(value.type, ir.ArrayType) else 1
    if count == kind.rows:
        return value
    if count == 1:
        return from_one(builder, kind, value)
    return from_lines(builder, kind, lines_of(builder, value))


def lanes_as(builder: Any, row: Any, bits: int) -> Any:
    """A vector as elements of `bits` bits; elements over 64 bits are several of these."""
    bits = min(bits, 64)
    return builder.bitcast(row, vector(bits, bytes_in(row.type) * 8 // bits))


def bytes_in(kind: Any) -> int:
    """The size of an LLVM number or vector."""
    lanes, element = (kind.count, kind.element) if isinstance(kind, ir.VectorType) else (1, kind)
    return lanes * element_bits(element) // 8


def element_bits(kind: Any) -> int:
    """The width of an LLVM number."""
    widths = {ir.HalfType: 16, ir.FloatType: 32, ir.DoubleType: 64}
    return int(kind.width) if isinstance(kind, ir.IntType) else widths[type(kind)]


def vector_type(kind: Any, name: str) -> Vector:
    """The type of an operand that must be a vector.

    Raises:
        TypingError: it is another type.
    """
    if not isinstance(kind, Vector):
        raise TypingError(f"{name} expected a vector, got {kind}")
    return kind


def row_by_row(rule: Rule) -> Rule:
    """The rule of a routine on vectors, which takes blocks as well: it runs on each row."""

    def in_rows(*kinds: Any) -> tuple[Any, Emit]:
        rows, *others = map(rows_of, kinds)
        if any(other != rows for other in others):
            raise TypingError(f"expected blocks of the same rows, got {' and '.join(map(str, kinds))}")
        if rows == 1:
            return rule(*kinds)
        signature, emit = rule(
            *(Vector(kind.dtype, kind.lanes) if isinstance(kind, Vector) else kind for kind in kinds)
        )

        def each(builder: Any, *values: Any) -> Any:
            made = (emit(builder, *(row_of(builder, value, k) for value in values)) for k in range(rows))
            return from_rows(builder, list(made))

        result = signature.return_type
        return Vector(result.dtype, result.lanes, rows)(*kinds), each

    return in_rows


def shape(kind: Any) -> tuple[str, int]:
    """The dtype and lanes of a Numba type; a Numba number has a single lane, and a block those of its rows.

    Raises:
        TypingError: the type is neither a vector nor a number.
    """
    if isinstance(kind, Vector):
        return kind.dtype, kind.lanes
    plain: Any = types.unliteral(kind)  # type: ignore[no-untyped-call]
    if plain in _DTYPES:
        return _DTYPES[plain], 1
    raise TypingError(f"expected a vector or a number, got {kind}")


def same_shape(name: str, kinds: Iterable[Any], accepts: Iterable[str]) -> tuple[str, int]:
    """The dtype and lanes that all operands share.

    Raises:
        TypingError: the operands differ, or the routine does not support their dtype.
    """
    shapes = {shape(kind) for kind in kinds}
    (first, *others) = shapes
    if others:
        raise TypingError(f"{name} got {' and '.join(sorted(f'{d}x{n}' for d, n in shapes))}; cast one first")
    if first[0] not in accepts:
        raise TypingError(f"{name}: expected one of {', '.join(accepts)}, got {first[0]}")
    return first


def like(kind: Any, dtype: str, lanes: int) -> Any:
    """The type of a result: a vector for a vector operand, else a Numba number."""
    return Vector(dtype, lanes) if isinstance(kind, Vector) else NUMBA[dtype]


def by_lanes(name: str, arity: int, emit: Lanewise, accepts: Iterable[str], *, mask: bool = False) -> Any:
    """A lanewise routine on operands of one type. It returns the same type, or a mask."""
    accepted = tuple(accepts)

    def rule(*kinds: Any) -> Any:
        dtype, lanes = same_shape(name, kinds, accepted)
        out = like(kinds[0], MASK if mask else dtype, lanes)
        return out(*kinds), lambda builder, *values: emit(builder, dtype, *values)

    return routine(name, arity, row_by_row(rule))


def define_operator(
    symbol: Any, arity: int, emit: Lanewise, accepts: Iterable[str], *, mask: bool = False
) -> None:
    """Define an operator on vectors of one type for Numba."""
    accepted = tuple(accepts)

    def result(*kinds: Any) -> Any:
        (first, *others) = kinds
        fits = isinstance(first, Vector) and all(kind == first for kind in others)
        if not fits or first.dtype not in accepted:
            return None
        return Vector(MASK, first.lanes, first.rows) if mask else first

    def generate(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        rows, dtype = signature.args[0].rows, signature.args[0].dtype
        made = (emit(builder, dtype, *(row_of(builder, each, k) for each in args)) for k in range(rows))
        return from_rows(builder, list(made))

    def unary(context):
        return lambda a: result(a)

    def binary(context):
        return lambda a, b: result(a, b)

    type_callable(symbol)(unary if arity == 1 else binary)
    lower_builtin(symbol, *[Vector] * arity)(generate)  # type: ignore[no-untyped-call]


IN_PLACE = {
    getattr(operator, name): getattr(operator, f"i{name.rstrip('_')}")
    for name in ("add", "sub", "mul", "truediv", "and_", "or_", "xor", "lshift", "rshift")
}
"""The operator of `a += b` by the operator of `a + b`."""
