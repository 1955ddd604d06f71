"""Buffers in other forms: words of several columns, and fields of structured arrays."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import tilejit as tj

HASH = (np.arange(1 << 14, dtype=np.uint32) * 2654435761 >> 16).astype(np.int64)
Q4_0 = np.dtype([("d", "<f2"), ("qs", "u1", 16)])
DOWN = "(K k) N -> K N k, k=8"
"""GPTQ: words of eight codes of one column."""
BLOCKS = "r (b h j) -> r b j h, h=2, j=16"
"""ggml: bytes of code j and code j + 16."""


def codes(dims: tuple[int, ...], values: int = 16) -> np.ndarray[tuple[int, ...], np.dtype[np.uint8]]:
    return (np.resize(HASH, dims) % values).astype(np.uint8)


def words(x: np.ndarray[Any, Any], dtype: str) -> np.ndarray[Any, Any]:
    """Each column's codes of 4 bits in words, the first in the lowest bits, by arithmetic."""
    k = 2 * np.dtype(dtype).itemsize
    parts = x.reshape(x.shape[0] // k, k, x.shape[1]).astype(np.uint64) << np.arange(0, 4 * k, 4)[
        :, None
    ].astype("u8")
    return parts.sum(1, dtype=np.uint64).astype(np.dtype(dtype).str.replace("i", "u")).view(dtype)


@pytest.mark.parametrize("dtype", ["i4", "u4", "i2", "u8"])
def test_words_of_one_column(dtype: str) -> None:
    k = 2 * np.dtype(dtype).itemsize
    x, pattern = codes((64, 24)), f"(K k) N -> K N k, k={k}"
    want = words(x, dtype)
    got = tj.unpack(want, pattern, dtype="uint8", dims=x.shape, element_size_in_bits=4)
    assert got.tolist() == x.tolist()
    narrow = tj.unpack(want, pattern, dtype="uint4", dims=x.shape, element_size_in_bits=4)
    assert narrow.astype(np.uint8).tolist() == x.tolist()
    out = np.zeros_like(want)
    t = tj.pack(x, pattern, out=out, element_size_in_bits=4)
    assert out.tolist() == want.tolist()
    assert np.shares_memory(t.buffer, out)
    t[1, 2] = x[1, 2] = 15 - x[1, 2]
    assert out.tolist() == words(x, dtype).tolist()
    again = np.zeros_like(want)
    tj.relayout(tj.pack(x, "u4[64,24]{0,1}"), pattern, out=again, element_size_in_bits=4)
    assert again.tolist() == out.tolist()
    plan = tj.plan_pack(pattern, x.shape, "uint8", element_size_in_bits=4)
    plan(x, again[::-1].copy())
    assert plan(x, again).buffer.tobytes() == out.tobytes()


