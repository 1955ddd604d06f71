"""pack and unpack against the definition; valid and invalid arguments; a refused call writes nothing."""

from __future__ import annotations

from typing import Any

import ml_dtypes
import numpy as np
import pytest
from hypothesis import given

import tilejit as tj
from tests.tools.extent import lower_levels, own_level
from tests.tools.guard import span_bytes, strided_view
from tests.tools.oracle import (
    packed_by_definition,
    random_elements,
    run_python,
    same_elements,
    unpacked_by_definition,
)
from tests.tools.strategies import TYPES, shapes, shapes_and_strides
from tilejit.layout.dtypes import PRIMITIVE_TYPES

TILED = "f32[3,5]{1,0:T(2,2)}"


def elements(shape: tj.Shape, seed: int = 5) -> np.ndarray[Any, Any]:
    rng = np.random.default_rng(seed)
    return random_elements(rng, shape.dtype, int(np.prod(shape.dimensions))).reshape(shape.dimensions)


def zero(shape: tj.Shape) -> np.ndarray[Any, Any]:
    if shape.padding_value is None:
        return np.zeros(shape.dtype.itemsize, np.uint8).view(shape.dtype)
    return np.asarray(shape.padding_value).astype(shape.dtype).reshape(1)


def packed(x: np.ndarray[Any, Any], shape: tj.Shape) -> np.ndarray[Any, Any]:
    return packed_by_definition(x, shape, zero(shape), np.zeros(shape.size_in_bytes, np.uint8))


@given(shapes())
def test_pack_and_unpack_are_the_definition(shape: tj.Shape) -> None:
    x = elements(shape)
    tiled = tj.pack(x, shape)
    assert tiled.buffer.view(np.uint8).tolist() == packed(x, shape).tolist()
    back = tj.unpack(tiled)
    assert same_elements(back, x, shape)
    assert back.flags.c_contiguous
    assert back.dtype == shape.dtype


@given(shapes_and_strides())
def test_any_strides(case: tuple[tj.Shape, tuple[int, ...]]) -> None:
    shape, strides = case
    room = np.zeros(span_bytes(shape.dtype.itemsize, shape.dimensions, strides), np.uint8)
    x = strided_view(room, shape.dtype, shape.dimensions, strides)
    x[...] = elements(shape)
    tiled = tj.pack(x, shape, threads=2)
    assert tiled.buffer.view(np.uint8).tolist() == packed(x, shape).tolist()


@pytest.mark.full
@given(shapes_and_strides(broadcast=False))
def test_unpack_into_any_strides(case: tuple[tj.Shape, tuple[int, ...]]) -> None:
    shape, strides = case
    tiled = tj.pack(elements(shape), shape)
    room = np.full(span_bytes(shape.dtype.itemsize, shape.dimensions, strides), 0x55, np.uint8)
    out = strided_view(room, shape.dtype, shape.dimensions, strides)
    assert tj.unpack(tiled, out=out, threads=3) is out
    assert same_elements(out, unpacked_by_definition(tiled.buffer.view(np.uint8), shape), shape)


@given(shapes())
def test_keep_writes_elements_only(shape: tj.Shape) -> None:
    x = elements(shape)
    out = np.frombuffer(np.random.default_rng(1).bytes(shape.size_in_bytes), np.uint8).copy()
    want = packed_by_definition(x, shape, None, out)
    tiled = tj.pack(x, shape, out=out, padding="keep")
    assert (
        tiled.buffer is out or tiled.buffer.base is out or np.shares_memory(tiled.buffer, out) or not len(out)
    )
    assert out.tolist() == want.tolist()


WIDE = tuple(name for name in TYPES if PRIMITIVE_TYPES[name].storage_bits > 8)


