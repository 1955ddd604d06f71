"""relayout is unpack followed by pack; valid and invalid arguments; a refused call writes nothing."""

from __future__ import annotations

from typing import Any

import ml_dtypes
import numpy as np
import pytest
from hypothesis import given, settings

import tilejit as tj
from codegen import described
from tests.tools.extent import examples
from tests.tools.goldens import MACHINE
from tests.tools.guard import Guarded
from tests.tools.oracle import packed_by_definition, unpacked_by_definition, value_mask
from tests.tools.strategies import shape_pairs

Bytes = np.ndarray[Any, Any]
SOURCE, TARGET = "f32[3,5]{1,0:T(2,2)}", "f32[3,5]{0,1:T(2,2)}"


def noise(spec: tj.Shape, seed: int = 7) -> Bytes:
    """The bytes of a buffer, padding included. Bytes of narrow elements have zeros above them."""
    data = np.frombuffer(np.random.default_rng(seed).bytes(spec.size_in_bytes), np.uint8)
    if spec.primitive_type == "pred" and not spec.packed:
        return data & np.uint8(1)
    return data & value_mask(spec) if spec.bits == 8 else data.copy()


def tiled(spec: tj.Shape, data: Bytes) -> tj.TiledArray:
    return tj.TiledArray.from_buffer(data if spec.packed else data.view(spec.dtype), spec)


def fill_of(spec: tj.Shape) -> Bytes:
    if spec.padding_value is None:
        return np.zeros(spec.dtype.itemsize, np.uint8).view(spec.dtype)
    return np.asarray(spec.padding_value).astype(spec.dtype).reshape(1)


def moved(data: Bytes, source: tj.Shape, target: tj.Shape, fill: Bytes | None, before: Bytes) -> Bytes:
    """By pad, reshape and transpose, in both directions."""
    return packed_by_definition(unpacked_by_definition(data, source), target, fill, before)


def check(source: tj.Shape, target: tj.Shape, **keywords: Any) -> None:
    data = noise(source)
    want = moved(data, source, target, fill_of(target), np.zeros(target.size_in_bytes, np.uint8))
    result = tj.relayout(tiled(source, data.copy()), target, **keywords)
    assert result.layout == target
    got = result.buffer.view(np.uint8)
    mask = value_mask(target) if target.bits == 8 else np.uint8(255)
    assert ((got & mask) == (want & mask)).all()


@given(shape_pairs())
@settings(max_examples=examples(6, full=60))
def test_relayout_is_the_definition(pair: tuple[tj.Shape, tj.Shape]) -> None:
    check(*pair)


@pytest.mark.full
@given(shape_pairs(most=60))
@settings(max_examples=examples(5, full=30))
def test_keep_writes_elements_only(pair: tuple[tj.Shape, tj.Shape]) -> None:
    source, target = pair
    data, out = noise(source), noise(target, 8)
    want = moved(data, source, target, None, out)
    result = tj.relayout(tiled(source, data), target, out=out, padding="keep", threads=2)
    assert np.shares_memory(result.buffer, out) or not len(out)
    mask = value_mask(target) if target.bits == 8 else np.uint8(255)
    assert ((out & mask) == (want & mask)).all()


BY_DTYPE = {
    "f32[21,34]": (
        "{1,0}",
        "{0,1}",
        "{1,0:T(8,128)}",
        "{1,0:T(16,16)(4,4)}",
        "{0,1:T(3,5)(2,1)}",
        "{1,0:T(*,6)}",
        "{1,0:T(4,4)L(100)}",
    ),
    "s4[21,34]": (
        "{1,0}",
        "{1,0:E(4)}",
        "{1,0:T(16,16)(8,1)E(4)}",
        "{0,1:T(3,5)E(4)}",
        "{1,0:T(*,8)L(7)E(4)}",
    ),
    "pred[21,34]": ("{1,0}", "{0,1:E(1)}", "{1,0:T(32,8)(32,1)E(1)}", "{1,0:T(3,5)E(1)}"),
    "bf16[3,17,9]": ("{2,1,0:T(8,8)(2,1)}", "{0,2,1:T(2,4)}", "{2,1,0:T(2,*,4)(2,2)}"),
}
PAIRS = [
    (f"{array}{a}", f"{array}{b}") for array, layouts in BY_DTYPE.items() for a in layouts for b in layouts
]


@pytest.mark.parametrize(("source", "target"), PAIRS)
def test_every_pair(source: str, target: str) -> None:
    check(tj.Shape.parse(source), tj.Shape.parse(target))


def test_padded_dimensions_and_their_values() -> None:
    source = tj.make_shape("s16", (5, 3), tiles=((2, 4),), padded_dimensions=(6, 3), padding_value=3)
    target = tj.make_shape("s16", (5, 3), (0, 1), padded_dimensions=(7, 5), padding_value=-9)
    for pair in ((source, target), (target, source)):
        check(*pair)


