"""CuTe layouts in pack, unpack, relayout and TiledArray: offsets, padding, and refusals."""

from __future__ import annotations

import json
import pickle
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import tilejit as tj
from codegen.maps.access import map_offset, map_range
from tests.tools.guard import Guarded
from tests.tools.oracle import (
    cute_offsets,
    packed_by_definition,
    random_elements,
    same_elements,
    slots_of,
    unpacked_by_definition,
    value_mask,
)
from tests.tools.strategies import cute_shapes
from tilejit.layout.cute_index import overlap_of
from tilejit.layout.cute_shape import CuteShape, spec_from_json
from tilejit.layout.indexing import access_map

K_MAJOR = "Sw<3,3,3> o 0 o ((8,3),(64,2)):((64,1024),(1,512))"
TEXTS = (
    ("(8,8):(8,1)", (8, 8)),
    ("(8,8):(9,1)", (7, 5)),
    ("((2,4),(4,8)):((1,8),(2,32))", (7, 29)),
    ("(3,1,4):(4,7,1)", (3, 1, 4)),
    (K_MAJOR, (24, 128)),
    (K_MAJOR, (21, 101)),
    ("Sw<3,3,3> o 0 o ((64,2),(8,3)):((1,512),(64,1024))", (128, 24)),
    ("Sw<2,0,-2> o 0 o 16:1", (13,)),
    ("Sw<2,0,2> o 16 o (4,4,3):(4,1,16)", (4, 3, 2)),
    ("Sw<1,4,3> o 5 o (7,9):(1,7)", (7, 9)),
    ("(4,3):(3,1) o 2 o (2,5):(5,1)", (2, 4)),
    ("(6,2):(1,7) o 0 o (3,2):(2,3)", (3, 2)),
)


@pytest.fixture(scope="module")
def memory() -> tuple[Guarded, Guarded]:
    return Guarded(1 << 20), Guarded(1 << 20)