@pytest.mark.full
@pytest.mark.parametrize(("name", "order"), [*((n, "<") for n in TYPES), *((n, ">") for n in WIDE)])
def test_every_dtype(name: str, order: str) -> None:
    shape = tj.Shape.parse(f"{name}[13,9]{{0,1:T(4,8)(2,1)}}")
    x = elements(shape)
    if order == ">":
        x = x.astype(x.dtype.newbyteorder(">"))
    tiled = tj.pack(x, shape)
    assert tiled.buffer.view(np.uint8).tolist() == packed(x, shape).tolist()
    assert tiled.dtype == shape.dtype
    assert same_elements(tj.unpack(tiled), np.asarray(x.astype(shape.dtype)), shape)


@pytest.mark.full
@pytest.mark.parametrize("name", [n for n in TYPES if PRIMITIVE_TYPES[n].bits in (1, 2, 4)])
@pytest.mark.parametrize("tiles", ["", "T(8,8)(4,1)", "T(3,5)", "T(*,7)(2,1)L(5)"])
def test_packed_dtypes(name: str, tiles: str) -> None:
    bits = PRIMITIVE_TYPES[name].bits
    shape = tj.Shape.parse(f"{name}[13,9]{{1,0:{tiles}E({bits})}}")
    x = elements(shape)
    tiled = tj.pack(x, shape)
    assert tiled.buffer.dtype == np.uint8
    assert tiled.buffer.tolist() == packed(x, shape).tolist()
    assert same_elements(tj.unpack(tiled), x, shape)


@pytest.mark.parametrize(
    ("array", "text"),
    [
        (np.float32(3.5), "f32[]"),
        (np.float32(3.5), "f32[]{:T(256)}"),
        (np.int8(3), "s4[]{:E(4)}"),
        (np.zeros((0,), np.float32), "f32[0]{0:T(8)}"),
        (np.zeros((3, 0, 2), np.int16), "s16[3,0,2]{0,2,1:T(8,128)(2,1)}"),
        (
            np.arange(2.0).reshape((1,) * 31 + (2,)),
            f"f64[{','.join(['1'] * 31)},2]{{{','.join(map(str, range(31, -1, -1)))}}}",
        ),
        (np.arange(24).reshape((1, 2) * 3 + (3,) + (1,) * 25), None),
    ],
    ids=["0-d", "0-d tiled", "0-d packed", "empty", "empty tiled", "rank 32", "rank 32, tiled"],
)
def test_odd_ranks(array: Any, text: str | None) -> None:
    if text is None:
        dims, order = array.shape, ",".join(map(str, range(array.ndim)))
        text = f"s64[{','.join(map(str, dims))}]{{{order}:T(2,2,2)(2,1)}}"
    shape = tj.Shape.parse(text)
    tiled = tj.pack(array, shape)
    assert tiled.nbytes == shape.size_in_bytes
    back = tj.unpack(tiled)
    assert back.shape == shape.dimensions
    assert (back == array).all()


def test_a_layout_alone_takes_dims_and_dtype_from_the_array() -> None:
    x = np.arange(12, dtype=ml_dtypes.bfloat16).reshape(3, 4)
    assert str(tj.pack(x, "{0,1:T(2,2)}").layout) == "bf16[3,4]{0,1:T(2,2)}"
    assert str(tj.pack(x, "tpu").layout).startswith("bf16[3,4]{")
    assert tj.pack([[1.0, 2.0]], "{1,0}").layout.primitive_type == "f64"