@pytest.mark.parametrize(
    ("padding", "element"), [(None, 0.0), (2.5, 2.5), (float("inf"), np.inf), (np.float32(-0.0), -0.0)]
)
def test_padding(padding: Any, element: float) -> None:
    source, target = tj.Shape.parse(SOURCE), tj.Shape.parse(TARGET)
    data = noise(source)
    want = moved(
        data, source, target, np.array([element], np.float32), np.zeros(target.size_in_bytes, np.uint8)
    )
    result = tj.relayout(tiled(source, data), target, padding=padding)
    assert result.buffer.view(np.uint8).tolist() == want.tolist()


@pytest.mark.full
def test_a_round_trip_restores_the_elements() -> None:
    """Through any layout, elements stay the same and padding becomes zeros."""
    x = np.random.default_rng(3).standard_normal((37, 131), np.float32).astype(ml_dtypes.bfloat16)
    first = tj.pack(x, "tpu")
    for name in ("tenstorrent", "amx-b", "{0,1}", "{1,0:T(5,7)(3,1)}"):
        there = tj.relayout(first, name)
        assert there.buffer.view(np.uint8).tolist() == tj.pack(x, name).buffer.view(np.uint8).tolist()
        assert tj.relayout(there, "tpu").buffer.tobytes() == first.buffer.tobytes()


@pytest.mark.full
@pytest.mark.parametrize(
    "keywords",
    [
        {"threads": 2},
        {"threads": 3, "virtual_vector_size": 4},
        {"virtual_vector_size": (4, 4)},
        {"specialize": "sizes"},
        {"tune": True},
    ],
    ids=str,
)
def test_keywords(keywords: dict[str, Any]) -> None:
    check(tj.Shape.parse("f32[21,34]{1,0:T(8,128)}"), tj.Shape.parse("f32[21,34]{0,1:T(3,5)}"), **keywords)


@pytest.mark.parametrize(
    ("source", "target"),
    [
        ("f32[100,96]{1,0:T(8,32)}", "f32[100,96]{1,0:T(32,32)(16,16)}"),
        ("bf16[64,40]{1,0:T(8,128)(2,1)}", "bf16[64,40]{1,0:T(16,8)}"),
        ("s4[21,34]{1,0:T(8,16)E(4)}", "s4[21,34]{1,0:T(16,16)(8,1)E(4)}"),
        ("u8[9,7]{1,0:T(4,2)}", "u8[9,7]{0,1:T(3,5)}"),
        ("f32[1024,1100]{1,0:T(8,128)}", "f32[1024,1100]{1,0:T(32,32)(16,16)}"),
        ("f32[1024,2100]{1,0:T(8,128)}", "f32[1024,2100]{0,1:T(16,1)}"),
    ],
)
def test_nothing_outside_the_buffers_is_touched(source: str, target: str) -> None:
    """Between guard pages. The last two are past the cache."""
    here, there = tj.Shape.parse(source), tj.Shape.parse(target)
    data = noise(here)
    want = moved(data, here, there, fill_of(there), np.zeros(there.size_in_bytes, np.uint8)).tobytes()
    arenas = Guarded(here.size_in_bytes + 64), Guarded(there.size_in_bytes + 64)
    for at_end, gap in ((False, 0), (True, 0), (False, 4), (True, 60)):
        src = arenas[0].place(here.size_in_bytes, at_end=at_end)
        dst = arenas[1].place(there.size_in_bytes, at_end=at_end, gap=gap)
        src[:] = data
        tj.relayout(tiled(here, src), there, out=dst)
        assert dst.tobytes() == want
        assert src.tobytes() == data.tobytes()
        assert arenas[0].untouched()
        assert arenas[1].untouched()


def test_out() -> None:
    t = tj.pack(np.arange(15, dtype=np.float32).reshape(3, 5), SOURCE)
    want = tj.relayout(t, TARGET)
    flat, raw = np.full(24, 7, np.float32), np.full(96, 7, np.uint8)
    other = tj.TiledArray.from_buffer(np.full(24, 7, np.float32), TARGET)
    assert tj.relayout(t, TARGET, out=other) is other
    assert tj.relayout(t, TARGET, out=flat).buffer is flat
    tj.relayout(t, TARGET, out=raw)
    for buffer in (flat, raw, other.buffer):
        assert buffer.tobytes() == want.buffer.tobytes()


def test_the_same_layout_gives_a_copy() -> None:
    t = tj.pack(np.arange(15, dtype=np.float32).reshape(3, 5), SOURCE, padding=3)
    copy = tj.relayout(t, SOURCE)
    assert not np.shares_memory(copy.buffer, t.buffer)
    assert copy.buffer.tobytes() == tj.pack(t.unpack(), SOURCE).buffer.tobytes()


