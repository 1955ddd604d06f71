from __future__ import annotations

from random import Random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from codegen.support.errors import LayoutError
from tilejit.layout.as_layout import as_layout
from tilejit.layout.dtypes import PRIMITIVE_TYPES
from tilejit.layout.shape import BufferShape, Layout, Shape, TupleShape, parse_shape
from tilejit.layout.text.xla_text import XLA
from tilejit.support.tokens import mistake, tokenize

VALID = [
    "f32[]",
    "f32[]{:T(256)}",
    "F32[3,5]{1,0:T(2,2)}",
    "bf16[1000,300]{1,0:T(8,128)(2,1)}",
    "f32[2,7,8,11,10]{4,3,2,1,0:T(*,*,2,*,3)}",
    "s4[3,5]{0,1:T(8,128)(8,1)L(1024)#(u32)*(u16)E(4)S(3)SC(0:1)(1:2,4)M(64)}",
    "f32[?,<=784]{0,1}",
    "f32[2,3]{1,0:D(D+,C~)T(2,2)}",
    "(f32[1], /*c*/ (f32[2], token[]), opaque[], b(f32[3]), pred[3], s2[1], u1[1])",
    "b(f32[2,3]{0,1:T(2,2)}) // tail",
]
PIECES = [
    *(
        "f32",
        "bf16",
        "s4",
        "token",
        "b",
        "[",
        "]",
        "{",
        "}",
        "(",
        ")",
        ",",
        ":",
        "*",
        "?",
        "<=",
        "0",
        "1",
        "2",
    ),
    *(
        "T",
        "L",
        "E",
        "S",
        "SC",
        "P",
        "M",
        "D",
        "#",
        "-1",
        "\u2217",
        "99999999999999999999",
        " ",
        "/*",
        "*/",
        "//",
        "\n",
    ),
    *("128", "9223372036854775807", "é", "\x00", "\ud800", "+", "~", "1,0", "T(8,128)"),
]


def reads_or_refuses(text: str) -> None:
    try:
        shape = parse_shape(text)
    except LayoutError as error:
        lines = str(error).split("\n")
        assert len(lines) == 4
        assert lines[2].strip() == "^"
        assert len(lines[1]) < 120
        return
    assert parse_shape(str(shape)) == shape


@pytest.mark.parametrize("text", VALID)
def test_print_then_parse(text: str) -> None:
    shape = parse_shape(text)
    again = parse_shape(str(shape))
    assert again == shape
    assert hash(again) == hash(shape)
    assert str(again) == str(shape)


@given(st.lists(st.sampled_from(PIECES), max_size=30).map("".join) | st.text(max_size=60))
def test_random_text(text: str) -> None:
    reads_or_refuses(text)


@given(st.sampled_from(VALID), st.integers(0, 2**32))
def test_mutated_text(text: str, seed: int) -> None:
    random = Random(seed)
    for _ in range(random.randint(1, 3)):
        at, until = sorted((random.randint(0, len(text)), random.randint(0, len(text))))
        change = random.choice(["cut", "put", "double", "swap"])
        piece = random.choice(PIECES)
        text = {
            "cut": text[:at] + text[at + 1 :],
            "put": text[:at] + piece + text[at:],
            "double": text[:until] + text[at:until] + text[until:],
            "swap": text[:at] + piece + text[at + 1 :],
        }[change]
    reads_or_refuses(text)