@pytest.mark.parametrize(
    ("value", "text", "element"),
    [
        (7, "u8[3]{0:T(4)}", 7),
        (-1, "s4[3]{0:T(4)E(4)}", -1),
        (True, "pred[3]{0:T(4)}", True),
        (float("inf"), "f32[3]{0:T(4)}", float("inf")),
        (0.1, "bf16[3]{0:T(4)}", 0.1),
        (1 + 2j, "c64[3]{0:T(4)}", 1 + 2j),
        (0.1 + 0.3j, "c64[3]{0:T(4)}", 0.1 + 0.3j),
        (2, "c128[3]{0:T(4)}", 2),
        (complex(float("nan"), 1), "c128[3]{0:T(4)}", complex(float("nan"), 1)),
        (2 + 0j, "f32[3]{0:T(4)}", 2),
        (np.float32(-0.0), "f32[3]{0:T(4)}", -0.0),
        (np.array(3), "s64[3]{0:T(4)}", 3),
        (-(10**30), "f32[3]{0:T(4)}", -1e30),
        (6.9, "f4e2m1fn[3]{0:T(4)}", 6),
    ],
)
def test_padding_values(value: Any, text: str, element: Any) -> None:
    shape = tj.Shape.parse(text)
    x = elements(shape)
    want = packed_by_definition(
        x, shape, np.asarray(element).astype(shape.dtype).reshape(1), np.zeros(shape.size_in_bytes, np.uint8)
    )
    assert tj.pack(x, shape, padding=value).buffer.view(np.uint8).tolist() == want.tolist()


def test_the_padding_value_of_the_shape() -> None:
    shape = tj.make_shape("s16", (3,), tiles=((4,),), padding_value=-7)
    x = np.arange(3, dtype=np.int16)
    assert tj.pack(x, shape).buffer.tolist() == [0, 1, 2, -7]
    assert tj.pack(x, shape, padding=9).buffer.tolist() == [0, 1, 2, 9]


def test_a_type_without_zero_gets_zero_bits() -> None:
    shape = tj.Shape.parse("f8e8m0fnu[3]{0:T(4)}")
    assert tj.pack(np.ones(3, ml_dtypes.float8_e8m0fnu), shape).buffer.view(np.uint8).tolist() == [
        127,
        127,
        127,
        0,
    ]


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (300, "s8[3]{0:T(4)}"),
        (-1, "u8[3]{0:T(4)}"),
        (8, "s4[3]{0:T(4)E(4)}"),
        (1.5, "s32[3]{0:T(4)}"),
        (2**63, "s64[3]{0:T(4)}"),
        (2**200, "s64[3]{0:T(4)}"),
        (float("nan"), "s32[3]{0:T(4)}"),
        (1e300, "f32[3]{0:T(4)}"),
        (1j, "f32[3]{0:T(4)}"),
        (1e300 + 1j, "c64[3]{0:T(4)}"),
        (2**2000, "c64[3]{0:T(4)}"),
        (1e9, "f4e2m1fn[3]{0:T(4)}"),
        (float("inf"), "f6e2m3fn[3]{0:T(4)}"),
        (0, "f8e8m0fnu[3]{0:T(4)}"),
        ("keep", "f32[3]{0:T(4)}"),
        ("zero", "f32[3]{0:T(4)}"),
    ],
)
def test_padding_that_does_not_fit(value: Any, text: str) -> None:
    shape = tj.Shape.parse(text)
    with pytest.raises(tj.LayoutError, match="padding"):
        tj.pack(np.zeros(3, shape.dtype), shape, padding=value)


def test_an_error_about_a_type_without_zero_suggests_padding_with_zero_bytes() -> None:
    shape = tj.Shape.parse("f8e8m0fnu[3]{0:T(4)}")
    with pytest.raises(tj.LayoutError, match="has no 0: omit padding"):
        tj.pack(np.ones(3, shape.dtype), shape, padding=0)
    assert tj.pack(np.ones(3, shape.dtype), shape).buffer.view(np.uint8)[3] == 0


@pytest.mark.parametrize(
    "value",
    [object(), b"x", np.datetime64(0, "s"), [None], {}, [1, 2], [[1], [2, 3]], np.ones(2)],
)
def test_padding_of_a_wrong_type(value: Any) -> None:
    with pytest.raises(TypeError, match="padding"):
        tj.pack(np.zeros((3, 5), np.float32), TILED, padding=value)


