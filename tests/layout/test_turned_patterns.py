"""Patterns with reversed axes and XOR, against NumPy: pad, reshape, move each index, transpose."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import tilejit as tj
from tests.tools.extent import examples
from tests.tools.oracle import same_elements
from tilejit.layout.as_layout import recipe_of
from tilejit.layout.indexing import access_map

HASH = (np.arange(1 << 12, dtype=np.uint32) * 2654435761 >> 16).astype(np.int64)


@st.composite
def turned(draw: Any) -> tuple[str, tuple[int, ...], dict[str, int], list[list[str]], list[str]]:
    """A pattern, dimensions, sizes, the axes of each dimension, and the right side in memory order.

    Sizes are powers of two, except for the most major axis in memory, which nothing is XORed with.
    """
    sizes: dict[str, int] = {}
    groups: list[list[str]] = []
    dims: list[int] = []
    for d in range(draw(st.integers(1, 3))):
        group = [f"{'abc'[d]}{k}" for k in range(draw(st.integers(1, 3)))]
        sizes |= {axis: draw(st.sampled_from([1, 2, 4, 8])) for axis in group}
        groups.append(group)
    names = draw(st.permutations(list(sizes)))
    sizes[names[0]] = draw(st.integers(1, 5))
    for group in groups:
        whole = math.prod(sizes[axis] for axis in group)
        dims.append(draw(st.integers(max(1, whole - 5), whole)))
    places = {names[0]: names[0]}
    later = names[1:] if draw(st.booleans()) else names[:0:-1]
    readable: list[str] = []  # axes that keep their order, and were drawn before: no two read each other
    for name in later:
        kind = draw(st.sampled_from("|-^^"))
        others = [other for other in readable if sizes[other] <= sizes[name]]
        by = f"^{draw(st.sampled_from(others))}" if kind == "^" and others else ""
        places[name] = f"-{name}" if kind == "-" else f"{name}{by}"
        readable += [name] if kind != "-" else []
    right = [places[name] for name in names]
    left = " ".join(f"({' '.join(group)})" for group in groups)
    return f"{left} -> {' '.join(right)}", tuple(dims), sizes, groups, right


def packed(
    x: np.ndarray[Any, Any], sizes: dict[str, int], groups: list[list[str]], right: list[str]
) -> np.ndarray[Any, Any]:
    """The buffer, by an assignment for every element of the padded array at once."""
    box = np.zeros([math.prod(sizes[axis] for axis in group) for group in groups], x.dtype)
    box[tuple(map(slice, x.shape))] = x
    names = [axis for group in groups for axis in group]
    index = dict(zip(names, np.indices([sizes[axis] for axis in names]).reshape(len(names), -1), strict=True))
    slot: Any = 0
    for place in right:
        axis, _, by = place.lstrip("-").partition("^")
        at = sizes[axis] - 1 - index[axis] if place[0] == "-" else index[axis] ^ (index[by] if by else 0)
        slot = slot * sizes[axis] + at
    out = np.zeros(box.size, x.dtype)
    out[slot] = box.reshape(-1)
    return out


@given(turned())
@settings(max_examples=examples(40, full=400))
def test_a_turned_pattern_moves_the_index_of_an_axis(case: Any) -> None:
    pattern, dims, sizes, groups, right = case
    x = np.resize(HASH, dims).astype(np.int32) + 1
    t = tj.pack(x, pattern, **sizes)
    want = packed(x, sizes, groups, right)
    assert t.buffer.tolist() == want.tolist()
    assert same_elements(tj.unpack(t), x, t.layout)
    assert tj.as_layout(str(t.layout)) == t.layout
    assert tj.relayout(tj.pack(x, "... -> ..."), pattern, **sizes).buffer.tolist() == want.tolist()
    assert tj.relayout(t, "... -> ...").buffer.tolist() == x.reshape(-1).tolist()
    index = tj.multi_index(t.layout, np.flatnonzero(want))
    assert x[index].tolist() == want[want != 0].tolist()
    source: dict[str, Any] = {}
    exec(recipe_of(pattern, "s32", dims, **sizes), source)
    assert source["pack"](x).tolist() == want.tolist()


@pytest.mark.parametrize("rows", [1, 5, 64])
def test_high_nibbles_first(rows: int) -> None:
    x = (np.resize(HASH, (rows, 30)) % 16).astype(np.uint8)
    parameters = {"p": 2, "element_size_in_bits": 4}
    t = tj.pack(x, "r (c p) -> r c -p", **parameters)
    assert t.buffer.tolist() == (x[:, ::2] << 4 | x[:, 1::2]).reshape(-1).tolist()
    assert tj.unpack(t, dtype="uint8").tolist() == x.tolist()
    assert tj.unpack(t.buffer, "r (c p) -> r c -p", dtype="uint8", dims=x.shape, **parameters).tolist() == (
        x.tolist()
    )
    low = tj.relayout(t, "r (c p) -> r c p", **parameters)
    assert low.buffer.tolist() == (x[:, ::2] | x[:, 1::2] << 4).reshape(-1).tolist()
    assert tj.relayout(low, t.layout).buffer.tolist() == t.buffer.tolist()
    source: dict[str, Any] = {}
    exec(recipe_of("r (c p) -> r c -p", "uint4", x.shape, **parameters), source)
    assert source["pack"](x).tolist() == t.buffer.tolist()
    t[0, 3] = 9
    assert t.buffer[1] == (x[0, 2] << 4 | 9)


def test_a_swizzled_tile_is_kept_and_explained() -> None:
    """Rows of eight chunks, each row's chunks XORed with its number, as in shared memory."""
    x = np.arange(64 * 64, dtype=np.float16).reshape(64, 64)
    t = tj.pack(x, "(R r) (C c) -> R r C^r c, r=8, c=8")
    assert str(t.layout) == "f16[64,64] Sw<3,3,3> o 0 o (64,64):(64,1)"
    assert tj.explain("(R r) (C c) -> R r C^r c, r=8, c=8", x).source.count("def ") == 1
    assert "Sw<3,3,3>" in str(tj.show(t.layout))


