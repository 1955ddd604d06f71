"""TiledArray: reading and writing in place agree with NumPy's basic indexing of the unpacked array."""

from __future__ import annotations

import copy
import pickle
import tracemalloc
from fractions import Fraction
from typing import Any

import ml_dtypes
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import tilejit as tj
from tests.tools.oracle import packed_by_definition, random_elements, same_elements, slots_of
from tests.tools.strategies import Pick, chance, one_of, shapes

TILED = "f32[3,5]{1,0:T(2,2)}"


def filled(shape: tj.Shape, seed: int = 3) -> tuple[np.ndarray[Any, Any], tj.TiledArray]:
    """An array, and the same one tiled, with noise in the padding."""
    rng = np.random.default_rng(seed)
    x = random_elements(rng, shape.dtype, int(np.prod(shape.dimensions))).reshape(shape.dimensions)
    noise = np.frombuffer(rng.bytes(shape.size_in_bytes), np.uint8).copy()
    return x, tj.pack(x, shape, out=noise, padding="keep")


@st.composite
def keys(draw: Any, dims: tuple[int, ...]) -> Any:
    pick: Pick = lambda low, high: draw(st.integers(low, high))  # noqa: E731
    parts: list[Any] = []
    for n in dims:
        if n and chance(pick, 3):
            parts.append(pick(-n, n - 1))
        else:
            ends = [None if chance(pick, 3) else pick(-n - 2, n + 2) for _ in range(2)]
            parts.append(slice(*ends, one_of(pick, (None, 1, 2, 3, -1, -2, 100))))
    if chance(pick, 3):
        parts = parts[: len(parts) - pick(0, 1)] if parts else parts
    elif chance(pick, 3):
        k = pick(0, len(parts))
        parts[k : k + pick(0, 2)] = [Ellipsis]
    if chance(pick, 4):
        parts.insert(pick(0, len(parts)), None)
    return tuple(parts)


@given(shapes(most=120), st.data())
def test_slices_read_like_numpys(shape: tj.Shape, data: st.DataObject) -> None:
    x, t = filled(shape)
    key = data.draw(keys(shape.dimensions))
    got, want = t[key], x[key]
    assert isinstance(got, np.ndarray) == isinstance(want, np.ndarray)
    assert same_elements(np.asarray(got), np.asarray(want), shape)
    if isinstance(got, np.ndarray):
        assert not np.shares_memory(got, t.buffer)


@given(shapes(most=120), st.data())
def test_slices_are_written_like_numpys(shape: tj.Shape, data: st.DataObject) -> None:
    x, t = filled(shape)
    before = t.buffer.view(np.uint8).copy()
    key = data.draw(keys(shape.dimensions))
    target = np.asarray(x[key])
    dims = target.shape[data.draw(st.integers(0, target.ndim)) :]
    values = random_elements(np.random.default_rng(9), shape.dtype, int(np.prod(dims))).reshape(dims)
    x[key] = values
    t[key] = values
    assert t.buffer.view(np.uint8).tolist() == packed_by_definition(x, shape, None, before).tolist()


@given(shapes(most=60))
def test_single_elements(shape: tj.Shape) -> None:
    x, t = filled(shape)
    for index in list(np.ndindex(*shape.dimensions))[:20]:
        assert same_elements(np.asarray(t[index]), np.asarray(x[index]), shape)
        assert type(t[index]) is type(x[index])


def test_repr_and_attributes() -> None:
    x = np.arange(15, dtype=np.float32).reshape(3, 5)
    t = tj.pack(x, TILED)
    assert (t.shape, t.dtype, t.ndim, t.nbytes, len(t)) == ((3, 5), np.float32, 2, 96, 3)
    assert repr(t) == "TiledArray(f32[3,5]{1,0:T(2,2)}, 96 bytes)"
    ids = tj.pack(np.arange(30), "{0:T(1024)}")
    assert repr(ids) == "TiledArray(s64[30]{0:T(1024)}, 8192 bytes, 97.1% padding)"
    assert (t.unpack() == x).all()
    assert (np.asarray(t) == x).all()
    assert np.asarray(t, np.float64).dtype == np.float64
    assert (np.array(t) == x).all()
    with pytest.raises(ValueError, match="copy"):
        np.asarray(t, copy=False)
    assert t[2, 3] == 13
    assert t[-1, -2] == 13
    assert t[np.int64(2), np.uint8(3)] == 13
    assert t[2].tolist() == x[2].tolist()


