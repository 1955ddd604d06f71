"""Turn subscripts into offsets in bytes from the address of an array."""

from __future__ import annotations

from dataclasses import replace

from codegen.analysis.strides import byte_stride, held_dtype, slope
from codegen.ir.building import times
from codegen.ir.index import Affine, Index, affine
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
from codegen.ir.values import Load, Op, Step, Value, VectorShape
from codegen.ir.visit import coefficient
from codegen.schedule.registers import RegisterSchedule
from codegen.support.dataclasses import dataclass


def lower_addresses(function: Function, _: RegisterSchedule) -> Function:
    """Access arrays as flat buffers, with strides that are arguments unless they are known.

    before:  C[i, j] = A[i, j] [64]             f32, contiguous along j
    after:   C[i * C.stride[0], 4*j] = A[i * A.stride[0], 4*j] [64]     buffers, lanes 4 bytes apart

    The lanes of a gather still have subscripts of their own. Results become stores.
    """
    arrays = {a.name: a for a in function.arguments if isinstance(a, ArrayArg)}
    scalars = [a for a in function.arguments if isinstance(a, ScalarArg)]
    low = _Lower(arrays)
    body = low.body(function.body, ())
    for k, value in enumerate(function.results):
        dtype, result = held_dtype(value.dtype), low.value(value, ())
        wide = result if value.dtype == dtype else Op("cast", (result,), dtype)
        body = (*body, Store(RESULTS, (Affine(8 * k),), wide))
    sizes = [
        ScalarArg(f"{a.name}.{what}[{k}]", "i64")
        for what in ("shape", "stride")
        for a in arrays.values()
        for k in range(a.rank)
    ]
    buffers = tuple(map(BufferArg, function.operands))
    return replace(function, arguments=(*scalars, *sizes), buffers=buffers, body=body, results=())


Lanes = tuple[tuple[str, int], ...]
"""The loops over super-vectors around a value, outermost first: an index, and its step from lane to lane."""


@dataclass(frozen=True, slots=True)
class _Lower:
    arrays: dict[str, ArrayArg]

    def body(self, body: tuple[Statement, ...], lanes: Lanes) -> tuple[Statement, ...]:
        return tuple(self.statement(s, lanes) for s in body)

    def statement(self, node: Statement, lanes: Lanes) -> Statement:
        match node:
            case Let(_, value):
                return replace(node, value=self.value(value, lanes))
            case Store(array, subscripts, value, where=where):
                return replace(
                    node,
                    subscripts=self.offsets(array, subscripts),
                    value=self.value(value, lanes),
                    where=None if where is None else self.value(where, lanes),
                    dims=(),
                    steps=self.steps(array, subscripts, value.shape, lanes),
                )
            case For():
                inside = (*lanes, (node.index, node.step // node.size)) if node.size > 1 else lanes
                carried = tuple(
                    Carried(c.name, self.value(c.start, lanes), self.value(c.update, inside), c.combiner)
                    for c in node.carried
                )
                return replace(node, body=self.body(node.body, inside), carried=carried)
            case If(tests, then, otherwise):
                changed = tuple(t if isinstance(t, Compare) else self.value(t, lanes) for t in tests)
                return If(changed, self.body(then, lanes), self.body(otherwise, lanes))
        raise AssertionError(f"lower_addresses: no rule for {type(node).__name__}")

    def value(self, value: Value, lanes: Lanes) -> Value:
        def part(node: Value) -> Value:
            return self.load(node, lanes) if isinstance(node, Load) else node

        return map_value(value, part)

    def load(self, load: Load, lanes: Lanes) -> Load:
        array, subscripts = load.array, load.subscripts
        own = lanes[: len(load.shape)]
        along = tuple("" if _is_affine(subscripts, name) else name for name, _ in own)
        steps = self.steps(array, subscripts, load.shape, lanes)
        offsets = self.offsets(array, subscripts)
        return replace(load, subscripts=offsets, dims=(), steps=steps, along=along if any(along) else ())

    def offsets(self, array: str, subscripts: tuple[Index, ...]) -> tuple[Index, ...]:
        """The offset along each dimension, without those that are 0."""
        found: list[Index] = []
        for dimension, subscript in enumerate(subscripts):
            known = byte_stride(self.arrays[array], dimension)
            found.append(times(subscript, f"{array}.stride[{dimension}]" if known is None else known))
        return tuple(each for each in found if each != Affine())

    def steps(
        self, array: str, subscripts: tuple[Index, ...], shape: VectorShape, lanes: Lanes
    ) -> tuple[Step, ...]:
        """Bytes from lane to lane of each vector dimension; 0 where lanes have subscripts of their own."""
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
