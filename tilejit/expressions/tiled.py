"""Expressions over tiled arrays: computed slot by slot, block by block, or as plain arrays to pack."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import Any, TypeAlias

import numpy as np

from codegen import (
    BoundKernel,
    Function,
    LayoutError,
    StagedOperand,
    check_bounds,
    dtypes,
    slowness_of,
    staged_loops,
    thread_count,
)
from tilejit.arrays.memory import Array, address, empty
from tilejit.arrays.strided import share_memory
from tilejit.copies.convert import pack
from tilejit.expressions.engine import BlockPlan, Engine
from tilejit.expressions.loops import Lowering, fused, groups_of, memory_order, result_names
from tilejit.expressions.outputs import check_array, check_dtype, check_written, given_outputs
from tilejit.expressions.packing import PackOf, packing_of_blocks, packing_of_results, padding_of_result
from tilejit.expressions.recorded import (
    NO_ARRAYS,
    broadcast_shape,
    check_mask,
    is_number,
    plain,
)
from tilejit.expressions.reductions import form_of, reduce_all
from tilejit.kernels.call_arguments import bits_of
from tilejit.kernels.loop_options import LoopOptions
from tilejit.kernels.program import LoopProgram
from tilejit.layout.as_layout import as_layout
from tilejit.layout.cute_shape import Spec
from tilejit.layout.indexing import access_map, shape_name
from tilejit.programs.compiled import buffer_element
from tilejit.programs.tuning import Casting, Padding
from tilejit.tiled.buffers import writable_layout
from tilejit.tiled.tiled_array import TiledArray, address_of

Operand: TypeAlias = Array | TiledArray

LEAST_BYTES = 1 << 19
"""Results below this size in bytes stay in cache when they go through a plain array."""


def compute_tiled(e: Engine[..., Any], args: tuple[Any, ...], out: Any, where: Any, layout: Any) -> Any:
    """Run a call in which an argument, a result or the mask is tiled.

    Raises:
        LayoutError: shapes do not match, or both out and layout are given.
        TypeError: a result does not convert to the dtype of `out`, or the mask is not boolean.
    """
    if layout is not None and out is not None:
        raise LayoutError("out= already has a layout\n  omit layout=")
    if layout is None and where is True:
        slots = _slot_by_slot(e, args, out)
        if slots is not None:
            return slots
    mask = None if where is True else where if isinstance(where, TiledArray) else plain(where, "where")
    if mask is not None:
        check_mask(mask)
    call = _Call(e, args, mask)
    if layout is None and (out is None or not _any_tiled(out)):
        return e(*map(_untiled, args), out=out, where=True if mask is None else _untiled(mask))
    targets = call.fresh(layout) if out is None else call.checked(out)
    if not call.in_blocks(targets):
        call.in_two_steps(targets)
    results = targets if out is None else list(out) if isinstance(out, tuple) else [out]
    return tuple(results) if call.recorded.several else results[0]


def _given(x: Any, what: str) -> Any:
    """Return tiled arrays and numbers unchanged, and anything else as a plain array."""
    return x if isinstance(x, TiledArray) or is_number(x) else plain(x, what)


def _any_tiled(out: Any) -> bool:
    return any(isinstance(x, TiledArray) for x in (out if isinstance(out, tuple) else (out,)))


def _untiled(x: Any) -> Any:
    return x.unpack() if isinstance(x, TiledArray) else x


def _slot_by_slot(e: Engine[..., Any], args: tuple[Any, ...], out: Any) -> Any:
    """Compute slot by slot, padding included; None unless all operands have one layout and dtype."""
    outs = () if out is None else out if isinstance(out, tuple) else (out,)
    arrays = [x for x in (*args, *outs) if not is_number(x)]
    if not all(isinstance(x, TiledArray) for x in arrays) or all(is_number(x) for x in args):
        return None
    spec = arrays[0].layout
    if spec.packed or any(x.layout != spec for x in arrays):
        return None
    slots = [x if is_number(x) else x.buffer.view(spec.dtype) for x in args]  # the buffer may be uint8
    recorded, _ = e.record([_stand_in(x) for x in args])
    if (
        not recorded.simple
        or set(recorded.dtypes) != {spec.dtype}
        or any(x.ndim != len(spec.dimensions) for x in arrays)
    ):
        return None
    if outs and len(outs) != len(recorded.dtypes):
        return None
    buffers = tuple(x.buffer.view(spec.dtype) for x in outs)
    made = e(*slots, out=(buffers if recorded.several else buffers[0]) if outs else None)
    if outs:
        return out
    return tuple(TiledArray(x, spec) for x in made) if recorded.several else TiledArray(made, spec)


class _Call:
    """One call: the arguments and the recorded function."""

    def __init__(self, e: Engine[..., Any], args: tuple[Any, ...], mask: Operand | None) -> None:
        self.e, self.mask = e, mask
        given = [_given(x, f"argument {k}") for k, x in enumerate(args)]
        if all(map(is_number, given)):
            raise TypeError(NO_ARRAYS)
        self.given = given
        self.recorded, self.numbers = e.record([_stand_in(x) for x in given])
        named = zip(self.recorded.arguments, given, strict=True)
        self.arrays: dict[str, Operand] = {name: x for name, x in named if not is_number(x)}
        held = [*self.arrays.values(), *([mask] if mask is not None else [])]
        self.dims = broadcast_shape(held)

    def fresh(self, layout: Any) -> list[Operand]:
        """New tiled arrays in a layout, for every result."""
        out: list[Operand] = []
        if any(self.recorded.bare) or not all(n >= self.arrays.keys() for n in self.recorded.names):
            raise LayoutError(
                "layout= applies only to results that depend on all arrays\n"
                "  omit layout=, and call tilejit.pack on the results"
            )
        for dtype in self.recorded.dtypes:
            spec = as_layout(layout, dtype=dtype, dims=self.dims)
            self._check(spec, dtype)
            kind = np.dtype(np.uint8) if spec.packed else spec.dtype
            make = empty if self.mask is None else np.zeros
            out.append(TiledArray(make((spec.size_in_bytes // kind.itemsize,), kind), spec))
        return out

    def _check(self, spec: Spec, dtype: np.dtype[Any]) -> None:
        writable_layout(spec)
        if spec.dimensions != self.dims:
            raise LayoutError(
                f"out is {shape_name(spec)}, but the result has the shape {self.dims}\n"
                "  pass a layout of that shape"
            )
        check_dtype(spec.dtype, dtype)

    def checked(self, out: Any) -> list[Operand]:
        """The arrays of `out`, if the results fit them."""
        wanted = self.recorded.dtypes
        outs = given_outputs(out, len(wanted))
        for each, dtype in zip(outs, wanted, strict=True):
            if not isinstance(each, TiledArray):
                check_array(each, dtype, self.dims if self.recorded.simple else None)
            elif self.recorded.simple:
                self._check(each.layout, dtype)
        check_written([x.buffer if isinstance(x, TiledArray) else x for x in outs])
        return outs

    def in_blocks(self, targets: list[Operand]) -> bool:
        """Compute the results block by block, in a single pass over memory; False if that is impossible."""
        recorded, mask = self.recorded, self.mask
        if any(recorded.bare) or 0 in self.dims or any(x.shape != self.dims for x in targets):
            return False
        held = [x.dtype for x in (*self.arrays.values(), *targets)]
        if not all(map(dtypes.is_computed, held)) or sum(x.nbytes for x in targets) < LEAST_BYTES:
            return False
        ins: dict[str, Any] = dict(self.arrays)
        if recorded.stages:
            ins = {name: _untiled(x) for name, x in ins.items()}
            reduce_all(recorded.stages, ins, self.numbers, self._plan)
        if mask is not None:
            ins["where"] = mask
        used = frozenset[str]().union(*recorded.names) | {"where"}
        ins = {name: self._copied_if_overlapping(x, targets) for name, x in ins.items() if name in used}
        ins = {name: x if x.shape == self.dims else _untiled(x) for name, x in ins.items()}
        results = result_names(len(targets))
        names = [*ins, *results]
        plan = self._block_plan(names, [*ins.values(), *targets], len(targets))
        if plan is None:
            return False
        threads = thread_count(
            self.e.options.threads,
            sum(x.nbytes for x in (*ins.values(), *targets)),
            slowness_of(plan.program.function),
        )
        padded: dict[str, Spec] = {}
        for name, target in zip(results, targets, strict=True):
            if isinstance(target, TiledArray) and mask is None:
                pads = padding_of_result(target.layout, threads)
                pads.run(0, address_of(target), threads, alive=target)
                padded[name] = target.layout
        self.e.ran(plan.program, partial(packing_of_blocks, plan.names, plan.loops, padded))
        numbers = [bits_of(x, s.dtype) for x, s in zip(self.numbers, self.recorded.scalars, strict=True)]
        operands = [*ins.values(), *targets]
        at = tuple(address_of(x) if isinstance(x, TiledArray) else address(x) for x in operands)
        plan.loops.run(at, threads, tuple(numbers), alive=operands)
        return True

    def _plan(self, stages: Any, arrays: Any) -> Any:
        return self.e.plan(self.recorded, stages, arrays)

    def _copied_if_overlapping(self, x: Operand, targets: Sequence[Operand]) -> Operand:
        """The operand, or a copy if a result overwrites it in any way but element for element."""
        own = x.buffer if isinstance(x, TiledArray) else x
        for target in targets:
            other = target.buffer if isinstance(target, TiledArray) else target
            if not share_memory(own, other):
                continue
            alike = isinstance(x, TiledArray) and isinstance(target, TiledArray) and x.layout == target.layout
            if not (alike and own.ctypes.data == other.ctypes.data):
                return TiledArray(own.copy(), x.layout) if isinstance(x, TiledArray) else own.copy()
        return x

    def _block_plan(self, names: list[str], operands: list[Any], targets: int) -> BlockPlan | None:
        key: tuple[Any, ...] = ("blocks", self.recorded, tuple(names), self.dims, self.mask is not None)
        key += tuple(
            x.layout if isinstance(x, TiledArray) else (x.shape, x.strides, x.dtype) for x in operands
        )
        return self.e.block_plan(key, lambda: self._planned(names, operands, targets))

    def _planned(self, names: list[str], operands: list[Any], targets: int) -> BlockPlan | None:
        """Plan the expression over operands in these layouts; the last `targets` operands are results."""
        first, dims = len(operands) - targets, self.dims
        program: LoopProgram | None = None

        def staged(k: int, x: Operand) -> StagedOperand | tuple[int, ...]:
            if not isinstance(x, TiledArray):
                return np.broadcast_to(x, dims).strides
            reads = k < first or self.mask is not None
            return StagedOperand(access_map(x.layout), buffer_element(x.layout), reads, k >= first)

        def bind(extents: tuple[int, ...], strides: tuple[tuple[int, ...], ...]) -> BoundKernel:
            nonlocal program
            own = [np.empty(1, x.dtype) if isinstance(x, TiledArray) else np.asarray(x) for x in operands]
            blocks = [
                np.lib.stride_tricks.as_strided(x, extents, s) for x, s in zip(own, strides, strict=True)
            ]
            views, _ = fused(blocks, groups_of(memory_order(blocks[first]), self.e.options.rank))
            program = self._program(names, views, targets)
            shapes = {name: x.shape for name, x in zip(names, views, strict=True)}
            check_bounds(program.function, shapes, {})
            strides_of = {name: x.strides for name, x in zip(names, views, strict=True)}
            return program.kernel.bind(shapes, strides_of, {})

        loops = staged_loops(dims, tuple(staged(k, x) for k, x in enumerate(operands)), bind)
        return BlockPlan(loops, program, tuple(names)) if loops and program else None

    def _program(self, names: Sequence[str], views: Sequence[Array], targets: int) -> LoopProgram:
        """The program of these operands, the last `targets` of which are results."""
        e, recorded = self.e, self.recorded
        key = "blocks", recorded, tuple(names), tuple(map(form_of, views))

        def made() -> tuple[Function, LoopOptions]:
            loops = Lowering(names, views, recorded.scalars)
            mask = "where" if self.mask is not None else ""
            results = names[len(names) - targets :]
            return loops.mapped(e.name, recorded.outputs, results, mask), e.options.of_rank(views[0].ndim)

        return e.program_for(key, made)

    def in_two_steps(self, targets: list[Operand]) -> None:
        """Compute plain arrays, then pack them."""
        where = True if self.mask is None else _untiled(self.mask)
        held: Any = None
        if self.mask is not None:
            held = tuple(np.array(_untiled(x), order="C") for x in targets)
            held = tuple(_as_result(x, dtype) for x, dtype in zip(held, self.recorded.dtypes, strict=True))
        several = self.recorded.several
        given = map(_untiled, self.given)
        if held is None:  # plain arrays and no options, so native code may answer the call
            made = self.e(*given)
        else:
            made = self.e(*given, out=held if several else held[0], where=where)
        padding: Padding | None = None if self.mask is None else "keep"
        packs: list[PackOf] = []
        casting: Casting = "same_kind" if self.mask is None else "unsafe"
        for target, value in zip(targets, made if several else (made,), strict=True):
            if not isinstance(target, TiledArray):
                np.copyto(target, value, casting=casting)
                continue
            value = np.asarray(value)
            if share_memory(value, target.buffer):
                value = value.copy()
            pack(value, target.layout, out=target, padding=padding, casting=casting)
            packs.append(PackOf(target.layout, value.shape, value.strides, value.dtype, padding, casting))
        if 0 not in self.dims:
            self.e.ran(self.e.program, partial(packing_of_results, packs))


def _as_result(held: Array, dtype: np.dtype[Any]) -> Array:
    """The elements that a mask keeps, in a dtype that kernels write; they convert back unchanged."""
    return held if dtypes.is_computed(held.dtype) else held.astype(dtype)


def _stand_in(x: Any) -> Any:
    """For a tiled array, an array with its dtype and shape that uses the memory of one element."""
    return np.broadcast_to(np.zeros((), x.dtype), x.shape) if isinstance(x, TiledArray) else x