def test_no_dimensions() -> None:
    t = tj.pack(np.float32(2.5), "f32[]{:T(128)}")
    assert t[()] == 2.5
    assert t.unpack().shape == ()
    assert np.asarray(t) == 2.5
    assert t[...].shape == ()
    assert t[None].shape == (1,)
    t[()] = 3
    assert t[()] == 3
    t[...] = 4
    assert t.buffer[0] == 4
    with pytest.raises(TypeError):
        len(t)


@pytest.mark.parametrize(
    "shape",
    [
        tj.make_shape("f32", (2, 3), padded_dimensions=(3, 5)),
        tj.make_shape("f32", (2, 3), tiles=((4, 4),), padding_value=1),
    ],
    ids=["padded", "value"],
)
def test_repr_of_shapes_without_a_text(shape: tj.Shape) -> None:
    t = tj.pack(np.ones((2, 3), np.float32), shape)
    assert "TiledArray(" in repr(t)
    with pytest.raises(tj.LayoutError, match="bytes"):
        tj.pack(np.ones((2, 3), np.float32), shape, out=np.zeros(1, np.uint8))
    with pytest.raises(tj.LayoutError, match="bytes"):
        tj.TiledArray.from_buffer(b"", shape)
    with pytest.raises(tj.LayoutIndexError):
        t[5, 0]
    with pytest.raises(tj.LayoutIndexError):
        tj.linear_index(shape, (5, 0))
    with pytest.raises(tj.LayoutError, match="tiled array is"):
        tj.unpack(t, "f32[2,3]{0,1}")


@pytest.mark.parametrize(
    "key",
    [
        3,
        -4,
        (0, 5),
        (0, -6),
        (0, 0, 0),
        (..., ...),
        (slice(None, None, 0), 0),
        2**70,
        (0, slice(0, 1), slice(0, 1)),
    ],
)
def test_keys_outside(key: Any) -> None:
    t = tj.pack(np.zeros((3, 5), np.float32), TILED)
    before = t.buffer.copy()
    with pytest.raises(tj.LayoutIndexError):
        t[key]
    with pytest.raises(tj.LayoutIndexError):
        t[key] = 1
    assert (t.buffer == before).all()


@pytest.mark.parametrize("layout", [TILED, "{1,0:T(*,2)}"])
@pytest.mark.parametrize(
    "key",
    [
        slice(None, None, 2**70),
        slice(None, None, -(2**70)),
        (slice(2, None, 2**63), slice(4, None, -(2**63) - 1)),
        (slice(-(2**90), 2**90), 1),
    ],
    ids=str,
)
def test_steps_of_more_than_64_bits(layout: str, key: Any) -> None:
    x = np.arange(15, dtype=np.float32).reshape(3, 5)
    t = tj.pack(x, layout)
    assert (t[key] == x[key]).all()
    t[key] = x[key] = -1
    assert (tj.unpack(t) == x).all()


@pytest.mark.parametrize(
    "key",
    [1.0, "a", [0, 1], np.array([0, 1]), np.zeros((3, 5), bool), True, (0, 2.5), object()],
    ids=["float", "str", "list", "array", "mask", "bool", "float inside", "object"],
)
def test_keys_of_a_wrong_type(key: Any) -> None:
    t = tj.pack(np.zeros((3, 5), np.float32), TILED)
    with pytest.raises(TypeError):
        t[key]
    with pytest.raises(TypeError):
        t[key] = 1


@pytest.mark.parametrize("value", [np.zeros((2, 5)), np.zeros(4), [[1, 2], [3]], np.zeros((1, 3, 5, 1))])
def test_values_that_do_not_fit(value: Any) -> None:
    t = tj.pack(np.zeros((3, 5), np.float32), TILED)
    with pytest.raises(tj.LayoutError):
        t[...] = value
    assert (t.buffer == 0).all()


