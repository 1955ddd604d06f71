"""Turn subscripts into offsets in bytes from the address of an array."""

from __future__ import annotations

from dataclasses import field, replace
from typing import TypeVar

from codegen.analysis.strides import byte_stride, held_dtype, slope
from codegen.ir.building import times
from codegen.ir.index import (
    Affine,
    Index,
    Loaded,
    affine,
    depends_on_elements,
    elements_in,
    index_symbol,
    index_symbols,
    replace_loaded,
)
from codegen.ir.nodes import (
    RESULTS,
    ArrayArg,
    BufferArg,
    Carried,
    Compare,
    For,
    Function,
    If,
    Let,
    ScalarArg,
    Statement,
    Store,
)
from codegen.ir.rewriting import map_value
from codegen.ir.values import IndexValue, Load, Local, Op, Step, Value, VectorShape
from codegen.ir.visit import coefficient
from codegen.passes.index_values import Lanes, element_value, index_value, summed
from codegen.passes.new_names import NewNames
from codegen.schedule.directives import Directed
from codegen.support.dataclasses import dataclass


def lower_addresses(function: Function, _: Directed) -> Function:
    """Access arrays as flat buffers; strides that are not known are arguments.

    before:  C[i, j] = A[i, j] [64]             f32, contiguous along j
    after:   C[i * C.stride[0], 4*j] = A[i * A.stride[0], 4*j] [64]     buffers, lanes 4 bytes apart

    Elements in subscripts become locals, and lanes whose positions depend on them get offsets:

    before:  C[j] = A[idx[j]] [64]
    after:   index = idx[4*j] [64]; offsets = index * 4; C[4*j] = A[offsets] [64]

    So do lanes of stores whose positions are not evenly spaced: C[j ^ 3]. The lanes of other gathers keep
    their own subscripts. Results become stores, and masks of single elements branches.

    Copies have flat buffers from the start.
    """
    if function.buffers:
        return function
    arrays = {a.name: a for a in function.arguments if isinstance(a, ArrayArg)}
    scalars = [a for a in function.arguments if isinstance(a, ScalarArg)]
    low, whole = _Lower(arrays), _Here(())
    low.body(function.body, whole)
    for k, value in enumerate(function.results):
        dtype, result = held_dtype(value.dtype), low.value(value, whole)
        wide = result if value.dtype == dtype else Op("cast", (result,), dtype)
        whole.out.append(Store(RESULTS, (Affine(8 * k),), wide))
    sizes = [
        ScalarArg(f"{a.name}.{what}[{k}]", "i64")
        for what in ("shape", "stride")
        for a in arrays.values()
        for k in range(a.rank)
    ]
    buffers = tuple(map(BufferArg, function.operands))
    return replace(function, arguments=(*scalars, *sizes), buffers=buffers, body=tuple(whole.out), results=())


Access = TypeVar("Access", Load, Store)


@dataclass(frozen=True, slots=True)
class _Here:
    """The state while the statements of a body are lowered.

    lanes   the loops over super-vectors around it
    out     its statements so far
    known   the locals that hold parts of subscripts, by the part and its shape
    """

    lanes: Lanes
    out: list[Statement] = field(default_factory=list)
    known: dict[tuple[Index, VectorShape], Local] = field(default_factory=dict)

    def inside(self, lanes: Lanes) -> _Here:
        """The state for a body nested in this one."""
        return _Here(lanes, [], dict(self.known))


