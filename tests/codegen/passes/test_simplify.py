"""What literal sizes decide is not in the loops: tests, loops of one iteration, arithmetic of numbers."""

from __future__ import annotations

import re
from dataclasses import replace

import numpy as np
import pytest

import tilejit as tj
from codegen.emit.source import source_of
from codegen.ir.building import compare, greatest, least, let, loop, minus, multiple, plus, rest
from codegen.ir.index import Index, evaluate_index, index_symbol
from codegen.ir.nodes import BufferArg, Call, Carried, For, Function, If, Let, Statement, Store, View
from codegen.ir.values import Const, IndexValue, Load, Local, Op
from codegen.passes.simplify import evaluated, simplify

DECIDED = compare(512, "ge", 256)


def moved(at: Index | int) -> Store:
    """A line from one buffer to another."""
    index = at if not isinstance(at, int) else plus(at)
    return Store("dst", (index,), Load("src", (index,), "bits8", (64,), (0,), (1,)), (0,), (1,))


def simplified(*body: Statement) -> tuple[Statement, ...]:
    return simplify(Function("moves", (), body, buffers=(BufferArg("src"), BufferArg("dst")))).body


@pytest.mark.parametrize(
    ("index", "text"),
    [
        (rest(512, 64), "0"),
        (multiple(336, 64), "320"),
        (multiple("n", 64), "64*(n // 64)"),
        (least(7, 5, "n"), "min(5, n)"),
        (greatest(7, 5), "7"),
        (least(plus("n", 3), plus("n", -2)), "n - 2"),
        (plus(rest(70, 64), multiple(130, 64), "n"), "n + 134"),
    ],
    ids=str,
)
def test_numbers_are_evaluated(index: Index, text: str) -> None:
    assert str(evaluated(index)) == text
    assert evaluate_index(evaluated(index), {"n": 100}) == evaluate_index(index, {"n": 100})


def test_decided_tests_select_a_branch() -> None:
    then, otherwise = (moved(0),), (moved(64),)
    unknown = compare("n", "gt", 0)
    for relation, holds in {
        "lt": False,
        "le": False,
        "gt": True,
        "ge": True,
        "eq": False,
        "ne": True,
    }.items():
        decided = compare(plus("n", 2), relation, "n")  # type: ignore[arg-type]
        assert simplified(If((decided,), then, otherwise)) == (then if holds else otherwise)
        both = simplified(If((unknown, decided), then, otherwise))
        assert both == ((If((unknown,), then, otherwise),) if holds else otherwise)
    assert simplified(If((unknown,), then, otherwise)) == (If((unknown,), then, otherwise),)


def test_loops_run_once_or_never() -> None:
    x = index_symbol("x")
    assert simplified(loop("x", 0, 64, moved(x), step=64)) == (moved(0),)
    assert simplified(loop("x", "n", plus("n", 1), moved(x))) == (moved(index_symbol("n")),)
    assert simplified(loop("x", 64, 64, moved(x), step=64)) == ()
    assert simplified(loop("x", 64, 0, moved(x), step=64)) == ()
    twice = loop("x", 0, 65, moved(x), step=64)
    assert simplified(twice) == (twice,)
    assert simplified(If((DECIDED,), (loop("x", 0, 1, If((DECIDED,), (moved(x),))),))) == (moved(0),)


@pytest.mark.parametrize(
    ("end", "step", "limits", "text"),
    [
        (16, 4, (12,), "x"),
        (16, 4, (11,), "min(x, 11)"),
        (17, 4, (12,), "min(x, 12)"),
        (16, 4, (12, "n"), "min(x, n)"),
        ("n", 4, (12,), "min(x, 12)"),
    ],
    ids=str,
)
def test_limits_above_a_loop_are_left_out(
    end: int | str, step: int, limits: tuple[int | str, ...], text: str
) -> None:
    """The name of such a limit becomes the index of the loop."""
    place = let("place", least("x", *limits))
    (made,) = simplified(loop("x", 0, end, place, moved(index_symbol("place")), step=step))
    assert isinstance(made, For)
    *named, store = made.body
    assert isinstance(store, Store)
    assert [str(store.subscripts[0]), len(named)] == (["x", 0] if text == "x" else ["place", 1])
    assert all(
        isinstance(x, Let) and isinstance(x.value, IndexValue) and str(x.value.index) == text for x in named
    )


def test_names_of_symbols_that_change_stay() -> None:
    """y = x; x = x + 64; dst[y]"""
    body = let("y", "x"), let("x", plus("x", 64)), moved(index_symbol("y"))
    assert simplified(let("x", "n"), *body) == (let("x", "n"), body[1], moved(index_symbol("n")))
    assert simplified(loop("k", 0, "n", *body)) == (loop("k", 0, "n", *body),)


def test_names_of_numbers_are_numbers() -> None:
    at = index_symbol("at")
    assert simplified(let("at", 64), If((compare("at", "gt", 0),), (moved(at),))) == (moved(64),)
    again = let("at", 0), loop("x", 0, 3, moved(at), let("at", plus("at", 64)))
    assert simplified(*again) == again  # the name stands for several numbers


