"""Facts about loop bodies: the arrays they write and read, and the values that differ from lane to lane."""

from __future__ import annotations

from dataclasses import replace

from codegen.ir.building import minus
from codegen.ir.combiners import scans_by
from codegen.ir.index import Affine, index_symbol, index_symbols
from codegen.ir.nodes import Carried, For, Function, If, Let, Statement, Store, View
from codegen.ir.values import Const, IndexValue, Load, Local, Op, Value
from codegen.ir.visit import element_loads, loads


def shared_loop(function: Function) -> For | None:
    """The loop whose iterations may be split among calls: the only statement of a kernel without results."""
    if len(function.body) != 1 or function.results:
        return None
    (loop,) = function.body
    return loop if isinstance(loop, For) and not loop.carried else None


def vector_nest(loop: For) -> list[For]:
    """The loops over super-vectors that are perfectly nested from this one to the innermost one.

    for i step 32: for j step 256: C[i, j] = A[i, j]               i, j
    for i step 32: B[i] = A[i]; for j step 256: C[i, j] = A[i]     none: j is not alone in i
    """
    nest: list[For] = []
    while loop.size > 1:
        nest.append(loop)
        inside = [s for s in flat(loop.body) if isinstance(s, For)]
        if not any(each.size > 1 for each in inside):
            return nest
        if loop.carried or len(loop.body) != 1 or inside[0].carried:
            return []
        loop = inside[0]
    return []


def perfect_nest(loop: For) -> list[For]:
    """The loop and the loops perfectly nested in it that may run in another order, unless accesses forbid it.

    Their bounds do not use each other's indices. A loop that carries a value is alone. Views may be between
    loops, with what is computed after them.
    """
    nest = [loop]
    while not loop.carried and (inside := _inner_loop(loop.body)):
        loop = inside
        used = set[str]().union(*map(index_symbols, (*loop.lower, *loop.upper)))
        if loop.carried or used & {outer.index for outer in nest}:
            break
        nest.append(loop)
    return nest


def _inner_loop(body: tuple[Statement, ...]) -> For | None:
    """The only loop of a body, which may follow views."""
    match body:
        case (For() as loop,) | (View(), *_, For() as loop):
            return loop
    return None


def strip_around(loop: For) -> tuple[str, int] | None:
    """The index of the loop over strips and the iterations of a strip, if the loop runs over one; else None.

    for i in i_strip..min(i_strip + 256, n) step 64     i_strip, 256 iterations of the scalar loop
    """
    match loop.lower:
        case (Affine(0, ((name, 1),)) as start,):
            stops = (minus(bound, start) for bound in loop.upper if isinstance(bound, Affine))
            found = (x.constant for x in stops if isinstance(x, Affine) and not x.terms)
            extent = next(found, None)
            return None if extent is None else (name, extent * loop.size // loop.step)
    return None


def unmasked(loop: For) -> For:
    """The loop without the selects that mask lanes past its end, which full blocks of registers lack.

    before:  for i in 0..n carrying s = 0: s = select(i < n, s + A[i], s)
    after:   for i in 0..n carrying s = 0: s = s + A[i]

    before:  for i in 0..n carrying s = 0: s.prefix = scan_add(select(i < n, A[i], 0)); …
    after:   for i in 0..n carrying s = 0: s.prefix = scan_add(A[i]); …
    """
    carried = tuple(_unmasked_update(each, loop) for each in loop.carried)
    return replace(loop, carried=carried, body=tuple(_unmasked_scan(each, loop) for each in loop.body))


def _unmasked_scan(statement: Statement, loop: For) -> Statement:
    match statement:
        case Let(_, Op(name, (Op("select", (mask, term, Const())),)) as scan) if scans_by(name):
            if _is_lane_mask(mask, loop):
                return replace(statement, value=replace(scan, operands=(term,)))
    return statement


def _unmasked_update(carried: Carried, loop: For) -> Carried:
    match carried.update:
        case Op("select", (mask, update, Local(name))) if name == carried.name and _is_lane_mask(mask, loop):
            return replace(carried, update=update)
    return carried


def _is_lane_mask(value: Value, loop: For) -> bool:
    """Whether a value is the mask of the lanes that are iterations of the loop."""
    match value:
        case Op("and", (a, b)):
            return _is_lane_mask(a, loop) and _is_lane_mask(b, loop)
        case Op("lt" | "gt", (IndexValue(index), IndexValue(bound))):
            return index == index_symbol(loop.index) and bound in loop.upper
    return False


def stored(body: tuple[Statement, ...]) -> set[str]:
    """The arrays that a body writes."""
    return {s.array for s in flat(body) if isinstance(s, Store)}


def read(body: tuple[Statement, ...]) -> set[str]:
    """The arrays that a body reads."""
    stores = [s for s in flat(body) if isinstance(s, Store)]
    out = {s.array for s in stores if s.accumulate}
    out |= {load.array for s in stores for load in element_loads(s.subscripts)}
    for value in values(body):
        out |= {load.array for load in loads(value)}
    return out


def flat(body: tuple[Statement, ...]) -> list[Statement]:
    """All statements, including those inside loops."""
    return [x for s in body for x in ([s, *flat(s.body)] if isinstance(s, For) else [s])]


def defined(body: tuple[Statement, ...]) -> set[str]:
    """The indices and locals that a body defines."""
    out: set[str] = set()
    for statement in body:
        match statement:
            case For(index, body=inner, carried=carried):
                out |= {index, *(each.name for each in carried)} | defined(inner)
            case Let(name):
                out.add(name)
            case If(_, then, otherwise):
                out |= defined(then) | defined(otherwise)
    return out


def values(body: tuple[Statement, ...]) -> list[Value]:
    """All values that a body stores, names or carries."""
    out: list[Value] = []
    for statement in flat(body):
        match statement:
            case For():
                out += [value for c in statement.carried for value in (c.start, c.update)]
            case Let(_, value):
                out.append(value)
            case Store():
                out += statement.values
    return out


def vector_dtypes(loop: For) -> set[str]:
    """The dtypes of all values that differ from lane to lane, except masks."""
    out: set[str] = set()

    def look(value: Value) -> None:
        if varies(value, loop.index) and value.dtype != "i1":
            out.add(value.dtype)
        for part in value.operands if isinstance(value, Op) else ():
            look(part)

    for value in values((loop,)):
        look(value)
    return out


def varies(value: Value, index: str) -> bool:
    """Whether a value may differ from lane to lane of a loop."""
    match value:
        case Local(_, _, shape):
            return bool(shape)
        case IndexValue(expression):
            return index in index_symbols(expression)
        case Load(_, subscripts):
            return any(index in index_symbols(subscript) for subscript in subscripts)
        case Op(_, operands):
            return any(varies(operand, index) for operand in operands)
    return False
