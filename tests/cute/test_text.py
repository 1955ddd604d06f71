from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.cute import draw
from tests.tools.extent import few_by_default
from tests.tools.strategies import picker
from tilejit import LayoutError
from tilejit.cute import ComposedLayout, Layout, Swizzle, Tiler, _, format_layout, parse

TEXTS = (
    "(2,2):(2,4)",
    "4:1",
    "(4):(1)",
    "():()",
    "((2,3),4):((1,-2),0)",
    "Sw<3,4,3>",
    "Sw<0,3,0>",
    "Sw<2,0,-3>",
    "Sw<3,4,3> o 0 o (8,8):(8,1)",
    "(4,8):(1,4) o 3 o Sw<1,2,3> o 0 o 64:1",
    "[Sw<1,2,3> o 5 o 4:1] o 0 o 8:1",
    "<2:3,3:2>",
    "<_,4,<2:1,3>>",
    "<>",
)


@pytest.mark.parametrize("text", TEXTS)
def test_texts_round_trip(text: str) -> None:
    assert str(parse(text)) == text
    assert parse(f"  {text.replace(',', ' , ').replace(':', ' : ')}\n") == parse(text)
    assert hash(parse(text)) == hash(parse(text))


@pytest.mark.parametrize("number", few_by_default(range(100), 25))
def test_layouts_round_trip(number: int) -> None:
    a = draw.layout(picker(np.random.default_rng(number)), signed=True)
    assert parse(str(a)) == Layout.parse(str(a)) == a


def test_types_of_parsed_texts() -> None:
    assert parse("(_4,_8):(_1,_-4)") == Layout((4, 8), (1, -4))
    assert parse("(4,):(1,)") == Layout((4,), (1,))
    assert parse("(2,(_,3))") == (2, (_, 3))
    assert parse("<2:3,3:2>") == Tiler((Layout(2, 3), Layout(3, 2))) == (Layout(2, 3), Layout(3, 2))
    assert parse("Sw<3,4,3>") == parse("S<3,4,3>") == Swizzle(3, 4, 3)
    assert parse("Sw<3,4,3> o (8,8):(8,1)") == ComposedLayout(Swizzle(3, 4, 3), 0, Layout((8, 8), (8, 1)))


@pytest.mark.parametrize(
    ("text", "cause", "caret"),
    [
        ("", "a number is missing", 0),
        ("(2,2):(2,4", "is missing", 10),
        ("(2,2):(2,(4))", "does not nest", 6),
        ("4:", "a number is missing", 2),
        ("4:1:2", "continues", 3),
        ("4:x", "is not allowed", 2),
        ("(-1):(2)", "a size is -1", 0),
        ("Sw<3,4>", "three numbers", 2),
        ("Sw<3,4,2>", "onto themselves", 2),
        ("Sw<-1,4,2>", "negative", 2),
        ("Sw<60,4,60>", "63rd", 2),
        ("<Sw<1,1,1>>", "a tiler can contain only", 1),
        ("3 o 4:1", "precede 'o'", 0),
        ("4:1 o 3", "follow 'o'", 6),
        ("(_):(1)", "a layout cannot contain _", 0),
        ("9" * 30 + ":1", "exceeds", 0),
    ],
)
def test_errors_have_a_caret(text: str, cause: str, caret: int) -> None:
    with pytest.raises(LayoutError) as refusal:
        parse(text)
    lines = str(refusal.value).split("\n")
    assert cause in lines[0]
    assert lines[2].index("^") - 2 == caret


def test_layout_parse_returns_only_layouts() -> None:
    for text in ("(4,8)", "Sw<1,2,3>", "<4:1>"):
        with pytest.raises(LayoutError, match="expected a layout, got a"):
            Layout.parse(text)
    with pytest.raises(TypeError):
        parse(4)  # type: ignore[arg-type]
    for text in ("(" * 5000, "<" * 5000, "[" * 5000, "4:1 o " * 5000, "(" * 70_000):
        with pytest.raises(LayoutError):
            parse(text)


@given(st.text(alphabet="(),:<>[]_oSw0123-9 ", max_size=24))
def test_any_text_is_read_or_refused(text: str) -> None:
    try:
        found = parse(text)
    except LayoutError:
        return
    if isinstance(found, Layout | Swizzle | ComposedLayout | Tiler):
        assert parse(str(found)) == found


def test_grid() -> None:
    assert format_layout(parse("(2,3):(3,1)")).splitlines() == [
        "(2,3):(3,1)",
        "      0   1   2",
        "    +---+---+---+",
        " 0  | 0 | 1 | 2 |",
        "    +---+---+---+",
        " 1  | 3 | 4 | 5 |",
        "    +---+---+---+",
    ]
    nested = format_layout(parse("(2,(2,2)):(4,(1,10))")).splitlines()
    assert nested[3] == " 0  |  0 |  1 | 10 | 11 |"
    assert format_layout(parse("Sw<1,0,1> o 0 o (2,4):(4,1)")).splitlines()[3] == " 0  | 0 | 1 | 3 | 2 |"
    assert format_layout(parse("3:2")).splitlines()[3] == " 0  | 0 | 2 | 4 |"
    cut = format_layout(parse("(1000,1000):(1,1000)"), max_rows=2, max_columns=3)
    assert cut.splitlines()[-1] == "the first 2 x 3 of 1000 x 1000"
    with pytest.raises(LayoutError, match="3 modes"):
        format_layout(parse("(2,2,2):(1,2,4)"))
