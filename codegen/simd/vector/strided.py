"""Lanes that lie a step apart in memory: whole loads and a shuffle where the step is short.

Nothing is read outside of what lies between the first element and the last.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from llvmlite import ir

from codegen.simd.register.memory import I64, pointer
from codegen.simd.register.shuffles import shuffle
from codegen.simd.vector.values import joined, number

SHORT_STEPS = (2, 3, 4)
"""Elements from lane to lane for which whole loads touch no more lines than one load a lane."""
FEWEST_LANES = 4


def spaced(builder: Any, address: Any, step: Any, kind: Any) -> Any:
    """A vector of elements `step` bytes apart, which is known when the kernel runs.

    step 8 of f32x4: two loads, of elements 0-3 and 3-6, and a shuffle that keeps 0, 2, 4, 6
    """
    if not isinstance(kind, ir.VectorType):
        return load_untagged(builder, address, kind)
    if kind.count < FEWEST_LANES:
        return _one_by_one(builder, address, step, kind)
    size = element_bytes(kind.element)
    ways = {by * size: _every(by) for by in SHORT_STEPS} | {size: load_untagged, -size: _backwards}
    return _chosen(builder, address, step, kind, ways)


_Way = Callable[[Any, Any, Any], Any]


def _chosen(builder: Any, address: Any, step: Any, kind: Any, ways: dict[int, _Way]) -> Any:
    """The way of the step; others go one by one."""
    other, done = (builder.append_basic_block(name) for name in ("any_step", "loaded"))
    choice = builder.switch(step, other)
    found = []
    for by, way in ways.items():
        block = builder.append_basic_block(f"step_{by}")
        choice.add_case(ir.Constant(I64, by), block)
        builder.position_at_end(block)
        found.append((way(builder, address, kind), builder.block))
        builder.branch(done)
    builder.position_at_end(other)
    found.append((_one_by_one(builder, address, step, kind), builder.block))
    builder.branch(done)
    builder.position_at_end(done)
    value = builder.phi(kind)
    for each, block in found:
        value.add_incoming(each, block)
    return value


def _every(by: int) -> _Way:
    """Each `by`-th element, of as many loads side by side; the last begins early enough to end on it."""

    def read(builder: Any, address: Any, kind: Any) -> Any:
        lanes, size = kind.count, element_bytes(kind.element)
        starts = [k * lanes for k in range(1, by - 1)] + [(lanes - 1) * by + 1 - lanes]
        value, places = load_untagged(builder, address, kind), list(range(0, lanes, by))
        for start in starts:
            part = load_untagged(builder, builder.add(address, number(I64, start * size)), kind)
            held, reached = len(places), (start + lanes - 1) // by + 1
            places += [lanes + k * by - start for k in range(held, reached)]
            value = shuffle(builder, value, part, places + [0] * (lanes - reached))
            places = list(range(reached))
        return value

    return read


def _backwards(builder: Any, address: Any, kind: Any) -> Any:
    """One load of all lanes, turned round."""
    first = (kind.count - 1) * element_bytes(kind.element)
    value = load_untagged(builder, builder.sub(address, number(I64, first)), kind)
    return shuffle(builder, value, value, list(range(kind.count))[::-1])


def _one_by_one(builder: Any, address: Any, step: Any, kind: Any) -> Any:
    places = [builder.add(address, builder.mul(step, number(I64, k))) for k in range(kind.count)]
    return joined(builder, [load_untagged(builder, place, kind.element) for place in places])


def load_untagged(builder: Any, address: Any, kind: Any) -> Any:
    """Load at any alignment, and say nothing of what aliases it: loops read what they write."""
    value = builder.load(pointer(builder, address, kind))
    value.align = 1
    return value


def element_bytes(kind: Any) -> int:
    """Bytes of a number in memory."""
    return {"float": 4, "double": 8}.get(str(kind)) or int(kind.width) // 8
