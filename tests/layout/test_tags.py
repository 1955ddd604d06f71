"""oneDNN's blocked tags: read by oneDNN's rule, or refused with a caret."""

from __future__ import annotations

from contextlib import suppress

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import tilejit as tj
from codegen.support.errors import LayoutError, TilejitError
from tests.tools.extent import examples
from tilejit.layout.text.tags import is_tag, parse_tag


@pytest.mark.parametrize(
    ("tag", "dims", "order", "blocks"),
    [
        ("aBcd16b", "abcd", "abcd", ((16, "b"),)),
        ("nChw16c", "nchw", "nchw", ((16, "c"),)),
        ("nhwc", "nchw", "nhwc", ()),
        ("OIhw4i16o4i", "oihw", "oihw", ((4, "i"), (16, "o"), (4, "i"))),
        ("gIOdhw16o16i", "goidhw", "giodhw", ((16, "o"), (16, "i"))),
        ("BA16a64b2a", "ab", "ba", ((16, "a"), (64, "b"), (2, "a"))),
        ("ldgoi", "ldigo", "ldgoi", ()),
        ("x", "x", "x", ()),
    ],
)
def test_tags(tag: str, dims: str, order: str, blocks: tuple[tuple[int, str], ...]) -> None:
    assert is_tag(tag)
    parsed = parse_tag(tag)
    assert (parsed.dims, parsed.order, parsed.blocks) == (dims, order, blocks)


@given(st.data())
def test_printed_tags_are_read_back(data: st.DataObject) -> None:
    rank = data.draw(st.integers(1, 12))
    letters = "abcdefghijkl"[:rank]
    blocks = data.draw(st.lists(st.tuples(st.integers(2, 64), st.sampled_from(letters)), max_size=4))
    order = "".join(data.draw(st.permutations(letters)))
    blocked = {letter for _, letter in blocks}
    text = "".join(c.upper() if c in blocked else c for c in order) + "".join(f"{n}{c}" for n, c in blocks)
    parsed = parse_tag(text)
    assert (parsed.dims, parsed.order, parsed.blocks) == (letters, order, tuple(blocks))
    blocking = parsed.blocking((5,) * rank)
    assert all(5 <= size < 5 + max(2, size) for size in blocking.padded)


@pytest.mark.parametrize(
    ("tag", "says", "at", "fix"),
    [
        ("nChw16", "has no letter", 6, "16n"),
        ("nchw16c", "lower case", 1, "write C"),
        ("nChw16x", "x is not a dimension of the tag", 6, "n c h w"),
        ("nChw16C", "C is not a dimension of the tag", 6, "write c"),
        ("nChw1c", "a block has size 1", 4, "from 2"),
        ("nChw0c", "a block has size 0", 4, "from 2"),
        ("nChw99999999999999999999c", "a block has size 9999", 4, "from 2"),
        ("nChw9999999999999c9999999999c", "more than 2^63-1", 1, "smaller"),
        ("nCChw16c", "c occurs twice", 2, "once"),
        ("NChw16c", "N is in upper case", 0, "write n"),
        ("aCb", "C is in upper case", 1, "16c"),
        ("aCd16c", "not dimensions that oneDNN names", 0, "letters from a"),
        ("nChwo16c", "not dimensions that oneDNN names", 0, "n c d h w"),
    ],
)
def test_mistakes_have_a_caret(tag: str, says: str, at: int, fix: str) -> None:
    rank = len(tag.lower().rstrip("0123456789"))
    with pytest.raises(LayoutError) as caught:
        tj.named_format(tag, "f32", (4,) * rank)
    lines = str(caught.value).splitlines()
    assert says in lines[0]
    assert lines[2].index("^") - 2 == at
    assert fix in lines[3]


@pytest.mark.parametrize(
    "name", ["col32", "col33", "tpu", "NC1HWC0", "NC1HWC1", "f32", "BF16", "", "16c", "a b", "é"]
)
def test_other_names_are_not_tags(name: str) -> None:
    assert not is_tag(name)


@given(st.text("abcnhwCBOIio0123456789x_ ", max_size=12))
@settings(max_examples=examples(33, full=300))
def test_arbitrary_tags_only_raise_layout_errors(text: str) -> None:
    with suppress(TilejitError):
        assert tj.as_layout(text, dims=(3, 4), dtype="f32").dimensions == (3, 4)
