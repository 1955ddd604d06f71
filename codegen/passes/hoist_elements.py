"""Load loop-invariant elements once, before a loop over super-vectors."""

from __future__ import annotations

from dataclasses import replace

from codegen.analysis.bodies import flat, stored, values
from codegen.ir.index import Index, Loaded, index_symbol, index_symbols, replace_loaded
from codegen.ir.nodes import For, Function, If, Let, Statement
from codegen.ir.rewriting import map_indices, map_value, map_values
from codegen.ir.values import IndexValue, Load, Local, Op, Value
from codegen.ir.visit import loads
from codegen.passes.loop_bounds import before, named_ends, with_ends
from codegen.passes.new_names import NewNames
from codegen.schedule.loop_schedule import LoopSchedule


def hoist_elements(function: Function, schedule: LoopSchedule) -> Function:
    """Hoist the loads of elements that every iteration of a loop over super-vectors reads and none writes.

    before:  for j in 0..m step 64: C[i, j] = A[i, j] * broadcast(B[i])
    after:   if 0 < m:
               B_element = B[i]
               for j in 0..m step 64: C[i, j] = A[i, j] * broadcast(B_element)

    The same goes for elements that subscripts depend on: the row idx[i] of A[idx[i], j].

    Inside the branch the loop runs at least once, so its first iteration would read the elements anyway. A
    loop that carries values is left alone: they must exist even if no iteration runs.
    """
    names = NewNames("element")

    def hoisted(body: tuple[Statement, ...]) -> tuple[Statement, ...]:
        made: list[Statement] = []
        for loop in body:
            if not isinstance(loop, For):
                made.append(loop)
            elif loop.size > 1:
                made += _hoisted(loop, names) if schedule.registers(loop.index) else [loop]
            else:
                made.append(replace(loop, body=hoisted(loop.body)))
        return tuple(made)

    return replace(function, body=hoisted(function.body))


def _hoisted(loop: For, names: NewNames) -> list[Statement]:
    readable = {load.array for value in values(loop.body) for load in loads(value)} - stored(loop.body)
    moving = {loop.index} | {s.index for s in flat(loop.body) if isinstance(s, For)}
    lets: dict[Load | Loaded, Let] = {}

    def part(value: Value) -> Value:
        if not isinstance(value, Load) or value.array not in readable:
            return value
        if moving & set[str]().union(*map(index_symbols, value.subscripts)):
            return value
        element = Load(value.array, value.subscripts, value.dtype)
        let = lets.setdefault(element, Let(names.name(f"{value.array}_element"), element))
        return Op("broadcast", (Local(let.name, value.dtype),), value.dtype, value.shape)

    def held(node: Loaded) -> Index:
        if moving & index_symbols(node):
            return node
        return index_symbol(lets.setdefault(node, Let(names.name("index"), IndexValue(node))).name)

    def statement(node: Statement) -> Statement:
        if isinstance(node, For):  # it may not run at all
            return node
        changed = map_values(node, lambda value: map_value(value, part))
        return map_indices(changed, lambda index: replace_loaded(index, held))

    if loop.carried:
        return [loop]
    body = tuple(map(statement, loop.body))
    if not lets:
        return [loop]
    bounds, first, last = named_ends(loop, names)
    made = with_ends(replace(loop, body=body), first, last)
    return [*bounds, If((before(first, last, loop.step),), (*lets.values(), made))]
