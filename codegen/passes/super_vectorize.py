"""Run loops as the lanes of super-vectors: each value in them becomes a super-vector."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import field, replace
from typing import NamedTuple, TypeGuard

from codegen.analysis.bodies import flat
from codegen.analysis.reductions import sums_in_locals
from codegen.analysis.scans import scans_of
from codegen.ir.building import plus, times
from codegen.ir.combiners import combined, neutral
from codegen.ir.index import Affine, Index, index_symbol, index_symbols
from codegen.ir.names import names_of
from codegen.ir.nodes import Call, Carried, For, Function, Let, Statement, Store, View
from codegen.ir.rewriting import Access, Body, rewrite_body
from codegen.ir.values import Const, IndexValue, Load, Local, Op, Reduce, Step, Value, VectorShape
from codegen.ir.visit import coefficient, constant_trips, distance
from codegen.passes.scan_values import masked, prefix_name, with_prefixes
from codegen.passes.sides import FILL, PATTERN
from codegen.schedule.directives import Directed
from codegen.support.dataclasses import dataclass
from codegen.support.errors import KernelError


def super_vectorize(function: Function, schedule: Directed) -> Function:
    """Run loops as lanes of super-vectors, where each lane does what its iteration did.

    before:  for i in 0..n: for j in 0..m step 1:    C[i, j] = A[i, j] + B[i]               Vectorize(j=256)
    after:   for i in 0..n: for j in 0..m step 256:  C[i, j] = A[i, j] + broadcast(B[i])    vector<256xf32>

    In a vectorized reduction, lanes start with the neutral element, are masked past the loop's end, and are
    combined after the loop. A scan combines the lanes of each super-vector from the first to the last.

    Lanes of flat buffers are at steps that may have names, and each has its own entry of a table:

    before:  for column in 0..m: for row in 0..2:    dst[4*column + 2*row] = src[2*column + pitch*row]
    after:   for column in 0..m step 32: for row in 0..2 step 2:           Vectorize(column=32, row=2)
               dst[4*column + 2*row] = src[2*column + pitch*row] [32, 2]   steps 4, 2 and 2, pitch

    `choose_lanes` or `check_lanes` has checked that the loops may run as lanes. Other loops are unchanged.
    A copy may have several of a name, which run the parts of one.

    Raises:
        KernelError: a kernel lacks a loop of that name, or has several.
    """
    sizes = schedule.lanes
    if not function.buffers:
        found = [x.index for x in flat(function.body) if isinstance(x, For) and x.index in sizes]
        if sorted(found) != sorted(sizes):
            raise KernelError(f"{function.name}: expected one loop of each name in {[*sizes]}, got {found}")
        return replace(function, body=_body(function.body, _Scope(sizes))) if sizes else function
    body = rewrite_body(function.body, lambda x: (widened(x, sizes) if runs_as_lanes(x, sizes) else x,))
    if PATTERN.name in names_of(body):
        low, high = (Local(name, "i64") for name in FILL)
        body = (Let(PATTERN.name, Op("repeated_line", (low, high), PATTERN.dtype, PATTERN.shape)), *body)
    return replace(function, body=body)


def runs_as_lanes(node: Statement, lanes: Mapping[str, int]) -> TypeGuard[For]:
    """Whether a statement is the outermost loop of a super-vector of a copy: nothing else is inside."""
    return isinstance(node, For) and {x.index for x in flat((node,)) if isinstance(x, For)} == {*lanes}


def widened(loop: For, lanes: Mapping[str, int]) -> For:
    """A loop of a copy over super-vectors, of which each loop has a dimension."""
    (made,) = _for(loop, _Scope(lanes, flat=True))
    assert isinstance(made, For), "the loop of a copy stays one"
    return made


class _Lane(NamedTuple):
    """A vector dimension: its loop index, its number of lanes, and the index step from lane to lane."""

    name: str
    size: int
    step: int


@dataclass(frozen=True, slots=True)
class _Scope:
    """The context of a statement.

    sizes  how many iterations of each loop run at once
    flat   whether memory is flat buffers
    lanes  the vector dimensions, outermost first
    names  the current names of locals
    views  the views of buffers that move with the lanes
    """

    sizes: Mapping[str, int]
    flat: bool = False
    lanes: tuple[_Lane, ...] = ()
    names: dict[str, Local] = field(default_factory=dict)
    views: dict[str, View] = field(default_factory=dict)

    @property
    def shape(self) -> VectorShape:
        """The shape of super-vectors in this scope."""
        return tuple(lane.size for lane in self.lanes)

    def inside(self, names: Mapping[str, Local], *lanes: _Lane) -> _Scope:
        """The context inside a loop, with what it carries, and its lanes if it has some."""
        return replace(self, lanes=(*self.lanes, *lanes), names={**self.names, **names})

    def step(self, access: Load | Store, lane: _Lane) -> Step:
        """The distance from lane to lane in a buffer, or in a view of it."""
        apart, view = distance(plus(*access.subscripts), lane.name), self.views.get(access.array)
        if view is None or view.unit_bits != 1:
            return apart
        bits = plus(apart, times(distance(view.offset, lane.name), 8))
        assert isinstance(bits, Affine), "lanes of bits are strides apart"
        return bits


def _body(body: Body, scope: _Scope) -> Body:
    out: list[Statement] = []
    for node in body:
        match node:
            case Let() if scope.flat and not {x.name for x in scope.lanes} & {*names_of((node,))}:
                out.append(node)
            case Let(name, value):
                wide = _value(value, replace(scope, flat=False))  # tables are arrays
                out.append(Let(name, wide))
                scope.names[name] = Local(name, wide.dtype, wide.shape)
            case Store():
                out.append(_store(node, scope))
            case For():
                out += _for(node, scope)
            case View(name):
                scope.views[name] = node
                out.append(node)
            case Call("fill_part", (str(name), *_)):
                view = scope.views[name]
                out[out.index(view)] = Store(view.buffer, (view.offset,), PATTERN, steps=(1,))
            case Call("prefetch_line"):  # that of all lanes
                out.append(node)
            case _:
                raise AssertionError(f"super_vectorize: no rule for {type(node).__name__}")
    return tuple(out)


def _for(node: For, scope: _Scope) -> list[Statement]:
    size = scope.sizes.get(node.index, 1)
    lane = _Lane(node.index, size, node.step)
    if size > 1 and not scope.lanes and not scope.flat:
        node, stores = sums_in_locals(node)
        if node.carried:
            return [*_accumulated(node, lane, scope), *stores]
    if size > 1 or scope.flat:
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
    where = None if node.where is None else _value(node.where, scope)
    made = replace(_in_lanes(node, scope), value=_value(node.value, scope), where=where)
    return made if node.carry is None else replace(made, carry=_carried(node.carry, made, scope))


def _carried(before: Load, store: Store, scope: _Scope) -> Load:
    """The bytes before the rows of a store, as far from row to row as they are, and as far apart in a row."""
    apart = (scope.step(before, lane) or step for lane, step in zip(scope.lanes, store.steps, strict=True))
    return replace(before, dtype=store.value.dtype, shape=scope.shape, dims=(), steps=tuple(apart))


def _in_lanes(access: Access, scope: _Scope) -> Access:
    """A load or a store of what each lane accesses: at its step from the one before, or at its subscripts.

    For each vector dimension, `dims` has the subscript of an array that varies along it.
    """
    if scope.flat:
        return replace(access, steps=tuple(scope.step(access, lane) for lane in scope.lanes))
    if any(coefficient(s, lane.name) is None for s in access.subscripts for lane in scope.lanes):
        return replace(access, along=_along(scope, *access.subscripts))
    dims: list[int | None] = []
    steps: list[int] = []
    for lane in scope.lanes:
        along = [(k, coefficient(subscript, lane.name) or 0) for k, subscript in enumerate(access.subscripts)]
        moved = [(k, c) for k, c in along if c]
        dims.append(moved[0][0] if moved else None)
        steps.append(moved[0][1] * lane.step if moved else 1)
    return replace(access, dims=tuple(dims), steps=tuple(steps))


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
            return replace(_in_lanes(value, scope), shape=shape) if shape else value
        case Op():
            operands = tuple(_value(operand, scope) for operand in value.operands)
            return replace(value, operands=operands, shape=shape)
        case Reduce():
            return value


def _spread(value: Value, shape: VectorShape) -> Value:
    """The value in each lane; the lanes of outer loops are repeated along the inner dimensions."""
    return value if value.shape == shape else Op("broadcast", (value,), value.dtype, shape)