@dataclass(frozen=True, slots=True)
class _Lower:
    arrays: dict[str, ArrayArg]
    names: NewNames = field(default_factory=lambda: NewNames("element"))

    def body(self, body: tuple[Statement, ...], here: _Here) -> tuple[Statement, ...]:
        for statement in body:
            here.out.append(self.statement(statement, here))
        return tuple(here.out)

    def statement(self, node: Statement, here: _Here) -> Statement:
        match node:
            case Let(_, value):
                return replace(node, value=self.value(value, here))
            case Store(_, _, value, where=where):
                store = replace(self.access(node, value.shape, here), value=self.value(value, here))
                test = None if where is None else self.value(where, here)
                if test is None or here.lanes:
                    return replace(store, where=test)
                return If((test,), (replace(store, where=None),))
            case For():
                lanes = here.lanes
                lanes = (*lanes, (node.index, node.step // node.size)) if node.size > 1 else lanes
                starts = [self.value(c.start, here) for c in node.carried]
                inside = here.inside(lanes)
                self.body(node.body, inside)
                carried = tuple(
                    Carried(c.name, start, self.value(c.update, inside), c.combiner)
                    for c, start in zip(node.carried, starts, strict=True)
                )
                return replace(node, body=tuple(inside.out), carried=carried)
            case If(tests, then, otherwise):
                changed = tuple(t if isinstance(t, Compare) else self.value(t, here) for t in tests)
                branches = (self.body(each, here.inside(here.lanes)) for each in (then, otherwise))
                return If(changed, *branches)
        raise AssertionError(f"lower_addresses: no rule for {type(node).__name__}")

    def value(self, value: Value, here: _Here) -> Value:
        def part(node: Value) -> Value:
            match node:
                case Load():
                    return self.access(node, node.shape, here)
                case IndexValue(index, dtype, shape) if depends_on_elements(index):
                    number = self.number(index, shape, here)
                    return number if dtype == "i64" else Op("cast", (number,), dtype, shape)
            return node

        return map_value(value, part)

    def access(self, access: Access, shape: VectorShape, here: _Here) -> Access:
        """A load or a store at offsets in bytes."""
        array, own = access.array, here.lanes[: len(shape)]
        subscripts = access.subscripts
        moved = {name for name, _ in own}
        own_offsets = any(
            moved & index_symbols(element) for each in subscripts for element in elements_in(each)
        ) or (isinstance(access, Store) and not all(_is_affine(subscripts, name) for name in moved))
        if not own_offsets:
            fixed = tuple(self.plain(each, here) for each in subscripts)
            along = tuple("" if _is_affine(fixed, name) else name for name, _ in own)
            return replace(
                access,
                subscripts=tuple(each for each in self.offsets(array, fixed) if each != Affine()),
                dims=(),
                steps=self.steps(array, fixed, shape, here.lanes),
                along=along if any(along) else (),
            )
        fixed_offsets: list[Index] = []
        moving: list[Index] = []
        for offset, subscript in zip(self.offsets(array, subscripts), subscripts, strict=True):
            if moved & index_symbols(subscript):
                moving.append(offset)
            elif offset != Affine():
                fixed_offsets.append(self.plain(offset, here))
        offsets = summed([self.number(each, shape, here) for each in moving])
        return replace(
            access,
            subscripts=tuple(fixed_offsets),
            dims=(),
            steps=(0,) * len(shape),
            along=(),
            offsets=self.let("offsets", offsets, here),
        )

    def plain(self, index: Index, here: _Here) -> Index:
        """An index expression in which locals hold the parts that depend on elements."""
        return replace_loaded(index, lambda part: index_symbol(self.named(part, (), here).name))

    def number(self, index: Index, shape: VectorShape, here: _Here) -> Value:
        """An index expression as a number, or in each lane."""
        return index_value(index, here.lanes[: len(shape)], lambda part: self.part(part, shape, here), shape)

    def part(self, part: Loaded, shape: VectorShape, here: _Here) -> Value:
        """A part that depends on elements, which a local holds."""
        lanes = here.lanes[: len(shape)]
        if index_symbols(part) & {name for name, _ in lanes}:
            return self.named(part, shape, here)
        number = self.named(part, (), here)
        return IndexValue(index_symbol(number.name), "i64", shape, ("",) * len(shape)) if shape else number

    def named(self, part: Loaded, shape: VectorShape, here: _Here) -> Local:
        """The local that holds a part."""
        if (part, shape) not in here.known:
            value = element_value(
                part,
                shape,
                lambda index: self.number(index, shape, here),
                lambda load: self.access(load, shape, here),
                lambda value: self.let("index", value, here),
            )
            here.known[part, shape] = self.let("index", value, here)
        return here.known[part, shape]

    def let(self, name: str, value: Value, here: _Here) -> Local:
        """A local that holds a value."""
        if isinstance(value, Local):
            return value
        here.out.append(Let(self.names.name(name), value))
        return Local(here.out[-1].name, value.dtype, value.shape)  # type: ignore[union-attr]

    def offsets(self, array: str, subscripts: tuple[Index, ...]) -> tuple[Index, ...]:
        """The offset along each dimension."""
        found: list[Index] = []
        for dimension, subscript in enumerate(subscripts):
            known = byte_stride(self.arrays[array], dimension)
            found.append(times(subscript, f"{array}.stride[{dimension}]" if known is None else known))
        return tuple(found)

    def steps(
        self, array: str, subscripts: tuple[Index, ...], shape: VectorShape, lanes: Lanes
    ) -> tuple[Step, ...]:
        """Bytes from lane to lane of each vector dimension; 0 if lanes have subscripts of their own."""
        out: list[Step] = []
        for name, step in lanes[: len(shape)]:
            if not _is_affine(subscripts, name):
                out.append(0)
                continue
            terms: list[tuple[str, int]] = []
            known = 0
            for dimension, subscript in enumerate(subscripts):
                steps, stride = slope(subscript, name) * step, byte_stride(self.arrays[array], dimension)
                if stride is not None:
                    known += steps * stride
                elif steps:
                    terms.append((f"{array}.stride[{dimension}]", steps))
            out.append(affine(known, terms) if terms else known)
        return tuple(out)


def _is_affine(subscripts: tuple[Index, ...], index: str) -> bool:
    """Whether all subscripts have a constant step from lane to lane."""
    return all(coefficient(subscript, index) is not None for subscript in subscripts)
