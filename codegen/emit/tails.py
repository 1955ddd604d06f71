"""Iterations of a loop over super-vectors outside full blocks: before the first full line, and at the end."""

from __future__ import annotations

from dataclasses import replace

from codegen.analysis.strides import ELEMENT_BYTES
from codegen.emit.emitter import Emitter
from codegen.emit.ranges import trips_text, whole_text
from codegen.emit.scope import Lanes, Partial, Scope, Text, element_address
from codegen.emit.writer import Writer
from codegen.ir.index import Affine, Index
from codegen.ir.nodes import For, Store
from codegen.schedule.registers import Tail


def head_loop(
    emitter: Emitter, loop: For, streamed: Store, ends: tuple[str, str], scope: Scope, out: Writer
) -> str:
    """Write the loop before the first full line of the streamed store; return the name of its end."""
    first, last = ends
    assert scope.lanes is not None
    step, lanes = scope.lanes.step, scope.lanes
    head, live = emitter.names.fresh(f"{loop.index}_head"), emitter.names.fresh(f"{loop.index}_live")
    to_line = _line_start(streamed, replace(scope, lanes=None), loop, first)
    least = f"min({to_line}, {trips_text(first, last, step)})"
    least = least if step == 1 else f"{least} * {step}"
    out.line(f"{head} = {least if first == '0' else f'{first} + {least}'}")
    masked = replace(scope, lanes=replace(lanes, registers=1, live=live))
    emitter.plain_loop(
        replace(loop, step=lanes.count * step, size=1), first, head, masked, {}, out, fill=live
    )
    return head


def _line_start(store: Store, scope: Scope, loop: For, first: str) -> str:
    """The number of elements that a loop stores before its first full line."""
    size = ELEMENT_BYTES[scope.function.array(store.array).dtype]
    if first.isdigit():
        fixed = tuple(_substituted(s, loop.index, int(first)) for s in store.subscripts)
        store = replace(store, subscripts=fixed)
    base, offset = element_address(store, replace(scope, indices={**scope.indices, loop.index: first}))
    return f"elements_to_line({base if offset == '0' else f'{base} + {offset}'}, {size})"


def _substituted(subscript: Index, index: str, number: int) -> Index:
    """The subscript with a number in place of a loop's index."""
    if not isinstance(subscript, Affine):
        return subscript
    factor = subscript.coefficient(index)
    return subscript + Affine(factor * number, ((index, -factor),) if factor else ())


def single_lines(emitter: Emitter, loop: For, ends: tuple[str, str], scope: Scope, out: Writer) -> str:
    """Write the full registers after the last block, also streamed; return the name of their end."""
    whole, last = ends
    assert scope.lanes is not None
    lanes, done = replace(scope.lanes, registers=1), emitter.names.fresh(f"{loop.index}_done")
    out.line(f"{done} = {whole_text(whole, last, lanes.step, lanes.count)}")
    once = replace(loop, step=lanes.count * lanes.step, size=1)
    emitter.plain_loop(once, whole, done, replace(scope, lanes=lanes), {}, out)
    return done


def tail_loops(
    emitter: Emitter,
    loop: For,
    tail: Tail,
    ends: tuple[str, str, str],
    scope: Scope,
    lanes: Lanes,
    carried: dict[str, Text | Partial],
    out: Writer,
) -> dict[str, str]:
    """Write the iterations after the last full block; return the names of a scalar tail's accumulators."""
    first, whole, last = ends
    if not tail:
        return {}
    single, step = replace(lanes, registers=1), lanes.step
    heads = {name: held[:1] for name, held in carried.items() if isinstance(held, tuple)}
    inside = replace(scope, held={**scope.held, **heads})
    once = replace(loop, step=lanes.count * step, size=1)
    if tail == "mask":
        live = emitter.names.fresh(f"{loop.index}_live")
        masked = replace(inside, lanes=replace(single, live=live))
        emitter.plain_loop(once, whole, last, masked, {**heads}, out, fill=live)
        return {}
    if lanes.registers > 1:
        done = emitter.names.fresh(f"{loop.index}_done")
        out.line(f"{done} = {whole_text(whole, last, step, lanes.count)}")
        emitter.plain_loop(once, whole, done, replace(inside, lanes=single), {**heads}, out)
        whole = done
    if tail == "shift":
        _shifted_tail(emitter, loop, (first, whole, last), replace(scope, lanes=single), out)
        return {}
    return _scalar_tail(emitter, loop, whole, last, scope, out)


def _scalar_tail(
    emitter: Emitter, loop: For, whole: str, last: str, scope: Scope, out: Writer
) -> dict[str, str]:
    """Write the tail element by element; return the names of its accumulators."""
    single = replace(loop, step=loop.step // loop.size, size=1)
    inside, carried = emitter.carry(loop.carried, scope, out)
    emitter.plain_loop(single, whole, last, inside, carried, out)
    return {name: held for name, held in carried.items() if isinstance(held, str)}


def _shifted_tail(emitter: Emitter, loop: For, ends: tuple[str, str, str], scope: Scope, out: Writer) -> None:
    """Write a last register that begins early enough to be full, or single elements if there are too few."""
    first, whole, last = ends
    assert scope.lanes is not None
    step, count = scope.lanes.step, scope.lanes.count
    start = emitter.names.fresh(f"{loop.index}_last")
    trips = trips_text(first, last, step)
    out.line(
        f"{start} = {first} + ({trips} - {count}) * {step}" if step != 1 else f"{start} = {last} - {count}"
    )
    reached = f"{start} >= {first}" if step > 0 else f"{start} <= {first}"
    unfinished = f"{whole} < {last}" if step > 0 else f"{whole} > {last}"
    with out.block(f"if {unfinished} and {reached}:"):
        inside = replace(scope, indices={**scope.indices, loop.index: start})
        emitter.statements(loop.body, inside, out)
    with out.block("else:"):
        _scalar_tail(emitter, loop, whole, last, replace(scope, lanes=None), out)