def guarded_out(count: int = 24, dtype: Any = np.float32) -> np.ndarray[Any, Any]:
    return np.full(count, 77, dtype)


def overlapping() -> tuple[Any, Any]:
    memory = np.zeros(40, np.float32)
    return memory[:15].reshape(3, 5), memory[10:34]


def read_only() -> np.ndarray[Any, Any]:
    out = guarded_out()
    out.flags.writeable = False
    return out


@pytest.mark.parametrize(
    ("out", "words"),
    [
        (guarded_out(23), "92 bytes"),
        (guarded_out(25), "100 bytes"),
        (guarded_out(24, np.int32), "int32"),
        (guarded_out(48, np.float16), "float16"),
        (guarded_out(24, ">f4"), "f4|float32"),
        (read_only(), "read-only"),
    ],
    ids=["short", "long", "dtype", "width", "byte order", "read-only"],
)
def test_out_that_cannot_be_used(out: np.ndarray[Any, Any], words: str) -> None:
    before = out.copy()
    with pytest.raises(tj.LayoutError, match=words):
        tj.pack(np.ones((3, 5), np.float32), TILED, out=out)
    assert (out == before).all()


def test_out_that_overlaps() -> None:
    x, out = overlapping()
    with pytest.raises(tj.LayoutError, match="overlap"):
        tj.pack(x, TILED, out=out)
    with pytest.raises(tj.LayoutError, match="overlap"):
        tj.unpack(tj.TiledArray.from_buffer(out, TILED), out=x)


@pytest.mark.parametrize("out", [[0.0] * 24, bytearray(96), memoryview(bytearray(96)), 3, "x"])
def test_out_of_a_wrong_type(out: Any) -> None:
    with pytest.raises(TypeError):
        tj.pack(np.ones((3, 5), np.float32), TILED, out=out)
    with pytest.raises(TypeError):
        tj.unpack(tj.pack(np.ones((3, 5), np.float32), TILED), out=out)


def test_out_of_another_layout() -> None:
    x = np.ones((3, 5), np.float32)
    other = tj.pack(x, "f32[3,5]{0,1:T(2,2)}")
    with pytest.raises(tj.LayoutError, match="out holds"):
        tj.pack(x, TILED, out=other)
    same = tj.pack(x, TILED)
    assert tj.pack(2 * x, TILED, out=same) is same
    assert same[2, 3] == 2


@pytest.mark.parametrize(
    "out",
    [
        np.empty((5, 3), np.float32),
        np.empty((3, 5), np.float64),
        np.empty(15, np.float32),
        np.broadcast_to(np.float32(0), (3, 5)),
        np.lib.stride_tricks.as_strided(np.zeros(30, np.float32), (3, 5), (4, 4)),
    ],
    ids=["shape", "dtype", "flat", "broadcast", "overlapping rows"],
)
def test_out_of_unpack(out: np.ndarray[Any, Any]) -> None:
    before = out.copy()
    with pytest.raises(tj.LayoutError, match="out"):
        tj.unpack(tj.pack(np.ones((3, 5), np.float32), TILED), out=out)
    assert (out == before).all() or np.isnan(before).any()


def test_out_of_unpack_may_have_another_byte_order() -> None:
    x, out = np.arange(15, dtype=np.float32).reshape(3, 5), np.empty((3, 5), ">f4")
    assert tj.unpack(tj.pack(x, TILED), out=out) is out
    assert (out == x).all()


@pytest.mark.parametrize(
    ("casting", "good"),
    [("no", False), ("equiv", False), ("safe", False), ("same_kind", True), ("unsafe", True)],
)
def test_casting(casting: str, good: bool) -> None:
    x = np.linspace(-3, 3, 15).reshape(3, 5)
    if good:
        assert (tj.pack(x, TILED, casting=casting).unpack() == x.astype(np.float32)).all()
    else:
        with pytest.raises(tj.LayoutError, match="casting"):
            tj.pack(x, TILED, casting=casting)