@pytest.mark.parametrize("value", ["a", "1", b"1", ["a"], np.array(["a"], object)], ids=repr)
@pytest.mark.parametrize("name", ["f32", "u8", "s4"])
def test_text_that_is_not_a_number_is_a_value_error(name: str, value: Any) -> None:
    """As in NumPy."""
    shape = tj.Shape.parse(f"{name}[3,5]")
    t = tj.TiledArray.from_buffer(bytearray(shape.size_in_bytes), shape)
    for key in ((0, 0), 0, ...):
        with pytest.raises(tj.LayoutError, match="expected numbers, got"):
            t[key] = value


@pytest.mark.parametrize(
    "value",
    [
        *(object(), {}, None, [None], 1j, np.array([1j]), np.datetime64(0, "s")),
        *(np.zeros(1, "i4,f4"), np.ma.masked, np.ma.masked_array([1.0], mask=[True])),
    ],
)
@pytest.mark.parametrize("name", ["f32", "bf16", "u8", "s4", "f4e2m1fn"])
def test_values_of_a_wrong_type(name: str, value: Any) -> None:
    shape = tj.Shape.parse(f"{name}[3,5]")
    t = tj.TiledArray.from_buffer(bytearray(shape.size_in_bytes), shape)
    for key in ((0, 0), 0, ...):
        with pytest.raises(TypeError):
            t[key] = value
    assert not t.buffer.view(np.uint8).any()


BEYOND = [
    *(("u8", 300), ("u8", -1), ("u8", [1, 256]), ("u8", np.int64(300)), ("u8", 2**70), ("s32", 2**31)),
    *(("u8", float("nan")), ("s32", float("nan")), ("s32", np.array([np.nan])), ("s64", 1e30)),
    *(("u8", 256.0), ("u8", np.array([-1.0])), ("s64", 2.0**63), ("u64", np.array([2.0**64]))),
    *(("s4", 100.0), ("s4", 8), ("s4", np.array([-9.0])), ("s4", float("nan")), ("s4", [2**70])),
    *(("u4", 16), ("u4", np.array([2**64 - 1], np.uint64)), ("s1", True), ("u2", ml_dtypes.bfloat16(4))),
    *(("s4", np.array([2**64 - 1], np.uint64)), ("f4e2m1fn", float("nan")), ("f6e2m3fn", np.array([np.nan]))),
    *(("f32", 10**400), ("s32", Fraction(10**20, 3))),
]


@pytest.mark.filterwarnings("error")
@pytest.mark.parametrize(("name", "value"), BEYOND, ids=repr)
def test_values_beyond_the_elements(name: str, value: Any) -> None:
    shape = tj.Shape.parse(f"{name}[3,5]{{1,0:T(2,2)}}")
    t = tj.TiledArray.from_buffer(bytearray(shape.size_in_bytes), shape)
    for key in ((0, 0), 0, ...):
        with pytest.raises(tj.LayoutError):
            t[key] = value
    assert not t.buffer.view(np.uint8).any()


HELD = [
    *(
        ("u8", 2.7, 2),
        ("u8", 255.9, 255),
        ("u8", True, 1),
        ("u8", np.array([300]), 44),
        ("s32", Fraction(7, 2), 3),
    ),
    *(("s64", [2**62 + 1, 0.5, 0, 0, 0], None), ("f32", 2**70, 2.0**70), ("bf16", 2**70, 2.0**70)),
    *(("s4", -8.0, -8), ("s4", 2.5, 2), ("s4", True, 1), ("s4", ml_dtypes.uint4(7), 7), ("s1", -1, -1)),
    *(
        ("f32", np.array(2 + 0j), 2),
        ("c64", 1j, 1j),
        ("pred", 1j, True),
        ("pred", 0.5, True),
    ),
    *(("f32", np.longdouble(3), 3), ("s8", ml_dtypes.bfloat16(-2), -2), ("f4e2m1fn", 1.4, 1.5)),
]


