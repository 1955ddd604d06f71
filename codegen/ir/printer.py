"""Loop kernels, scalar or super-vectorized, as text in the style of MLIR's affine and vector dialects."""

from __future__ import annotations

from collections.abc import Sequence

from codegen.ir.index import Affine, Index, scale_index
from codegen.ir.nodes import ArrayArg, For, Function, Let, Load, Local, Statement, Store
from codegen.ir.print_index import SsaNames
from codegen.ir.print_names import mlir_element, mlir_memref, mlir_type
from codegen.ir.print_values import ValuePrinter
from codegen.ir.visit import parts, values_of


def format_function(function: Function) -> str:
    """A function as MLIR text: affine.for, affine.load, vector.transfer_read, vector.create_mask …

        affine.for %i = 0 to %n step 256 {
          %0 = vector.transfer_read %A[%i], %cst : memref<?xf32>, vector<256xf32>

    Stores are masked by the bounds of the vectorized loops, unless the bounds are constants and all lanes are
    always active. Operations that MLIR lacks have names that begin with "tilejit.".
    """
    return FunctionPrinter(function).text()


class FunctionPrinter(ValuePrinter):
    """Writes one function, with constants and array sizes at its head."""

    def __init__(self, function: Function) -> None:
        super().__init__(function)
        self.arrays = {a.name: a for a in function.arguments if isinstance(a, ArrayArg)}

    def text(self) -> str:
        """The complete function."""
        function = self.function
        arguments = []
        names = SsaNames({}, {}, {}, {})
        values = (*values_of(function.body), *function.results)
        numbers = {part.name for value in values for part in parts(value) if isinstance(part, Local)}
        for argument in function.arguments:
            ssa = self.fresh(argument.name)
            if isinstance(argument, ArrayArg):
                arguments.append(f"{ssa}: {mlir_memref(argument)}")
                self.memrefs[argument.name] = ssa
            else:
                plain = argument.name in numbers or argument.dtype[0] not in "iu"
                kind = mlir_element(argument.dtype) if plain else "index"
                arguments.append(f"{ssa}: {kind}")
                names.locals[argument.name] = ssa
                self.scalars[argument.name] = (ssa, kind)
        self.body(function.body, names)
        given = [self.value(result, names) for result in function.results]
        kinds = [mlir_type(result.dtype, result.shape) for result in function.results]
        ends = f"return {', '.join(given)} : {', '.join(kinds)}" if given else "return"
        gives = "" if not kinds else f" -> {kinds[0]}" if len(kinds) == 1 else f" -> ({', '.join(kinds)})"
        head = f"func.func @{function.name}({', '.join(arguments)}){gives} {{"
        lines = [f"  {line}" for line in (*self.head, *self.lines, ends)]
        return "\n".join([head, *lines, "}"]) + "\n"

    def body(self, body: Sequence[Statement], names: SsaNames) -> None:
        """Write statements in order."""
        for node in body:
            match node:
                case Let(name, value):
                    names.locals[name] = self.value(value, names)
                case Store():
                    self.store(node, names)
                case For():
                    self.loop(node, names)

    def loop(self, node: For, names: SsaNames) -> None:
        """Write an affine.for. MLIR steps are positive, so a loop that counts down uses a negated index."""
        down = node.step < 0
        starts = [self.value(c.start, names) for c in node.carried]
        inner = names.inside()
        index = self.fresh(node.index)
        if down:
            counter = self.fresh(f"minus_{node.index}")
        bounds = [
            self.bound([scale_index(b, -1) for b in limits] if down else limits, which, names)
            for limits, which in ((node.lower, "max"), (node.upper, "min"))
        ]
        step = f" step {abs(node.step)}" if abs(node.step) != 1 else ""
        head = f"affine.for {counter if down else index} = {bounds[0]} to {bounds[1]}{step}"
        if node.carried:
            kinds = [mlir_type(c.start.dtype, c.start.shape) for c in node.carried]
            held = [self.fresh(c.name) for c in node.carried]
            inner.locals.update({c.name: ssa for c, ssa in zip(node.carried, held, strict=True)})
            pairs = ", ".join(f"{ssa} = {start}" for ssa, start in zip(held, starts, strict=True))
            result = self.fresh(node.carried[0].name)
            count = f":{len(held)}" if len(held) > 1 else ""
            head = f"{result}{count} = {head} iter_args({pairs}) -> ({', '.join(kinds)})"
        self.line(f"{head} {{")
        self.depth += 1
        if down:
            self.line(f"{index} = affine.apply affine_map<(d0) -> (-d0)>({counter})")
        inner.indices[node.index] = index
        if node.size > 1:
            inner.lanes[node.index] = node
        self.body(node.body, inner)
        if node.carried:
            updates = [self.value(c.update, inner) for c in node.carried]
            self.line(f"affine.yield {', '.join(updates)} : {', '.join(kinds)}")
            for k, c in enumerate(node.carried):
                names.locals[c.name] = f"{result}#{k}" if len(held) > 1 else result
        self.depth -= 1
        self.line("}")

    def bound(self, limits: Sequence[Index], which: str, names: SsaNames) -> str:
        """A loop bound: 0, %n, affine_map<(d0) -> (d0 + 1)>(%i), or the min or max of several."""
        if len(limits) == 1 and isinstance(limits[0], Affine):
            only = limits[0]
            if not only.terms:
                return str(only.constant)
            name, c = only.terms[0]
            # The short form takes symbols only; a loop index needs a map.
            if only.constant == 0 and len(only.terms) == 1 and c == 1 and name not in names.indices:
                return self.index_name(name, names)
        applied = self.applied(limits, names)
        return applied if len(limits) == 1 else f"{which} {applied}"

    def store(self, node: Store, names: SsaNames) -> None:
        """Write an affine.store, inside an scf.if if it is conditional, or a transfer for a super-vector."""
        value = self.value(node.value, names)
        shape = node.value.shape
        dtype = self.arrays[node.array].dtype
        if node.accumulate:
            load = Load(node.array, node.subscripts, dtype, shape, node.dims, node.steps)
            value = self.combined(node.accumulate, self.value(load, names), value, dtype, shape)
        tested = "" if node.where is None else self.value(node.where, names)
        if shape:
            self.transfer_write(node, value, tested, dtype, shape, names)
            return
        where = ", ".join(self.inline(s, names) for s in node.subscripts)
        array = self.memrefs[node.array]
        stored = f"affine.store {value}, {array}[{where}] : {mlir_memref(self.arrays[node.array])}"
        for line in (f"scf.if {tested} {{", f"  {stored}", "}") if tested else (stored,):
            self.line(line)
