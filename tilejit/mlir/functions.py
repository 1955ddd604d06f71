"""Convert a function of affine loops from xdsl to the kernel IR."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import field

from xdsl.dialects.builtin import IndexType, MemRefType, VectorType
from xdsl.dialects.func import FuncOp
from xdsl.ir import Block, Operation, SSAValue
from xdsl.ir.affine import AffineDimExpr, AffineMap, AffineSymExpr

from codegen import (
    Affine,
    ArrayArg,
    ArrayElement,
    Carried,
    Const,
    For,
    Function,
    Index,
    IndexValue,
    KernelError,
    Load,
    Local,
    Op,
    ScalarArg,
    Statement,
    Store,
    Value,
    dataclass,
    index_arrays,
    index_symbol,
)
from tilejit.mlir.advice import OPERATIONS
from tilejit.mlir.arithmetic import cast, unsigned, unsigned_of
from tilejit.mlir.dtypes import MemRef, is_integer
from tilejit.mlir.index_arithmetic import element_arithmetic, index_arithmetic
from tilejit.mlir.lanes import check_foreign, computed, zero
from tilejit.mlir.maps import condition, results
from tilejit.mlir.meanings import Held
from tilejit.mlir.memrefs import MEMREFS, access
from tilejit.mlir.places import Unsupported, line_of, mistake
from tilejit.mlir.program import Program
from tilejit.mlir.reductions import combiner, scans_unsigned
from tilejit.mlir.scope import Extremum, Scope
from tilejit.mlir.transfers import WRITES
from tilejit.mlir.types import constant_of, dtype_of, is_strided, static_sizes, vector_shape
from tilejit.mlir.vectors import copied, is_vectorial, selected, updated, vector_operation, widest

TERMINATORS = ("affine.yield", "scf.yield", "func.return")
STORES = ("affine.store", "memref.store", *WRITES)
IGNORED = ("memref.dealloc", "memref.assume_alignment")

MOST_LOOPS = 8
"""The most nested loops, because vectorizing a loop is checked against all loops around it."""


def read_function(function: FuncOp, text: str, places: Mapping[Operation, int]) -> Program:
    """Convert a function to a kernel.

    Raises:
        KernelError: kernels cannot express one of its operations, types, subscripts or bounds.
    """
    return _Reader(text, places).function(function)


@dataclass(slots=True)
class _Reader:
    """The state of reading a function from its first operation to its last."""

    text: str
    places: Mapping[Operation, int]
    scope: Scope = field(default_factory=Scope)
    loops: int = 0
    constants: list[Const] = field(default_factory=list)

    def function(self, op: FuncOp) -> Program:
        """Read the arguments, the body and the results."""
        (block,) = op.body.blocks
        memrefs: list[MemRef | None] = []
        arguments: list[ArrayArg | ScalarArg] = []
        body: list[Statement] = []
        with _Placed(self, op):
            for argument in block.args:
                declared, memref = self.argument(argument)
                arguments.append(declared)
                memrefs.append(memref)
            for argument in block.args:
                if isinstance(argument.type, VectorType):
                    memref = copied(argument, self.scope, body, self.line(op))
                    self.scope.values[argument] = Held(memref)
        statements, end = self.body(block)
        body += statements
        returns: list[str | int] = []
        values: list[Value] = []
        index_results: set[int] = set()
        for value in () if end is None else end.operands:
            with _Placed(self, end):
                meaning = self.scope.meaning(value)
                if isinstance(value.type, VectorType):
                    meaning = copied(value, self.scope, body, self.line(end))
                if isinstance(meaning, MemRef):
                    returns.append(meaning.name)
                    continue
                if isinstance(value.type, IndexType):
                    index_results.add(len(values))
                returns.append(len(values))
                values.append(self.scope.value(value))
        internal = tuple(ArrayArg(a.name, a.dtype, len(a.sizes), "C") for a in self.scope.allocations)
        with _Placed(self, op):
            lanes = widest(op)
            kernel = Function(op.sym_name.data, (*arguments, *internal), tuple(body), tuple(values))
            _check_stores(kernel)
        indices = frozenset(
            a.name for a, v in zip(arguments, block.args, strict=True) if isinstance(v.type, IndexType)
        )
        return Program(
            kernel,
            tuple(memrefs),
            tuple(self.scope.allocations),
            tuple(returns),
            indices | self.scope.of_indices,
            frozenset(index_results),
            spelled=self.scope.spelled,
            constants=tuple(self.constants),
            lanes=lanes,
        )

    def argument(self, value: SSAValue) -> tuple[ArrayArg | ScalarArg, MemRef | None]:
        """Read an argument and its memref; a vector becomes an array that is only read."""
        if isinstance(value.type, VectorType):
            name, dtype = self.scope.fresh(value, "v"), dtype_of(value.type.element_type)
            vector = MemRef(name, dtype, tuple(map(Affine, vector_shape(value.type))))
            self.scope.values[value] = Held(vector)
            return ArrayArg(name, dtype, len(vector.sizes), "C"), vector
        if isinstance(value.type, MemRefType):
            name, dtype = self.scope.fresh(value, "A"), dtype_of(value.type.element_type)
            sizes = static_sizes(value.type)
            known = (
                index_symbol(f"{name}.shape[{k}]") if size is None else Affine(size)
                for k, size in enumerate(sizes)
            )
            memref = MemRef(name, dtype, tuple(known))
            self.scope.values[value] = memref
            if isinstance(value.type.element_type, IndexType):
                self.scope.of_indices.add(name)
            self.scope.nonnegative |= {f"{name}.shape[{k}]" for k in range(len(sizes))}
            return ArrayArg(name, dtype, len(sizes), "" if is_strided(value.type) else "C"), memref
        dtype = dtype_of(value.type)
        name = self.scope.fresh(value, "n")
        is_index = isinstance(value.type, IndexType)
        self.scope.values[value] = IndexValue(index_symbol(name)) if is_index else Local(name, dtype)
        return ScalarArg(name, dtype), None

    def body(self, block: Block) -> tuple[list[Statement], Operation | None]:
        """The statements of a block, and its terminator."""
        out: list[Statement] = []
        for op in block.ops:
            if op.name in TERMINATORS:
                return out, op
            if op.name not in IGNORED:
                with _Placed(self, op):
                    self.operation(op, out)
        return out, None

    def operation(self, op: Operation, out: list[Statement]) -> None:
        """Read one operation: its effects become statements, and each of its results gets a meaning."""
        match op.name:
            case "affine.for":
                self.loop(op, out)
            case "affine.if":
                test = condition(op.properties["condition"].data, self.indices(op.operands))
                self.branch(op, test, out)
            case "scf.if":
                self.branch(op, self.scope.value(op.operands[0]), out)
            case _ if is_vectorial(op):
                vector_operation(op, self.scope, out, self.line(op))
            case "affine.load" | "memref.load":
                memref, subscripts = access(op, op.operands[0], op.operands[1:], self.scope)
                self.let(op.results[0], Load(memref.name, subscripts, memref.dtype), out)
                if is_integer(memref.dtype):
                    element = ArrayElement(memref.name, subscripts, memref.dtype)
                    self.scope.elements[op.results[0]] = element
            case "affine.store" | "memref.store":
                memref, subscripts = access(op, op.operands[1], op.operands[2:], self.scope)
                value = self.scope.value(op.operands[0])
                out.append(Store(memref.name, subscripts, value, where=self.scope.where))
            case "affine.apply":
                operands = [self.scope.subscript(operand) for operand in op.operands]
                (index,) = results(op.properties["map"].data, operands)
                self.scope.values[op.results[0]] = IndexValue(index)
                if any(operand in self.scope.elements for operand in op.operands):
                    self.scope.elements[op.results[0]] = index
            case "affine.min" | "affine.max":
                self.scope.values[op.results[0]] = Extremum(op.name.removeprefix("affine."), self.mapped(op))
            case name if name in MEMREFS:
                MEMREFS[name](op, self.scope)
            case "arith.constant":
                dtype = dtype_of(op.results[0].type)
                number = constant_of(op.properties["value"], dtype)
                is_index = isinstance(op.results[0].type, IndexType)
                constant = Const(number, dtype)
                if not is_index and not self.loops:
                    self.constants.append(constant)
                self.scope.values[op.results[0]] = IndexValue(Affine(int(number))) if is_index else constant
            case "ub.poison":
                dtype = dtype_of(op.results[0].type)
                is_index = isinstance(op.results[0].type, IndexType)
                self.scope.values[op.results[0]] = IndexValue(Affine()) if is_index else zero(dtype)
            case name if name.startswith(("arith.", "math.", "tilejit.")):
                self.compute(op, out)
            case name:
                raise Unsupported(f"{name} is not supported", OPERATIONS)

    def loop(self, op: Operation, out: list[Statement]) -> None:
        """affine.for: a carried value is a reduction if the yielded value combines it with other values."""
        counts = op.properties["operandSegmentSizes"].get_values()
        low, high = counts[0], counts[0] + counts[1]
        lower = self.bounds(op.properties["lowerBoundMap"].data, op.operands[:low], "max")
        upper = self.bounds(op.properties["upperBoundMap"].data, op.operands[low:high], "min")
        (block,) = op.regions[0].blocks
        index, *carried = block.args
        name = self.scope.fresh(index, "i")
        self.scope.loops.add(name)
        if any(self.scope.is_nonnegative(bound) for bound in lower):
            self.scope.nonnegative.add(name)
        self.scope.values[index] = IndexValue(index_symbol(name))
        end = block.last_op
        yielded = end.operands if end is not None and end.name == "affine.yield" else ()
        if len(yielded) != len(carried):
            raise Unsupported(
                f"the loop carries {len(carried)} values, but yields {len(yielded)}",
                "yield one value for each of iter_args",
            )
        _check_types(yielded, carried)
        locals_: list[tuple[Local, str]] = []
        starts: list[Value] = []
        numbers: list[SSAValue] = []
        vectors: list[tuple[SSAValue, MemRef]] = []
        inits = op.operands[high:]
        for value, result, y, init in zip(carried, op.results, yielded, inits, strict=True):
            if isinstance(value.type, VectorType):
                memref = copied(init, self.scope, out, self.line(op))
                self.scope.values[value] = self.scope.values[result] = Held(memref)
                vectors.append((y, memref))
                continue
            starts.append(self.scope.value(init))
            numbers.append(y)
            dtype = dtype_of(value.type)
            combines, is_unsigned = combiner(y, value)
            held = unsigned_of(dtype) if is_unsigned or scans_unsigned(y, value) else dtype
            local = Local(self.scope.fresh(value, "carried"), held)
            self.scope.values[value] = self.scope.values[result] = cast(local, dtype)
            locals_.append((local, combines))
        self.loops += 1
        if self.loops > MOST_LOOPS:
            raise Unsupported(f"more than {MOST_LOOPS} loops are nested", "write fewer nested loops")
        body, _ = self.body(block)
        if vectors:
            updated(vectors, self.scope, body, self.line(op))
        self.loops -= 1
        updates = [
            Carried(local.name, _held(start, local), _held(self.scope.value(y), local), combines)
            for y, (local, combines), start in zip(numbers, locals_, starts, strict=True)
        ]
        step = op.properties["step"].value.data
        if step < 1:
            raise Unsupported(f"the step of the loop is {step}", "write a positive step")
        out.append(For(name, lower, upper, step, tuple(body), tuple(updates), line=self.line(op)))

    def branch(self, op: Operation, test: Value, out: list[Statement]) -> None:
        """affine.if: both sides are computed, stores are conditional, and results are selected."""
        holds = self.scope.let(None, test, out, "tested")
        around = self.scope.where
        sides: list[tuple[SSAValue, ...]] = []
        for region, side in zip(op.regions, (holds, Op("not", (holds,), "i1")), strict=True):
            if not region.blocks:
                continue
            if any(each.name in STORES for each in region.walk()):
                test = side if around is None else Op("and", (around, side), "i1")
                self.scope.where = self.scope.let(None, test, out, "tested")
            (block,) = region.blocks
            body, end = self.body(block)
            out += body
            sides.append(() if end is None else tuple(end.operands))
        self.scope.where = around
        if any(len(side) != len(op.results) for side in sides) or (op.results and len(sides) < 2):
            raise Unsupported(
                f"{op.name} has {len(op.results)} results, but one side yields another number of values",
                "yield one value for each result on both sides",
            )
        for k, result in enumerate(op.results):
            pair = sides[0][k], sides[1][k]
            _check_types(pair, (result, result))
            if isinstance(result.type, VectorType):
                selected(result, holds, pair, self.scope, out, self.line(op))
                continue
            then, otherwise = map(self.scope.value, pair)
            self.let(result, Op("select", (holds, then, otherwise), then.dtype), out)

    def let(self, result: SSAValue, value: Value, out: list[Statement]) -> None:
        """Name the result of an operation."""
        self.scope.values[result] = self.scope.let(result, value, out)

    def line(self, op: Operation) -> int:
        """The line of an operation."""
        return line_of(self.text, self.places.get(op, 0))

    def compute(self, op: Operation, out: list[Statement]) -> None:
        """Arithmetic: on indices as long as it stays affine, otherwise on numbers."""
        if len(op.results) != 1:
            raise Unsupported(f"{op.name} is not supported", "use operations with one result")
        result = op.results[0]
        if isinstance(result.type, IndexType) and (index := index_arithmetic(op, self.scope)) is not None:
            self.scope.values[result] = IndexValue(index)
            if any(operand in self.scope.elements for operand in op.operands):
                self.scope.elements[result] = index
            return
        check_foreign(op)
        element = element_arithmetic(op, self.scope)
        if element is not None:
            self.scope.elements[result] = element
        operands = [self.scope.value(o) for o in op.operands]
        self.let(result, computed(op, operands, dtype_of(result.type)), out)

    def bounds(self, bound: AffineMap, operands: Sequence[SSAValue], kind: str) -> tuple[Index, ...]:
        """The bounds of a loop, which starts at their maximum or ends at their minimum (`kind`)."""
        meanings = [self.scope.meaning(o) for o in operands]
        if len(meanings) == 1 and isinstance(meanings[0], Extremum):
            (extremum,) = meanings
            plain = all(isinstance(e, AffineDimExpr | AffineSymExpr) for e in bound.results)
            if plain and isinstance(extremum, Extremum) and extremum.kind == kind:
                return extremum.parts
        return results(bound, self.indices(operands))

    def mapped(self, op: Operation) -> tuple[Index, ...]:
        """The results of an operation's map on its operands."""
        return results(op.properties["map"].data, self.indices(op.operands))

    def indices(self, operands: Sequence[SSAValue]) -> tuple[Index, ...]:
        """Values as index expressions."""
        return tuple(map(self.scope.index, operands))


def _check_types(values: Sequence[SSAValue], wanted: Sequence[SSAValue]) -> None:
    """Raise if the types of yielded values differ from the types of the values that receive them."""
    for value, other in zip(values, wanted, strict=True):
        if value.type != other.type:
            raise Unsupported(
                f"expected a value of type {other.type}, got {value.type}", f"yield {other.type}"
            )


def _check_stores(function: Function) -> None:
    """Raise for a store to an array whose elements are subscripts."""
    try:
        index_arrays(function)
    except KernelError as error:
        cause, _, fix = str(error).partition("\n")
        raise Unsupported(cause, fix.strip()) from None


def _held(value: Value, local: Local) -> Value:
    """A value in the dtype of the local that carries it."""
    return value if value.dtype == local.dtype else unsigned(value)


@dataclass(slots=True)
class _Placed:
    """Adds the position of an operation to errors inside it."""

    reader: _Reader
    op: Operation

    def __enter__(self) -> None:
        pass

    def __exit__(self, kind: object, error: BaseException | None, trace: object) -> None:
        if isinstance(error, Unsupported):
            at = self.reader.places.get(self.op, 0)
            raise mistake(self.reader.text, at, error.cause, error.fix) from None