@pytest.mark.filterwarnings("error")
@pytest.mark.parametrize(("name", "value", "held"), HELD, ids=repr)
def test_values_that_elements_hold(name: str, value: Any, held: Any) -> None:
    shape = tj.Shape.parse(f"{name}[3,5]{{1,0:T(2,2)}}")
    t = tj.TiledArray.from_buffer(bytearray(shape.size_in_bytes), shape)
    t[0] = value
    assert t[0].tolist() == ([2**62 + 1, 0, 0, 0, 0] if held is None else [held] * 5)
    if held is not None:
        t[2, 3] = value
        assert t[2, 3] == held
    assert (t[1] == 0).all()


def test_values_convert_as_in_numpy() -> None:
    t = tj.pack(np.zeros((3, 5), np.float32), TILED)
    t[0] = [1, 2, 3, 4, 5]
    t[1, ::2] = np.array([1.5, 2.5, 3.5])
    t[2] = np.arange(5, dtype=">i2")
    assert t.unpack().tolist() == [[1, 2, 3, 4, 5], [1.5, 0, 2.5, 0, 3.5], [0, 1, 2, 3, 4]]
    t[...] = True
    assert (t.unpack() == 1).all()


@pytest.mark.parametrize(("name", "low", "high"), [("s4", -8, 7), ("u4", 0, 15), ("s2", -2, 1), ("u2", 0, 3)])
def test_narrow_integers_are_checked(name: str, low: int, high: int) -> None:
    t = tj.pack(np.zeros((3, 5), np.int8 if low else np.uint8), f"{name}[3,5]{{1,0:T(2,2)E({name[1]})}}")
    t[1] = [low, high, 0, low, high]
    assert t[1].astype(int).tolist() == [low, high, 0, low, high]
    for wrong in (low - 1, high + 1):
        with pytest.raises(tj.LayoutError, match=name):
            t[0, 0] = wrong
        with pytest.raises(tj.LayoutError, match=name):
            t[0] = np.full(5, wrong)
    assert t[0].astype(int).tolist() == [0] * 5


@given(shapes(most=60), st.data())
def test_single_elements_are_written(shape: tj.Shape, data: st.DataObject) -> None:
    x, t = filled(shape)
    if not x.size:
        return
    before = t.buffer.view(np.uint8).copy()
    for value in random_elements(np.random.default_rng(4), shape.dtype, 5):
        index = tuple(data.draw(st.integers(-n, n - 1)) for n in shape.dimensions)
        x[index] = value
        t[index] = value
    assert t.buffer.view(np.uint8).tolist() == packed_by_definition(x, shape, None, before).tolist()


def test_writes_may_drop_leading_dimensions_of_one() -> None:
    t = tj.pack(np.zeros((3, 5), np.float32), TILED)
    t[0] = np.ones((1, 1, 5))
    assert t[0].tolist() == [1] * 5


def test_a_view_of_the_buffer_is_copied_before_it_is_repeated() -> None:
    rows = 1 << 20
    t = tj.pack(np.broadcast_to(np.arange(5, dtype=np.int8), (rows, 5)), "s8[1048576,5]{1,0}")
    tracemalloc.start()
    t[...] = t.buffer[:5]
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < rows
    assert (t.unpack() == np.arange(5)).all()


def test_a_value_from_the_same_buffer() -> None:
    x = np.arange(15, dtype=np.float32).reshape(3, 5)
    t = tj.pack(x, "f32[3,5]{1,0}")
    view = t.buffer.reshape(3, 5)
    t[:, ::-1] = view
    assert (t.unpack() == x[:, ::-1]).all()


def test_copies_and_pickles() -> None:
    x = np.arange(15, dtype=ml_dtypes.bfloat16).reshape(3, 5)
    t = tj.pack(x, "bf16[3,5]{0,1:T(2,2)(2,1)}")
    for twin in (copy.copy(t), copy.deepcopy(t), *(pickle.loads(pickle.dumps(t, k)) for k in range(6))):
        assert type(twin) is tj.TiledArray
        assert twin.layout == t.layout
        assert (twin.unpack() == x).all()
    for twin in (copy.copy(t), copy.deepcopy(t)):  # as for arrays
        assert not np.shares_memory(twin.buffer, t.buffer)