@given(st.data())
def test_random_shapes_print_and_parse(data: st.DataObject) -> None:
    rank = data.draw(st.integers(0, 5))
    order = data.draw(st.permutations(range(rank)))
    sizes = st.integers(1, 300)
    tile = st.lists(st.just(-1) | sizes, max_size=4).flatmap(lambda t: sizes.map(lambda last: (*t, last)))
    layout = Layout(
        tuple(order),
        tuple(data.draw(st.lists(tile, max_size=3))),
        element_size_in_bits=data.draw(st.sampled_from([0, 4, 32])),
        tail_padding_alignment_in_elements=data.draw(st.integers(1, 9)),
        memory_space=data.draw(st.integers(0, 3)),
        index_type=data.draw(st.sampled_from([None, "u32"])),
        pointer_type=data.draw(st.sampled_from([None, "u16"])),
        split_configs=data.draw(st.sampled_from([(), ((0, (1, 2)),)])) if rank else (),
        dynamic_shape_metadata_prefix_bytes=data.draw(st.integers(0, 2)),
    )
    dims = data.draw(st.lists(st.integers(-1, 40), min_size=rank, max_size=rank))
    dynamic = data.draw(st.lists(st.booleans(), min_size=rank, max_size=rank))
    names = [name for name, row in PRIMITIVE_TYPES.items() if row.is_array_element]
    shape = Shape(data.draw(st.sampled_from(names)), tuple(dims), layout, tuple(dynamic))
    assert Shape.parse(str(shape)) == shape
    assert parse_shape(f" ( {shape} , b({shape}) ) ") == TupleShape((shape, BufferShape(shape)))
    assert Layout.parse(str(layout), rank) == layout
    assert Shape.from_json(shape.to_json()) == shape


HOSTILE = {
    "open parentheses": "(" * 60_000,
    "nested tuples": "(" * 30_000 + ")" * 30_000,
    "nested buffers": "b(" * 20_000,
    "nested physical shapes": "f32[1]{0:P(" * 5_000,
    "comments that never close": "/*" * 30_000,
    "a long number": f"f32[{'9' * 60_000}]",
    "a long negative number": f"f32[-{'9' * 60_000}]",
    "zeros before the number": f"f32[{'0' * 60_000}3]",
    "many dimensions": f"f32[{'1,' * 30_000}1]",
    "many large dimensions": f"f32[{'9,' * 30_000}1]",
    "many tiles": f"f32[3]{{0:T{'(2)' * 20_000}}}",
    "a long tile": f"f32[3]{{0:T({'1,' * 30_000}1)}}",
    "a long merge": f"f32[3]{{0:T({'*,' * 30_000}1)}}",
    "growing tiles": f"f32[3]{{0:T{'(9223372036854775807)' * 60}}}",
    "many tuple members": f"({'f32[],' * 10_000}f32[])",
    "a long name": "f" * 60_000,
    "too long": " " * 70_000,
    "one dimension twice in a long order": f"f32[{'1,' * 9000}1]{{{','.join(map(str, range(9000)))},0}}",
    "white space": " " * 65_000 + "f32[3]",
}


@pytest.mark.full
@pytest.mark.timeout(60)
@pytest.mark.parametrize("name", HOSTILE)
def test_hostile_text_never_hangs(name: str) -> None:
    reads_or_refuses_any(HOSTILE[name])


def reads_or_refuses_any(text: str) -> None:
    try:
        parse_shape(text)
    except LayoutError as error:
        message = str(error)
        if len(message) > 1000:
            pytest.fail("the message fills the screen")


@pytest.mark.parametrize(
    ("text", "caret"),
    [
        ("f32[300,7]{2,0:T(8,128)}", "2,0"),
        ("f32[3,5]{1,1}", "1}"),
        ("f32[3,5]{1}", "}"),
        ("f32[3,5]{1,0:T(2,*)}", "*)}"),
        ("f32[3,5]{1,0:T(0,2)}", "0,2"),
        ("f32[3,5]{1,0:L(0)}", "0)}"),
        ("f32[3,5]{1,0:SC(2:1)}", "2:1"),
        ("f32[3,5]{1,0:#(f32)}", "f32)}"),
        ("s32[3,-5]", "-5"),
        ("f32[3,5", ""),
        ("(f32[1], b(token[]))", "token"),
    ],
)
def test_the_caret_is_under_the_mistake(text: str, caret: str) -> None:
    with pytest.raises(LayoutError) as caught:
        parse_shape(text)
    _, shown, below, fix = str(caught.value).split("\n")
    assert shown == f"  {text}"
    assert shown[below.index("^") :].startswith(caret)
    assert below.index("^") - 2 == text.rindex(caret)
    assert fix.startswith("  ")