def test_loops_that_never_run_leave_what_they_carry() -> None:
    start, update = Const(1.0, "f32"), Op("neg", (Local("sum", "f32"),), "f32")
    never = replace(loop("x", 64, 64), carried=(Carried("sum", start, update),))
    assert simplified(never) == (Let("sum", start),)
    assert simplified(replace(never, carried=(Carried("sum", Local("sum", "f32"), update),))) == ()


def test_calls_for_nothing_and_their_addresses_go() -> None:
    tail = View("tail", "dst", plus(512)), View("tail_src", "src", plus(512))
    for count in (0, 5):
        part = Call("copy_part", ("tail", "tail_src", minus(512 + count, 512)))
        assert simplified(*tail, part) == ((*tail, part) if count else ())


@pytest.mark.parametrize("shape", [(4000, 3000), (20, 300), (24, 256), (8, 128), (9, 129)])
def test_kernels_of_one_shape_have_no_dead_code(shape: tuple[int, int]) -> None:
    """With specialize="sizes", every test depends on an address, and no loop runs once."""
    text = f"f32[{shape[0]},{shape[1]}]{{1,0:T(8,128)}}"
    source = tj.explain(text, None, specialize="sizes").source
    assert not re.search(r"(if|elif) [0-9 &>=<-]+:", source)
    assert not re.search(r"range\(1\)|range\(0, 1\)", source)
    assert not re.search(r"\b\d+ & -?\d+", source)
    x = np.random.default_rng(0).random(shape, np.float32)
    assert np.array_equal(tj.unpack(tj.pack(x, text, specialize="sizes")), x)


def scaled(a, b, c):  # type: ignore[no-untyped-def]
    for i in range(c.shape[0]):
        for j in range(c.shape[1]):
            c[i, j] = 2 * a[i, j] + b[j]


def total(a):  # type: ignore[no-untyped-def]
    t = np.float32(0)
    for i in range(a.shape[0]):
        t += a[i]
    return t


@pytest.mark.parametrize("tail", ["mask", "scalar", "shift"])
@pytest.mark.parametrize("columns", [1, 15, 64, 100])
def test_loop_kernels_of_one_shape_have_no_dead_code(columns: int, tail: str) -> None:
    options = {"specialize": "sizes", "tail": tail, "virtual_vector_size": 32}
    a = np.arange(3 * columns, dtype=np.float32).reshape(3, columns)
    c = np.zeros_like(a)
    kernel = tj.kernel(scaled, **options)
    kernel(a, a[1], c)
    assert np.array_equal(c, 2 * a + a[1])
    reduced = tj.kernel(total, vectorize_reductions=True, **options)
    assert reduced(a[2]) == a[2].sum()
    for source in (kernel.source, reduced.source):
        assert "_whole" not in source
        assert not re.search(r"(if|elif) [0-9 &>=<-]+:", source)
        for bounds in re.findall(r"range\((\d+), (\d+), (\d+)\)", source):
            assert len(range(*map(int, bounds))) > (
                source is kernel.source
            )  # a loop that carries may run once


def test_a_loop_of_at_most_one_iteration_is_a_branch() -> None:
    """The bound that is one step away is decided; the other one is a test."""
    once = loop("x", "start", "n", moved(index_symbol("x")), step=64)
    once = replace(once, upper=(plus("n"), plus("start", 64)))
    expected = If((compare("start", "lt", "n"),), (moved(index_symbol("start")),))
    assert simplified(once) == (expected,)
    backwards = replace(once, upper=(plus("n"), plus("start", -64)), step=-64)
    assert simplified(backwards) == (replace(expected, tests=(compare("start", "gt", "n"),)),)
    assert simplified(replace(once, upper=(plus("n"), plus("start", 128)))) != (expected,)


def test_tests_that_hold_are_not_repeated() -> None:
    """Until a name in them is assigned again; what follows `otherwise` is tested."""
    test, move = compare("n", "lt", "m"), moved(64)
    inner = If((test,), (move,))
    assert simplified(If((test,), (moved(0), inner))) == (If((test,), (moved(0), move)),)
    assert simplified(If((test,), (loop("k", 0, "m", inner),))) == (If((test,), (loop("k", 0, "m", move),)),)
    changed = If((test,), (let("n", plus("m", 1)), inner, moved(index_symbol("n"))))
    assert inner in simplified(changed)[0].body  # type: ignore[union-attr]
    assert simplified(If((test,), (move,), (inner,))) == (If((test,), (move,), (inner,)),)
    assert simplified(If((test,), (move,)), inner) == (If((test,), (move,)), inner)


def test_branches_without_statements_go() -> None:
    """An empty branch is not printed without a statement, either: Python has no empty blocks."""
    test, never = compare("n", "lt", 3), loop("i", 5, 2, Call("prefetch_line", (plus("i"),)))
    branch = If((test,), (never,), (never,))
    function = Function("empty", (), (branch,), buffers=(BufferArg("dst"),), summary="Nothing.")
    assert simplify(function).body == ()
    left = replace(function, body=(If((test,), (), (Call("prefetch_line", (plus("n"),)),)),))
    compile(source_of(left), "empty", "exec")
