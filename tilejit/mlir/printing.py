"""Print programs as MLIR text: the declared arguments, the allocations, and the loops."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import replace

from codegen import (
    ArrayArg,
    Const,
    For,
    Function,
    FunctionPrinter,
    IndexValue,
    Let,
    Load,
    Local,
    Op,
    Reduce,
    ScalarArg,
    SsaNames,
    Statement,
    Store,
    Value,
    mlir_element,
    mlir_memref,
    mlir_type,
    neutral,
)
from tilejit.mlir.dtypes import MemRef, number_of
from tilejit.mlir.program import Program


def format_program(program: Program, *, masked: bool = True) -> str:
    """Print a program as MLIR does, with its original signature.

    func.func @f(%n: index) -> f32 {
      %A = memref.alloc(%n) : memref<?xf32>
      affine.for %i = 0 to %n step 256 {

    Without masks, stores end where their arrays end, and constants are printed where they are used, as in the
    documentation of MLIR's pass.
    """
    return (_ProgramPrinter if masked else _PassPrinter)(program).text()


def symbol_text(name: str) -> str:
    """The name of a function after `@`, in quotation marks unless it is a plain word.

    f.1 -> f.1    two words -> "two words"
    """
    if re.fullmatch(r"[A-Za-z_][\w$.]*", name, re.ASCII):
        return name
    coded = "".join(
        c if c.isprintable() and c not in '"\\' else "".join(f"\\{b:02X}" for b in c.encode(errors="replace"))
        for c in name
    )
    return f'"{coded}"'


class _ProgramPrinter(FunctionPrinter):
    """Declares arguments as in the text, including `index` and sizes, and allocates the other arrays."""

    def __init__(self, program: Program) -> None:
        function = _with_indices(program.function, program.indices)
        super().__init__(function)
        self.program = replace(program, function=function)
        self.names = SsaNames({}, {}, {}, {})
        self.typed: dict[str, tuple[str, str]] = {}

    def fresh(self, name: str = "") -> str:
        """A unique name, with the text's spelling if it is not valid in Python."""
        return super().fresh(self.program.spelled.get(name, name))

    def memref(self, array: ArrayArg) -> str:
        """The type of an array in the text."""
        return self.typed[array.name][1]

    def text(self) -> str:
        """The whole function."""
        arguments = [
            self.argument(a, m) for a, m in zip(self.program.declared, self.program.memrefs, strict=True)
        ]
        for allocation in self.program.allocations:
            self.allocation(allocation)
        self.begins()
        self.body(self.function.body, self.names)
        returned = [self.returned(r) for r in self.program.returns]
        values, kinds = ", ".join(r for r, _ in returned), ", ".join(kind for _, kind in returned)
        ends = f"return {values} : {kinds}" if returned else "return"
        gives = f" -> {kinds if len(returned) == 1 else f'({kinds})'}" if returned else ""
        head = f"func.func @{symbol_text(self.function.name)}({', '.join(arguments)}){gives} {{"
        return "\n".join([head, *(f"  {line}" for line in (*self.head, *self.lines, ends)), "}"]) + "\n"

    def begins(self) -> None:
        """Write everything before the statements."""

    def argument(self, argument: ArrayArg | ScalarArg, sizes: MemRef | None) -> str:
        """An argument and its type."""
        ssa = self.fresh(argument.name)
        if isinstance(argument, ArrayArg) and sizes is not None:
            return f"{ssa}: {self.declare(argument, ssa, sizes)}"
        kind = "index" if argument.name in self.program.indices else mlir_element(argument.dtype)
        self.names.locals[argument.name] = ssa
        self.scalars[argument.name] = (ssa, kind)
        return f"{ssa}: {kind}"

    def declare(self, array: ArrayArg, ssa: str, sizes: MemRef) -> str:
        """Register an array under its SSA name, and return its type in the text."""
        kind = mlir_memref(array)
        for size in sizes.static_sizes:
            kind = kind.replace("?x", "!x" if size is None else f"{size}x", 1)
        kind = kind.replace("!x", "?x")
        self.memrefs[array.name] = ssa
        self.typed[array.name] = (ssa, kind)
        return kind

    def allocation(self, allocation: MemRef) -> None:
        """memref.alloc, with a size for each `?`."""
        unknown = [size for size in allocation.sizes if number_of(size) is None]
        operands = ", ".join(self.index(size, self.names) for size in unknown)
        ssa = self.fresh(allocation.name)
        kind = self.declare(self.function.array(allocation.name), ssa, allocation)
        self.lines.append(f"{ssa} = memref.alloc({operands}) : {kind}")

    def scalar_load(self, load: Load, names: SsaNames) -> str:
        """A load of one element; an index is cast to the dtype of the computation."""
        found = super().scalar_load(load, names)
        return self.emit(f"arith.index_cast {found} : index to {load.dtype}") if self.casts(load) else found

    def transfer_read(self, load: Load, names: SsaNames) -> str:
        """A load of a super-vector; indices are cast to the dtype of the computation."""
        if not self.casts(load):
            return super().transfer_read(load, names)
        found = super().transfer_read(replace(load, dtype="index"), names)
        kinds = mlir_type("index", load.shape), mlir_type(load.dtype, load.shape)
        return self.emit(f"arith.index_cast {found} : {kinds[0]} to {kinds[1]}")

    def casts(self, load: Load) -> bool:
        """Whether a load reads numbers from an array of indices."""
        return load.dtype != self.arrays[load.array].dtype == "index"

    def store(self, node: Store, names: SsaNames) -> None:
        """A store; numbers are cast to indices if the array holds indices."""
        if self.arrays[node.array].dtype == "index":
            node = replace(node, value=Op("cast", (node.value,), "index", node.value.shape))
        super().store(node, names)

    def returned(self, what: str | int) -> tuple[str, str]:
        """A result of the function and its type."""
        if isinstance(what, str):
            return self.typed[what]
        value: Value = self.function.results[what]
        if what not in self.program.index_results:
            return self.value(value, self.names), mlir_type(value.dtype, value.shape)
        if isinstance(value, IndexValue):
            return self.index(value.index, self.names), "index"
        number = self.value(value, self.names)
        return self.emit(f"arith.index_cast {number} : i64 to index"), "index"


def _with_indices(function: Function, names: frozenset[str]) -> Function:
    """The function, in which arrays with these names have elements of the type index."""
    arguments = (
        replace(a, dtype="index") if isinstance(a, ArrayArg) and a.name in names else a
        for a in function.arguments
    )
    return replace(function, arguments=tuple(arguments))


class _PassPrinter(_ProgramPrinter):
    """Prints lines in the order of MLIR's pass, whose stores have no masks."""

    def __init__(self, program: Program) -> None:
        super().__init__(program)
        self.masks_stores = False
        self.starts = dict(_starts(program.function.body))

    def begins(self) -> None:
        """The constants of the function, which the pass keeps in place."""
        for constant in self.program.constants:
            self.value(constant, self.names)

    def constant(self, text: str, kind: str) -> str:
        """A constant, declared where it is used."""
        ssa = self.fresh(f"c{text}".replace("-", "minus") if kind == "index" else "cst")
        self.line(f"{ssa} = arith.constant {text}" + ("" if kind == "i1" else f" : {kind}"))
        return ssa

    def loop(self, node: For, names: SsaNames) -> None:
        """A loop; its lanes start with the reduction's own start value if that changes nothing."""
        carried = [replace(c, start=self.starts.get(c.name, c.start)) for c in node.carried]
        super().loop(replace(node, carried=tuple(carried)), names)

    def loop_begins(self, node: For, names: SsaNames) -> None:
        """The masks of reductions, which the pass creates first."""
        for carried in node.carried:
            match carried.update:
                case Op("select", (Op("lt" | "gt") as mask, _, _)) if mask.shape:
                    self.value(mask, names)

    def scalar_load(self, load: Load, names: SsaNames) -> str:
        """A load outside loops is a memref.load."""
        if self.depth:
            return super().scalar_load(load, names)
        where = ", ".join([self.index(s, names) for s in load.subscripts])
        array = self.memref(self.function.array(load.array))
        found = self.emit(f"memref.load {self.memrefs[load.array]}[{where}] : {array}")
        return self.emit(f"arith.index_cast {found} : index to {load.dtype}") if self.casts(load) else found

    def reduction_start(self, value: Reduce, names: SsaNames) -> tuple[str, ...]:
        """Nothing if the start value changes nothing."""
        if isinstance(value.vector, Local) and value.vector.name in self.starts:
            return ()
        return super().reduction_start(value, names)


def _starts(body: Sequence[Statement]) -> Iterator[tuple[str, Const]]:
    """The start values for the lanes of reductions: the value that is combined with all lanes, if neutral.

    s.lanes = -0.0; s = reduce_add(s.lanes) + 0.0 -> s.lanes, 0.0
    """
    for statement in body:
        match statement:
            case For():
                yield from _starts(statement.body)
            case Let(_, Reduce(combiner, Local(name, _, shape), Const(number, dtype))):
                if number == neutral(combiner, dtype):
                    yield name, Const(number, dtype, shape)
