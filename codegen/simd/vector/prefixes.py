"""Shuffles of prefix sums and the like: steps within a register, and from one register to the next."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from llvmlite import ir

from codegen.ir.families import EVERY, FAMILIES
from codegen.ir.prefix_steps import STEPS
from codegen.simd.register.intrinsics import routine
from codegen.simd.register.values import NUMBA, Lanewise, by_lanes, lane, lanes_of, same_shape


def below(half: int) -> Lanewise:
    """The last lane of the lower half of each block of 2 * half lanes, in its upper half; b elsewhere."""

    def emit(builder: Any, dtype: str, a: Any, b: Any) -> Any:
        count = lanes_of(a)
        picked = [(k & -2 * half) + half - 1 if k & half else count + k for k in range(count)]
        return _shuffled(builder, a, b, picked)

    return emit


def slid(builder: Any, dtype: str, a: Any, b: Any) -> Any:
    """The last lane of a, then the lanes of b except its last one."""
    count = lanes_of(a)
    return _shuffled(builder, a, b, range(count - 1, 2 * count - 1))


def _shuffled(builder: Any, a: Any, b: Any, picked: Sequence[int]) -> Any:
    """The lanes of a and b with these numbers; those of b come after those of a."""
    if len(picked) == 1:
        return (a, b)[picked[0]]
    mask = ir.Constant(ir.VectorType(ir.IntType(32), len(picked)), list(picked))
    return builder.shuffle_vector(a, b, mask)


def _last() -> Any:
    """`last(v)`: the last lane, as a Numba number."""

    def rule(kind: Any) -> Any:
        dtype, lanes = same_shape("last", [kind], EVERY)
        return NUMBA[dtype](kind), lambda builder, value: lane(builder, value, lanes - 1)

    return routine("last", 1, rule)


def _routines() -> Iterator[tuple[str, Any]]:
    emits = {"slide": slid, **{f"below_{half}": below(half) for half in STEPS}}
    for name, emit in emits.items():
        yield name, by_lanes(name, 2, emit, FAMILIES[name].dtypes)
    yield "last", _last()


NAMED = dict(_routines())
"""The routines of this module by their names in kernels."""
