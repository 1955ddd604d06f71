"""Lower expressions over arrays to loops: the fewest loops, and one load for each operand."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np

from codegen import (
    Affine,
    ArrayArg,
    For,
    Function,
    Let,
    Load,
    Local,
    Op,
    Operand,
    ScalarArg,
    Store,
    Value,
    convert_operand,
    dtypes,
    index_name,
    index_symbol,
)
from tilejit.arrays.memory import Array
from tilejit.arrays.strided import order_of

# Python compiles at most 20 nested blocks, and LLVM takes 5 times as long for 16 as for 8.
MOST_LOOPS = 8


def coalesced(
    ins: Sequence[Array], outs: Sequence[Array], shape: tuple[int, ...], rank: int = 1
) -> list[Array]:
    """Views of all operands with the fewest common dimensions, in the memory order of the first output.

    [(100, 70) C, (70,)] -> two of (100, 70), the second with strides (0, 4)    all C order -> one dimension

    Args:
        ins: the arrays that are read.
        outs: the arrays that are written; all have the shape `shape`.
        shape: the shape to which all inputs are broadcast.
        rank: the dimensions of a super-vector; up to that many dimensions stay separate.
    """
    if rank == 1 and all(x.shape == shape and x.flags.c_contiguous for x in (*ins, *outs)):
        return [x.reshape(-1) for x in (*ins, *outs)]
    everything = [*(np.broadcast_to(x, shape) for x in ins), *outs]
    return fused(everything, groups_of(memory_order(outs[0] if outs else everything[0]), rank))[0]


def groups_of(order: Sequence[int], rank: int) -> list[Sequence[int]]:
    """The groups of dimensions that may be merged; each of the last rank - 1 dimensions is its own group.

    (2, 0, 1), 1 -> (2, 0, 1)    (2, 0, 1), 2 -> (2, 0), (1)
    """
    alone = max(0, min(rank, len(order)) - 1)
    first = len(order) - alone
    return [order[:first], *([d] for d in order[first:])]


def memory_order(lead: Array) -> list[int]:
    """The dimensions of an array, the one with the largest stride first."""
    return sorted(range(lead.ndim), key=lambda d: (-abs(lead.strides[d]), d))


def fused(operands: Sequence[Array], groups: Sequence[Sequence[int]]) -> tuple[list[Array], list[int]]:
    """Views with their dimensions in the order of the groups, and the number of dimensions of each group.

    Adjacent dimensions in a group are merged if all operands traverse them as one. Dimensions of size 1 are
    dropped, but at least one dimension stays.
    """
    extents: list[int] = []
    kept: list[list[int]] = [[] for _ in operands]
    counts: list[int] = []
    for group in groups:
        first = len(extents)
        for d in group:
            extent, steps = operands[0].shape[d], [x.strides[d] for x in operands]
            if extent == 1:
                continue
            alike = zip(kept, steps, strict=True)
            if len(extents) > first and all(k[-1] == step * extent for k, step in alike):
                extents[-1] *= extent
                for k, step in zip(kept, steps, strict=True):
                    k[-1] = step
            else:
                extents.append(extent)
                for k, step in zip(kept, steps, strict=True):
                    k.append(step)
        counts.append(len(extents) - first)
    if not extents:
        extents, kept, counts = [1], [[x.itemsize] for x in operands], [*counts[:-1], 1]
    views = [
        np.lib.stride_tricks.as_strided(x, tuple(extents), tuple(k), writeable=x.flags.writeable)
        for x, k in zip(operands, kept, strict=True)
    ]
    return views, counts


def parts_of_few_loops(operands: list[Array]) -> Iterator[list[Array]]:
    """The operands, or one part after another if they have more than MOST_LOOPS dimensions.

    10 dimensions of 2 -> four parts with 8 dimensions
    """
    more = operands[0].ndim - MOST_LOOPS
    if more <= 0:
        yield operands
        return
    for place in np.ndindex(operands[0].shape[:more]):
        yield [x[place] for x in operands]


def result_names(count: int) -> tuple[str, ...]:
    """The names of results in kernels: out, or out0, out1, …"""
    return ("out",) if count == 1 else tuple(f"out{k}" for k in range(count))


class Lowering:
    """The loops around expressions of stand-ins, for operands from `coalesced`.

    Args:
        names: the names of the arrays in the function, in order.
        operands: the arrays.
        scalars: the numbers that the function takes as arguments.
    """

    def __init__(self, names: Sequence[str], operands: Sequence[Array], scalars: Sequence[ScalarArg]) -> None:
        self._held = dict(zip(names, operands, strict=True))
        self._arrays = tuple(
            ArrayArg(n, dtypes.dtype_name(x.dtype, n), x.ndim, order_of(x)) for n, x in self._held.items()
        )
        self._scalars = tuple(scalars)
        self._rank = operands[0].ndim
        self.indices = [index_name((d,)) for d in range(self._rank)]

    def at(self, name: str) -> tuple[Affine, ...]:
        """The subscripts of an operand: 0 along dimensions in which it is broadcast."""
        strides = self._held[name].strides
        return tuple(
            index_symbol(i) if step else Affine() for i, step in zip(self.indices, strides, strict=True)
        )

    def dtype(self, name: str) -> str:
        """The dtype of an operand."""
        return dtypes.dtype_name(self._held[name].dtype)

    def load(self, name: str) -> Load:
        """The load of an operand's element."""
        return Load(name, self.at(name), self.dtype(name))

    def placed(self, value: Value) -> Value:
        """The expression with loads in place of stand-ins."""
        if isinstance(value, Local) and value.name in self._held:
            return self.load(value.name)
        if isinstance(value, Op):
            return Op(value.name, tuple(self.placed(x) for x in value.operands), value.dtype)
        return value

    def extent(self, depth: int) -> Affine:
        """The size of a dimension, from an array that is not broadcast along it if possible."""
        walking = (n for n, x in self._held.items() if x.strides[depth])
        return index_symbol(f"{next(walking, self._arrays[0].name)}.shape[{depth}]")

    def mapped(self, name: str, outputs: Sequence[Operand], targets: Sequence[str], mask: str) -> Function:
        """The function that stores each output to its target, except where a mask is False."""
        parts, wholes = named_parts([convert_operand(x, dtypes.concrete(x.dtype)) for x in outputs])
        values = [self._stored(x, target, mask) for x, target in zip(wholes, targets, strict=True)]
        body: tuple[Any, ...] = tuple(Let(part.name, self.placed(part.value)) for part in parts)
        if len(values) > 1:  # all are read before any is written, because an output may be an argument
            body += tuple(Let(f"new{k}", value) for k, value in enumerate(values))
            values = [Local(f"new{k}", value.dtype) for k, value in enumerate(values)]
        body += tuple(Store(t, self.at(t), value) for t, value in zip(targets, values, strict=True))
        for depth in reversed(range(self._rank)):
            ends = (Affine(),), (self.extent(depth),)
            body = (For(self.indices[depth], *ends, 1, body, parallel=depth == 0),)
        return Function(name, (*self._arrays, *self._scalars), body)

    def _stored(self, whole: Value, target: str, mask: str) -> Value:
        dtype, value = self.dtype(target), self.placed(whole)
        if value.dtype != dtype:
            value = Op("cast", (value,), dtype)
        if mask:
            value = Op("select", (self.load(mask), value, self.load(target)), dtype)
        return value


def named_parts(values: Sequence[Value]) -> tuple[list[Let], list[Value]]:
    """Assign operations with several uses to locals; otherwise repeated squaring would grow exponentially.

    (x + 1) * (x + 1) -> part.0 = x + 1; part.0 * part.0
    """
    places: Counter[int] = Counter()
    parts: list[Let] = []
    made: dict[int, Value] = {}

    def count(value: Value) -> None:
        places[id(value)] += 1
        if isinstance(value, Op) and places[id(value)] == 1:
            for operand in value.operands:
                count(operand)

    def named(value: Value) -> Value:
        if not isinstance(value, Op):
            return value
        if id(value) not in made:
            found: Value = Op(value.name, tuple(named(x) for x in value.operands), value.dtype)
            if places[id(value)] > 1:
                parts.append(Let(f"part.{len(parts)}", found))
                found = Local(parts[-1].name, found.dtype)
            made[id(value)] = found
        return made[id(value)]

    for value in values:
        count(value)
    return parts, [named(value) for value in values]