@pytest.mark.full
def test_casting_of_other_kinds() -> None:
    x = np.arange(15).reshape(3, 5)
    for text in ("bf16", "f16", "s8", "u16", "c64", "pred", "s4", "f8e4m3fn", "f64"):
        tiled = tj.pack(x % 7, f"{text}[3,5]{{1,0:T(2,2)}}", casting="unsafe", padding=1)
        assert same_elements(tiled.unpack(), (x % 7).astype(tiled.dtype), tiled.layout)
        assert tj.unpack(tiled).dtype == tiled.dtype
    with pytest.raises(tj.LayoutError, match="casting"):
        tj.pack(x, TILED, casting="maybe")
    with pytest.raises(tj.LayoutError, match="casting"):
        tj.pack(x, TILED)


@pytest.mark.parametrize("casting", [None, 1, [], np.array(["no", "x"]), b"no"], ids=repr)
def test_casting_of_a_wrong_type(casting: Any) -> None:
    with pytest.raises(TypeError, match="casting"):
        tj.pack(np.zeros((3, 5), np.float32), TILED, casting=casting)


@pytest.mark.filterwarnings("ignore::RuntimeWarning", "ignore::numpy.exceptions.ComplexWarning")
@pytest.mark.parametrize("text", ["f32", "f16", "bf16", "s8", "s4", "f8e4m3fn", "pred", "c64"])
def test_unsafe_conversions_give_numpys_values(text: str) -> None:
    x = np.array([[1 + 2j, 3, -1j, 1e30, 0], [np.nan, np.inf, 2, 1, 0]])
    for array in (x, x.astype(np.complex64), x.real.copy()):
        tiled = tj.pack(array, f"{text}[2,5]{{0,1}}", casting="unsafe")
        assert tiled[0, 0] == (array[0, 0] if text == "c64" else 1)
        kept = {"c64": array[0, 2], "pred": bool(array[0, 2])}
        assert tiled[0, 2] == kept.get(text, 0)


def test_arrays_beyond_numpys_limits() -> None:
    many = f"f32[{','.join(['1'] * 65)}]"
    with pytest.raises(tj.LayoutError, match="at most"):
        tj.unpack(np.zeros(1, np.float32), many)
    with pytest.raises(tj.LayoutError, match="not even without elements"):
        tj.unpack(b"", "f32[0,4611686018427387904,4611686018427387904]")


@pytest.mark.full
@pytest.mark.parametrize(
    ("name", "dtype", "low", "high"),
    [("s4", np.int8, -8, 7), ("u4", np.uint8, 0, 15), ("s2", np.int8, -2, 1), ("u2", np.uint8, 0, 3)],
)
@pytest.mark.parametrize("packed", [True, False])
def test_int8_arrays_for_narrow_integers(name: str, dtype: Any, low: int, high: int, packed: bool) -> None:
    text = f"{name}[2,8]{{1,0:T(2,4){f'E({name[1]})' if packed else ''}}}"
    x = np.linspace(low, high, 16).astype(dtype).reshape(2, 8)
    back = tj.unpack(tj.pack(x, text))
    assert back.dtype == getattr(ml_dtypes, f"{'u' * (name[0] == 'u')}int{name[1]}")
    assert (back.astype(int) == x).all()
    out = np.full(tj.Shape.parse(text).size_in_bytes, 99, np.uint8)
    for wrong in (low - 1, high + 1):
        if wrong < 0 and dtype is np.uint8:
            continue
        bad = x.copy()
        bad[1, 3] = wrong
        with pytest.raises(tj.LayoutError, match="clip"):
            tj.pack(bad, text, out=out)
        assert (out == 99).all()


