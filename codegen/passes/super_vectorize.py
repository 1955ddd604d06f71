"""Run loops as the lanes of super-vectors: each value in them becomes a super-vector."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import NamedTuple

from codegen.analysis.bodies import flat
from codegen.analysis.reductions import sums_in_locals
from codegen.analysis.scans import scans_of
from codegen.ir.combiners import combined, neutral
from codegen.ir.index import Index, index_symbol, index_symbols
from codegen.ir.nodes import Carried, For, Function, Let, Statement, Store
from codegen.ir.rewriting import Body
from codegen.ir.values import Const, IndexValue, Load, Local, Op, Reduce, Value, VectorShape
from codegen.ir.visit import coefficient, constant_trips
from codegen.passes.scan_values import masked, prefix_name, with_prefixes
from codegen.schedule.directives import Directed
from codegen.support.dataclasses import dataclass
from codegen.support.errors import KernelError


def super_vectorize(function: Function, schedule: Directed) -> Function:
    """Run loops as lanes of super-vectors, where each lane does what its iteration did.

    before:  for i in 0..n: for j in 0..m step 1:    C[i, j] = A[i, j] + B[i]               Vectorize(j=256)
    after:   for i in 0..n: for j in 0..m step 256:  C[i, j] = A[i, j] + broadcast(B[i])    vector<256xf32>

    In a vectorized reduction, lanes start with the neutral element, are masked past the loop's end, and are
    combined after the loop. A scan combines the lanes of each super-vector from the first to the last.

    `choose_lanes` or `check_lanes` has checked that the loops may run as lanes. Other loops are unchanged.

    Raises:
        KernelError: the function lacks a loop of that name, or has several.
    """
    sizes = schedule.lanes
    found = [x.index for x in flat(function.body) if isinstance(x, For) and x.index in sizes]
    if sorted(found) != sorted(sizes):
        raise KernelError(f"{function.name}: expected one loop of each name in {[*sizes]}, got {found}")
    return replace(function, body=_body(function.body, _Scope(sizes, (), {}))) if sizes else function


class _Lane(NamedTuple):
    """A vector dimension: its loop index, its number of lanes, and the index step from lane to lane."""

    name: str
    size: int
    step: int


@dataclass(frozen=True, slots=True)
class _Scope:
    """The context of a statement.

    sizes  how many iterations of each loop run at once
    lanes  the vector dimensions, outermost first
    names  the current names of locals
    """

    sizes: Mapping[str, int]
    lanes: tuple[_Lane, ...]
    names: dict[str, Local]

    @property
    def shape(self) -> VectorShape:
        """The shape of super-vectors in this scope."""
        return tuple(lane.size for lane in self.lanes)

    def inside(self, names: Mapping[str, Local], *lanes: _Lane) -> _Scope:
        """The context inside a loop, with what it carries, and its lanes if it has some."""
        return _Scope(self.sizes, (*self.lanes, *lanes), {**self.names, **names})


def _body(body: Body, scope: _Scope) -> Body:
    out: list[Statement] = []
    for node in body:
        match node:
            case Let(name, value):
                wide = _value(value, scope)
                out.append(Let(name, wide))
                scope.names[name] = Local(name, wide.dtype, wide.shape)
            case Store():
                out.append(_store(node, scope))
            case For():
                out += _for(node, scope)
            case _:
                raise AssertionError(f"super_vectorize: no rule for {type(node).__name__}")
    return tuple(out)


def _for(node: For, scope: _Scope) -> list[Statement]:
    size = scope.sizes.get(node.index, 1)
    lane = _Lane(node.index, size, node.step)
    if size > 1 and not scope.lanes:
        node, stores = sums_in_locals(node)
        if node.carried:
            return [*_accumulated(node, lane, scope), *stores]
    if size > 1:
        body = _body(node.body, scope.inside({}, lane))
        return [replace(node, step=node.step * size, size=size, body=body)]
    own = [
        Local(_unused(c.name, node, scope), c.start.dtype, scope.shape) if scope.lanes else _kept(c)
        for c in node.carried
    ]
    starts = [_value(c.start, scope) for c in node.carried]
    held = {c.name: local for c, local in zip(node.carried, own, strict=True)}
    inner = scope.inside(held)
    body = _body(node.body, inner)
    carried = tuple(
        Carried(local.name, start, _value(c.update, inner), c.combiner)
        for c, local, start in zip(node.carried, own, starts, strict=True)
    )
    scope.names.update(held)
    return [replace(node, body=body, carried=carried)]


def _kept(carried: Carried) -> Local:
    return Local(carried.name, carried.start.dtype)


def _unused(name: str, loop: For, scope: _Scope) -> str:
    """The name of a carried local in a loop: unchanged, unless a local outside the loop has that name."""
    return f"{name}.{loop.index}" if name in scope.names else name


def _accumulated(node: For, lane: _Lane, scope: _Scope) -> list[Statement]:
    """The loop with an accumulator for each lane, then the statements that combine them.

    before:  for i in 0..500 step 1 carrying s = start:     s = s + A[i]
    after:   for i in 0..500 step 128 carrying s.lanes = 0: s.lanes = select(i < 500, s.lanes + A[i], s.lanes)
             s = reduce_add(s.lanes) combined with start

    A scan carries one number, the value before the first lane.

    before:  for i in 0..500 step 1 carrying s = start:     s.1 = s + A[i]; Y[i] = s.1
    after:   for i in 0..500 step 128 carrying s = start:   s.prefix = scan_add(select(i < 500, A[i], 0))
                                                            s.1 = broadcast(s) + s.prefix; Y[i] = s.1
                                                            s = s + last(s.prefix)
    """
    shape: VectorShape = (lane.size,)
    scans = {scan.name: scan for scan in scans_of(node)}
    node = with_prefixes(node, tuple(scans.values()))
    held = {
        c.name: _kept(c) if c.name in scans else Local(f"{c.name}.lanes", c.start.dtype, shape)
        for c in node.carried
    }
    inner = scope.inside(held, lane)
    mask = _lane_mask(node, lane)
    body = masked(_body(node.body, inner), mask)
    carried, before, after = [], [], []
    for c in node.carried:
        if c.name in scans:
            prefix = inner.names[prefix_name(scans[c.name])]
            last = Op("last", (prefix,), prefix.dtype)
            update = combined(scans[c.name].how, _kept(c), last, prefix.dtype)
            carried.append(Carried(c.name, _value(c.start, scope), update))
            continue
        lanes, dtype, start = held[c.name], c.start.dtype, c.start
        if not isinstance(start, Const | Local):
            before.append(Let(f"{c.name}.start", start))
            start = Local(f"{c.name}.start", dtype)
        update = _value(c.update, inner)
        if mask is not None:
            update = Op("select", (mask, update, lanes), dtype, shape)
        carried.append(
            Carried(lanes.name, Const(neutral(c.combiner, dtype), dtype, shape), update, c.combiner)
        )
        after.append(Let(c.name, Reduce(c.combiner, lanes, start, dtype)))
    scope.names.update({c.name: _kept(c) for c in node.carried})
    wide = replace(node, step=node.step * lane.size, size=lane.size, body=body, carried=tuple(carried))
    return [*before, wide, *after]


def _lane_mask(node: For, lane: _Lane) -> Value | None:
    """The lanes that are iterations of the scalar loop; None if all lanes always are.

    It compares the index of each lane with each upper bound, like vector.create_mask(bound - index) in MLIR.
    """
    trips = constant_trips(node)
    if trips is not None and trips % lane.size == 0:
        return None
    shape: VectorShape = (lane.size,)
    index = IndexValue(index_symbol(node.index), "i64", shape, (node.index,))
    masks: list[Value] = [
        Op("lt" if node.step > 0 else "gt", (index, IndexValue(bound, "i64", shape, ("",))), "i1", shape)
        for bound in node.upper
    ]
    mask = masks[0]
    for other in masks[1:]:
        mask = Op("and", (mask, other), "i1", shape)
    return mask


def _store(node: Store, scope: _Scope) -> Store:
    value = _value(node.value, scope)
    where = None if node.where is None else _value(node.where, scope)
    if _is_indexed(node.subscripts, scope):
        return replace(node, value=value, where=where, along=_along(scope, *node.subscripts))
    dims, steps = _dims_and_steps(node.subscripts, scope)
    return replace(node, value=value, where=where, dims=dims, steps=steps)


def _is_indexed(subscripts: tuple[Index, ...], scope: _Scope) -> bool:
    """Whether each lane has subscripts of its own."""
    return any(coefficient(s, lane.name) is None for s in subscripts for lane in scope.lanes)


def _dims_and_steps(
    subscripts: tuple[Index, ...], scope: _Scope
) -> tuple[tuple[int | None, ...], tuple[int, ...]]:
    """For each vector dimension, the subscript that varies along it and the step from lane to lane."""
    dims: list[int | None] = []
    steps: list[int] = []
    for lane in scope.lanes:
        along = [(k, coefficient(subscript, lane.name) or 0) for k, subscript in enumerate(subscripts)]
        moved = [(k, c) for k, c in along if c]
        dims.append(moved[0][0] if moved else None)
        steps.append(moved[0][1] * lane.step if moved else 1)
    return tuple(dims), tuple(steps)


def _along(scope: _Scope, *indices: Index) -> tuple[str, ...]:
    """For each vector dimension, its loop index if one of the expressions depends on it, else ""."""
    moves = set[str]().union(*map(index_symbols, indices))
    return tuple(lane.name if lane.name in moves else "" for lane in scope.lanes)


def _value(value: Value, scope: _Scope) -> Value:
    """A value widened to the shape of the scope; outside super-vectors it stays scalar."""
    shape = scope.shape
    match value:
        case Const():
            return replace(value, shape=shape)
        case Local(name):
            return _spread(scope.names.get(name, value), shape)
        case IndexValue(index):
            if not shape:
                return value
            return replace(value, shape=shape, along=_along(scope, index))
        case Load():
            if not shape:
                return value
            if _is_indexed(value.subscripts, scope):
                return replace(value, shape=shape, along=_along(scope, *value.subscripts))
            dims, steps = _dims_and_steps(value.subscripts, scope)
            return replace(value, shape=shape, dims=dims, steps=steps)
        case Op():
            operands = tuple(_value(operand, scope) for operand in value.operands)
            return replace(value, operands=operands, shape=shape)
        case Reduce():
            return value


def _spread(value: Value, shape: VectorShape) -> Value:
    """The value in each lane; the lanes of outer loops are repeated along the inner dimensions."""
    return value if value.shape == shape else Op("broadcast", (value,), value.dtype, shape)