def test_without_elements() -> None:
    t = tj.pack(np.zeros((0, 5), np.float32), "{1,0:T(2,2)}")
    assert tj.relayout(t, "{0,1:T(4,4)}").nbytes == 0
    scalar = tj.pack(np.float32(3.5), "f32[]{:T(256)}")
    assert tj.relayout(scalar, "f32[]{:T(128)}").buffer.tolist() == [3.5] + [0.0] * 127


def read_only() -> Bytes:
    out = np.full(24, 77, np.float32)
    out.flags.writeable = False
    return out


@pytest.mark.parametrize(
    ("out", "words"),
    [
        (np.full(23, 77, np.float32), "92 bytes"),
        (np.full(24, 77, np.int32), "int32"),
        (np.full(48, 77, np.float32)[::2], "flat"),
        (read_only(), "read-only"),
        (tj.TiledArray.from_buffer(np.full(24, 77, np.float32), SOURCE), "out holds"),
    ],
    ids=["short", "dtype", "strided", "read-only", "layout"],
)
def test_out_that_cannot_be_used(out: Any, words: str) -> None:
    t = tj.pack(np.ones((3, 5), np.float32), SOURCE)
    with pytest.raises(tj.LayoutError, match=words):
        tj.relayout(t, TARGET, out=out)
    assert (np.asarray(out) == 77).all()


def test_out_that_overlaps() -> None:
    memory = np.arange(40, dtype=np.float32)
    t = tj.TiledArray.from_buffer(memory[:24], SOURCE)
    for out in (memory[:24], memory[16:]):
        with pytest.raises(tj.LayoutError, match="overlap"):
            tj.relayout(t, TARGET, out=out)
    assert (memory == np.arange(40)).all()


@pytest.mark.parametrize(
    ("obj", "keywords", "words"),
    [
        ("f32[5,3]{1,0}", {}, r"\[3,5\]|dimensions|shape"),
        ("s32[3,5]{1,0}", {}, "f32"),
        ("{0}", {}, "minor_to_major|dimension"),
        ("nonsense", {}, "nonsense"),
        ("{1,0}", {"padding": "keep"}, "out="),
        ("{1,0}", {"padding": "zero"}, "keep"),
        ("{1,0}", {"padding": 1e300}, "padding"),
        ("{1,0}", {"threads": 0}, "thread"),
        ("{1,0}", {"specialize": "all"}, "specialize"),
        ("{1,0}", {"virtual_vector_size": -1}, "virtual_vector_size"),
    ],
)
def test_wrong_arguments_are_refused(obj: str, keywords: dict[str, Any], words: str) -> None:
    t = tj.pack(np.ones((3, 5), np.float32), SOURCE)
    with pytest.raises(tj.TilejitError, match=words):
        tj.relayout(t, obj, **keywords)


@pytest.mark.parametrize("t", [np.ones((3, 5)), b"x", None, [[1.0]], SOURCE], ids=repr)
def test_objects_other_than_tiled_arrays_are_refused(t: Any) -> None:
    with pytest.raises(TypeError, match="TiledArray"):
        tj.relayout(t, "{1,0}")


@pytest.mark.parametrize(
    "keywords",
    [{"out": [0.0] * 24}, {"out": 3}, {"padding": object()}, {"threads": "2"}, {"padding": [1, 2]}],
)
def test_keywords_of_a_wrong_type(keywords: dict[str, Any]) -> None:
    with pytest.raises(TypeError):
        tj.relayout(tj.pack(np.ones((3, 5), np.float32), SOURCE), TARGET, **keywords)
    with pytest.raises(TypeError):
        tj.relayout(tj.pack(np.ones((3, 5), np.float32), SOURCE), 3)


@pytest.mark.parametrize(
    ("source", "target", "blocks"),
    [
        ("f32[513,513]{1,0:T(8,8)(4,4)(2,2)}", "{1,0:T(8,128)}", False),
        ("f32[4096,4096]{1,0:T(8,8)(4,4)(2,2)}", "{1,0:T(6,1)}", True),
        ("s8[1024,1024]{0,1:T(32,32)(32,8)(32,2)(4,1,1,32,2)(32,1)}", "{1,0:T(8,128)(4,1)}", True),
    ],
)
def test_blocks_are_for_copies_that_outgrow_the_caches(source: str, target: str, blocks: bool) -> None:
    """Or for those that move single elements."""
    with described(MACHINE):
        explained = tj.explain(target, source)
    assert ("copied into" in explained.schedule) == blocks


@pytest.mark.parametrize(
    ("layout", "gathers"),
    [
        ("bf16[8191,4101]{1,0:T(32,32)(16,16)}", False),
        ("s8[8191,8197]{1,0:T(16,16)}", False),
        ("u32[4096,4096]{1,0:T(8,8)(4,4)(2,2)}", True),
    ],
)
def test_packs_are_gathered_unless_tiles_are_streamed_in_place(layout: str, gathers: bool) -> None:
    with described(MACHINE):
        explained = tj.explain(layout, None)
    assert ("Gather()" in explained.schedule) == gathers
