"""Values, loops and accesses in bodies with every kind of statement."""

from __future__ import annotations

from typing import Any

import pytest

from codegen.ir.building import compare, loop
from codegen.ir.index import Affine, index_symbol
from codegen.ir.interpreter import interpret
from codegen.ir.names import names_of
from codegen.ir.nodes import Alloc, Call, Function, If, Let, Prefetch, Store, View
from codegen.ir.values import Const, Load, Local
from codegen.ir.visit import accesses_of, loops_of, values_of
from codegen.passes.fence_streams import fence_streams

HERE = (Affine(),)
READ, MASK = Load("A", HERE, "f32"), Load("M", HERE, "i1")
STORE = Store("C", HERE, Local("x", "f32"))
BRANCHES = If(
    (compare("n", "gt", 0), MASK),
    (Let("x", READ), loop("i", 0, 4, STORE)),
    (loop("j", 0, 4, loop("k", 0, 4, STORE)),),
)
OTHERS = View("v", "A", Affine(8)), Alloc("held", 64), Prefetch(READ)


def test_values_include_those_of_branches() -> None:
    body = *OTHERS, BRANCHES, Call("stream_fence"), Let("y", Const(1, "f32"))
    assert list(values_of(body)) == [MASK, READ, STORE.value, STORE.value, Const(1, "f32")]


def test_loops_in_branches_are_numbered_in_source_order() -> None:
    roots = loops_of((loop("h", 0, 4), BRANCHES, loop("l", 0, 4)))
    names = [(each.number, each.node.index) for root in roots for each in root.all()]
    assert names == list(enumerate("hijkl"))


def test_accesses_of_branches_have_their_loops() -> None:
    body = *OTHERS, loop("h", 0, 4, BRANCHES), loop("l", 0, 4, STORE)
    found = [
        (each.array, each.stores, "".join(around.node.index for around in each.loops))
        for each in accesses_of(body, loops_of(body))
    ]
    assert found == [
        ("M", False, "h"),
        ("A", False, "h"),
        ("C", True, "hi"),
        ("C", True, "hjk"),
        ("C", True, "l"),
    ]


def test_accesses_of_instructions_are_refused() -> None:
    body = (Call("copy_part", ("dst", "src", index_symbol("n"))),)
    with pytest.raises(AssertionError, match="no rule for Call"):
        accesses_of(body, ())


def test_unknown_statements_are_refused() -> None:
    unknown: Any = (READ,)
    for visit in (
        lambda: list(values_of(unknown)),
        lambda: list(names_of(unknown)),
        lambda: accesses_of(unknown, ()),
        lambda: interpret(Function("kernel", (), unknown), []),
        lambda: fence_streams(Function("kernel", (), unknown)),
    ):
        with pytest.raises(AssertionError, match="no rule for Load"):
            visit()
