"""einops patterns as layouts: against NumPy, the padding they make, and what they refuse."""

from __future__ import annotations

import math
from contextlib import suppress
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import tilejit as tj
from codegen.support.errors import LayoutError, TilejitError
from tests.tools.extent import examples
from tests.tools.oracle import same_elements, slots_of
from tilejit.layout.formats.blocking import Blocking, DigitName
from tilejit.layout.formats.spelling import spell
from tilejit.layout.text.pattern_text import parse_pattern

PADDING = -1


@pytest.mark.parametrize(
    ("pattern", "dims", "sizes", "text"),
    [
        ("(m mi) (n ni) -> m n mi ni", (1000, 300), {"mi": 8, "ni": 128}, "{1,0:T(8,128)}"),
        ("(m mi) (n ni) -> m n mi ni, mi=8, ni=128", (1000, 300), {}, "{1,0:T(8,128)}"),
        ("(m mi) (n ni)->(m n) (mi ni), mi=8", (1000, 300), {"ni": 128}, "{1,0:T(8,128)}"),
        ("m n -> m n", (5, 7), {}, "{1,0}"),
        ("m n -> n m", (5, 7), {}, "{0,1}"),
        ("... n -> n ...", (3, 4, 5), {}, "{1,0,2}"),
        ("... -> ...", (), {}, "{}"),
        ("->", (), {}, "{}"),
        ("n 1 h () -> h n 1", (3, 1, 4, 1), {}, "{3,0,2,1}"),
        ("(m mi) n -> m mi n", (32, 5), {"m": 4}, "{1,0}"),
        ("(m mi) n -> m n mi", (30, 5), {"m": 4}, "{1,0:T(8,1)}"),
        ("n -> n", (100,), {"n": 128}, "{0:T(128)}"),
    ],
    ids=str,
)
def test_layouts_of_patterns(pattern: str, dims: tuple[int, ...], sizes: dict[str, int], text: str) -> None:
    shape = tj.as_layout(pattern, dims=dims, dtype="bf16", **sizes)
    assert str(shape.layout) == text
    assert shape.dimensions == dims
    assert shape.primitive_type == "bf16"


