"""The extremes of subscripts, checked against all iterations one by one."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from codegen.analysis.bounds import check_bounds, extremes, nested_accesses
from codegen.ir.index import (
    Affine,
    Bitwise,
    FloorDiv,
    Index,
    Mod,
    Sum,
    affine,
    evaluate_index,
    index_symbol,
)
from codegen.ir.nodes import (
    Alloc,
    ArrayArg,
    BufferArg,
    Call,
    Compare,
    For,
    Function,
    If,
    Let,
    Prefetch,
    Statement,
    Store,
    View,
)
from codegen.ir.values import Const, Load, Op, Value
from codegen.support.errors import KernelError

ROW, COLUMN, N, ONE = index_symbol("i"), index_symbol("j"), index_symbol("n"), Affine(1)


def loop(index: str, lower: Index, upper: Index, step: int = 1) -> For:
    return For(index, (lower,), (upper,), step, ())


def walked(index: Index, loops: tuple[For, ...], values: dict[str, int]) -> list[int]:
    """The values of an index expression in all iterations."""
    if not loops:
        return [evaluate_index(index, values)]
    first, *rest = loops
    near, far = (max, min) if first.step > 0 else (min, max)
    lower = near(evaluate_index(bound, values) for bound in first.lower)
    upper = far(evaluate_index(bound, values) for bound in first.upper)
    trips = range(lower, upper, first.step)
    return [n for k in trips for n in walked(index, tuple(rest), {**values, first.index: k})]


CASES = [
    (ROW - COLUMN - ONE, (loop("i", Affine(), N), loop("j", Affine(), ROW))),
    (ROW + ONE, (loop("i", Affine(), N), loop("j", ROW + ONE, N))),
    (COLUMN, (loop("i", N - ONE, Affine(-1), -2), loop("j", ROW, Affine(-1), -1))),
    (Mod(ROW, 16), (loop("i", Affine(), N),)),
    (FloorDiv(ROW + N * 3, 4), (loop("i", Affine(), N, 3),)),
    (Sum(((FloorDiv(ROW, 4), 4), (Mod(ROW, 4), 1))), (loop("i", Affine(), N),)),
    (Bitwise("xor", ROW, Affine(1)), (loop("i", Affine(), N * 2),)),
    (Bitwise("xor", COLUMN, Mod(ROW, 8)), (loop("i", Affine(), N), loop("j", Affine(), N * 8))),
    (Bitwise("or", ROW * 4, COLUMN), (loop("i", Affine(), N), loop("j", Affine(), Affine(4)))),
    (Bitwise("and", ROW, Affine(-4)), (loop("i", N * -1, N),)),
    (Bitwise("and", ROW - Affine(3), N - ONE), (loop("i", Affine(), Affine(64)),)),
    (ROW * -2 + N * 2, (loop("i", Affine(1), N, 5),)),
    (
        COLUMN * 3 - ROW,
        (For("i", (Affine(), N - Affine(9)), (N, Affine(17)), 1, ()), loop("j", ROW, ROW + Affine(4))),
    ),
    (
        COLUMN + Affine(3),
        (
            loop("i", Affine(2), Affine(12), 3),
            For("j", (ROW + Affine(3), N - ONE), (Affine(-1), ROW * -1), -1, ()),
        ),
    ),
]


@pytest.mark.parametrize("size", [0, 1, 2, 7, 16, 40])
@pytest.mark.parametrize(("index", "loops"), CASES, ids=str)
def test_extremes_are_reached(index: Index, loops: tuple[For, ...], size: int) -> None:
    every = walked(index, loops, {"n": size})
    expected = (min(every), max(every)) if every else (1, 0)
    assert extremes(index, loops, {"n": size}) == expected


LARGE = 1 << 61


@pytest.mark.parametrize(
    ("index", "loops", "expected"),
    [
        (FloorDiv(ROW * LARGE, 5), (loop("i", Affine(), Affine(4)),), (0, 3 * LARGE // 5)),
        (FloorDiv(ROW * LARGE, 5), (loop("i", Affine(), Affine(5)),), (None, None)),
        (Mod(ROW * LARGE, 5), (loop("i", Affine(), Affine(5)),), (None, None)),
        (Mod(ROW * LARGE, 8), (loop("i", Affine(), Affine(5)),), (0, 7)),
        (FloorDiv(N * LARGE, 5), (), (None, None)),
        (
            Sum(((FloorDiv(ROW * LARGE, 3), 1), (FloorDiv(ROW * LARGE, 5), -1))),
            (loop("i", Affine(), Affine(5)),),
            (None, None),
        ),
        (ROW, (loop("i", N * LARGE, Affine(10)),), (None, 9)),
        (ROW, (loop("i", Affine(), Affine(3)), loop("j", ROW * LARGE * 4, Affine(10))), (0, 2)),
        (COLUMN, (loop("i", Affine(), Affine(3)), loop("j", ROW * LARGE * 4, Affine(10))), (None, 9)),
    ],
    ids=str,
)
def test_numbers_beyond_64_bits_have_no_extremes(
    index: Index, loops: tuple[For, ...], expected: tuple[int | None, int | None]
) -> None:
    """Kernels compute wrapped numbers, which other divisions and bounds belong to."""
    assert extremes(index, loops, {"n": 4}) == expected


@st.composite
def indices(draw: st.DrawFn, names: tuple[str, ...]) -> Index:
    small = st.integers(-3, 3)
    plain = affine(draw(st.integers(-9, 9)), [(name, draw(small)) for name in names])
    by = draw(st.sampled_from((2, 3, 8)))
    other = draw(st.sampled_from((Affine(draw(st.integers(-9, 9))), Mod(plain * 3, by), plain * 8)))
    combined = Bitwise(draw(st.sampled_from(("and", "or", "xor"))), plain, other)
    kinds = (
        plain,
        FloorDiv(plain, by),
        Mod(plain, by),
        Sum(((Mod(plain, by), draw(small)),), plain),
        combined,
        Sum(((FloorDiv(combined, by), draw(small)), (combined, draw(small))), plain),
    )
    return draw(st.sampled_from(kinds))


@given(st.data())
def test_no_value_is_outside_the_extremes(data: st.DataObject) -> None:
    loops: tuple[For, ...] = ()
    for k in range(data.draw(st.integers(1, 3))):
        names = tuple(inner.index for inner in loops)
        ends = [data.draw(st.lists(indices(names), min_size=1, max_size=2)) for _ in "lu"]
        loops += (
            For(f"i{k}", tuple(ends[0]), tuple(ends[1]), data.draw(st.sampled_from((1, 2, 5, -1, -3))), ()),
        )
    index = data.draw(indices(tuple(loop.index for loop in loops)))
    every = walked(index, loops, {})
    low, high = extremes(index, loops, {})
    if every:
        assert low is None or low <= min(every)
        assert high is None or high >= max(every)


def function(read: Index) -> Function:
    a, c = ArrayArg("A", "f32", 1, "C"), ArrayArg("C", "f32", 1, "C")
    value = Op("select", (Const(True, "i1"), Load("A", (read,), "f32"), Const(0.0, "f32")), "f32")
    body = (Store("C", (ROW,), value),)
    return Function("f", (a, c), (For("i", (Affine(),), (index_symbol("C.shape[0]"),), 1, body, line=7),))


def test_an_error_names_the_access() -> None:
    check_bounds(function(ROW), {"A": (5,), "C": (5,)}, {})
    for read, shape in ((ROW + ONE, (5,)), (ROW - ONE, (9,)), (ROW, (4,)), (ROW, (0,))):
        with pytest.raises(KernelError, match=r"A\[.*line 7.*extent is"):
            check_bounds(function(read), {"A": shape, "C": (5,)}, {})


def test_loops_that_never_run_touch_nothing() -> None:
    check_bounds(function(ROW + Affine(100)), {"A": (0,), "C": (0,)}, {})


FAR = Affine(1_000_000)


def stored(at: Index) -> Store:
    return Store("A", (at,), Const(0.0, "f32"))


def around(*body: Statement, results: tuple[Value, ...] = ()) -> Function:
    return Function("f", (ArrayArg("A", "f32", 1, "C"), ArrayArg("B", "i64", 1, "C")), body, results)


SHAPES = {"A": (3,), "B": (3,)}
TESTS: tuple[Compare | Value, ...] = (
    Compare(Affine(), "lt", ONE),
    Op("gt", (Load("B", (ONE,), "i64"), Const(0, "i64")), "i1"),
)
FAR_TEST = Op("gt", (Load("B", (FAR,), "i64"), Const(0, "i64")), "i1")
FAR_OFFSETS = Load("A", (Affine(),), "f32", offsets=Load("B", (FAR,), "i64"))


@pytest.mark.parametrize(
    "statement",
    [
        If(TESTS, (stored(FAR),)),
        If(TESTS, (stored(ONE),), (stored(FAR),)),
        If(TESTS, (For("i", (Affine(),), (Affine(4),), 1, (stored(ROW),)),)),
        If((FAR_TEST,), (stored(ONE),)),
        Prefetch(FAR_OFFSETS),
    ],
    ids=lambda statement: type(statement).__name__,
)
def test_accesses_under_conditions_are_checked(statement: Statement) -> None:
    with pytest.raises(KernelError, match=r"may leave the array(.|\n)*accesses under conditions also count"):
        check_bounds(around(statement), SHAPES, {})


@pytest.mark.parametrize(
    "statement",
    [
        View("V", "A", FAR),
        Alloc("buffer", 64),
        Call("copy_part", ("A", "B", ONE)),
        Store("V", (ONE,), Const(0.0, "f32")),
        Let("x", Load("A", (ONE,), "f32", (16,), (0,), (1,))),
        Let("x", Load("A", (ONE,), "f32", (16,), along=("i",))),
        Let("x", Load("A", (ONE,), "f32", offsets=Load("B", (ONE,), "i64"))),
        Store("A", (ONE,), Const(0.0, "f32", (16,)), (0,), (1,)),
    ],
    ids=lambda statement: type(statement).__name__,
)
def test_statements_without_a_rule_are_refused(statement: Statement) -> None:
    with pytest.raises(KernelError, match="bounds: expected"):
        check_bounds(around(statement), SHAPES, {})
    with pytest.raises(KernelError, match="bounds: expected"):
        check_bounds(around(If(TESTS, (), (statement,))), SHAPES, {})


def test_kernels_over_flat_buffers_are_refused() -> None:
    kernel = Function("f", (), (stored(ONE),), buffers=(BufferArg("A"),))
    with pytest.raises(KernelError, match="flat buffers"):
        check_bounds(kernel, SHAPES, {})


def test_accesses_inside_their_arrays_pass() -> None:
    ahead = Prefetch(Load("A", (FAR,), "f32"))
    fences = Call("prefetch_line", (FAR,)), Call("stream_fence")
    inside = If(TESTS, (stored(ONE),), (stored(Affine(2)),))
    check_bounds(around(ahead, *fences, inside), SHAPES, {})


def test_offsets_of_gathers_are_loads() -> None:
    for function in (around(Let("x", FAR_OFFSETS)), around(results=(FAR_OFFSETS,))):
        found = [access for _, access in nested_accesses(function)]
        assert found == [FAR_OFFSETS.offsets, FAR_OFFSETS]