def test_two_chains_of_xor_stay_digits() -> None:
    """k reads j and j reads i: the tree of the access map has no table."""
    x = np.resize(HASH, (16, 64)).astype(np.uint8)
    t = tj.pack(x, "(i I) (k j) -> i I k^j j^i, i=4, j=4")
    index = np.indices((4, 4, 16, 4))
    want = np.zeros((4, 4, 16, 4), np.uint8)
    i, block, k, j = index.reshape(4, -1)
    want[i, block, k ^ j, j ^ i] = x.reshape(4, 4, 16, 4)[i, block, k, j]
    assert t.buffer.tolist() == want.reshape(-1).tolist()
    assert "Opaque" not in repr(access_map(t.layout))


@pytest.mark.parametrize(
    ("pattern", "cause", "caret"),
    [
        ("a b -> a -", "- is not before an axis: the text ends", 10),
        ("a b -> a --b", "- is not before an axis: found '-'", 10),
        ("... b -> b -...", "- is not before an axis", 12),
        ("a -b -> b a", "- is left of ->", 2),
        ("a b^a -> b a", "^ is left of ->", 3),
        ("a b -> a^c b", "c does not occur left of ->", 9),
        ("a b -> a^a b", "a is XORed with itself", 9),
        ("a b -> a^ (b)", "^ is not before an axis: found '('", 10),
        ("... b -> ...^b b", "... cannot be XORed", 12),
        ("a b -> -a^b b", "a reversed axis is XORed", 7),
        ("a b -> -a b^a", "a is reversed, and b is XORed with it", 12),
        ("a b -> a^b b^a", "a is XORed with b, whose position depends on a", 9),
        ("a b c -> c^a a^b b^c", "c is XORed with a, whose position depends on c", 11),
        ("a b -> -a -a b", "a occurs twice right of ->", 11),
        ("(a b) c -> a b^c c, b=8", "c has 12 values, but XOR needs a power of two", 15),
        ("a (b c) -> a b c^a, c=4", "a has 16 values, more than the 4 of c", 17),
    ],
    ids=str,
)
def test_wrong_turns_show_where(pattern: str, cause: str, caret: int) -> None:
    with pytest.raises(tj.LayoutError) as caught:
        tj.as_layout(pattern, dtype="s8", dims=(16, 12, 4)[: 2 + ("b c ->" in pattern)])
    first, text, mark, _fix = str(caught.value).splitlines()
    assert first.startswith(cause)
    assert text == f"  {pattern}"
    assert mark == " " * (2 + caret) + "^"