@pytest.mark.full
@pytest.mark.parametrize(("text", "dims"), TEXTS, ids=lambda value: str(value))
@pytest.mark.parametrize("name", ["u1", "f2", "f8", "c16"])
def test_every_element_is_at_its_offset(text: str, dims: tuple[int, ...], name: str) -> None:
    x = np.random.default_rng(0).integers(0, 100, dims).astype(name)
    t = tj.pack(x, text, padding=7)
    offsets = cute_offsets(t.layout.layout, np.indices(dims).reshape(len(dims), -1))
    want = np.full(t.layout.physical_size, 7, name)
    want[offsets] = x.ravel()
    assert t.buffer.tobytes() == want.tobytes()
    assert (tj.unpack(t) == x).all()
    assert (np.asarray(t) == x).all()
    key = tuple(slice(n // 3, None, 2) for n in dims)
    assert (t[key] == x[key]).all()
    assert t[tuple(n - 1 for n in dims)] == x[tuple(n - 1 for n in dims)]


@pytest.mark.full
@given(cute_shapes(), st.integers(0, 2**32 - 1))
def test_pack_and_unpack_between_guard_pages(
    memory: tuple[Guarded, Guarded], shape: CuteShape, number: int
) -> None:
    rng = np.random.default_rng(number)
    x = random_elements(rng, shape.dtype, int(np.prod(shape.dimensions))).reshape(shape.dimensions)
    source = memory[0].place(x.nbytes, at_end=bool(number & 1))
    array = np.ndarray(x.shape, x.dtype, source.data)
    array[...] = x
    data = memory[1].place(shape.size_in_bytes, at_end=bool(number & 2))
    data[:] = np.frombuffer(rng.bytes(len(data)), np.uint8)
    before = data.copy()
    fill = random_elements(rng, shape.dtype, 1)
    kept = "keep" if number & 4 else fill[0]
    t = tj.pack(array, shape, out=data, padding=kept)
    want = packed_by_definition(x, shape, None if number & 4 else fill, before)
    assert ((data ^ want) & value_mask(shape) == 0).all()
    assert same_elements(tj.unpack(t), unpacked_by_definition(data, shape), shape)
    assert memory[0].untouched()
    assert memory[1].untouched()


@given(cute_shapes(most=120))
def test_slots_and_indices_are_inverse(shape: CuteShape) -> None:
    slots = slots_of(shape)[: shape.physical_size]
    found = tj.multi_index(shape, np.arange(shape.physical_size))
    rows = np.where(slots < 0, -1, np.arange(len(slots)))
    want = np.unravel_index(np.maximum(slots, 0), shape.dimensions)
    for have, at in zip(found, want, strict=True):
        assert (have == np.where(rows < 0, -1, at)).all()
    for slot in range(min(20, shape.physical_size)):
        index = tj.multi_index(shape, slot)
        assert (index is None) == (slots[slot] < 0)
        assert index is None or tj.linear_index(shape, index) == slot


@given(cute_shapes(most=200))
def test_the_compiler_sees_the_same_offsets(shape: CuteShape) -> None:
    access = access_map(shape)
    index = tuple(np.indices(shape.dimensions).reshape(len(shape.dimensions), -1))
    want = cute_offsets(shape.layout, index)
    assert (np.broadcast_to(map_offset(access, index), want.shape) == want).all()
    low, high = map_range(access)
    assert low <= want.min() <= want.max() <= high < shape.physical_size
    assert overlap_of(shape) is None


@given(cute_shapes(most=200))
def test_text_json_and_pickle_restore_the_shape(shape: CuteShape) -> None:
    assert tj.as_layout(str(shape)) == shape
    assert spec_from_json(json.loads(json.dumps(shape.to_json()))) == shape
    assert pickle.loads(pickle.dumps(shape)) == shape


@pytest.mark.full
@pytest.mark.parametrize("first", ["tpu", *(text for text, dims in TEXTS if dims == (24, 128))])
@pytest.mark.parametrize("second", ["{0,1:T(32,8)}", K_MAJOR, "Sw<2,4,2> o 0 o (24,128):(1,32)"])
def test_relayout_is_pack_of_unpack(first: str, second: str) -> None:
    x = np.random.default_rng(1).random((24, 128)).astype(np.float16)
    t = tj.relayout(tj.pack(x, first), second, padding=3)
    assert t.buffer.tobytes() == tj.pack(x, second, padding=3).buffer.tobytes()


def test_elements_are_packed_on_request() -> None:
    x = (np.arange(15) % 7).astype(np.int8).reshape(3, 5)
    spec = tj.as_layout("(3,5):(5,1)", dims=x.shape, dtype="s4", element_size_in_bits=4)
    t = tj.pack(x, spec)
    assert t.buffer.tolist() == [16, 50, 84, 6, 33, 67, 101, 0]
    assert (tj.unpack(t).astype(np.int8) == x).all()
    assert tj.pack(x, "(3,5):(5,1)").buffer.tolist() == x.ravel().tolist()


def test_a_stride_of_zero_can_be_read_but_not_written() -> None:
    spec = tj.as_layout("(4,(2,2)):(0,(1,2))", dims=(4, 4), dtype=np.float32)
    t = tj.TiledArray.from_buffer(np.arange(4, dtype=np.float32), spec)
    assert (tj.unpack(t) == np.arange(4)).all()
    for write in (
        lambda: tj.pack(np.zeros((4, 4), np.float32), spec),
        lambda: t.__setitem__(0, 1),
        lambda: tj.relayout(tj.pack(np.zeros((4, 4), np.float32), "{1,0}"), spec),
    ):
        with pytest.raises(tj.LayoutError, match=r"\(0, 0\) and \(1, 0\) share slot 0 "):
            write()


REFUSED = (
    ("(4,4):(1,2)", (4, 4), r"\(0, 1\) and \(2, 0\) share slot 2"),
    ("(4,4):(1,1)", (4, 4), r"\(0, 1\) and \(1, 0\) share slot 1"),
    ("((2,3),4):((1,5),2)", (6, 4), r"\(1, 2\) and \(2, 0\) share slot 5"),
    ("Sw<1,0,1> o 0 o (4,4):(1,2)", (4, 4), r"\(0, 1\) and \(2, 0\) share slot 3"),
    ("4:1 o 0 o 8:0", (8,), r"\(0,\) and \(1,\) share slot 0"),
    ("(4,4):(1,-4)", (4, 4), r"coordinate \(0, 3\) has the offset -12"),
    ("((2,2),4):((1,-3),8)", (1, 1), r"coordinate \(2, 0\) has the offset -3"),
    ("Sw<2,0,2> o -3 o 16:1", (16,), r"coordinate \(0,\) has the offset -3"),
    ("8:-1 o 0 o 4:1", (4,), "offset -3"),
    ("(4,4):(1,4)", (5, 4), r"mode 0 .* has 4 .* dimension 0 has 5"),
    ("(4,4):(1,4)", (16,), r"2 mode\(s\), but the array has 1"),
    ("4:9223372036854775807", (4,), "64 bits"),
    ("4:2305843009213693951", (4,), r"2\^63 bits"),
    ("<2:1,2:1>", (2, 2), "is a Tiler"),
    ("(2,2):(1)", (2, 2), "does not nest"),
    ("(100000,100000):(3,100003)", (99999, 99999), "too many"),
)


@pytest.mark.parametrize(("text", "dims", "words"), REFUSED, ids=lambda value: str(value))
def test_refusals_name_a_witness(text: str, dims: tuple[int, ...], words: str) -> None:
    x = np.broadcast_to(np.float32(0), dims)
    with pytest.raises(tj.LayoutError, match=words):
        tj.pack(x, text)


@given(st.lists(st.tuples(st.integers(1, 6), st.integers(0, 9)), min_size=1, max_size=3))
def test_overlaps_are_found_exactly_if_there_are_any(modes: list[tuple[int, int]]) -> None:
    dims, strides = tuple(n for n, _ in modes), tuple(s for _, s in modes)
    shape = CuteShape("u8", dims, tj.cute.Layout(dims, strides))
    index = tuple(np.indices(dims).reshape(len(dims), -1))
    offsets = cute_offsets(shape.layout, index)
    found = overlap_of(shape)
    assert (found is None) == (len(np.unique(offsets)) == len(offsets))
    if found:
        first, second, slot = found
        assert first != second
        assert tj.linear_index(shape, first) == tj.linear_index(shape, second) == slot


@pytest.mark.parametrize(
    ("given", "fix"),
    [
        ("(3,4)", r"is a shape.*\n.*\(3,4\):\(4,1\)"),
        ("<2:1,4:1>", "is a Tiler"),
        ("Sw<2,0,2>", r"compose it with a layout, e.g. Sw<2,0,2> o 0 o"),
        (tj.cute.Swizzle(2, 0, 2), r"ComposedLayout\(swizzle, 0, layout\)"),
        (tj.cute.bounded(tj.as_layout("f32[3,4]{1,0:T(2,2)}")), r"its \.layout"),
        ("m n", "a pattern has an arrow.*'m n -> …'"),
        ("m n, m=3", "a pattern has an arrow.*'m n -> …'"),
        ("TPU doc", "write 'tpu-doc'"),
    ],
    ids=str,
)
def test_errors_about_parts_of_layouts_say_how_to_make_one(given: Any, fix: str) -> None:
    with pytest.raises((tj.LayoutError, TypeError), match=fix):
        tj.pack(np.zeros((3, 4), np.float32), given)


def test_wrong_arguments() -> None:
    with pytest.raises(tj.LayoutError, match="does not specify the array's dtype and dims"):
        tj.as_layout("(8,8):(8,1)")
    with pytest.raises(TypeError, match="element_size_in_bits, not 'mi'"):
        tj.as_layout("(8,8):(8,1)", dims=(8, 8), dtype="f32", mi=3)
    with pytest.raises(tj.LayoutError, match="has no XLA tiles"):
        tj.gather_tiles(tj.pack(np.zeros((8, 8)), "(8,8):(8,1)"), [0])
    spec = tj.as_layout("8:1", dims=(8,), dtype="f32", element_size_in_bits=4)
    with pytest.raises(tj.LayoutError, match="is not the storage width"):
        tj.pack(np.zeros(8, np.float32), spec)
    bad: list[Any] = [{"cute_layout": 3}, {"cute_layout": "8:1"}]
    for data in bad:
        with pytest.raises((tj.LayoutError, TypeError)):
            spec_from_json(data)


def test_no_elements() -> None:
    t = tj.pack(np.zeros((0, 4), np.float32), "(2,4):(4,1)", padding=5)
    assert t.buffer.tolist() == [5] * 8
    assert tj.unpack(t).shape == (0, 4)
    assert tj.multi_index(t.layout, 3) is None
    assert tj.pack(np.zeros((0,), np.int8), "0:1").nbytes == 0


@pytest.mark.parametrize("text", ["():()", "():() o 3 o ():()", "4:2 o 3 o ():()", "Sw<1,0,1> o 2 o ():()"])
def test_no_dimensions(text: str) -> None:
    t = tj.pack(np.float32(7), text, padding=1)
    slot = int(cute_offsets(t.layout.layout, ())[0])
    assert t.buffer.tolist() == [1] * slot + [7]
    assert tj.unpack(t) == 7
    assert tj.pack(np.ones((1, 3), np.int8), "((),3):((),2)").buffer.tolist() == [1, 0, 1, 0, 1]
