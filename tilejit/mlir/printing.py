"""Programs as MLIR's text: the arguments that the text declared, what it allocates, and the loops."""

from __future__ import annotations

import re

from codegen import (
    Affine,
    ArrayArg,
    FunctionPrinter,
    IndexValue,
    ScalarArg,
    SsaNames,
    Value,
    mlir_element,
    mlir_memref,
    mlir_type,
)
from tilejit.mlir.dtypes import MemRef
from tilejit.mlir.program import Program


def format_program(program: Program) -> str:
    """A program as MLIR prints it, with the signature that it was read with.

    func.func @f(%n: index) -> f32 {
      %A = memref.alloc(%n) : memref<?xf32>
      affine.for %i = 0 to %n step 256 {
    """
    return _ProgramPrinter(program).text()


def symbol_text(name: str) -> str:
    """The name of a function as it stands behind `@`: between quotation marks where it is no plain word.

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
    """Declares arguments as the text did, `index` and sizes included, and allocates the rest."""

    def __init__(self, program: Program) -> None:
        super().__init__(program.function)
        self.program = program
        self.names = SsaNames({}, {}, {}, {})
        self.typed: dict[str, tuple[str, str]] = {}

    def text(self) -> str:
        """The whole function."""
        arguments = [
            self.argument(a, m) for a, m in zip(self.program.declared, self.program.memrefs, strict=True)
        ]
        for allocation in self.program.allocations:
            self.allocation(allocation)
        self.body(self.function.body, self.names)
        returned = [self.returned(r) for r in self.program.returns]
        values, kinds = ", ".join(r for r, _ in returned), ", ".join(kind for _, kind in returned)
        ends = f"return {values} : {kinds}" if returned else "return"
        gives = f" -> {kinds if len(returned) == 1 else f'({kinds})'}" if returned else ""
        head = f"func.func @{symbol_text(self.function.name)}({', '.join(arguments)}){gives} {{"
        return "\n".join([head, *(f"  {line}" for line in (*self.head, *self.lines, ends)), "}"]) + "\n"

    def argument(self, argument: ArrayArg | ScalarArg, sizes: MemRef | None) -> str:
        """An argument and its type; sizes that the type states are forgotten inside."""
        ssa = self.fresh(argument.name)
        if isinstance(argument, ArrayArg) and sizes is not None:
            return f"{ssa}: {self.declare(argument, ssa, sizes, self.head)}"
        kind = "index" if argument.name in self.program.indices else mlir_element(argument.dtype)
        self.names.locals[argument.name] = ssa
        self.scalars[argument.name] = (ssa, kind)
        return f"{ssa}: {kind}"

    def declare(self, array: ArrayArg, ssa: str, sizes: MemRef, lines: list[str]) -> str:
        """The type of an array as the text has it; inside, every size is unknown."""
        inside = mlir_memref(array)
        kind = inside
        for size in sizes.sizes:
            stated = isinstance(size, Affine) and not size.terms
            kind = kind.replace("?x", f"{size}x" if stated else "!x", 1)
        kind = kind.replace("!x", "?x")
        self.memrefs[array.name] = ssa
        self.typed[array.name] = (ssa, kind)
        if kind != inside:
            self.memrefs[array.name] = self.fresh(array.name)
            lines.append(f"{self.memrefs[array.name]} = memref.cast {ssa} : {kind} to {inside}")
        return kind

    def allocation(self, allocation: MemRef) -> None:
        """memref.alloc, with a size for each `?`."""
        unknown = [s for s in allocation.sizes if not isinstance(s, Affine) or s.terms]
        operands = ", ".join(self.index(size, self.names) for size in unknown)
        ssa = self.fresh(allocation.name)
        casts: list[str] = []
        kind = self.declare(self.function.array(allocation.name), ssa, allocation, casts)
        self.lines += [f"{ssa} = memref.alloc({operands}) : {kind}", *casts]

    def returned(self, what: str | int) -> tuple[str, str]:
        """What the function returns, and its type."""
        if isinstance(what, str):
            return self.typed[what]
        value: Value = self.function.results[what]
        if what not in self.program.index_results:
            return self.value(value, self.names), mlir_type(value.dtype, value.shape)
        if isinstance(value, IndexValue):
            return self.index(value.index, self.names), "index"
        number = self.value(value, self.names)
        return self.emit(f"arith.index_cast {number} : i64 to index"), "index"
