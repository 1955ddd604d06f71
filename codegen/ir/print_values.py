"""Values and transfers as MLIR text, each on its own line."""

from __future__ import annotations

from collections.abc import Sequence

from codegen.ir.combiners import combiner_of, neutral, scans_by
from codegen.ir.index import Index
from codegen.ir.instructions import is_instruction
from codegen.ir.print_buffers import BufferPrinter
from codegen.ir.print_index import SsaNames
from codegen.ir.print_names import (
    UNARY,
    binary,
    compare,
    conversion,
    is_float,
    mlir_type,
    number,
    reduction,
)
from codegen.ir.values import Const, IndexValue, Load, Local, Op, Reduce, Value, VectorShape

NOT_MLIR = ("first", "repeat", "register", "with_register", "round_to_odd", "slide")
"""The operations that split and join super-vectors, and a rounding mode that MLIR lacks."""


class ValuePrinter(BufferPrinter):
    """Writes the lines of values, operands first."""

    def value(self, value: Value, names: SsaNames) -> str:
        """Write the lines of a value, operands first; return its SSA name."""
        kind = mlir_type(value.dtype, value.shape)
        match value:
            case Const(plain, dtype, shape):
                text = number(plain, dtype)
                return self.constant(f"dense<{text}>" if shape else text, kind)
            case Local(name, dtype):
                if name in names.locals:
                    return names.locals[name]
                index = self.index_name(name, names)
                return self.pure(f"arith.index_cast {index} : index to {dtype}", names)
            case IndexValue():
                return self.index_value(value, names)
            case Load(array=buffer) if buffer in self.flat:
                offsets = "" if value.offsets is None else self.value(value.offsets, names)
                return self.flat_load(value, offsets, names)
            case Load(shape=shape):
                if shape:
                    return self.transfer_read(value, names)
                return self.scalar_load(value, names)
            case Op():
                return self.operation(value, names)
            case Reduce(combiner, vector, _, dtype):
                operands = ", ".join([self.value(vector, names), *self.reduction_start(value, names)])
                source = mlir_type(vector.dtype, vector.shape)
                how = f"vector.reduction <{reduction(combiner, dtype)}>"
                return self.emit(f"{how}, {operands} : {source} into {kind}")
            case _:
                raise AssertionError(f"print: no rule for {type(value).__name__}")

    def scalar_load(self, load: Load, names: SsaNames) -> str:
        """A load of one element."""
        how, where = self.element_access(load.subscripts, names)
        array = self.memref(self.function.array(load.array))
        return self.emit(f"{how}.load {self.memrefs[load.array]}[{where}] : {array}")

    def reduction_start(self, value: Reduce, names: SsaNames) -> tuple[str, ...]:
        """The operand that a reduction combines with its lanes."""
        return (self.value(value.start, names),)

    def element_access(self, subscripts: Sequence[Index], names: SsaNames) -> tuple[str, str]:
        """The dialect that accesses an element, and the subscripts; elements and bits are not affine."""
        if any(self.with_names(s, names) != s for s in subscripts):
            return "memref", ", ".join(self.index(s, names) for s in subscripts)
        return "affine", ", ".join(self.inline(s, names) for s in subscripts)

    def operation(self, op: Op, names: SsaNames) -> str:
        """Arithmetic, comparisons, conversions, functions."""
        mask = self.lane_mask(op, names)
        if mask:
            return mask
        kind = mlir_type(op.dtype, op.shape)
        operands = [self.value(operand, names) for operand in op.operands]
        source = op.operands[0].dtype
        if scan := scans_by(op.name):
            return self.scan(combiner_of(scan), operands[0], op)
        if op.name == "transposed":
            whole = mlir_type(source, op.operands[0].shape)
            return self.emit(f"vector.transpose {operands[0]}, [1, 0] : {whole} to {kind}")
        if op.name in NOT_MLIR or op.name.startswith(("below_", "stack_", "row_")) or is_instruction(op.name):
            return self.call_of(op, operands)
        match op.name:
            case "last":
                whole = mlir_type(source, op.operands[0].shape)
                return self.emit(f"vector.extract {operands[0]}[{op.operands[0].shape[0] - 1}] : {whole}")
            case "select":
                condition = mlir_type("i1", op.shape)
                kinds = f"{condition}, {kind}" if op.shape else kind
                return self.emit(f"arith.select {', '.join(operands)} : {kinds}")
            case "cast":
                how = conversion(source, op.dtype)
                return (
                    self.emit(f"{how} {operands[0]} : {mlir_type(source, op.shape)} to {kind}")
                    if how
                    else operands[0]
                )
            case "broadcast":
                return self.broadcast(operands[0], op.operands[0].shape, op.dtype, op.shape)
            case "eq" | "ne" | "lt" | "le" | "gt" | "ge":
                return self.emit(
                    f"{compare(op.name, source)} {', '.join(operands)} : {mlir_type(source, op.shape)}"
                )
            case "fma":
                return self.emit(f"math.fma {', '.join(operands)} : {kind}")
        if op.name.startswith("reduce_"):
            how = reduction(op.name.removeprefix("reduce_"), op.dtype)
            whole = mlir_type(source, op.operands[0].shape)
            return self.emit(f"vector.reduction <{how}>, {operands[0]} : {whole} into {kind}")
        if len(operands) == 2:
            return self.combined(op.name, operands[0], operands[1], op.dtype, op.shape)
        return self.unary(op.name, operands[0], op.dtype, op.shape)

    def scan(self, combiner: str, operand: str, op: Op) -> str:
        """Each lane combined with all lanes before it."""
        element = mlir_type(op.dtype)
        start = self.constant(f"dense<{number(neutral(combiner, op.dtype), op.dtype)}>", f"vector<{element}>")
        how = f"vector.scan <{reduction(combiner, op.dtype)}>, {operand}, {start}"
        kinds = f"{mlir_type(op.dtype, op.shape)}, vector<{element}>"
        names = self.fresh()
        self.line(f"{names}:2 = {how} {{inclusive = true, reduction_dim = 0 : i64}} : {kinds}")
        return f"{names}#0"

    def call_of(self, op: Op, operands: Sequence[str]) -> str:
        """An operation that MLIR lacks, with all its operands."""
        kinds = ", ".join(mlir_type(operand.dtype, operand.shape) for operand in op.operands)
        given = f'"tilejit.{op.name}"({", ".join(operands)})'
        return self.emit(f"{given} : ({kinds}) -> {mlir_type(op.dtype, op.shape)}")

    def unary(self, name: str, operand: str, dtype: str, shape: VectorShape) -> str:
        """A unary operation."""
        kind = mlir_type(dtype, shape)
        if is_float(dtype):
            how = UNARY.get(name)
            return self.emit(
                f"{how} {operand} : {kind}" if how else f'"tilejit.{name}"({operand}) : ({kind}) -> {kind}'
            )
        if name == "abs":
            return operand if dtype[0] == "u" else self.emit(f"math.absi {operand} : {kind}")
        if name == "neg":
            return self.emit(f"arith.subi {self.splat(0, dtype, shape)}, {operand} : {kind}")
        if name == "not":
            return self.emit(
                f"arith.xori {operand}, {self.splat(1 if dtype == 'i1' else -1, dtype, shape)} : {kind}"
            )
        return self.emit(f'"tilejit.{name}"({operand}) : ({kind}) -> {kind}')

    def combined(self, name: str, a: str, b: str, dtype: str, shape: VectorShape) -> str:
        """A binary operation; remainders have the sign of the divisor, as in Python."""
        kind = mlir_type(dtype, shape)
        how = binary(name, dtype)
        if how:
            return self.emit(f"{how} {a}, {b} : {kind}")
        if name == "floordiv":
            return self.unary("floor", self.combined("div", a, b, dtype, shape), dtype, shape)
        if name == "mod" and not is_float(dtype):
            times = self.combined("mul", self.combined("floordiv", a, b, dtype, shape), b, dtype, shape)
            return self.combined("sub", a, times, dtype, shape)
        return self.emit(f'"tilejit.{name}"({a}, {b}) : ({kind}, {kind}) -> {kind}')

    def splat(self, value: int | float, dtype: str, shape: VectorShape) -> str:
        """A number in each lane."""
        text = number(value, dtype)
        return self.constant(f"dense<{text}>" if shape else text, mlir_type(dtype, shape))

    def broadcast(self, operand: str, have: VectorShape, dtype: str, shape: VectorShape) -> str:
        """Repeat a scalar in all lanes, or outer loops' lanes along the inner dimensions.

        MLIR broadcasts only from dimensions of size 1, so a shape_cast appends those first.
        """
        source = mlir_type(dtype, have)
        if have:
            unit = mlir_type(dtype, have + (1,) * (len(shape) - len(have)))
            operand, source = self.emit(f"vector.shape_cast {operand} : {source} to {unit}"), unit
        return self.emit(f"vector.broadcast {operand} : {source} to {mlir_type(dtype, shape)}")
