"""Functions at every stage as text in the style of MLIR's affine, vector and scf dialects."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from codegen.ir.index import Affine, Greatest, Index, Least, scale_index
from codegen.ir.names import names_of
from codegen.ir.nodes import (
    MANY,
    Alloc,
    ArrayArg,
    Call,
    Compare,
    For,
    Function,
    If,
    Let,
    Prefetch,
    Statement,
    Store,
    View,
)
from codegen.ir.print_buffers import BITS, BYTES
from codegen.ir.print_index import SsaNames
from codegen.ir.print_names import compare, mlir_element, mlir_type
from codegen.ir.print_values import ValuePrinter
from codegen.ir.values import IndexValue, Local, Value
from codegen.ir.visit import parts, values_of
from codegen.support.dataclasses import dataclass


def format_function(function: Function) -> str:
    """A function as MLIR text: affine.for, affine.load, vector.transfer_read, vector.create_mask …

        affine.for %i = 0 to %n step 256 {
          %0 = vector.transfer_read %A[%i], %cst : memref<?xf32>, vector<256xf32>

    Stores are masked by the bounds of the vectorized loops, unless the bounds are constants and all lanes are
    always active. Operations that MLIR lacks have names that begin with "tilejit.". Accesses to
    flat buffers, which MLIR lacks too, are printed as `print_buffers` describes.
    """
    return FunctionPrinter(function).text()


def names_in(values: Iterable[Value]) -> frozenset[str]:
    """The names that values refer to."""
    return frozenset(names_of(Let("", value) for value in values))


@dataclass(frozen=True, slots=True)
class Branch:
    """The lines of a branch, and the names, buffers and types of buffers at its end."""

    lines: list[str]
    names: SsaNames
    memrefs: dict[str, str]
    flat: dict[str, str]

    def assigns(self, name: str, before: SsaNames, memrefs: dict[str, str]) -> bool:
        """Whether a name has another value than before the branch."""
        pairs = (
            (self.names.locals, before.locals),
            (self.names.indices, before.indices),
            (self.memrefs, memrefs),
        )
        return any(name in ours and ours[name] != theirs.get(name) for ours, theirs in pairs)


class FunctionPrinter(ValuePrinter):
    """Writes one function, with constants and array sizes at its head."""

    def __init__(self, function: Function) -> None:
        super().__init__(function)
        self.kinds: dict[str, str] = {}
        self.arrays = {a.name: a for a in function.arguments if isinstance(a, ArrayArg)}

    def text(self) -> str:
        """The complete function."""
        function = self.function
        arguments = self.arguments
        names = SsaNames({}, {}, {}, {})
        values = (*values_of(function.body), *function.results)
        numbers = {part.name for value in values for part in parts(value) if isinstance(part, Local)}
        for buffer in function.buffers:
            self.name_buffer(buffer.name, BITS if buffer.unit_bits == 1 else BYTES)
            arguments.append(f"{self.memrefs[buffer.name]}: {self.flat[buffer.name]}")
        for argument in function.arguments:
            if argument.name in self.flat:
                continue
            ssa = self.fresh(argument.name)
            if isinstance(argument, ArrayArg):
                arguments.append(f"{ssa}: {self.memref(argument)}")
                self.memrefs[argument.name] = ssa
            else:
                plain = argument.name in numbers or argument.dtype[0] not in "iu"
                kind = mlir_element(argument.dtype) if plain else "index"
                arguments.append(f"{ssa}: {kind}")
                names.locals[argument.name] = ssa
                self.scalars[argument.name] = (ssa, kind)
        self.body(function.body, names, names_in(function.results))
        given = [self.value(result, names) for result in function.results]
        kinds = [mlir_type(result.dtype, result.shape) for result in function.results]
        ends = f"return {', '.join(given)} : {', '.join(kinds)}" if given else "return"
        gives = "" if not kinds else f" -> {kinds[0]}" if len(kinds) == 1 else f" -> ({', '.join(kinds)})"
        head = f"func.func @{function.name}({', '.join(arguments)}){gives} {{"
        lines = [f"  {line}" for line in (*self.head, *self.lines, ends)]
        return "\n".join([head, *lines, "}"]) + "\n"

    def body(self, body: Sequence[Statement], names: SsaNames, after: frozenset[str] = frozenset()) -> None:
        """Write statements in order. after: the names used after the body."""
        for k, node in enumerate(body):
            match node:
                case Let(name, IndexValue(index, "i64", ())) if self.flat:
                    self.assign(name, self.named_index(name, index, names), "index", names)
                case Let(name, value):
                    self.assign(name, self.value(value, names), mlir_type(value.dtype, value.shape), names)
                case Store():
                    self.store(node, names)
                case For():
                    self.loop(node, names)
                case If():
                    self.condition(node, names, after.union(names_of(body[k + 1 :])))
                case View():
                    self.define_view(node, names)
                case Alloc():
                    self.allocate(node, names)
                case Prefetch(load):
                    self.prefetch(load, names)
                case Call():
                    self.call(node, names)
                case _:
                    raise AssertionError(f"print: no rule for {type(node).__name__}")

    def condition(self, node: If, names: SsaNames, after: frozenset[str]) -> None:
        """Write an scf.if, whose results are the names that both branches assign and later statements use."""
        tests = [self.test(test, names) for test in node.tests]
        tested = tests[0]
        for other in tests[1:]:
            tested = self.emit(f"arith.andi {tested}, {other} : i1")
        outer = self.lines, dict(self.memrefs), dict(self.flat)
        branches = [self.branch(body, names, after) for body in (node.body, node.otherwise)]
        given = [n for n in sorted(after) if all(branch.assigns(n, names, outer[1]) for branch in branches)]
        yields = [self.yielded(given, branch, branches) for branch in branches]
        self.lines, self.memrefs, self.flat = outer
        head = f"scf.if {tested}"
        if given:
            kinds = yields[0]
            result = self.fresh(given[0])
            count = f":{len(given)}" if len(given) > 1 else ""
            head = f"{result}{count} = {head} -> ({', '.join(kinds)})"
        self.line(f"{head} {{")
        self.lines += branches[0].lines
        if node.otherwise:
            self.line("} else {")
            self.lines += branches[1].lines
        self.line("}")
        for k, name in enumerate(given):
            self.assign(name, f"{result}#{k}" if len(given) > 1 else result, kinds[k], names)

    def test(self, test: Compare | Value, names: SsaNames) -> str:
        """A comparison of two index expressions, or a value."""
        if not isinstance(test, Compare):
            return self.value(test, names)
        left, right = self.index(test.left, names), self.index(test.right, names)
        return self.emit(f"{compare(test.relation, 'i64')} {left}, {right} : index")

    def branch(self, body: Sequence[Statement], names: SsaNames, after: frozenset[str]) -> Branch:
        """The lines of a branch, and the names at its end."""
        outer = self.lines, self.memrefs, self.flat
        inner, self.lines, self.memrefs, self.flat = names.inside(), [], dict(outer[1]), dict(outer[2])
        self.depth += 1
        self.body(body, inner, after)
        self.depth -= 1
        made = Branch(self.lines, inner, self.memrefs, self.flat)
        self.lines, self.memrefs, self.flat = outer
        return made

    def yielded(self, given: Sequence[str], branch: Branch, branches: Sequence[Branch]) -> list[str]:
        """End a branch with an scf.yield of these names; return their types."""
        if not given:
            return []
        self.lines, self.memrefs, self.flat = branch.lines, branch.memrefs, branch.flat
        self.depth += 1
        found = []
        for name in given:
            if any(name in each.names.indices for each in branches):
                found.append((self.index_name(name, branch.names), "index"))
            elif name in branch.names.locals:
                ssa = branch.names.locals[name]
                found.append((ssa, self.kinds[ssa]))
            else:
                found.append((self.memrefs[name], self.flat[name]))
        kinds = [kind for _, kind in found]
        self.line(f"scf.yield {', '.join(ssa for ssa, _ in found)} : {', '.join(kinds)}")
        self.depth -= 1
        return kinds

    def assign(self, name: str, ssa: str, kind: str, names: SsaNames) -> None:
        """Give a name to an SSA value of that type: an index, a local or a view."""
        names.indices.pop(name, None)
        names.locals.pop(name, None)
        if kind in (BYTES, BITS):
            self.memrefs[name], self.flat[name] = ssa, kind
        elif kind == "index":
            names.indices[name] = ssa
        else:
            names.locals[name], self.kinds[ssa] = ssa, kind

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
            for c, ssa, kind in zip(node.carried, held, kinds, strict=True):
                self.assign(c.name, ssa, kind, inner)
            pairs = ", ".join(f"{ssa} = {start}" for ssa, start in zip(held, starts, strict=True))
            result = self.fresh(node.carried[0].name)
            count = f":{len(held)}" if len(held) > 1 else ""
            head = f"{result}{count} = {head} iter_args({pairs}) -> ({', '.join(kinds)})"
        how = _promised(node)
        self.line(f"{head} {{")
        self.depth += 1
        if down:
            self.line(f"{index} = affine.apply affine_map<(d0) -> (-d0)>({counter})")
        inner.indices[node.index] = index
        if node.size > 1:
            inner.lanes[node.index] = node
        outer = dict(self.memrefs), dict(self.flat)
        self.loop_begins(node, inner)
        self.body(node.body, inner, names_in(c.update for c in node.carried))
        if node.carried:
            updates = [self.value(c.update, inner) for c in node.carried]
            self.line(f"affine.yield {', '.join(updates)} : {', '.join(kinds)}")
            for k, c in enumerate(node.carried):
                self.assign(c.name, f"{result}#{k}" if len(held) > 1 else result, kinds[k], names)
        self.memrefs, self.flat = outer
        self.depth -= 1
        self.line(f"}}{how}")

    def loop_begins(self, node: For, names: SsaNames) -> None:
        """Write the lines before the body of a loop: none, unless a subclass has some."""

    def bound(self, limits: Sequence[Index], which: str, names: SsaNames) -> str:
        """A loop bound: 0, %n, affine_map<(d0) -> (d0 + 1)>(%i), or the min or max of several."""
        match limits:
            case (Least(several),) if which == "min":
                limits = several
            case (Greatest(several),) if which == "max":
                limits = several
        if len(limits) == 1 and isinstance(limits[0], Affine):
            only = limits[0]
            if not only.terms:
                return str(only.constant)
            name, c = only.terms[0]
            # MLIR's short form takes symbols only; a loop index needs a map.
            short = bool(self.flat) or name not in names.indices
            if only.constant == 0 and len(only.terms) == 1 and c == 1 and short:
                return self.index_name(name, names)
        applied = self.applied(limits, names)
        return applied if len(limits) == 1 else f"{which} {applied}"

    def store(self, node: Store, names: SsaNames) -> None:
        """Write an affine.store, inside an scf.if if it is conditional, or a transfer for a super-vector."""
        value = self.value(node.value, names)
        shape = node.value.shape
        if node.array in self.flat:
            tested, offsets = (
                "" if each is None else self.value(each, names) for each in (node.where, node.offsets)
            )
            self.flat_store(node, value, tested, offsets, names)
            return
        dtype = self.arrays[node.array].dtype
        if node.accumulate:
            old = self.value(node.old(dtype), names)
            value = self.combined(node.accumulate, old, value, dtype, shape)
        tested = "" if node.where is None else self.value(node.where, names)
        if shape:
            self.transfer_write(node, value, tested, dtype, shape, names)
            return
        how, where = self.element_access(node.subscripts, names)
        array = self.memrefs[node.array]
        stored = f"{how}.store {value}, {array}[{where}] : {self.memref(self.arrays[node.array])}"
        for line in (f"scf.if {tested} {{", f"  {stored}", "}") if tested else (stored,):
            self.line(line)


def _promised(node: For) -> str:
    """How many iterations a loop is promised to have: {fewest = 16}, {most = 63}"""
    how = [f"fewest = {node.fewest}"] * bool(node.fewest) + [f"most = {node.most}"] * (node.most < MANY)
    return f" {{{', '.join(how)}}}" if how else ""
