"""Strided loads: vector loads and shuffles for short steps, else one load per lane.

They read no bytes before the first element or after the last.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from llvmlite import ir

from codegen.simd.register.memory import I64, load_untagged
from codegen.simd.register.shuffles import shuffle
from codegen.simd.register.values import bytes_in, joined, number

SHORT_STEPS = (2, 3, 4)
"""Steps in elements for which vector loads touch no more lines than one load per lane."""
FEWEST_LANES = 4


def spaced(builder: Any, address: Any, step: Any, kind: Any) -> Any:
    """A vector of elements `step` bytes apart; the step is only known at run time.

    step 8 of f32x4: two loads, of elements 0-3 and 3-6, and a shuffle that keeps 0, 2, 4, 6
    """
    if not isinstance(kind, ir.VectorType):
        return load_untagged(builder, address, kind)
    if kind.count < FEWEST_LANES:
        return _one_by_one(builder, address, step, kind)
    size = bytes_in(kind.element)
    methods = {by * size: _every(by) for by in SHORT_STEPS} | {size: load_untagged, -size: _backwards}
    return _chosen(builder, address, step, kind, methods)


_Method = Callable[[Any, Any, Any], Any]


def _chosen(builder: Any, address: Any, step: Any, kind: Any, methods: dict[int, _Method]) -> Any:
    """Switch to the step's method; steps without one load lane by lane."""
    other, done = (builder.append_basic_block(name) for name in ("any_step", "loaded"))
    choice = builder.switch(step, other)
    found = []
    for by, method in methods.items():
        block = builder.append_basic_block(f"step_{by}")
        choice.add_case(ir.Constant(I64, by), block)
        builder.position_at_end(block)
        found.append((method(builder, address, kind), builder.block))
        builder.branch(done)
    builder.position_at_end(other)
    found.append((_one_by_one(builder, address, step, kind), builder.block))
    builder.branch(done)
    builder.position_at_end(done)
    value = builder.phi(kind)
    for each, block in found:
        value.add_incoming(each, block)
    return value


def _every(by: int) -> _Method:
    """Every `by`-th element, in `by` adjacent loads. The last begins early, to end on the last element."""

    def read(builder: Any, address: Any, kind: Any) -> Any:
        lanes, size = kind.count, bytes_in(kind.element)
        starts = [k * lanes for k in range(1, by - 1)] + [(lanes - 1) * by + 1 - lanes]
        value, indices = load_untagged(builder, address, kind), list(range(0, lanes, by))
        for start in starts:
            more = load_untagged(builder, builder.add(address, number(I64, start * size)), kind)
            held, reached = len(indices), (start + lanes - 1) // by + 1
            indices += [lanes + k * by - start for k in range(held, reached)]
            value = shuffle(builder, value, more, indices + [0] * (lanes - reached))
            indices = list(range(reached))
        return value

    return read


def _backwards(builder: Any, address: Any, kind: Any) -> Any:
    """One load of all lanes, reversed."""
    first = (kind.count - 1) * bytes_in(kind.element)
    value = load_untagged(builder, builder.sub(address, number(I64, first)), kind)
    return shuffle(builder, value, value, list(range(kind.count))[::-1])


def _one_by_one(builder: Any, address: Any, step: Any, kind: Any) -> Any:
    addresses = [builder.add(address, builder.mul(step, number(I64, k))) for k in range(kind.count)]
    return joined(builder, [load_untagged(builder, each, kind.element) for each in addresses])
