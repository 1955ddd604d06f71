"""Shuffles of vectors."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from llvmlite import ir

from codegen.simd.register.memory import I32, vector


def shuffle(builder: Any, a: Any, b: Any, mask: list[int]) -> Any:
    """Lanes of two vectors by index; b's indices follow a's."""
    return builder.shuffle_vector(a, b, ir.Constant(ir.VectorType(I32, len(mask)), mask))


def unpack(builder: Any, a: Any, b: Any, high: int, width: int) -> Any:
    """Interleave items of `width` bytes from the low or high half of each lane of two 64-byte vectors."""
    count, in_lane = 64 // width, 16 // width
    first = in_lane // 2 if high else 0
    mask = [
        side * count + lane + first + k
        for lane in range(0, count, in_lane)
        for k in range(in_lane // 2)
        for side in (0, 1)
    ]
    items = vector(8 * width, count)
    return shuffle(builder, builder.bitcast(a, items), builder.bitcast(b, items), mask)


def cut(builder: Any, value: Any, first: int, count: int) -> Any:
    """Some lanes of a vector."""
    if count == value.type.count:
        return value
    return shuffle(builder, value, value, list(range(first, first + count)))


def concatenated(builder: Any, vectors: Sequence[Any]) -> Any:
    """All lanes of vectors of one type, in order."""
    if len(vectors) == 1:
        return vectors[0]
    vectors, size = list(vectors), sum(each.type.count for each in vectors)
    while len(vectors) > 1:
        pairs = zip(vectors[::2], vectors[1::2], strict=False)
        both = list(range(2 * vectors[0].type.count))
        odd = vectors[-1:] if len(vectors) % 2 else []
        vectors = [shuffle(builder, low, high, both) for low, high in pairs]
        vectors += [shuffle(builder, last, _undefined(last), both) for last in odd]
    return cut(builder, vectors[0], 0, size)


def _undefined(like: Any) -> Any:
    return ir.Constant(like.type, ir.Undefined)