@pytest.mark.parametrize(
    "text", ["s4[3,5]{1,0:E(2)}", "f32[3,5]{1,0:E(16)}", "f6e2m3fn[3,5]{1,0:E(6)}", "pred[3,5]{1,0:E(4)}"]
)
def test_widths_other_than_the_dtypes_are_refused(text: str) -> None:
    shape = tj.Shape.parse(text)
    with pytest.raises(tj.LayoutError, match=r"E|bits"):
        tj.pack(np.zeros((3, 5), shape.dtype), shape)


@pytest.mark.parametrize(
    "text", ["f32[?,5]", "f32[<=3,?]{1,0}", "f32[3,5]{1,0:M(8)}", "f32[3,5]{1,0:P(f32[4,5]{1,0})}"]
)
def test_shapes_without_a_known_buffer(text: str) -> None:
    with pytest.raises(tj.LayoutError):
        tj.pack(np.zeros((3, 5), np.float32), text)


@pytest.mark.parametrize(
    "obj", ["(f32[3,5])", "token[]", "b(f32[3,5])", "f32[5,3]{1,0}", "{0}", "{1,0:T(2", "nonsense", ""]
)
def test_layouts_that_do_not_fit(obj: str) -> None:
    with pytest.raises(tj.LayoutError):
        tj.pack(np.zeros((3, 5), np.float32), obj)


@pytest.mark.parametrize("obj", [None, 3, 2.5, ["{1,0}"], b"{1,0}", object()])
def test_layouts_of_a_wrong_type(obj: Any) -> None:
    with pytest.raises(TypeError):
        tj.pack(np.zeros((3, 5), np.float32), obj)


@pytest.mark.parametrize(
    "x",
    [
        np.array(["a"]),
        np.array([b"a"]),
        np.array([None]),
        np.zeros(1, "f4,i4"),
        np.zeros(1, "M8[s]"),
        np.zeros(1, "m8[s]"),
        np.zeros(1, np.longdouble),
        object(),
    ],
    ids=["str", "bytes", "None", "struct", "date", "span", "long double", "object"],
)
def test_arrays_of_a_wrong_type(x: Any) -> None:
    with pytest.raises(TypeError):
        tj.pack(x, "f32[1]{0}", casting="unsafe")
    with pytest.raises(TypeError):
        tj.pack(x, "{0}")


def test_ragged_lists_are_refused() -> None:
    with pytest.raises(tj.LayoutError, match="expected an array, got list: "):
        tj.pack([[1, 2], [3]], "{1,0}")


def test_swapped_arguments_name_the_right_order() -> None:
    with pytest.raises(
        TypeError, match="expected an array to pack, got str\n  pass the array before the layout"
    ):
        tj.pack(TILED, np.ones((3, 5), np.float32))


def test_a_tiled_array_is_not_packed_again() -> None:
    with pytest.raises(TypeError, match="got a TiledArray"):
        tj.pack(tj.pack(np.ones((3, 5), np.float32), TILED), TILED)


@pytest.mark.parametrize("threads", [0, -3])
def test_no_threads(threads: int) -> None:
    with pytest.raises(tj.TilejitError, match="thread"):
        tj.pack(np.ones((3, 5), np.float32), TILED, threads=threads)
    with pytest.raises(TypeError):
        tj.unpack(tj.pack(np.ones((3, 5), np.float32), TILED), threads="2")  # type: ignore[arg-type]


def test_buffers_of_unpack() -> None:
    x = np.arange(15, dtype=np.float32).reshape(3, 5)
    data = tj.pack(x, TILED).buffer
    for buffer in (
        data,
        data.tobytes(),
        bytearray(data.tobytes()),
        memoryview(data),
        data.view(np.uint8),
        data.reshape(4, 6),
    ):
        assert (tj.unpack(buffer, TILED) == x).all()
    for wrong, kind in (
        (data[:-1], tj.LayoutError),
        (data[::2], tj.LayoutError),
        ("text", TypeError),
        (3, TypeError),
    ):
        with pytest.raises(kind):
            tj.unpack(wrong, TILED)
    with pytest.raises(TypeError, match="a buffer needs its layout"):
        tj.unpack(data)
    with pytest.raises(tj.LayoutError, match="not"):
        tj.unpack(tj.pack(x, TILED), "f32[3,5]{0,1}")
    assert (tj.unpack(tj.pack(x, TILED), TILED) == x).all()