@st.composite
def patterns(
    draw: Any,
) -> tuple[str, tuple[int, ...], dict[str, int], list[list[str]], list[str], dict[str, int]]:
    """A pattern, dimensions, given sizes, the axes of each dimension, their order, and all sizes."""
    dims = tuple(draw(st.lists(st.integers(1, 9), max_size=3)))
    groups: list[list[str]] = []
    given_sizes: dict[str, int] = {}
    every: dict[str, int] = {}
    for d, n in enumerate(dims):
        group = [f"a{d}{k}" for k in range(draw(st.integers(1, 3)))]
        unknown = draw(st.sampled_from([*group, None]))
        sizes = {axis: draw(st.integers(1, 4)) for axis in group if axis != unknown}
        rest = -(-n // math.prod(sizes.values()))
        if unknown is None:
            sizes[group[0]] *= rest
        given_sizes |= sizes
        every |= {axis: sizes.get(axis, rest) for axis in group}
        groups.append(group)
    order = draw(st.permutations([axis for group in groups for axis in group]))
    left = " ".join(f"({' '.join(group)})" for group in groups)
    return f"{left} -> {' '.join(order)}", dims, given_sizes, groups, order, every


def expected(
    dims: tuple[int, ...], groups: list[list[str]], order: list[str], every: dict[str, int]
) -> np.ndarray[Any, Any]:
    """The number of the element in each slot, by pad, reshape and transpose."""
    box = np.full([math.prod(every[axis] for axis in group) for group in groups], PADDING)
    box[tuple(map(slice, dims))] = np.arange(math.prod(dims)).reshape(dims)
    names = [axis for group in groups for axis in group]
    return box.reshape([every[axis] for axis in names]).transpose([names.index(a) for a in order]).reshape(-1)


@given(patterns())
@settings(max_examples=examples(33, full=300))
def test_a_pattern_is_pad_reshape_transpose(case: Any) -> None:
    pattern, dims, sizes, groups, order, every = case
    shape = tj.as_layout(pattern, dims=dims, dtype="uint8", **sizes)
    slots = expected(dims, groups, order, every)
    assert shape.physical_size == slots.size
    if sum(len(tile) for tile in shape.tiles) < 20:  # NumPy supports 64 dimensions
        assert slots_of(shape).tolist() == slots.tolist()
    index = tuple(np.indices(dims)) if dims else ()
    at = np.asarray(tj.linear_index(shape, index)).reshape(-1)
    assert slots[at].tolist() == list(range(math.prod(dims)))
    source: dict[str, Any] = {}
    exec(parse_pattern(pattern).blocking(dims, sizes).recipe("x"), source)
    assert source["pack"](np.arange(1, 1 + math.prod(dims)).reshape(dims)).tolist() == (slots + 1).tolist()


@given(patterns())
@settings(max_examples=examples(5, full=50))
def test_equivalent_patterns_have_the_same_layout(case: Any) -> None:
    """White space, parentheses on the right, sizes in the text, and names do not matter."""
    pattern, dims, sizes, _, order, _ = case
    shape = tj.as_layout(pattern, dims=dims, dtype="uint8", **sizes)
    left, right = pattern.split("->")
    text = "".join(f" , {name} = {size}" for name, size in sizes.items())
    assert tj.as_layout(f"{left}->( {right} ){text}", dims=dims, dtype="uint8") == shape
    renamed = {axis: f"Z{k}_" for k, axis in enumerate(order)}
    for axis, name in renamed.items():
        pattern = pattern.replace(axis, name)
    more = {renamed[axis]: size for axis, size in sizes.items()}
    assert tj.as_layout(pattern, dims=dims, dtype="uint8", **more) == shape


def test_digits_beyond_the_search_are_still_spelled() -> None:
    """Digits of two in reverse order: more than the search covers."""
    names = [f"{axis}{k}" for k in range(7) for axis in "mn"]
    left = f"({' '.join(n for n in names if n[0] == 'm')}) ({' '.join(n for n in names if n[0] == 'n')})"
    shape = tj.as_layout(
        f"{left} -> {' '.join(reversed(names))}", dims=(128, 100), dtype="uint8", **dict.fromkeys(names, 2)
    )
    bits = np.arange(128)[:, None] >> np.arange(7) & 1
    spread = (bits << 2 * (6 - np.arange(7))).sum(1)
    want = spread[:, None] + 2 * spread[None, :100]
    assert np.array_equal(tj.linear_index(shape, tuple(np.indices((128, 100)))), want)
    assert shape.physical_size == 128 * 128


def test_too_many_digits_are_refused() -> None:
    left = " ".join(f"(a{k} b{k} c{k})" for k in range(30))
    right = " ".join(f"{c}{k}" for c in "cba" for k in reversed(range(30)))
    sizes = {f"{c}{k}": 1 + (k < 10) for c in "bc" for k in range(30)}
    with pytest.raises(LayoutError, match="axes"):
        tj.as_layout(f"{left} -> {right}", dims=(5,) * 30, dtype="uint8", **dict.fromkeys(sizes, 2))


def test_packing_by_a_pattern() -> None:
    x = np.arange(30 * 50, dtype=np.float32).reshape(30, 50)
    tiled = tj.pack(x, "(m mi) (n ni) -> m n mi ni", mi=8, ni=16)
    padded = np.pad(x, ((0, 2), (0, 14))).reshape(4, 8, 4, 16).transpose(0, 2, 1, 3).reshape(-1)
    assert np.array_equal(tiled.buffer, padded)
    assert same_elements(tj.unpack(tiled), x, tiled.layout)
    assert tiled[29, 49] == x[29, 49]


def test_a_pattern_needs_an_array() -> None:
    with pytest.raises(LayoutError, match="dtype and dims"):
        tj.as_layout("m n -> n m")
    with pytest.raises(LayoutError, match="dtype"):
        tj.as_layout("m n -> n m", dims=(2, 3))
    with pytest.raises(LayoutError, match=r"dimension is \?"):
        tj.as_layout("m n -> n m", dims=(-1, 3), dtype="f32")
    with pytest.raises(LayoutError, match="cannot have the dtype token"):
        tj.as_layout("m n -> n m", dims=(2, 3), dtype="token")


def test_arrows_in_comments_do_not_count() -> None:
    assert str(tj.as_layout("f32[2,3] // a -> b")) == "f32[2,3]{1,0}"
    assert str(tj.as_layout("/* -> */ f32[2]")) == "f32[2]{0}"


@pytest.mark.parametrize(
    ("pattern", "dims", "sizes", "says", "at"),
    [
        ("(m mi n -> m n mi", (3, 4), {}, "')' is missing", 8),
        ("(m (mi)) n -> m n mi", (3, 4), {}, "inside another", 3),
        ("(m ...) n -> m n", (3, 4), {}, "inside a parenthesis", 3),
        ("... m ... -> m ...", (3, 4), {}, "twice", 6),
        ("m m -> m", (3, 4), {}, "m occurs twice left", 2),
        ("m n -> n", (3, 4), {}, "m is missing right", 0),
        ("... n -> n", (3, 4), {}, "... is missing right", 0),
        ("m n -> n m n", (3, 4), {}, "n occurs twice right", 11),
        ("m n -> n k", (3, 4), {}, "k does not occur left", 9),
        ("m n -> n m ...", (3, 4), {}, "... does not occur left", 11),
        ("m n -> (n m", (3, 4), {}, "')' is missing", 7),
        ("m n -> n) m", (3, 4), {}, "is not allowed here", 8),
        ("m n -> n m -> m", (3, 4), {}, "is not allowed here", 11),
        ("m 8 -> m", (3, 8), {}, "a number other than 1", 2),
        ("m n -> m n 2", (3, 8), {}, "a number other than 1", 11),
        ("m n -> n m,", (3, 4), {}, "expected an axis of the pattern", 11),
        ("m n -> n m, k=3", (3, 4), {}, "expected an axis of the pattern", 12),
        ("m n -> n m, n", (3, 4), {}, "'=' is missing", 13),
        ("m n -> n m, n=0", (3, 4), {}, "a size is missing", 14),
        ("m n -> n m, n=99999999999999999999", (3, 4), {}, "a size is missing", 14),
        ("m n -> n m, n=4 m=3", (3, 4), {}, "continues", 16),
        ("m n -> n m, n=4, n=4", (3, 4), {}, "given twice", 17),
        ("m & n -> n m", (3, 4), {}, "is not allowed", 2),
        ("m п -> п m", (3, 4), {}, "is not allowed", 2),
        ("(m mi) n -> m n mi", (3, 4), {}, "m and mi both lack a size", 3),
        ("(m mi) n -> m n mi", (30, 4), {"m": 2, "mi": 3}, "cover 6 elements, but dimension 0 has 30", 0),
        ("m n -> n m", (3, 4), {"n": 3}, "cover 3 elements, but dimension 1 has 4", 2),
        ("m 1 -> m", (3, 4), {}, "cover 1 elements, but dimension 1 has 4", 2),
    ],
    ids=str,
)
def test_mistakes_have_a_caret(
    pattern: str, dims: tuple[int, ...], sizes: dict[str, int], says: str, at: int
) -> None:
    with pytest.raises(LayoutError) as caught:
        tj.as_layout(pattern, dims=dims, dtype="f32", **sizes)
    lines = str(caught.value).splitlines()
    assert says in lines[0]
    assert lines[2].index("^") - 2 == at
    assert lines[3].strip()


@pytest.mark.parametrize(
    ("sizes", "error", "says"),
    [
        ({"mi": 0}, LayoutError, "mi is 0"),
        ({"mi": 2**70}, LayoutError, "71 bits"),
        ({"mi": 2**63 - 1, "ni": 2**63 - 1}, LayoutError, r"2\^63 bits"),
        ({"mi": "8"}, TypeError, "integer"),
        ({"mi": 8.0}, TypeError, "integer"),
        ({"mo": 8}, TypeError, "no axis 'mo'; it has m, mi, n, ni"),
        ({"mi": 8, "m": 1, "ni": 3}, LayoutError, "cover 8 elements, but"),
    ],
    ids=str,
)
def test_wrong_sizes(sizes: dict[str, Any], error: type[Exception], says: str) -> None:
    with pytest.raises(error, match=says):
        tj.as_layout("(m mi) (n ni) -> m n mi ni", dims=(30, 30), dtype="f32", **{"ni": 4, **sizes})
    with pytest.raises(LayoutError, match="keyword"):
        tj.as_layout("(m mi) n -> m n mi, mi=2", dims=(30, 30), dtype="f32", mi=2)
    with pytest.raises(LayoutError, match=r"takes 2 dimensions; got an array \[3\]"):
        tj.as_layout("m n -> n m", dims=(3,), dtype="f32")
    with pytest.raises(LayoutError, match="at least 1 dimensions"):
        tj.as_layout("... n -> n ...", dims=(), dtype="f32")


PIECES = [
    "->",
    "...",
    "(",
    ")",
    "1",
    "m",
    "n",
    "mi",
    "8",
    ",",
    "=",
    " ",
    "{",
    "[",
    "/*",
    "*/",
    "//",
    "é",
    "\x00",
]


@given(st.lists(st.sampled_from(PIECES), max_size=14), st.lists(st.integers(0, 5), max_size=3))
@settings(max_examples=examples(44, full=400))
def test_arbitrary_patterns_only_raise_layout_errors(pieces: list[str], dims: list[int]) -> None:
    with suppress(TilejitError):
        assert tj.as_layout("".join(pieces), dims=dims, dtype="f32").dimensions == tuple(dims)


@pytest.mark.full
@pytest.mark.parametrize(
    "text",
    [
        "->" + "(" * 60_000,
        "(" * 60_000 + "->",
        "a" * 70_000 + "->",
        " ".join(f"a{k}" for k in range(5000)) + "->",
    ],
    ids=lambda t: t[:6],
)
def test_long_patterns_end_soon(text: str) -> None:
    with pytest.raises(LayoutError):
        tj.as_layout(text, dims=(2,), dtype="f32")


def test_blockings_are_checked() -> None:
    good = Blocking((5,), ((2, 3),), (DigitName(0, 1), DigitName(0, 0)))
    assert good.padded == (6,)
    assert spell(good) == ((0,), ((3,), (2, 1)))
    for digits, order, says in (
        (((2, 2),), ((0, 0), (0, 1)), "cover 4 elements, less than"),
        (((),), (), "no digits"),
        ((), (), "0 of 1"),
        (((-2, -3),), ((0, 0), (0, 1)), "a digit is -2"),
        (((2, 3),), ((0, 0),), "order"),
        (((2, 3),), ((0, 0), (0, 0)), "order"),
        (((2, 3),), ((0, 0, 1), (0,)), "order"),
    ):
        with pytest.raises(LayoutError, match=says):
            Blocking((5,), digits, order)  # type: ignore[arg-type]
