"""Patterns with reversed and moved axes and tables, against NumPy: pad, reshape, move, transpose."""

from __future__ import annotations

import math
import re
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import tilejit as tj
from codegen import Opaque
from tests.tools.extent import examples
from tests.tools.oracle import same_elements
from tilejit.layout.as_layout import recipe_of
from tilejit.layout.indexing import access_map

HASH = (np.arange(1 << 12, dtype=np.uint32) * 2654435761 >> 16).astype(np.int64)


@st.composite
def permuted(draw: Any) -> tuple[str, tuple[int, ...], dict[str, Any], list[list[str]], list[str]]:
    """A pattern, dimensions, sizes or tables, the axes of each dimension, and the right side."""
    sizes: dict[str, int] = {}
    groups: list[list[str]] = []
    dims: list[int] = []
    bits = draw(st.booleans())  # all sizes are powers of two, so that each XOR is a swizzle
    for d in range(draw(st.integers(1, 3))):
        group = [f"{'abc'[d]}{k}" for k in range(draw(st.integers(1, 3)))]
        sizes |= {axis: draw(st.sampled_from([1, 2, 4, 8] if bits else [1, 2, 3, 4, 5])) for axis in group}
        groups.append(group)
        whole = math.prod(sizes[axis] for axis in group)
        dims.append(draw(st.integers(max(1, whole - 5), whole)))
    names = draw(st.permutations(list(sizes)))
    places: dict[str, str] = {}
    given: dict[str, Any] = dict(sizes)
    readable: list[str] = []  # axes that keep their order, and were drawn before: no two read each other
    for name in names if draw(st.booleans()) else names[::-1]:
        kind = draw(st.sampled_from("|-^^st="))
        others = [other for other in readable if kind in "st" or _xors(sizes[other], sizes[name])]
        places[name] = name
        if kind in "^st" and others:
            places[name] += {"s": "+", "t": "-"}.get(kind, "^") + draw(st.sampled_from(others))
        elif kind == "=":
            given[name] = tuple(draw(st.permutations(range(sizes[name]))))
        elif kind == "-":
            places[name] = f"-{name}"
        readable += [name] if kind != "-" else []
    left = " ".join(f"({' '.join(group)})" for group in groups)
    right = [places[name] for name in names]
    return f"{left} -> {' '.join(right)}", tuple(dims), given, groups, right


def _xors(by: int, size: int) -> bool:
    return by <= size and by & (by - 1) == 0 and size & (size - 1) == 0


def packed(
    x: np.ndarray[Any, Any], given: dict[str, Any], groups: list[list[str]], right: list[str]
) -> np.ndarray[Any, Any]:
    """The buffer, by an assignment for every element of the padded array at once."""
    sizes = {name: size if isinstance(size, int) else len(size) for name, size in given.items()}
    box = np.zeros([math.prod(sizes[axis] for axis in group) for group in groups], x.dtype)
    box[tuple(map(slice, x.shape))] = x
    names = [axis for group in groups for axis in group]
    index = dict(zip(names, np.indices([sizes[axis] for axis in names]).reshape(len(names), -1), strict=True))
    slot: Any = 0
    for place in right:
        axis, sign, by = re.fullmatch(r"-?(\w+)(?:([-+^])(\w+))?", place).groups()  # type: ignore[union-attr]
        at = sizes[axis] - 1 - index[axis] if place[0] == "-" else index[axis]
        if not isinstance(given[axis], int):
            at = np.array(given[axis])[at]
        if sign == "^":
            at = at ^ index[by]
        elif sign:
            at = (at + (index[by] if sign == "+" else -index[by])) % sizes[axis]
        slot = slot * sizes[axis] + at
    out = np.zeros(box.size, x.dtype)
    out[slot] = box.reshape(-1)
    return out


@pytest.mark.full
@given(permuted())
@settings(max_examples=examples(40, full=400))
def test_a_permuted_pattern_moves_the_index_of_an_axis(case: Any) -> None:
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


