"""Shuffles of one or two vectors."""

from __future__ import annotations

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
