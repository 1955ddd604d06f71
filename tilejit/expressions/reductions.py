"""Reductions of recorded functions: planned for arrays of certain shapes and strides, then run."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from itertools import pairwise
from math import prod
from typing import Any, TypeAlias

import numpy as np

from codegen import (
    BOUND_BY_MEMORY,
    COMPUTES,
    ELEMENT_BYTES,
    Function,
    LayoutError,
    PowerError,
    ScalarArg,
    dtypes,
    has_costly,
    machine,
    run_parts,
    sizes_in_elements,
    thread_count,
)
from tilejit.arrays.memory import Array, address, empty
from tilejit.arrays.strided import order_of
from tilejit.expressions.loops import fused, memory_order
from tilejit.expressions.memory_orders import Order
from tilejit.expressions.outputs import laid
from tilejit.expressions.recording import Stage
from tilejit.expressions.reduced_axes import kept_shape
from tilejit.expressions.reduction_loops import BLOCK_ROWS, BLOCK_STEPS, ReductionLoops, held, start, state_of
from tilejit.kernels.loop_options import AUTO_REGISTERS, LoopOptions
from tilejit.kernels.program import BoundCall, LoopProgram

Arrays: TypeAlias = Mapping[str, Array]
Make: TypeAlias = Callable[[tuple[Any, ...], Callable[[str], Function], int], LoopProgram]
"""Takes the key of a program, a function that creates its kernel by name, and the registers of "auto"."""

COLUMN_REGISTERS = 8
"""The registers of an "auto" super-vector that combines columns."""


def shape_of(names: frozenset[str], arrays: Arrays) -> tuple[int, ...]:
    """The shape of an expression of these arrays.

    Raises:
        LayoutError: they do not broadcast.
    """
    try:
        return np.broadcast_shapes(*(arrays[name].shape for name in sorted(names)))
    except ValueError as error:
        raise LayoutError(f"the arguments do not broadcast: {error}") from None


def group_of(stages: Sequence[Stage], arrays: Arrays) -> tuple[Stage, ...]:
    """The first reduction, with others of the same shape and axes whose arrays are available."""
    first = stages[0]
    shape = shape_of(first.names, arrays)
    ready = [s for s in stages if s.names <= arrays.keys() and s.axes == first.axes]
    return tuple(s for s in ready if s is first or shape_of(s.names, arrays) == shape)


def reduce_all(
    stages: Sequence[Stage],
    arrays: dict[str, Array],
    numbers: Sequence[Any],
    plan_of: Callable[[Sequence[Stage], Arrays], Plan],
) -> dict[str, Any]:
    """Run every reduction in order, grouping those that share loops; `arrays` receives the results."""
    found: dict[str, Any] = {}
    pending = list(stages)
    while pending:
        plan = plan_of(pending, arrays)
        for stage, value in zip(plan.stages, plan.run(arrays, numbers), strict=True):
            if stage.how == "exponent" and value < 0:
                raise PowerError(
                    "Integers to negative integer powers are not allowed.\n  convert one to a float"
                )
            found[stage.name], arrays[stage.name] = value, np.asarray(value)
        pending = [stage for stage in pending if stage.name not in found]
    return found


class Plan:
    """A group of reductions of one shape along the same dimensions, for arrays with certain strides."""

    def __init__(
        self,
        stages: tuple[Stage, ...],
        orders: Sequence[Order],
        arrays: Arrays,
        scalars: Sequence[ScalarArg],
        options: LoopOptions,
        make: Make,
    ) -> None:
        self.stages, self.states, self._orders = stages, tuple(map(state_of, stages)), orders
        used = frozenset[str]().union(*(s.names for s in stages))
        self.names = [name for name in arrays if name in used]  # in the order of the call's arguments
        self.shape = shape_of(frozenset(self.names), arrays)
        self._scalars, self._make, self._options = tuple(scalars), make, options
        self._axes, self._kept = stages[0].axes, kept_shape(self.shape, stages[0].axes, keepdims=False)
        self.count: int = prod([self.shape[d] for d in self._axes])
        self._calls: list[BoundCall] = []
        self._parts: dict[int, list[tuple[BoundCall, list[int]]]] = {}
        costly = has_costly(s.operand.value for s in stages)
        self._slowness = COMPUTES if costly else BOUND_BY_MEMORY
        self._sums = False
        self.program: LoopProgram | None = None
        for stage in stages:
            _check_pair(stage, arrays)
            if stage.how in ("min", "max") and not self.count:
                raise LayoutError(
                    f"zero-size array to reduction operation {stage.how}imum which has no identity\n"
                    "  pass at least one element"
                )

    def run(self, arrays: Arrays, numbers: Sequence[Any]) -> list[Any]:
        """The result of each reduction: arrays, or NumPy scalars if all dimensions are reduced."""
        ins = [arrays[name] for name in self.names]
        if not self.count or 0 in self._kept:
            found: list[Any] = [self._fresh(k, held(s.dtype), 0) for k, s in enumerate(self.stages)]
        else:
            found = self._arrays(ins, numbers) if self._kept else self._numbers(ins, numbers)
        return [self._finished(stage, x) for stage, x in zip(self.stages, found, strict=True)]

    @property
    def only_call(self) -> BoundCall | None:
        """The one call that returns the number directly; None if more steps are needed."""
        (stage, *more) = self.stages
        as_it_is = stage.how != "mean" and held(stage.dtype) == stage.dtype and not stage.keepdims
        return self._calls[0] if as_it_is and self._calls and not more and not self._kept else None

    def _finished(self, stage: Stage, value: Any) -> Any:
        """Divide for a mean, and convert to the result's dtype and dimensions."""
        dtype = dtypes.numpy_dtype(stage.dtype)
        if stage.how == "mean" or value.dtype != dtype:
            with np.errstate(all="ignore"):
                if stage.how == "mean":
                    value = np.divide(value, value.dtype.type(self.count))
                value = value.astype(dtype)
        if stage.keepdims:
            return np.asarray(value).reshape(kept_shape(self.shape, stage.axes, keepdims=True))
        return value[()] if isinstance(value, np.ndarray) and not value.ndim else value

    def _operands(self, ins: Sequence[Array], outs: Sequence[Array]) -> tuple[list[Array], int, bool]:
        """Views in loop order, the number of leading kept dimensions, and whether the last one is kept.

        Reductions whose last dimension is kept run with columns in lanes.
        """
        wide = [np.broadcast_to(x, self.shape) for x in ins]
        places = [d for d in range(len(self.shape)) if d not in self._axes]
        for out in outs:
            strides = [0] * len(self.shape)
            for d, step in zip(places, out.strides, strict=True):
                strides[d] = step
            wide.append(np.lib.stride_tricks.as_strided(out, self.shape, tuple(strides)))
        lead = max(wide[: len(ins)], key=lambda x: sum(1 for step in x.strides if step))
        order = [d for d in memory_order(lead) if self.shape[d] > 1]
        gone = [d for d in order if d in self._axes]
        kept = [d for d in order if d not in self._axes]
        if not (kept and gone and order[-1] == kept[-1]):
            views, (first, _) = fused(wide, [kept, gone])
            if not gone and kept:  # Each element is reduced alone, so add a dimension for the loop.
                views = [x[..., None] for x in views]
            elif not gone:
                views[len(ins) :] = [np.lib.stride_tricks.as_strided(x, (1,), (0,)) for x in outs]
            return _narrowed(views, len(ins)), first, False
        last = kept[-1:]
        while len(kept) > len(last) and _walks_on(wide, kept[-len(last) - 1], kept[-len(last)]):
            last = kept[-len(last) - 1 :]
        views, (first, _, _) = fused(wide, [kept[: -len(last)], gone, last])
        return _narrowed(views, len(ins)), first, True

    def _lanes(self, near: str) -> int:
        """The number of accumulators for a block of a row."""
        sizes = self._options.virtual_vector_size
        most = AUTO_REGISTERS * (machine().register_bytes // ELEMENT_BYTES[near])
        if isinstance(sizes, str):
            return most
        return min(most, sizes_in_elements(sizes[-1:], 8 * ELEMENT_BYTES[near])[0])

    def _block(self, views: Sequence[Array], first: int, *, columns: bool) -> int:
        """The elements of a block, or its rows; 0 if the reduced dimension is not longer than a block."""
        if columns:
            rows = views[0].shape[first:-1]
            return BLOCK_ROWS if rows[-1] > BLOCK_ROWS or len(rows) > 1 else 0
        if not any(state.in_blocks for state in self.states):
            return 0
        block = BLOCK_STEPS * min(self._lanes(state.near) for state in self.states)
        return block if views[0].shape[-1] > block or views[0].ndim - first > 1 else 0

    def _numbers(self, ins: Sequence[Array], numbers: Sequence[Any]) -> list[Any]:
        """Reduce everything to one number; each thread takes a part along the slowest memory dimension."""
        threads = thread_count(self._options.threads, sum(x.nbytes for x in ins), self._slowness)
        if threads > 1:
            return self._in_parts(ins, numbers, threads)
        if not self._calls:
            views, first, _ = self._operands(ins, [])
            block = self._block(views, first, columns=False)
            self.program = self._made(views, (), first, block, columns=False)
            self._calls.append(BoundCall(self.program, [*views, *numbers]))
        found = self._calls[0].run([*ins, *numbers])
        return list(found) if isinstance(found, tuple) else [found]

    def _in_parts(self, ins: Sequence[Array], numbers: Sequence[Any], threads: int) -> list[Any]:
        given = [*ins, *numbers]
        bound = self._parts.get(threads)
        if bound is None:
            bound = self._parts[threads] = self._bound_parts(ins, numbers, threads)
        found: list[Any] = [None] * len(bound)

        def work(k: int, _: int) -> None:
            call, offsets = bound[k]
            found[k] = call.run_part(given, offsets)

        run_parts(work, len(bound))
        each = [x if isinstance(x, tuple) else (x,) for x in found]
        return [_combined(state.combiner, [x[k] for x in each]) for k, state in enumerate(self.states)]

    def _bound_parts(
        self, ins: Sequence[Array], numbers: Sequence[Any], threads: int
    ) -> list[tuple[BoundCall, list[int]]]:
        """The call of each thread, and the bytes from the start of each array to the thread's part."""
        views, first, _ = self._operands(ins, [])
        extent = views[0].shape[0]
        cuts = sorted({extent * k // threads for k in range(threads + 1)})
        parts = [[x[a:b] for x in views] for a, b in pairwise(cuts)]
        block = self._block(parts[0], first, columns=False)
        program = self.program = self._made(views, (), first, block, columns=False)
        return [
            (
                BoundCall(program, [*part, *numbers]),
                [address(x) - address(whole) for x, whole in zip(part, ins, strict=True)],
            )
            for part in parts
        ]

    def _arrays(self, ins: Sequence[Array], numbers: Sequence[Any]) -> list[Array]:
        """An array for each reduction."""
        if not self._calls:
            self._bind(ins, numbers)
        targets = self._targets()
        self._calls[0].run([*ins, *(x for each in targets for x in each.values()), *numbers])
        return [_far(each, state.compensated) for each, state in zip(targets, self.states, strict=True)]

    def _bind(self, ins: Sequence[Array], numbers: Sequence[Any]) -> None:
        views, first, columns = self._operands(ins, [self._fresh(0, "i1")])
        block = self._block(views, first, columns=columns)
        self._sums = columns and block > 0
        targets = {name: x for each in self._targets() for name, x in each.items()}
        views, first, columns = self._operands(ins, list(targets.values()))
        self.program = self._made(views, tuple(targets), first, block, columns=columns)
        self._calls.append(BoundCall(self.program, [*views, *numbers]))

    def _fresh(self, k: int, dtype: str, value: int | float | None = None) -> Array:
        """A new array for the result of a stage, in the memory order of NumPy's result."""
        made = laid(empty, self._kept, dtypes.numpy_dtype(dtype), self._orders[k])
        if value is not None:
            made[...] = value
        return made

    def _targets(self) -> list[dict[str, Array]]:
        """The arrays that the kernel writes, by name: results, or far sums with their start values."""
        out = []
        for k, (stage, state) in enumerate(zip(self.stages, self.states, strict=True)):
            if not self._sums:
                out.append({f"out_{k}": self._fresh(k, held(stage.dtype))})
                continue
            each = {f"far_{k}": self._fresh(k, state.far, start(state.far, state.combiner).value)}
            if state.compensated:
                each[f"rest_{k}"] = self._fresh(k, state.far, 0)
            elif state.in_blocks:
                each[f"near_{k}"] = self._fresh(k, state.near)
            out.append(each)
        return out

    def _made(
        self, views: Sequence[Array], targets: Sequence[str], first: int, block: int, *, columns: bool
    ) -> LoopProgram:
        def function(name: str) -> Function:
            loops = ReductionLoops(
                [*self.names, *targets], views, self._scalars, self.stages, kept=first, columns=columns
            )
            if columns:
                return loops.in_columns(name, targets, block > 0)
            return loops.in_rows(name, targets, block)

        key = self.stages, columns, block, first, tuple(map(form_of, views))
        return self._make(key, function, COLUMN_REGISTERS if columns else AUTO_REGISTERS)


def form_of(x: Array) -> tuple[Any, ...]:
    """An operand's part of a kernel's key: dtype, order, and the dimensions in which it is broadcast."""
    return x.dtype, x.ndim, order_of(x), tuple(stride != 0 for stride in x.strides)


def _narrowed(views: list[Array], ins: int) -> list[Array]:
    """The views, with results cut to one element along the dimensions that they lack."""
    outs = [x[tuple(slice(None) if step else slice(1) for step in x.strides)] for x in views[ins:]]
    return [*views[:ins], *outs]


def _walks_on(operands: Sequence[Array], outer: int, inner: int) -> bool:
    """Whether all operands traverse two dimensions as one."""
    return all(x.strides[outer] == x.strides[inner] * x.shape[inner] for x in operands)


def _far(each: dict[str, Array], compensated: bool) -> Array:
    """The result of a reduction from its targets; a finite rounding error is added."""
    far, *more = each.values()
    if not compensated or not more:
        return far
    with np.errstate(all="ignore"):
        return np.where(np.isfinite(more[0]), far + more[0], far)


def _combined(combiner: str, parts: list[Any]) -> Any:
    """Combine the parts of several threads."""
    combine: dict[str, Any] = {"min": np.minimum, "max": np.maximum, "add": np.add}
    combine |= {"and": np.logical_and, "or": np.logical_or}
    with np.errstate(all="ignore"):
        return combine[combiner].reduce(np.array(parts, parts[0].dtype))


def _check_pair(stage: Stage, arrays: Arrays) -> None:
    """Check that the vectors of a product have equal lengths, without broadcasting.

    Raises:
        LayoutError: they do not.
    """
    if not stage.pair:
        return
    one, two = (shape_of(names, arrays) for names in stage.pair)
    if one[-1:] != two[-1:] or (len(stage.axes) > 1 and one != two):
        raise LayoutError(
            f"shapes {one} and {two} are not aligned\n  pass vectors of one length to a product"
        )
