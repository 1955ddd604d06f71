"""SSA names, constants, index expressions and lane masks as MLIR text."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import replace

from codegen.ir.index import (
    LOADED,
    Affine,
    ArrayElement,
    Bitwise,
    FloorDiv,
    FromEnd,
    Greatest,
    Index,
    Inside,
    Least,
    Loaded,
    Mod,
    Sum,
    add_indices,
    index_symbol,
    index_symbols,
    replace_parts,
    scale_index,
)
from codegen.ir.names import BEGIN, END, SHAPE
from codegen.ir.nodes import ArrayArg, For, Function
from codegen.ir.print_names import INT_BINARY, expression, is_float, mlir_memref, mlir_type
from codegen.ir.values import IndexValue, Op, VectorShape
from codegen.ir.visit import constant_trips
from codegen.support.dataclasses import dataclass

SIZE = re.compile(r"\.(shape|stride)\[(\d+)\]$")

RANGE = (BEGIN, END)
"""The symbols that calls define: the range of the loop that threads share."""


@dataclass(frozen=True, slots=True)
class SsaNames:
    """The names of a region: locals, indices, vectorized loops, and results of pure lines for reuse."""

    locals: dict[str, str]
    indices: dict[str, str]
    lanes: dict[str, For]
    known: dict[str, str]

    def inside(self) -> SsaNames:
        """A copy of the names for a nested region."""
        return SsaNames(dict(self.locals), dict(self.indices), dict(self.lanes), dict(self.known))


class IndexPrinter:
    """Writes lines for index expressions; `head` collects the lines at the start of the function."""

    def __init__(self, function: Function) -> None:
        self.function = function
        self.lines: list[str] = []
        self.head: list[str] = []
        self.depth = 0
        self.used: set[str] = set()
        self.counted = 0
        self.memrefs: dict[str, str] = {}
        self.scalars: dict[str, tuple[str, str]] = {}
        self.at_head: dict[str, str] = {}
        self.flat: dict[str, str] = {}
        self.arguments: list[str] = []
        self.masks_stores = True

    def line(self, text: str) -> None:
        """Add a line at the current depth."""
        self.lines.append("  " * self.depth + text)

    def fresh(self, name: str = "") -> str:
        """An unused SSA name: %i, %i_0, or a number."""
        if not name:
            self.counted += 1
            return f"%{self.counted - 1}"
        plain = SIZE.sub(r"_\1_\2", name.partition(":")[0])
        plain = re.sub(r"[^A-Za-z0-9_.$-]", lambda found: f"u{ord(found[0]):x}", plain)
        plain = plain if not plain[0].isdigit() else f"_{plain}"
        found, k = plain, 0
        while found in self.used:
            found, k = f"{plain}_{k}", k + 1
        self.used.add(found)
        return f"%{found}"

    def emit(self, text: str) -> str:
        """Add a line with a result; return the result's name."""
        ssa = self.fresh()
        self.line(f"{ssa} = {text}")
        return ssa

    def pure(self, text: str, names: SsaNames) -> str:
        """Add a line whose result depends only on its text, once per region; return the result's name."""
        if text not in names.known:
            names.known[text] = self.emit(text)
        return names.known[text]

    def constant(self, text: str, kind: str) -> str:
        """The SSA name of a constant, defined once at the head of the function."""
        plain = kind == "i1"
        line = f"arith.constant {text}" if plain else f"arith.constant {text} : {kind}"
        if line not in self.at_head:
            name = f"c{text}".replace("-", "minus") if kind == "index" else "cst"
            self.at_head[line] = self.fresh(name)
            self.head.append(f"{self.at_head[line]} = {line}")
        return self.at_head[line]

    def memref(self, array: ArrayArg) -> str:
        """The type of an array where it is accessed."""
        return mlir_memref(array)

    def index_name(self, name: str, names: SsaNames) -> str:
        """The SSA name of a symbol of index expressions; that of a buffer is its address."""
        if name in names.indices:
            return names.indices[name]
        ssa, kind = self.scalars.get(name, ("", ""))
        if names.locals.get(name, ssa) != ssa:
            return self.pure(f"arith.index_cast {names.locals[name]} : i64 to index", names)
        if name in self.flat:
            address = f"memref.extract_aligned_pointer_as_index {self.memrefs[name]} : {self.flat[name]}"
            return self.pure(f"{address} -> index", names)
        if kind == "index":
            return ssa
        if name in RANGE and not ssa:
            return self.range_argument(name)
        if name not in self.at_head:
            text = f"arith.index_cast {ssa} : {kind} to index" if ssa else self.extent(name)
            self.at_head[name] = self.fresh(f"{name}_index" if ssa else SHAPE.sub(r"\1_dim\2", name))
            self.head.append(f"{self.at_head[name]} = {text}")
        return self.at_head[name]

    def range_argument(self, name: str) -> str:
        """An end of the range that calls pass, as a further argument."""
        self.scalars[name] = self.fresh(name), "index"
        self.arguments.append(f"{self.scalars[name][0]}: index")
        return self.scalars[name][0]

    def extent(self, name: str) -> str:
        """memref.dim for A.shape[0]"""
        found = SHAPE.fullmatch(name)
        assert found, f"print: {name} has no value"
        array, dim = found[1], self.constant(found[2], "index")
        return f"memref.dim {self.memrefs[array]}, {dim} : {self.memref(self.function.array(array))}"

    def inline(self, index: Index, names: SsaNames) -> str:
        """An index expression as a subscript of affine.load."""
        index = self.with_names(index, names)
        return expression(index, lambda name: self.index_name(name, names))

    def applied(self, indices: Sequence[Index], names: SsaNames) -> str:
        """affine_map<(d0, d1) -> (d0 + d1)>(%i, %n)"""
        indices = [self.with_names(index, names) for index in indices]
        used = sorted(set().union(*(index_symbols(index) for index in indices)))
        dims = {name: f"d{k}" for k, name in enumerate(used)}
        results = ", ".join(expression(index, dims.__getitem__) for index in indices)
        operands = ", ".join(self.index_name(name, names) for name in used)
        return f"affine_map<({', '.join(dims.values())}) -> ({results})>({operands})"

    def index(self, index: Index, names: SsaNames) -> str:
        """An index expression as a value of type index."""
        index = self.with_names(index, names)
        if isinstance(index, Affine):
            if not index.terms:
                return self.constant(str(index.constant), "index")
            if index.constant == 0 and len(index.terms) == 1 and index.terms[0][1] == 1:
                return self.index_name(index.terms[0][0], names)
        return self.pure(self.computed(index, names), names)

    def with_names(self, index: Index, names: SsaNames) -> Index:
        """An index expression in which SSA names stand for the parts that are not affine.

        These depend on elements of arrays, or combine bits.
        """

        def named(part: Loaded | Bitwise) -> Index:
            ssa = self.bits(part, names) if isinstance(part, Bitwise) else self.loaded(part, names)
            names.indices[ssa] = ssa
            return index_symbol(ssa)

        return replace_parts(index, (*LOADED, Bitwise), named)

    def bits(self, part: Bitwise, names: SsaNames) -> str:
        """Combined bits, as a value of type index."""
        left, right = self.index(part.left, names), self.index(part.right, names)
        return self.pure(f"{INT_BINARY[part.operator]} {left}, {right} : index", names)

    def loaded(self, part: Loaded, names: SsaNames) -> str:
        """A part that depends on elements, as a value of type index."""
        match part:
            case ArrayElement(name, subscripts, dtype):
                where = ", ".join(self.index(s, names) for s in subscripts)
                kind = self.memref(self.function.array(name))
                found = self.pure(f"memref.load {self.memrefs[name]}[{where}] : {kind}", names)
                if self.function.array(name).dtype == "index":
                    return found
                return self.pure(f"{index_cast(dtype)} {found} : {mlir_type(dtype)} to index", names)
            case FromEnd(of, size) | Inside(of, size):
                at, extent = self.index(of, names), self.index(size, names)
                return self.held_inside(part, at, extent, self.constant("0", "index"), (), names)

    def held_inside(
        self,
        part: FromEnd | Inside,
        at: str,
        extent: str,
        zero: str,
        shape: VectorShape,
        names: SsaNames,
    ) -> str:
        """A subscript that counts from the end, or is masked; `zero` has the same type."""
        kind, bit = mlir_type("index", shape), mlir_type("i1", shape)
        select = f"{bit}, {kind}" if shape else kind
        if isinstance(part, FromEnd):
            negative = self.pure(f"arith.cmpi slt, {at}, {zero} : {kind}", names)
            from_end = self.pure(f"arith.addi {at}, {extent} : {kind}", names)
            return self.pure(f"arith.select {negative}, {from_end}, {at} : {select}", names)
        # As unsigned numbers, negative ones are the largest.
        inside = self.pure(f"arith.cmpi ult, {at}, {extent} : {kind}", names)
        return self.pure(f"arith.select {inside}, {at}, {zero} : {select}", names)

    def computed(self, index: Index, names: SsaNames) -> str:
        """affine.apply, affine.min or affine.max"""
        match index:
            case Least(several):
                return f"affine.min {self.applied(several, names)}"
            case Greatest(several):
                return f"affine.max {self.applied(several, names)}"
            case _:
                return f"affine.apply {self.applied([index], names)}"

    def named_index(self, name: str, index: Index, names: SsaNames) -> str:
        """An index expression as a value of type index that has a name, unless it is a constant."""
        if isinstance(index, Affine) and not index.terms:
            return self.index(index, names)
        computed = self.computed(index, names)
        ssa = self.fresh(name)
        self.line(f"{ssa} = {computed}")
        return ssa

    def index_value(self, value: IndexValue, names: SsaNames) -> str:
        """An index expression as a number, or as a number in each lane."""
        if not value.shape:
            plain = self.index(value.index, names)
        elif value.steps:
            plain = self.stepped_lanes(value, names)
        else:
            plain = self.index_lanes(value.index, value, names)
        integer = "i64" if is_float(value.dtype) else value.dtype
        source, kind = mlir_type("index", value.shape), mlir_type(integer, value.shape)
        cast = self.pure(f"arith.index_cast {plain} : {source} to {kind}", names)
        if not is_float(value.dtype):
            return cast
        return self.emit(f"arith.sitofp {cast} : {kind} to {mlir_type(value.dtype, value.shape)}")

    def stepped_lanes(self, value: IndexValue, names: SsaNames) -> str:
        """An index expression plus a number of steps in each lane."""
        kind = mlir_type("index", value.shape)
        total = self.pure(f"vector.broadcast {self.index(value.index, names)} : index to {kind}", names)
        for dim, step in enumerate(value.steps):
            if step:
                lanes = self.lane_numbers(dim, step, value.shape, names)
                total = self.pure(f"arith.addi {total}, {lanes} : {kind}", names)
        return total

    def index_lanes(self, index: Index, value: IndexValue, names: SsaNames) -> str:
        """An index expression in each lane."""
        shape, kind = value.shape, mlir_type("index", value.shape)
        match index:
            case Affine():
                total = self.pure(f"vector.broadcast {self.index(index, names)} : index to {kind}", names)
                for dim, name in enumerate(value.along):
                    step = index.coefficient(name) * self.lane_step(name, names) if name else 0
                    if step:
                        lanes = self.lane_numbers(dim, step, shape, names)
                        total = self.pure(f"arith.addi {total}, {lanes} : {kind}", names)
                return total
            case FloorDiv(of, by) | Mod(of, by):
                inner, divides = self.index_lanes(of, value, names), isinstance(index, FloorDiv)
                if by.bit_count() == 1:
                    number, how = (by.bit_length() - 1, "shrsi") if divides else (by - 1, "andi")
                    bits = self.constant(f"dense<{number}>", kind)
                    return self.pure(f"arith.{how} {inner}, {bits} : {kind}", names)
                divisor = self.constant(f"dense<{by}>", kind)
                quotient = self.pure(f"arith.floordivsi {inner}, {divisor} : {kind}", names)
                if divides:
                    return quotient
                multiple = self.pure(f"arith.muli {quotient}, {divisor} : {kind}", names)
                return self.pure(f"arith.subi {inner}, {multiple} : {kind}", names)
            case Bitwise(operator, left, right):
                sides = ", ".join(self.index_lanes(side, value, names) for side in (left, right))
                return self.pure(f"{INT_BINARY[operator]} {sides} : {kind}", names)
            case Sum(terms, rest):
                total = self.index_lanes(rest, value, names)
                for term, k in terms:
                    scaled, factor = self.index_lanes(term, value, names), self.constant(f"dense<{k}>", kind)
                    scaled = self.pure(f"arith.muli {scaled}, {factor} : {kind}", names)
                    total = self.pure(f"arith.addi {total}, {scaled} : {kind}", names)
                return total
            case _ if not index_symbols(index) & set(value.along):
                return self.pure(f"vector.broadcast {self.index(index, names)} : index to {kind}", names)
            case _:
                raise AssertionError(f"print: no rule for {type(index).__name__}")

    def lane_step(self, name: str, names: SsaNames) -> int:
        """The step of an index from lane to lane."""
        loop = names.lanes[name]
        return loop.step // loop.size

    def lane_numbers(self, dim: int, step: int, shape: VectorShape, names: SsaNames) -> str:
        """The numbers 0, step, 2 * step … along one vector dimension."""
        size = shape[dim]
        inner = len(shape) - dim - 1
        left, right = "[" * inner, "]" * inner
        text = ", ".join(f"{left}{k * step}{right}" for k in range(size))
        have = (1,) * dim + (size,) + (1,) * inner
        text = "[" * dim + f"[{text}]" + "]" * dim
        constant = self.constant(f"dense<{text}>", mlir_type("index", have))
        if have == shape:
            return constant
        return self.pure(
            f"vector.broadcast {constant} : {mlir_type('index', have)} to {mlir_type('index', shape)}", names
        )

    def left_over(self, name: str, names: SsaNames, upper: Sequence[Index] | None = None) -> str:
        """The remaining iterations of a vectorized loop, as an index."""
        loop = names.lanes[name]
        step = self.lane_step(name, names)
        here = index_symbol(name)
        results = []
        for bound in upper or loop.upper:
            left = _minus(bound, here) if step > 0 else _minus(here, bound)
            results.append(left if abs(step) == 1 else _ceildiv(left, abs(step)))
        if len(results) == 1:
            return self.pure(f"affine.apply {self.applied(results, names)}", names)
        return self.pure(f"affine.min {self.applied(results, names)}", names)

    def whole(self, name: str, names: SsaNames) -> bool:
        """Whether all lanes are active in every iteration."""
        loop = names.lanes[name]
        trips = constant_trips(replace(loop, step=self.lane_step(name, names), size=1))
        return trips is not None and trips % loop.size == 0

    def lane_mask(self, op: Op, names: SsaNames) -> str | None:
        """vector.create_mask for a comparison of a loop's index with a bound, None for other operations."""
        match op:
            case Op("lt" | "gt", (IndexValue(index, _, (_,), (name,)), IndexValue(bound, _, _, ("",)))):
                if name in names.lanes and index == index_symbol(name):
                    count = self.left_over(name, names, [bound])
                    return self.pure(f"vector.create_mask {count} : {mlir_type('i1', op.shape)}", names)
        return None


def index_cast(dtype: str) -> str:
    """The cast of an integer to an index."""
    return "arith.index_castui" if dtype[0] == "u" else "arith.index_cast"


def _minus(a: Index, b: Index) -> Index:
    return add_indices(a, scale_index(b, -1))


def _ceildiv(of: Index, by: int) -> Index:
    return FloorDiv(add_indices(of, Affine(by - 1)), by)
