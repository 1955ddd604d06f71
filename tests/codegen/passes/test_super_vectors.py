"""A super-vector moves what the iterations that are its lanes move, and has the expected shape."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from codegen.ir.buffers import Buffer
from codegen.ir.building import loop, plus, times
from codegen.ir.index import Index
from codegen.ir.interpreter import interpret
from codegen.ir.nodes import BufferArg, For, Function, Store, View
from codegen.ir.rewriting import Body
from codegen.ir.values import Load, Op, Value, VectorShape
from codegen.ir.verifier import verify
from codegen.passes.lane_orders import Lane, reordered
from codegen.passes.peel_vectors import flattened
from codegen.passes.select_moves import selected
from codegen.passes.super_vectorize import widened

SIZE = 4096


def affine(**factors: int) -> Index:
    return plus(*(times(axis, factor) for axis, factor in factors.items()))


def moved(to: Index, at: Index, bits: int) -> Store:
    return Store("dst", (to,), Load("src", (at,), f"bits{bits}"))


def applied(name: str, store: Store, bits: int) -> Store:
    value: Value = Op(name, (store.value,), f"bits{bits}")
    return Store(store.array, store.subscripts, value)


RUN = moved(affine(x=1), affine(x=1), 8)
REVERSED = moved(affine(x=4), plus(affine(x=-4), 60), 32)
PAIR = moved(affine(column=4, row=2), affine(column=2, row=100), 16)
TRANSPOSED = moved(affine(column=200, row=4), affine(column=4, row=120), 32)
ADJACENT = moved(affine(column=64, row=8), affine(column=4, row=32), 32)
SHORT = moved(affine(column=64, row=1), affine(column=1, row=13), 8)
NIBBLE = applied("cast", moved(affine(code=4), affine(x=2, code=1), 8), 4)
CODES = View("dst_x", "dst", affine(x=1), unit_bits=1), replace(NIBBLE, array="dst_x")
ROWS = applied("cast", moved(affine(code=4), affine(x=1, code=64), 8), 4)
FROM_ROWS = View("dst_x", "dst", affine(x=4), unit_bits=1), replace(ROWS, array="dst_x")

CASES: dict[str, tuple[Body, dict[str, int], tuple[str, ...], VectorShape]] = {
    "run": ((RUN,), {"x": 64}, ("x",), (64,)),
    "reversed": ((REVERSED,), {"x": 16}, ("x",), (16,)),
    "interleaved": ((loop("row", 0, 2, PAIR),), {"column": 32, "row": 2}, ("column",), (64,)),
    "block": ((TRANSPOSED,), {"row": 16, "column": 16}, ("row", "column"), (16, 16)),
    "converted block of adjacent rows": (
        (applied("convert_f32_to_f64", ADJACENT, 64),),
        {"row": 8, "column": 8},
        ("row", "column"),
        (8, 8),
    ),
    "short rows": ((loop("column", 0, 13, SHORT),), {"row": 64, "column": 16}, ("row",), (16, 64)),
    "codes": ((loop("code", 0, 2, *CODES),), {"x": 64, "code": 2}, ("x",), (64,)),
    "codes from adjacent rows": (
        (loop("code", 0, 8, *FROM_ROWS),),
        {"x": 64, "code": 8},
        ("x",),
        (256,),
    ),
}
"""Scalar statements, with inner loops; the lanes; the loops around; the shape of what is stored."""


@pytest.mark.parametrize("name", CASES)
def test_lanes_move_what_iterations_do(name: str) -> None:
    scalar, lanes, around, shape = CASES[name]
    for axis in reversed(around):
        scalar = (loop(axis, 0, lanes[axis], *scalar),)
    (outermost,) = scalar
    assert isinstance(outermost, For)
    wide = widened(outermost, lanes)
    vector = selected_inside(wide, around, apart=[*lanes] == ["row", "column"])
    (stored,) = (x.value.shape for x in vector if isinstance(x, Store))
    assert stored == shape
    for axis in reversed(around):
        vector = (loop(axis, 0, lanes[axis], *vector, step=lanes[axis]),)
    assert np.array_equal(written(scalar), written((wide,)))
    assert np.array_equal(written(scalar), written(vector))


def selected_inside(wide: For, around: tuple[str, ...], *, apart: bool) -> Body:
    """The selected statements inside the loops around a super-vector."""
    for _ in around[1:]:
        (inner,) = wide.body
        assert isinstance(inner, For)
        wide = inner
    return selected(wide.body if apart else flattened(wide.body), apart=apart)


def test_one_instruction_is_better_than_two() -> None:
    """Rows of four lanes are interleaved; they could also be transposed, and put in a line."""
    found = reordered((Lane(4, 4, 16), Lane(4, "pitch", 4)), 4, 4, apart=False)
    assert found.instructions == (("interleaved", (16,)),)


def written(body: Body) -> np.ndarray:
    """The destination after a body."""
    function = Function("kernel", (), body, buffers=(BufferArg("src"), BufferArg("dst")))
    verify(function)
    src = np.random.default_rng(5).integers(0, 64, SIZE, np.uint8)
    dst = np.full(SIZE, 7, np.uint8)
    interpret(function, [], {"src": Buffer(src), "dst": Buffer(dst)})
    assert not np.array_equal(dst, np.full(SIZE, 7))
    return dst
