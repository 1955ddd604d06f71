"""The loops of reductions: long sums run in blocks, which makes them as accurate as pairwise sums."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from codegen import (
    Affine,
    Carried,
    Const,
    For,
    Function,
    Index,
    Let,
    Local,
    Op,
    ScalarArg,
    Statement,
    Store,
    Value,
    convert_operand,
    dataclass,
    dtypes,
    index_symbol,
)
from tilejit.arrays.memory import Array
from tilejit.expressions.loops import Lowering
from tilejit.expressions.recording import Stage

BLOCK_STEPS = 24
"""Terms that each lane adds in a block of a row, before the lanes are added to a wider sum."""

BLOCK_ROWS = 32
"""Rows that are added in the terms' own dtype before the result is added to a wider sum."""

PANEL = 4096
"""Columns that are summed at a time: three buffers of this length nearly fit the L1 cache."""


@dataclass(frozen=True, slots=True)
class State:
    """How a reduction accumulates: in the dtype `near` within a block, in `far` across blocks.

    compensated    whether the rounding errors of the far sum are summed as well
    """

    combiner: str
    near: str
    far: str
    compensated: bool = False

    @property
    def in_blocks(self) -> bool:
        """Whether blocks are worthwhile."""
        return self.near != self.far or self.compensated


def state_of(stage: Stage) -> State:
    """Choose how a reduction accumulates.

    f32 sums continue in f64, f64 sums are compensated, and sums of short integers start in 32 bits. Minimum,
    maximum and sums of long integers are exact, so they need no blocks.
    """
    dtype = stage.dtype
    near = held(dtype)
    if stage.combiner != "add":
        return State(stage.combiner, near, near)
    if dtypes.is_float(dtype):
        return State("add", near, "f64", compensated=near == "f64")
    far = "u64" if dtype[0] == "u" else "i64"
    short = {"i1": "i32", "i8": "i32", "i16": "i32", "u8": "u32", "u16": "u32"}
    return State("add", short.get(dtypes.concrete(stage.operand.dtype), far), far)


def start(dtype: str, combiner: str) -> Const:
    """The neutral element."""
    if combiner == "add":
        return Const(0.0 if dtypes.is_float(dtype) else 0, dtype)
    if combiner in ("and", "or"):
        return Const(combiner == "and", dtype)
    if dtypes.is_float(dtype):
        return Const(float("inf") if combiner == "min" else float("-inf"), dtype)
    info = np.iinfo(dtypes.numpy_dtype(dtype))
    return Const(int(info.max if combiner == "min" else info.min), dtype)


def held(dtype: str) -> str:
    """The dtype that elements are combined in: halves in f32."""
    return "f32" if dtype in ("bf16", "f16") else dtype


def _cast(value: Value, dtype: str) -> Value:
    return value if value.dtype == dtype else Op("cast", (value,), dtype)