def test_subclasses_and_lists_are_packed_as_arrays() -> None:
    assert tj.pack([[1, 2], [3, 4]], "s64[2,2]{0,1}").buffer.tolist() == [1, 3, 2, 4]
    masked = np.ma.masked_array(np.ones((3, 5), np.float32), mask=False)
    assert (tj.pack(masked, TILED).unpack() == 1).all()
    masked[1, 2] = np.ma.masked
    with pytest.raises(TypeError, match="filled"):
        tj.pack(masked, TILED)


def test_too_big_for_memory() -> None:
    x = np.broadcast_to(np.float32(1), (1 << 20, 1 << 20, 1 << 10))
    with pytest.raises(tj.TilejitError, match="memory"):
        tj.pack(x, "{2,1,0:T(8,128)}")


@pytest.mark.full
@pytest.mark.parametrize("level", [own_level(), *lower_levels()])
def test_every_half_becomes_the_right_float(level: str) -> None:
    """All 65,536 bit patterns, at CPU levels with and without an instruction for the conversion."""
    code = (
        "import numpy as np, tilejit as tj\n"
        "x = np.arange(65536, dtype=np.uint16).view(np.float16).reshape(256, 256)\n"
        "y = tj.unpack(tj.pack(x, 'f32[256,256]{0,1}', casting='safe'))\n"
        "assert np.array_equal(y.view(np.uint32) & 0xFF800000, x.astype('f4').view(np.uint32) & 0xFF800000)\n"
        "assert np.array_equal(y, x.astype(np.float32), equal_nan=True)\n"
    )
    done = run_python(code, TILEJIT_CPU=level)
    assert done.returncode == 0, done.stderr


def test_padding_of_the_element_type_keeps_its_bits() -> None:
    """The sign and payload of a NaN are preserved."""
    nan = np.array([0xF9], np.uint8).view(ml_dtypes.float8_e3m4)[0]
    t = tj.pack(np.zeros(3, ml_dtypes.float8_e3m4), "{0:T(8)}", padding=nan)
    assert t.buffer.view(np.uint8)[3:].tolist() == [0xF9] * 5


@pytest.mark.parametrize("size", ["auto", 3, (2, 3)], ids=str)
@pytest.mark.parametrize("layout", ["{1,0:T(2,4)}", "{0,1:T(8)}", "{1,0:T(4,2)}"])
@pytest.mark.parametrize("dtype", [">c8", ">c16"])
def test_padding_of_swapped_complex_numbers_stays_together(dtype: str, layout: str, size: Any) -> None:
    """The parts of an element are swapped one by one, and strips may begin at the second one."""
    x = np.arange(35).astype(dtype).reshape(5, 7)
    text = f"c{8 * x.itemsize}[5,7]{layout}"
    found = tj.pack(x, text, padding=3 - 5j, virtual_vector_size=size)
    native = x.astype(x.dtype.newbyteorder("="))
    assert found.buffer.tobytes() == tj.pack(native, text, padding=3 - 5j).buffer.tobytes()


@pytest.mark.parametrize(
    "text", ["{0:T(32,3)(*,7,16,8)}", "{0:T(4,3)(*,7,2,2)}", "{0:T(16,3)}", "{0:T(5,2,3)}"]
)
def test_tiles_with_more_dimensions_than_the_array_are_padded(text: str) -> None:
    """The loop over rows of a tile that belong to no dimension may be the outermost one."""
    buffer = tj.pack(np.full(8, 7, np.uint8), text, padding=1).buffer
    assert (np.count_nonzero(buffer == 7), np.count_nonzero(buffer == 1)) == (8, buffer.size - 8)