@pytest.mark.parametrize("star", ["*", "\u2217", "-1"])
def test_spellings_of_the_star(star: str) -> None:
    """XLA's documentation writes U+2217, and -1 for its value. All print as in XLA's text."""
    text = f"f32[2,7,8,11,10]{{4,3,2,1,0:T({star},{star},2,{star},3)}}"
    plain = "f32[2,7,8,11,10]{4,3,2,1,0:T(*,*,2,*,3)}"
    assert str(Shape.parse(text)) == plain
    assert Layout.parse(f"{{1,0:T({star},2)}}").tiles == ((-1, 2),)
    assert as_layout(text) == as_layout(plain)
    assert as_layout(f"{{1,0:T({star},4)}}", dtype="f32", dims=(3, 5)) == Shape.parse("f32[3,5]{1,0:T(*,4)}")
    with pytest.raises(LayoutError, match=r"ends with \*"):
        Shape.parse(f"f32[3,5]{{1,0:T(2,{star})}}")


@pytest.mark.parametrize("text", ["f32[\u2217]", "f32[2]{0:\u2217(u32)}", "f32[3,5]{1,0:T(-2,2)}", "f32[-1]"])
def test_other_stars_and_negative_sizes(text: str) -> None:
    with pytest.raises(LayoutError, match=r"\n +\^\n"):
        parse_shape(text)


def test_the_message_of_the_style_guide() -> None:
    with pytest.raises(LayoutError) as caught:
        Shape.parse("f32[300,7]{2,0:T(8,128)}")
    assert str(caught.value) == (
        "minor_to_major names dimension 2, but the shape has dimensions 0 and 1\n"
        "  f32[300,7]{2,0:T(8,128)}\n"
        "             ^\n"
        "  name each of 0 and 1 once, e.g. {1,0}"
    )


def test_orders_of_another_rank() -> None:
    """The rank is wrong, not a dimension."""
    with pytest.raises(LayoutError) as caught:
        Shape.parse("f32[5]{1,0:T(8,128)}")
    assert str(caught.value) == (
        "minor_to_major is for 2 dimensions, but the shape has 1\n"
        "  f32[5]{1,0:T(8,128)}\n"
        "         ^\n"
        "  write {0}"
    )
    with pytest.raises(LayoutError, match="is for 3 dimensions, but the shape has 2\n"):
        as_layout("{2,1,0}", dtype="f32", dims=(3, 5))


def test_long_text_is_cut_around_the_caret() -> None:
    error = mistake("x" * 500, 250, "cause", "fix")
    _, shown, below, _ = str(error).split("\n")
    assert shown[2] == shown[-1] == "…"
    assert shown[below.index("^")] == "x"
    assert len(shown) < 110


@pytest.mark.parametrize("value", [None, 3, b"f32[3]", ["f32[3]"]])
def test_not_a_str(value) -> None:
    with pytest.raises(TypeError):
        Shape.parse(value)
    with pytest.raises(TypeError):
        parse_shape(value)
    with pytest.raises(TypeError):
        Layout.parse(value)
    with pytest.raises(TypeError):
        tokenize(value, XLA)


def test_carets_of_five_errors() -> None:
    shape = parse_shape("(" + ", ".join(["f32[]"] * 11) + ")")
    assert str(shape) == (
        "(f32[], f32[], f32[], f32[], f32[], /*index=5*/f32[], f32[], f32[], f32[], f32[], /*index=10*/f32[])"
    )
    assert parse_shape(str(shape)) == shape


@pytest.mark.parametrize(("text", "kind"), [("(f32[2])", "tuple"), ("()", "tuple"), ("b(f32[2])", "buffer")])
def test_shape_parse_reads_one_array(text: str, kind: str) -> None:
    with pytest.raises(
        LayoutError, match=rf"expected .* one array, got a {kind}.*\n  .*tilejit\.parse_shape"
    ):
        Shape.parse(text)


def test_missing_layout_is_row_major_and_printed() -> None:
    shape = Shape.parse("f32[3,4]")
    assert str(shape) == "f32[3,4]{1,0}"
    assert str(shape.without_layout()) == "f32[3,4]"