class ReductionLoops(Lowering):
    """The loops of reductions along dimensions of operands, whose dimensions are in loop order.

    kept     the number of leading dimensions that are kept; with `columns`, the last is kept as well
    """

    def __init__(
        self,
        names: Sequence[str],
        operands: Sequence[Array],
        scalars: Sequence[ScalarArg],
        stages: Sequence[Stage],
        *,
        kept: int,
        columns: bool,
    ) -> None:
        super().__init__(names, operands, scalars)
        self.stages, self.states = tuple(stages), tuple(map(state_of, stages))
        self.kept, self.columns = kept, columns
        self._inner = range(kept, self._rank - columns)

    def _term(self, k: int) -> Value:
        return self.placed(convert_operand(self.stages[k].operand, self.states[k].near))

    def _all(self) -> range:
        return range(len(self.stages))

    def _loop(
        self,
        depth: int,
        body: tuple[Statement, ...],
        carried: tuple[Carried, ...] = (),
        *,
        shared: bool = False,
    ) -> For:
        return For(self.indices[depth], (Affine(),), (self.extent(depth),), 1, body, carried, parallel=shared)

    def _block(self, depth: int, step: int, body: tuple[Statement, ...], carried: tuple[Carried, ...]) -> For:
        """One block of a dimension, at the index of the loop over blocks."""
        begin = index_symbol(f"{self.indices[depth]}_block")
        ends: tuple[Index, ...] = (self.extent(depth), begin + Affine(step))
        return For(self.indices[depth], (begin,), ends, 1, body, carried)

    def _blocks(
        self, depth: int, step: int, body: tuple[Statement, ...], carried: tuple[Carried, ...]
    ) -> For:
        return For(f"{self.indices[depth]}_block", (Affine(),), (self.extent(depth),), step, body, carried)

    def _around(self, body: tuple[Statement, ...]) -> tuple[Statement, ...]:
        """The loops over the kept dimensions."""
        for depth in reversed(range(self.kept)):
            body = (self._loop(depth, body, shared=depth == 0),)
        return body

    def _near(self, *, fresh: bool, innermost: bool = True) -> tuple[Carried, ...]:
        """The values that a loop carries, from the start or from an outer loop; the innermost adds terms."""
        out = []
        for k, state in enumerate(self.states):
            near = Local(f"near{k}", state.near)
            begin = start(state.near, state.combiner) if fresh else near
            update = Op(state.combiner, (near, self._term(k)), state.near) if innermost else near
            out.append(Carried(near.name, begin, update, state.combiner))
        return tuple(out)

    def in_rows(self, name: str, targets: Sequence[str], block: int) -> Function:
        """Combine each row in lanes, and store or return the results.

        before:  for i: out[i] = sum of x[i, j] over j
        after:   for i: for b in 0..n step 1536 carrying far:  far += (sum of x[i, j] over j in b..b + 1536)
                        out[i] = far

        Args:
            name: the function's name.
            targets: a target for each reduction; () returns the results.
            block: the elements of a block; 0 for a row without blocks.
        """
        nest: tuple[Statement, ...] = ()
        if block:
            nest = self._rows_in_blocks(block)
        else:
            for depth in reversed(self._inner):
                outermost, innermost = depth == self._inner.start, depth == self._rank - 1
                nest = (self._loop(depth, nest, self._near(fresh=outermost, innermost=innermost)),)
        results = tuple(self._result(k, self.stages[k].dtype, bool(block)) for k in self._all())
        if not targets:
            return Function(name, (*self._arrays, *self._scalars), nest, results)
        stores = tuple(
            Store(target, self.at(target), _cast(value, self.dtype(target)))
            for target, value in zip(targets, results, strict=True)
        )
        return Function(name, (*self._arrays, *self._scalars), self._around((*nest, *stores)))

    def _result(self, k: int, dtype: str, blocks: bool) -> Value:
        """The value after the loops in the result's dtype; halves in f32."""
        state = self.states[k]
        dtype = held(dtype)
        if not blocks:
            return _cast(Local(f"near{k}", state.near), dtype)
        far = Local(f"far{k}", state.far)
        if not state.compensated:
            return _cast(far, dtype)
        rest = Local(f"rest{k}", state.far)
        finite = Op("eq", (rest, rest), "i1")
        return _cast(Op("select", (finite, Op("add", (far, rest), far.dtype), far), far.dtype), dtype)

    def _rows_in_blocks(self, block: int) -> tuple[Statement, ...]:
        last = self._rank - 1
        body: tuple[Statement, ...] = (self._block(last, block, (), self._near(fresh=True)),)
        updates: dict[str, tuple[State, Value]] = {}
        for k, state in enumerate(self.states):
            far, near = Local(f"far{k}", state.far), _cast(Local(f"near{k}", state.near), state.far)
            if not state.compensated:
                updates[far.name] = state, Op(state.combiner, (far, near), state.far)
                continue
            lets, total, error = _two_sum(f"{k}", far, near)
            body += lets
            updates[far.name] = state, total
            rest = Local(f"rest{k}", state.far)
            updates[rest.name] = state, Op("add", (rest, error), state.far)

        def carried(depth: int, *, innermost: bool) -> tuple[Carried, ...]:
            outermost = depth == self._inner.start
            return tuple(
                Carried(
                    name,
                    start(state.far, state.combiner) if outermost else Local(name, state.far),
                    update if innermost else Local(name, state.far),
                )
                for name, (state, update) in updates.items()
            )

        nest: tuple[Statement, ...] = (self._blocks(last, block, body, carried(last, innermost=True)),)
        for depth in reversed(self._inner[:-1]):
            nest = (self._loop(depth, nest, carried(depth, innermost=False)),)
        return nest

    def in_columns(self, name: str, targets: Sequence[str], block: bool) -> Function:
        """Add rows with columns in lanes; the targets hold the start, or the far sums with blocks.

        before:  for j: out[j] = sum of x[i, j] over i
        after:   for b in 0..n step 32: for j: near[j] = sum of x[i, j] over i in b..b + 32
                                        for j: far[j] += near[j]

        Args:
            name: the function's name.
            targets: for each reduction (far,); with blocks (far, near), or (far, rest) if compensated.
            block: whether rows are added in blocks.
        """
        named = [[t for t in targets if t.endswith(f"_{k}")] for k in self._all()]
        outer = self._panels(named) if block else self._columns([far for (far,) in named])
        return Function(name, (*self._arrays, *self._scalars), self._around((outer,)))

    def _columns(self, targets: Sequence[str]) -> For:
        """The loop over columns without blocks: each column is summed and stored."""
        stores = tuple(
            Store(target, self.at(target), _cast(Local(f"near{k}", state.near), self.dtype(target)))
            for k, (target, state) in enumerate(zip(targets, self.states, strict=True))
        )
        inside = self._loop(self._inner[-1], (), self._near(fresh=True))
        return self._loop(self._rank - 1, (inside, *stores), shared=not self.kept)

    def _panels(self, named: Sequence[Sequence[str]]) -> For:
        """The loop over panels of columns, around the loop over blocks of rows; `named` are the targets."""
        last, rows, panel = self._rank - 1, self._inner[-1], index_symbol("panel")
        ends: tuple[Index, ...] = (self.extent(last), panel + Affine(PANEL))
        inside = self._block(rows, BLOCK_ROWS, (), self._near(fresh=True))
        first, second = self._into_far(named)
        body: tuple[Statement, ...] = (For(self.indices[last], (panel,), ends, 1, (inside, *first)),)
        if second:
            body += (For(self.indices[last], (panel,), ends, 1, tuple(second)),)
        body = (self._blocks(rows, BLOCK_ROWS, body, ()),)
        for depth in reversed(self._inner[:-1]):
            body = (self._loop(depth, body),)
        return For("panel", (Affine(),), (self.extent(last),), PANEL, body, parallel=not self.kept)

    def _into_far(self, named: Sequence[Sequence[str]]) -> tuple[list[Statement], list[Statement]]:
        """Add a column's near sums to the far ones: immediately, or in a second loop through an array.

        The second loop is needed if vectors of the two dtypes have different numbers of lanes.

        Returns:
            The statements of the first loop and those of the second one.
        """
        first: list[Statement] = []
        second: list[Statement] = []
        for k, (state, (far, *more)) in enumerate(zip(self.states, named, strict=True)):
            near: Value = Local(f"near{k}", state.near)
            if state.compensated:
                lets, total, error = _two_sum(f"{k}", self.load(far), near)
                first += [*lets, Let(f"error{k}", error), Store(far, self.at(far), total)]
                lost = Local(f"error{k}", state.far)
                first.append(Store(more[0], self.at(more[0]), lost, accumulate="add"))
                continue
            where = first
            if more:
                first.append(Store(more[0], self.at(more[0]), near))
                near, where = _cast(self.load(more[0]), state.far), second
            where.append(Store(far, self.at(far), Op(state.combiner, (self.load(far), near), state.far)))
        return first, second


def _two_sum(name: str, a: Value, b: Value) -> tuple[tuple[Let, ...], Local, Value]:
    """a + b, and its rounding error (Knuth, The Art of Computer Programming 2, 4.2.2)."""
    dtype = a.dtype
    total, old, new = (Local(f"{part}{name}", dtype) for part in ("total", "old", "new"))
    lets = (
        Let(old.name, a),
        Let(total.name, Op("add", (old, b), dtype)),
        Let(new.name, Op("sub", (total, old), dtype)),
    )
    lost = Op("sub", (old, Op("sub", (total, new), dtype)), dtype)
    error = Op("add", (lost, Op("sub", (b, new), dtype)), dtype)
    return lets, total, error
