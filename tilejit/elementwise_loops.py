"""Expressions over arrays as functions of loops: the fewest loops, one load for each operand."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from codegen.frontend.operands import Operand, convert
from codegen.loops import typing
from codegen.loops.index import Affine, symbol
from codegen.loops.ir import (
    ArrayArg,
    Carried,
    Const,
    For,
    Function,
    Load,
    Local,
    Op,
    ScalarArg,
    Store,
    Value,
)
from tilejit.memory import Array
from tilejit.strided import order_of
from tilejit.traced import REDUCTIONS


def coalesced(ins: Sequence[Array], outs: Sequence[Array], shape: tuple[int, ...]) -> list[Array]:
    """All operands with the fewest dimensions along which they walk together, those of the outputs first.

    [(100, 70) C, (70,)] -> two of (100, 70), the second with strides (0, 4)    all C order -> one dimension
    """
    if all(x.shape == shape and x.flags.c_contiguous for x in (*ins, *outs)):
        return [x.reshape(-1) for x in (*ins, *outs)]
    everything = [*(np.broadcast_to(x, shape) for x in ins), *outs]
    lead = outs[0] if outs else everything[0]
    order = sorted(range(len(shape)), key=lambda d: (-abs(lead.strides[d]), d))
    moved = [x.transpose(order) for x in everything]
    extents: list[int] = []
    kept: list[list[int]] = [[] for _ in moved]
    for d, extent in enumerate(shape[d] for d in order):
        if extent == 1:
            continue
        steps = [x.strides[d] for x in moved]
        if extents and all(k[-1] == step * extent for k, step in zip(kept, steps, strict=True)):
            extents[-1] *= extent
            for k, step in zip(kept, steps, strict=True):
                k[-1] = step
        else:
            extents.append(extent)
            for k, step in zip(kept, steps, strict=True):
                k.append(step)
    if not extents:
        extents, kept = [1], [[x.itemsize] for x in moved]
    return [
        np.lib.stride_tricks.as_strided(x, tuple(extents), tuple(k), writeable=x.flags.writeable)
        for x, k in zip(moved, kept, strict=True)
    ]


class Lowering:
    """The loops around expressions of stand-ins, for operands that `coalesced` made.

    names     of the arrays in the function, in order; those of scalars stand in `scalars`
    """

    def __init__(self, names: Sequence[str], operands: Sequence[Array], scalars: Sequence[ScalarArg]) -> None:
        self._held = dict(zip(names, operands, strict=True))
        self._arrays = tuple(
            ArrayArg(n, typing.dtype_name(x.dtype), x.ndim, order_of(x)) for n, x in self._held.items()
        )
        self._scalars = tuple(scalars)
        self._rank = operands[0].ndim
        self._indices = [f"i{d}" for d in range(self._rank)]

    def _at(self, name: str) -> tuple[Affine, ...]:
        """The subscripts of an operand: 0 along dimensions that it is repeated along."""
        strides = self._held[name].strides
        return tuple(symbol(i) if step else Affine() for i, step in zip(self._indices, strides, strict=True))

    def _load(self, name: str) -> Load:
        return Load(name, self._at(name), typing.dtype_name(self._held[name].dtype))

    def _placed(self, value: Value) -> Value:
        """The expression with loads for stand-ins."""
        if isinstance(value, Local) and value.name in self._held:
            return self._load(value.name)
        if isinstance(value, Op):
            return Op(value.name, tuple(self._placed(x) for x in value.operands), value.dtype)
        return value

    def _extent(self, depth: int) -> Affine:
        """The size of a dimension, of an array that walks along it if one does."""
        walking = (n for n, x in self._held.items() if x.strides[depth])
        return symbol(f"{next(walking, self._arrays[0].name)}.shape[{depth}]")

    def mapped(self, name: str, outputs: Sequence[Operand], targets: Sequence[str], mask: str) -> Function:
        """Each output stored to its target; where a mask is given, elsewhere what was there."""
        body: tuple[Any, ...] = tuple(
            self._store(operand, target, mask) for operand, target in zip(outputs, targets, strict=True)
        )
        for depth in reversed(range(self._rank)):
            ends = (Affine(),), (self._extent(depth),)
            body = (For(self._indices[depth], *ends, 1, body, parallel=depth == 0),)
        return Function(name, (*self._arrays, *self._scalars), body)

    def _store(self, operand: Operand, target: str, mask: str) -> Store:
        dtype = typing.dtype_name(self._held[target].dtype)
        value = self._placed(convert(operand, typing.concrete(operand.dtype)))
        if value.dtype != dtype:
            value = Op("cast", (value,), dtype)
        if mask:
            value = Op("select", (self._load(mask), value, self._load(target)), dtype)
        return Store(target, self._at(target), value)

    def reduced(self, name: str, outputs: Sequence[Operand], reductions: Sequence[str]) -> Function:
        """Each output combined over all elements."""
        states = [
            self._state(f"acc{k}", *each) for k, each in enumerate(zip(outputs, reductions, strict=True))
        ]
        body: tuple[Any, ...] = ()
        for depth in reversed(range(self._rank)):
            inner = depth == self._rank - 1
            carried = tuple(
                Carried(local.name, start if depth == 0 else local, update if inner else local, combiner)
                for local, start, update, combiner in states
            )
            body = (For(self._indices[depth], (Affine(),), (self._extent(depth),), 1, body, carried),)
        results = tuple(local for local, *_ in states)
        return Function(name, (*self._arrays, *self._scalars), body, results)

    def _state(self, name: str, operand: Operand, reduction: str) -> tuple[Local, Const, Op, str]:
        """A combination's name, where it begins, how it goes on, and its combiner."""
        combiner, dtype = REDUCTIONS[reduction], typing.concrete(operand.dtype)
        if combiner == "add":
            dtype = summed(dtype)
        elif dtype == "i1":
            combiner = {"min": "and", "max": "or"}[combiner]
        local = Local(name, dtype)
        value = self._placed(convert(operand, dtype))
        return local, _start(dtype, combiner), Op(combiner, (local, value), dtype), combiner


def summed(dtype: str) -> str:
    """NumPy sums small integers in 64 bits."""
    return {"i": "i64", "u": "u64"}.get(dtype[0], dtype)


def _start(dtype: str, combiner: str) -> Const:
    """What leaves everything as it is."""
    if combiner == "add":
        return Const(0.0 if typing.is_float(dtype) else 0, dtype)
    if typing.is_float(dtype):
        return Const(float("inf") if combiner == "min" else float("-inf"), dtype)
    if dtype == "i1":
        return Const(combiner == "and", dtype)
    info = np.iinfo(typing.numpy_dtype(dtype))
    return Const(int(info.max if combiner == "min" else info.min), dtype)