@pytest.mark.parametrize(
    ("buffer", "kind", "words"),
    [
        (np.zeros(23, np.float32), tj.LayoutError, "92 bytes"),
        (np.zeros(24, np.int32), tj.LayoutError, "int32"),
        (np.zeros(24, ">f4"), tj.LayoutError, "f4"),
        (np.zeros((4, 6), np.float32), tj.LayoutError, "flat"),
        (np.zeros(48, np.float32)[::2], tj.LayoutError, "flat"),
        (np.zeros(24, object), tj.LayoutError, "object"),
        ([0.0] * 24, TypeError, "array"),
        (bytes(96), TypeError, "array"),
        (None, TypeError, "array"),
    ],
)
def test_buffers_that_hold_no_such_array(buffer: Any, kind: type[Exception], words: str) -> None:
    with pytest.raises(kind, match=words) as refused:
        tj.TiledArray(buffer, tj.as_layout(TILED))
    assert kind is TypeError or "\n  pass" in str(refused.value)


def test_the_constructor_needs_a_shape() -> None:
    with pytest.raises(TypeError, match="Shape"):
        tj.TiledArray(np.zeros(24, np.float32), TILED)  # type: ignore[arg-type]
    with pytest.raises(tj.LayoutError):
        tj.TiledArray(np.zeros(24, np.float32), tj.as_layout("f32[?]"))
    assert tj.TiledArray(np.zeros(96, np.uint8), tj.as_layout(TILED))[2, 3] == 0


def test_buffer_and_spec_are_read_only() -> None:
    t = tj.pack(np.zeros((3, 5), np.float32), TILED)
    with pytest.raises(AttributeError):
        t.buffer = np.zeros(3)  # type: ignore[misc]
    with pytest.raises(AttributeError):
        t.layout = tj.as_layout("f32[300]")  # type: ignore[misc]


def test_a_resized_buffer_is_detected() -> None:
    x = np.ones((3, 5), np.float32)
    buffer = np.zeros(24, np.float32)
    t = tj.TiledArray(buffer, tj.as_layout(TILED))
    buffer.resize(3, refcheck=False)
    uses: list[Any] = [
        *(lambda: t[2, 3], lambda: t[...], lambda: t.unpack(), lambda: t.__setitem__((0, 0), 1)),
        *(lambda: t.__setitem__(..., x), lambda: tj.unpack(t), lambda: tj.pack(x, TILED, out=t)),
    ]
    for use in uses:
        with pytest.raises(tj.LayoutError, match="12 bytes"):
            use()


@pytest.mark.filterwarnings("ignore::PendingDeprecationWarning")
def test_subclasses_of_arrays_count_as_plain_memory() -> None:
    x = np.arange(15, dtype=np.float32).reshape(3, 5)
    data = tj.pack(x, TILED).buffer
    for buffer in (np.matrix(data), np.ma.masked_array(data, mask=False), data.view(np.recarray)):
        t = tj.TiledArray.from_buffer(buffer, TILED)
        assert type(t.buffer) is np.ndarray
        assert t[1, 2] == 7


def test_memoryviews() -> None:
    for view in (memoryview(np.zeros(24, ">f4")), memoryview(np.zeros((4, 6), np.float32))):
        assert tj.TiledArray.from_buffer(view, TILED)[1, 2] == 0
    with pytest.raises(TypeError, match="objects"):
        tj.TiledArray.from_buffer(memoryview(np.array([None] * 12)), TILED)
    released = memoryview(bytearray(96))
    released.release()
    with pytest.raises(tj.LayoutError, match="released"):
        tj.TiledArray.from_buffer(released, TILED)


def test_iteration() -> None:
    x = np.arange(15, dtype=np.float32).reshape(3, 5)
    assert [row.tolist() for row in tj.pack(x, TILED)] == x.tolist()
    with pytest.raises(TypeError):
        list(tj.pack(np.float32(1), "f32[]"))


def test_too_many_dimensions() -> None:
    t = tj.pack(np.zeros((3, 5), np.float32), TILED)
    with pytest.raises(tj.LayoutIndexError, match="72 dimensions"):
        t[(None,) * 70]
    with pytest.raises(tj.LayoutIndexError, match="72 dimensions"):
        t[(None,) * 70] = 1
    assert t[(None,) * 20].ndim == 22


