"""The fence after streamed lines."""

from __future__ import annotations

import pytest

from codegen.ir.building import compare, loop
from codegen.ir.index import Affine
from codegen.ir.nodes import BufferArg, Call, Function, If, Statement, Store
from codegen.ir.values import Load
from codegen.passes.fence_streams import fence_streams


def moved(streamed: bool) -> Store:
    """A line from one buffer to another."""
    line = Load("src", (Affine(),), "bits8", (64,), (0,), (1,))
    return Store("dst", (Affine(),), line, (0,), (1,), streamed=streamed)


def function(*body: Statement) -> Function:
    return Function("moves", (), body, buffers=(BufferArg("src"), BufferArg("dst")))


@pytest.mark.parametrize("streamed", [False, True])
def test_streamed_lines_are_fenced_wherever_they_are(streamed: bool) -> None:
    store, some = moved(streamed), (compare("x", "gt", 0),)
    plain = If(some, (moved(False),))
    for body in (
        (store,),
        (plain, loop("x", 0, 4, store)),
        (loop("x", 0, 4, If(some, (store,))), plain),
        (loop("x", 0, 4, If(some, (moved(False),), (loop("y", 0, 4, store),))),),
    ):
        made = fence_streams(function(*body)).body
        assert made == ((*body, Call("stream_fence")) if streamed else body)