def test_words_hold_bytes_and_halves_too() -> None:
    x = np.resize(HASH, (6, 8)).astype(np.float32)
    for dtype, word in (("f2", "i4"), ("u1", "i4"), ("f4", "u8"), ("f4", "f4"), ("f4", "u1")):
        y = x.astype(dtype)
        out = np.zeros((4, 48 * np.dtype(dtype).itemsize // np.dtype(word).itemsize // 4), word)
        tj.pack(y, "a b -> b a", out=out)
        assert out.tobytes() == y.T.tobytes()
        assert tj.unpack(out, "a b -> b a", dtype=np.dtype(dtype), dims=(6, 8)).tolist() == y.tolist()


@pytest.mark.parametrize(
    "out", [np.zeros(48, np.int32), np.zeros(48, ">u8"), np.zeros((6, 8), np.float16)], ids=str
)
def test_other_dtypes_are_no_words(out: np.ndarray[Any, Any]) -> None:
    before = out.tobytes()
    with pytest.raises(tj.LayoutError, match=r"out is .*needs float32 or uint8"):
        tj.pack(np.ones((6, 8), np.float32), "a b -> b a", out=out)
    assert out.tobytes() == before


@pytest.mark.parametrize("dims", [(1, 32), (3, 160)], ids=str)
def test_a_field_of_records_takes_codes(dims: tuple[int, int]) -> None:
    x = codes(dims)
    records = np.zeros((dims[0], dims[1] // 32), Q4_0)
    records["d"] = -1
    t = tj.pack(x, BLOCKS, out=records["qs"], element_size_in_bits=4)
    parts = x.reshape(dims[0], -1, 2, 16)
    assert records["qs"].tolist() == (parts[:, :, 0] | parts[:, :, 1] << 4).tolist()
    assert (records["d"] == -1).all()
    assert tj.unpack(t, dtype="uint8").tolist() == x.tolist()
    assert np.shares_memory(t.buffer, records)
    t[0, 17] = x[0, 17] = 15 - x[0, 17]
    assert records["qs"][0, 0, 1] == (x[0, 1] | x[0, 17] << 4)
    back = tj.unpack(records["qs"], BLOCKS, dtype="uint8", dims=dims, element_size_in_bits=4)
    assert back.tolist() == x.tolist()


@pytest.mark.parametrize("padding", [None, 3, "keep"])
@pytest.mark.parametrize("step", [2, 3])
def test_a_strided_array_takes_padding_through_a_buffer(padding: Any, step: int) -> None:
    x = np.resize(HASH, (5, 7)).astype(np.int16)
    room = np.full((64 * step,), 9, np.int16)
    t = tj.pack(x, "{1,0:T(4,4)}", out=room.reshape(8, 8, step)[..., 0], padding=padding)
    want = np.full(64, 9, np.int16)
    tj.pack(x, "{1,0:T(4,4)}", out=want, padding=padding)
    assert room[::step].tolist() == want.tolist()
    assert (room.reshape(64, step)[:, 1:] == 9).all()
    assert tj.unpack(t).tolist() == x.tolist()


@pytest.mark.full
def test_elements_that_cross_gaps_go_through_a_buffer() -> None:
    """f32 in records of 18 bytes: no stride in elements."""
    record = np.dtype({"names": ["a"], "formats": ["<f4"], "offsets": [2], "itemsize": 18})
    x, records = np.arange(12, dtype=np.float32).reshape(3, 4), np.zeros(12, record)
    t = tj.pack(x, "a b -> b a", out=records["a"])
    assert records["a"].tolist() == x.T.reshape(-1).tolist()
    assert not np.shares_memory(t.buffer, records)
    with pytest.raises(tj.LayoutError, match="not contiguous"):
        tj.unpack(records["a"], "a b -> b a", dtype="f32", dims=(3, 4))
    swizzled = np.zeros((64, 3), np.uint8)
    y = codes((8, 8))
    tj.pack(y, "a b -> a b^a", out=swizzled[:, 1])
    assert swizzled[:, 1].tobytes() == tj.pack(y, "a b -> a b^a").buffer.tobytes()


def test_a_wrong_field_is_refused_and_untouched() -> None:
    x, records = codes((3, 64)), np.zeros((3, 3), Q4_0)
    x[2, 3] = 16
    for out, cause in (
        (records["qs"][:, :2], r"element \[2, 3\] is 16"),
        (records["qs"], "144 bytes, but"),
        (np.broadcast_to(np.zeros(2, np.uint8), (48, 2)), "read-only"),
        (np.lib.stride_tricks.as_strided(np.zeros(2, np.uint8), (48, 2), (0, 1)), "share memory"),
        (x[:, ::2], "overlaps the array"),
        (np.zeros((3, 16), np.float32)[:, ::2], "out is float32"),
    ):
        before = out.tobytes()
        with pytest.raises(tj.LayoutError, match=cause):
            tj.pack(x, BLOCKS, out=out, element_size_in_bits=4)
        assert out.tobytes() == before


@pytest.mark.parametrize("dtype", [">i4", ">f4", [("a", ">f4")]], ids=str)
def test_a_buffer_in_another_byte_order_is_refused(dtype: Any) -> None:
    buffer = np.arange(12, dtype="f4").view("u4").astype(">u4").view(dtype)
    for given in (buffer, np.zeros((12, 2), dtype)[:, 0]):
        with pytest.raises(tj.LayoutError, match="not in native byte order\n  convert it with astype"):
            tj.unpack(given, "a b -> b a", dtype="f32", dims=(3, 4))
    bytes_of = buffer.view(np.uint8)
    assert tj.unpack(bytes_of, "a b -> b a", dtype="f32", dims=(3, 4)).shape == (3, 4)
