"""Index expressions read from Python, against Python itself."""

from __future__ import annotations

import ast
from types import FunctionType
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from codegen.emit.indices import index_text, scaled_text, sum_text
from codegen.emit.text import Text
from codegen.frontend.expressions import expression
from codegen.frontend.operands import Operand, indexed
from codegen.frontend.scope import Scope
from codegen.frontend.source_text import SourceText
from codegen.ir.index import evaluate_index, index_symbol, index_symbols
from codegen.ir.interpreter import interpret
from codegen.ir.nodes import Function, ScalarArg
from tests.tools.extent import examples

NAMES = ("i", "j", "n")


def expressions() -> st.SearchStrategy[str]:
    """Texts of integer expressions: affine ones, rounded divisions by positive numbers, shifts and bits."""
    leaves = st.sampled_from(NAMES) | st.integers(-9, 9).map(lambda n: f"({n})")

    def grown(inner: st.SearchStrategy[str]) -> st.SearchStrategy[str]:
        sums = st.tuples(inner, st.sampled_from("+-"), inner).map(lambda p: f"({p[0]} {p[1]} {p[2]})")
        products = st.tuples(inner, st.integers(-5, 5)).map(lambda p: f"({p[0]} * ({p[1]}))")
        rounded = st.tuples(inner, st.sampled_from(["//", "%"]), st.integers(1, 9))
        others = rounded.map(lambda p: f"({p[0]} {p[1]} {p[2]})") | inner.map(lambda p: f"-{p}")
        bits = st.tuples(inner, st.sampled_from("&|^"), inner | st.integers(-9, 9).map(lambda n: f"({n})"))
        shifted = st.tuples(inner, st.sampled_from(["<<", ">>"]), st.integers(0, 4))
        combined = (bits | shifted).map(lambda p: f"({p[0]} {p[1]} {p[2]})") | inner.map(lambda p: f"~{p}")
        return sums | products | others | combined

    return st.recursive(leaves, grown, max_leaves=12)


def nothing() -> None:
    """The function that the texts are inserted in."""


def read(text: str) -> Operand:
    assert isinstance(nothing, FunctionType)
    names: dict[str, Any] = {name: indexed(index_symbol(name)) for name in NAMES}
    node = ast.parse(text, mode="eval").body
    return expression(node, Scope(SourceText("text", 1, (text,)), nothing, names, {}))


@pytest.mark.parametrize(
    "text", ["-i", "n - i - 1", "j - 2*i", "-(j // 2) - i + 3", "2*(i % 4) - 2*(j // 3) - n"]
)
def test_texts_subtract_negative_terms(text: str) -> None:
    """After positive ones, and without a factor of 1."""
    assert str(read(text).index) == text


@given(expressions(), st.tuples(*[st.integers(-50, 50)] * 3))
@settings(max_examples=examples(33, full=300), deadline=None)
def test_evaluate_agrees_with_python(text: str, numbers: tuple[int, int, int]) -> None:
    """evaluate(read(text)) == eval(text), and it uses no symbol that the text does not use."""
    values = dict(zip(NAMES, numbers, strict=True))
    index = read(text).index
    assert index is not None
    assert evaluate_index(index, values) == eval(text, {}, values)
    assert index_symbols(index) <= {name for name in NAMES if name in text}


@given(expressions(), st.tuples(*[st.integers(-50, 50)] * 3))
@settings(max_examples=examples(50, full=500), deadline=None)
def test_printed_expressions_have_the_same_value(text: str, numbers: tuple[int, int, int]) -> None:
    """The source of kernels, where -i // 2 is not -(i // 2)."""
    values = dict(zip(NAMES, numbers, strict=True))
    index = read(text).index
    assert index is not None
    expected = evaluate_index(index, values)
    for printed in (index_text(index), sum_text(None, index), sum_text(Text("0"), index)):
        assert eval(printed, {}, values) == expected, printed
    assert eval(scaled_text(3, index), {}, values) == 3 * expected


@given(
    expressions(),
    expressions(),
    st.sampled_from(["min", "max", "*", "//"]),
    st.tuples(*[st.integers(-9, 9)] * 3),
)
@settings(max_examples=examples(22, full=200), deadline=None)
def test_minima_products_and_quotients_are_values(
    one: str, two: str, how: str, numbers: tuple[int, int, int]
) -> None:
    """They are not index expressions, but have the same values as in Python."""
    text = f"{how}({one}, {two})" if how in ("min", "max") else f"({one}) {how} ({two})"
    values = dict(zip(NAMES, numbers, strict=True))
    try:
        expected = eval(text, {}, values)
        operand = read(text)
    except ZeroDivisionError:
        return
    function = Function("f", tuple(ScalarArg(name, "i64") for name in NAMES), (), (operand.value,))
    assert interpret(function, numbers) == (expected,)
    for ends, best in ((operand.least, min), (operand.largest, max)):
        assert not ends or best(evaluate_index(end, values) for end in ends) == expected