def test_read_only_buffers() -> None:
    x = np.arange(15, dtype=np.float32).reshape(3, 5)
    data = tj.pack(x, TILED).buffer.tobytes()
    t = tj.TiledArray.from_buffer(data, TILED)
    assert t[2, 3] == 13
    assert (t.unpack() == x).all()
    with pytest.raises(tj.LayoutError, match="read-only"):
        t[0, 0] = 1
    with pytest.raises(tj.LayoutError, match="read-only\n  copy"):
        t.writable_buffer()
    with pytest.raises(tj.LayoutError, match="read-only\n  pass"):
        tj.pack(x, TILED, out=t)
    owned = tj.pack(x, TILED)
    owned.writable_buffer()[:] = 7
    assert (owned.unpack() == 7).all()
    folded = tj.TiledArray.from_buffer(
        bytearray(20), tj.cute.Layout((3, 5), (0, 1)), dims=(3, 5), dtype="f32"
    )
    with pytest.raises(tj.LayoutError, match="share slot"):
        folded.writable_buffer()


def test_from_buffer_shares_memory() -> None:
    data = bytearray(96)
    t = tj.TiledArray.from_buffer(data, TILED)
    t[2, 3] = 1
    assert np.frombuffer(data, np.float32)[17] == 1
    misaligned = np.zeros(97, np.uint8)[1:]
    t = tj.TiledArray.from_buffer(misaligned, TILED)
    t[...] = np.arange(15).reshape(3, 5)
    assert t.unpack().tolist() == np.arange(15).reshape(3, 5).tolist()


@pytest.mark.parametrize("size", [0, 95, 97, 192])
def test_buffers_of_a_wrong_size(size: int) -> None:
    with pytest.raises(tj.LayoutError, match=f"{size} bytes"):
        tj.TiledArray.from_buffer(bytes(size), TILED)


@pytest.mark.parametrize("buffer", ["text", 3, None, [0] * 96, object()])
def test_buffers_of_a_wrong_type(buffer: Any) -> None:
    with pytest.raises(TypeError):
        tj.TiledArray.from_buffer(buffer, TILED)


@pytest.mark.parametrize("obj", ["{1,0}", "tpu", "(f32[3])", "token[]", "f32[?]", None, 3])
def test_layouts_that_are_not_full_shapes_are_refused(obj: Any) -> None:
    with pytest.raises((tj.LayoutError, TypeError)):
        tj.TiledArray.from_buffer(bytes(96), obj)


def test_object_buffers_are_refused() -> None:
    with pytest.raises((tj.LayoutError, TypeError)):
        tj.TiledArray.from_buffer(np.array([None] * 12), TILED)
    with pytest.raises((tj.LayoutError, TypeError)):
        tj.unpack(np.array([None] * 12), TILED)


def test_nested_stars_are_read_and_written() -> None:
    """`*` in a second tile merges digits, so every offset comes from a table."""
    shape = tj.Shape.parse("bf16[9,14]{1,0:T(4,3)(*,*,2,2)}")
    x = np.arange(126, dtype=np.float32).astype(ml_dtypes.bfloat16).reshape(9, 14)
    t = tj.pack(x, shape)
    assert (t[2:8:2, ::-3] == x[2:8:2, ::-3]).all()
    t[1:4, 5] = 7
    x[1:4, 5] = 7
    assert (t.unpack() == x).all()
    slots = slots_of(shape)
    assert (t.buffer[slots >= 0] == x.reshape(-1)[slots[slots >= 0]]).all()


def test_big_arrays_in_threads() -> None:
    x = np.arange(1200 * 1300, dtype=np.int32).reshape(1200, 1300)
    t = tj.pack(x, "{1,0:T(8,128)}", threads=3)
    assert (tj.unpack(t, threads=2) == x).all()
    assert (t[7:1100:3, 100:] == x[7:1100:3, 100:]).all()
    t[:, 5:] = x[:, :-5]
    assert (t.unpack()[:, 5:] == x[:, :-5]).all()