@pytest.mark.full
@pytest.mark.parametrize("size", [8, 200])
@pytest.mark.parametrize("bits", [4, 8])
def test_a_table_of_rows(size: int, bits: int) -> None:
    """A short table becomes cases, a long one a table of the offsets of its dimension."""
    order = np.random.default_rng(1).permutation(size)
    x = (np.resize(HASH, (2 * size - 3, 40)) % 16).astype(np.uint8)
    t = tj.pack(x, "(M m) n -> M m n", m=order, element_size_in_bits=bits)
    want = np.zeros((2, size, 40), np.uint8)
    want[:, order] = np.pad(x, ((0, 3), (0, 0))).reshape(2, size, 40)
    got = t.buffer if bits == 8 else np.stack([t.buffer & 15, t.buffer >> 4], 1)
    assert got.reshape(2, size, 40).tolist() == want.tolist()
    assert tj.unpack(t, dtype="uint8").tolist() == x.tolist()
    assert tj.unpack(tj.relayout(t, "{0,1}"), dtype="uint8").tolist() == x.tolist()
    plan = tj.plan_pack(str(t.layout), x.shape, x.dtype)
    assert plan(x).buffer.tolist() == t.buffer.tolist()
    roots = {root.dims: root.tree for root in access_map(t.layout).roots}
    assert isinstance(roots[0,], Opaque) == (size == 200)
    assert not isinstance(roots[1,], Opaque)
    assert int(t[5, 7]) == x[5, 7]
    t[5] = x[6]
    assert tj.unpack(t, dtype="uint8")[5].tolist() == x[6].tolist()


def test_xnnpack_rotates_blocks_of_k_by_the_row() -> None:
    """Its packing for nr=8, kr=2, sr=4: row n of block b holds kr values from (b kr + n kr) mod (sr kr)."""
    nr, kr, sr = 8, 2, 4
    x = np.resize(HASH, (16, 24)).astype(np.float32)
    want = np.zeros((2, 12, nr, kr), np.float32)
    for b in range(12):
        for n in range(nr):
            k = b * kr // (sr * kr) * sr * kr + (b * kr + n * kr) % (sr * kr)
            want[:, b, n] = x.reshape(2, nr, 24)[:, n, k : k + kr]
    t = tj.pack(x, "(N n) (K b k) -> N K b-n n k", n=nr, b=sr, k=kr)
    assert t.buffer.tolist() == want.reshape(-1).tolist()
    assert tj.unpack(t).tolist() == x.tolist()


def test_a_large_rotation_is_a_table_of_both_dimensions() -> None:
    x = np.resize(HASH, (64, 64)).astype(np.int32)
    t = tj.pack(x, "m n -> m n+m")
    want = np.zeros_like(x)
    m, n = np.indices(x.shape)
    want[m, (n + m) % 64] = x
    assert t.buffer.tolist() == want.reshape(-1).tolist()
    assert tj.unpack(t).tolist() == x.tolist()
    assert tj.relayout(t, "m n -> n m").buffer.tolist() == x.T.reshape(-1).tolist()


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
        ("a b -> a - b", "- stands alone", 9),
        ("... b -> b -...", "- is not before an axis", 12),
        ("a -b -> b a", "- is left of ->", 2),
        ("a b^a -> b a", "^ is left of ->", 3),
        ("a b -> a +b", "'+' is not allowed here", 9),
        ("a b -> a^c b", "c does not occur left of ->", 9),
        ("a b -> a^a b", "a moves itself", 9),
        ("a b -> a+(b)", "+ is not before an axis: found '('", 9),
        ("... b -> ...^b b", "... cannot be moved", 12),
        ("a b -> -a^b b", "a is reversed and moved", 7),
        ("a b -> -a b-a", "a is reversed, and moves b", 12),
        ("a b -> a+b b-a", "a is moved by b, whose position depends on a", 9),
        ("a b c -> c^a a^b b^c", "c is moved by a, whose position depends on c", 11),
        ("a b -> -a -a b", "a occurs twice right of ->", 11),
        ("(a b) c -> a b^c c, b=8", "c has 12 values, but XOR needs a power of two", 15),
        ("a (b c) -> a b c^a, c=4", "a has 16 values, more than the 4 of c", 17),
        ("a (b c) -> a b -c, c=(1,0)", "c has a table of positions", 16),
        ("a (b c) -> a b c, c=(1,0,1)", "c: the table names 1 twice", 20),
        ("a (b c) -> a b c, c=(1,2)", "c: the table names 2, which is not from 0 to 1", 20),
        ("a (b c) -> a b c, c=()", "the table of c is empty", 20),
        ("a (b c) -> a b c, c=(1 0)", "')' is missing: found '0'", 23),
        ("a b -> a b, b=(1,0)", "the sizes of b cover 2 elements, but dimension 1 has 12", 2),
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
