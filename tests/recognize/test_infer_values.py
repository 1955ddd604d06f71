"""`tilejit.infer`: changed values, padding, dtypes, results in any form, and what the result says."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import ml_dtypes
import numpy as np
import pytest

import tilejit as tj
from tests.recognize.functions import Array, little_endian
from tilejit.layout.dtypes import PRIMITIVE_TYPES, primitive_type
from tilejit.recognize.probes.bit_patterns import array_of, patterns_of, random_patterns

DIMS = (8, 12)
ARRAYS = [name for name, element in PRIMITIVE_TYPES.items() if element.is_array_element]
TABLE = np.random.default_rng(5).permutation(256).astype(np.uint8)


def some(element: Any, dtype: Any, dims: tuple[int, ...] = DIMS) -> Array:
    """An array with random elements."""
    kind = primitive_type(element)
    return array_of(random_patterns(kind, int(np.prod(dims)), 9), kind, np.dtype(dtype)).reshape(dims)


MAPS: dict[str, tuple[Any, Callable[[Array], Any], str]] = {
    "signs of codes": ("uint4", lambda x: x ^ 8, "x ^ 8"),
    "signs of packed codes": ("uint4", lambda x: little_endian(x ^ 8), "x ^ 8"),
    "0x88 in each byte": ("uint4", lambda x: little_endian(x, 4, "u1") ^ 0x88, "x ^ 8"),
    "signs of bytes": ("s8", lambda x: x.view(np.uint8) ^ 128, "x ^ 128"),
    "signed codes from 0 on": ("s4", lambda x: (x + 8).astype(np.uint8), "x ^ 8"),
    "zero points of GPTQ": ("uint4", lambda x: little_endian(x - 1 & 15), "x - 1"),
    "zero points in bytes": ("uint4", lambda x: x - 1 & 15, "x - 1"),
    "an addition": ("uint8", lambda x: x + np.uint8(3), "x + 3"),
    "the complement": ("uint8", lambda x: ~x, "x ^ 255"),
    "wide integers": ("s32", lambda x: x + 1000, "x + 1000"),
    "wide integers, XORed": ("uint16", lambda x: x ^ 0x1234, "x ^ 0x1234"),
    "negation": ("f32", lambda x: -x, "x ^ 0x80000000"),
    "big-endian": ("uint16", lambda x: x.astype(">u2"), "bytes in reverse order"),
    "big-endian floats": ("f32", lambda x: x.astype(">f4"), "bytes in reverse order"),
    "swapped halves": ("uint32", lambda x: x << 16 | x >> 16, "halves swapped"),
    "swapped nibbles": ("uint8", lambda x: x << 4 | x >> 4, "halves swapped"),
    "a rotation": ("uint16", lambda x: x << 3 | x >> 13, "bits in the order 13-15 0-12"),
    "reversed bits": ("uint4", lambda x: REVERSED[x], "bits in reverse order"),
    "a table": ("uint8", lambda x: TABLE[x], "the table " + " ".join(map(str, TABLE[:16])) + " …"),
    "signed codes in bytes": ("s4", lambda x: x, "sign-extended to 8 bits"),
}
REVERSED = np.array([int(f"{x:04b}"[::-1], 2) for x in range(16)], np.uint8)


@pytest.mark.parametrize("name", MAPS)
def test_value_maps(name: str) -> None:
    """The layout is that of what is left, and both directions include the map."""
    dtype, changed, text = MAPS[name]

    def function(x: Array) -> Any:
        return changed(np.ascontiguousarray(x.T))

    found = tj.infer(function, dtype, DIMS)
    assert found.value_map == text
    assert found.layout is not None
    assert found.layout.minor_to_major == (0, 1)
    assert f"values    {text}" in repr(found)
    x = some(dtype, found.array_dtype)
    assert found.pack(x).tobytes() == np.asarray(function(x)).tobytes()
    unpacked = found.unpack(np.asarray(function(x)))
    assert unpacked.dtype == x.dtype
    assert unpacked.tobytes() == x.tobytes()


def test_few_elements_show_a_map() -> None:
    """Patterns that no random element has are sent one by one."""
    found = tj.infer(lambda x: REVERSED[TABLE[:16].argsort()][x], "uint4", (2,))
    assert found.value_map.startswith("the table ")
    assert sorted(map(int, found.value_map.split()[2:])) == list(range(16))


def within(low: int, high: int, function: Callable[[Array], Any]) -> Callable[[Array], Any]:
    """A function that refuses values outside of a range."""

    def checked(x: Array) -> Any:
        if x.min() < low or x.max() > high:
            raise ValueError("a value is out of range")
        return function(x)

    return checked


RANGES: dict[str, tuple[str, tuple[int, int], Callable[[Array], Any], str, int]] = {
    "zero points of GPTQ": ("uint8", (1, 16), lambda x: little_endian(x - 1), "x - 1", 4),
    "bytes below 127": ("uint8", (0, 126), lambda x: x, "", 8),
    "bytes with an offset": ("uint8", (8, 120), lambda x: x + np.uint8(120), "x + 120", 8),
    "signed codes": ("s8", (-8, 7), lambda x: little_endian((x + 8).view(np.uint8)), "x ^ 8", 4),
    "three values": ("uint8", (0, 2), lambda x: little_endian(x, 2, "u1"), "", 2),
    "two values": ("uint8", (5, 6), lambda x: np.packbits(x - 5, bitorder="little"), "x + 1", 1),
    "wide integers": ("s32", (-1000, 70000), lambda x: x + 1000, "x + 1000", 32),
}


@pytest.mark.parametrize("name", RANGES)
def test_ranges_of_values(name: str) -> None:
    dtype, (low, high), moved, text, bits = RANGES[name]
    function = within(low, high, lambda x: moved(np.ascontiguousarray(x.T)))
    with pytest.raises(tj.LayoutError, match="a value is out of range"):
        tj.infer(function, dtype, (8, 16))
    found = tj.infer(function, dtype, (8, 16), value_range=(low, high))
    assert (found.value_map, found.element_bits) == (text, bits)
    assert np.array_equal(found.slots(), np.arange(128).reshape(16, 8).T)
    x = np.random.default_rng(1).integers(low, high + 1, (8, 16)).astype(found.array_dtype)
    packed = np.asarray(function(x))
    assert np.array_equal(found.unpack(packed), x)
    assert found.pack(x).tobytes() == packed.tobytes()


def test_a_range_of_wider_codes() -> None:
    """Signed codes of 3 bits in 4."""
    function = within(-4, 3, lambda x: little_endian((x & 15).view(np.uint8)))
    found = tj.infer(function, "s8", (16, 8), element_size_in_bits=4, value_range=(-4, 3))
    assert (found.value_map, found.element_bits) == ("sign-extended to 4 bits", 4)
    assert str(found.layout) == "s4[16,8]{1,0:E(4)}"
    x = np.random.default_rng(1).integers(-4, 4, (16, 8)).astype(np.int8)
    assert np.array_equal(found.unpack(function(x)), x)


def test_values_in_base_3() -> None:
    """Five codes below 3 in a byte are not a layout."""
    weights = np.array([81, 27, 9, 3, 1])
    function = within(0, 2, lambda x: (x.reshape(-1, 5) @ weights).astype(np.uint8))
    found = tj.infer(function, "uint8", (4, 10), value_range=(0, 2))
    assert found.counterexample is not None
    assert found.counterexample.kind == "combined"


@pytest.mark.parametrize("bounds", [(3, 3), (5, 2), (0, 256), (-1, 3), (1,)])
def test_wrong_ranges(bounds: Any) -> None:
    with pytest.raises(tj.LayoutError, match="pass the smallest and the largest value, between 0 and 255"):
        tj.infer(np.copy, "uint8", DIMS, value_range=bounds)


def test_ranges_are_for_integers() -> None:
    with pytest.raises(tj.LayoutError, match="value_range is for integers, not for f32"):
        tj.infer(np.copy, "f32", DIMS, value_range=(0, 1))


@pytest.mark.full
@pytest.mark.parametrize("name", ARRAYS)
def test_every_dtype(name: str) -> None:
    element = PRIMITIVE_TYPES[name]
    found = tj.infer(lambda x: x.T, element, DIMS)
    assert found.layout is not None
    assert found.layout.primitive_type == name
    assert found.layout.minor_to_major == (0, 1)
    assert found.array_dtype == element.numpy
    x = some(element, element.numpy)
    back = found.unpack(np.ascontiguousarray(x.T))
    assert (back.dtype, back.shape, back.tobytes()) == (x.dtype, DIMS, x.tobytes())
    assert found.pack(x).tobytes() == np.ascontiguousarray(x.T).tobytes()


@pytest.mark.parametrize("name", ["s4", "uint4", "s2", "uint2", "s1", "uint1", "f4e2m1fn"])
def test_names_of_narrow_dtypes_mean_codes(name: str) -> None:
    """A function that does not take them gets ml_dtypes' type."""
    element = primitive_type(name)
    codes = element.byte_dtype or np.dtype(np.uint8)
    found = tj.infer(lambda x: x.T, name, DIMS)
    assert found.array_dtype == codes

    def particular(x: Array) -> Array:
        if x.dtype != element.numpy:
            raise TypeError("expected another dtype")
        return x.T

    found = tj.infer(particular, name, DIMS)
    assert found.array_dtype == element.numpy
    with pytest.raises(tj.LayoutError, match=r"on u?int8.*it raised TypeError: expected another dtype; on "):
        tj.infer(lambda x: particular(x.astype(np.int16)), name, DIMS)


def test_codes_of_6_bits() -> None:
    """Four codes in three bytes, as MXFP6 is stored; TileJIT itself does not pack such elements."""

    def function(codes: Array) -> Array:
        words = codes.reshape(-1, 4).astype(np.uint32) @ np.array([1, 1 << 6, 1 << 12, 1 << 18], np.uint32)
        return np.ascontiguousarray(words.astype("<u4")).view(np.uint8).reshape(-1, 4)[:, :3]

    found = tj.infer(function, "f6e2m3fn", (3, 8))
    assert found.text == "f6e2m3fn[3,8]{1,0:E(6)}"
    codes = np.random.default_rng(1).integers(0, 64, (3, 8)).astype(np.uint8)
    assert np.array_equal(found.unpack(np.ascontiguousarray(function(codes))), codes)
    assert found.pack(codes).tobytes() == function(codes).tobytes()


PADDINGS = [
    ("uint8", 8),
    ("s8", -3),
    ("uint4", 15),
    ("f32", 1.5),
    ("f32", -np.inf),
    ("bf16", 2.0),
    ("c64", 1 + 2j),
]


@pytest.mark.parametrize(("dtype", "value"), [*PADDINGS, ("pred", True), ("f32", 0.0), ("f64", np.nan)])
def test_padding_with_a_value(dtype: str, value: Any) -> None:
    def function(x: Array) -> Array:
        out = np.full((9, 16), value, x.dtype)
        out[: DIMS[0], : DIMS[1]] = x
        return out

    found = tj.infer(function, dtype, DIMS)
    assert found.padding_slots == 9 * 16 - 96
    assert repr(found.padding_value) == repr(value)
    assert found.pattern == "M N -> M N, M=9, N=16"
    x = some(dtype, found.array_dtype)
    assert found.pack(x).tobytes() == function(x).tobytes()
    if dtype != "uint4":
        assert found.layout is not None
        assert tj.pack(x, found.layout).buffer.tobytes() == function(x).tobytes()


def test_padding_with_several_values() -> None:
    edge = np.arange(16, dtype=np.uint8)

    def function(x: Array) -> Array:
        return np.concatenate([edge, x.reshape(-1), edge])

    found = tj.infer(function, "uint8", DIMS)
    assert (found.padding_slots, found.padding_value) == (32, "several values")
    assert found.cute == "Sw<0,0,0> o 16 o (8,(12,17)):(12,(1,1))"
    x = some("uint8", np.uint8)
    assert found.pack(x).tobytes() == function(x).tobytes()
    assert np.array_equal(found.unpack(function(x)), x)


def test_stale_memory_is_padding() -> None:
    """Padding that repeats what an earlier call packed, as reused memory does."""
    last = [np.zeros(DIMS, np.uint8)]

    def function(x: Array) -> Array:
        last.append(x.copy())
        return np.concatenate([x, last[-2]], axis=1)

    found = tj.infer(function, "uint8", DIMS)
    assert (found.padding_slots, found.padding_value) == (96, "uninitialized")
    assert np.array_equal(found.slots(), np.arange(8)[:, None] * 24 + np.arange(12))


class Tensor:
    """An array of another library, which NumPy can read."""

    def __init__(self, array: Array) -> None:
        self.array = array

    def __array__(self, dtype: Any = None, copy: Any = None) -> Array:
        return self.array


class Packed:
    """A packed value with one buffer."""

    def __init__(self, buffer: Array) -> None:
        self.buffer = buffer


RESULTS: dict[str, Callable[[Array], Any]] = {
    "a view": lambda x: x.T,
    "a flat array": lambda x: x.T.reshape(-1),
    "words": lambda x: np.ascontiguousarray(x.T).view("u4"),
    "records": lambda x: np.ascontiguousarray(x.T).view([("a", "u1"), ("b", "u2"), ("c", "u1")]),
    "bytes": lambda x: x.T.tobytes(),
    "a bytearray": lambda x: bytearray(x.T.tobytes()),
    "a memoryview": lambda x: memoryview(x.T.tobytes()),
    "a tensor": lambda x: Tensor(x.T),
    "a packed value": lambda x: Packed(x.T),
    "a tiled array": lambda x: tj.pack(x, "{0,1}"),
}


@pytest.mark.parametrize("form", RESULTS)
def test_results_in_any_form(form: str) -> None:
    found = tj.infer(RESULTS[form], "uint8", DIMS)
    assert str(found.layout) == "u8[8,12]{0,1}"


def test_tensors() -> None:
    torch = pytest.importorskip("torch")
    found = tj.infer(lambda x: torch.from_numpy(x).T.contiguous(), "f32", DIMS)
    assert str(found.layout) == "f32[8,12]{0,1}"
    assert found.buffer == "float32[12,8]"


def test_functions_may_write_to_their_array() -> None:
    def function(x: Array) -> Array:
        out = x.T.copy()
        x[...] = 0
        return out

    assert str(tj.infer(function, "uint8", DIMS).layout) == "u8[8,12]{0,1}"


def test_functions_may_reuse_their_buffer() -> None:
    buffer = np.zeros(96, np.uint8)

    def function(x: Array) -> Array:
        buffer[...] = x.T.reshape(-1)
        return buffer

    assert str(tj.infer(function, "uint8", DIMS).layout) == "u8[8,12]{0,1}"


def finite(x: Array) -> Array:
    """The transposed array, if all its elements are finite."""
    if not np.isfinite(x).all():
        raise ValueError("not finite")
    return x.T


def test_values_that_a_function_refuses() -> None:
    """The result names the kinds that are not tested."""
    found = tj.infer(finite, "f32", DIMS)
    assert found.is_layout
    assert found.untested == ("inf", "nan")
    assert "untested  inf, nan" in repr(found)
    assert tj.infer(lambda x: x.T, "f32", DIMS).untested == ()


def test_a_nan_may_become_another() -> None:
    def quieted(x: Array) -> Array:
        bits = x.view(np.uint32).copy()
        bits[np.isnan(x)] = 0xFFC00001
        return bits.T

    assert tj.infer(quieted, "f32", DIMS).is_layout


def test_scalars() -> None:
    assert str(tj.infer(np.copy, "f32", ()).layout) == "f32[]"
    found = tj.infer(lambda x: np.append(x, np.zeros(3, np.float32)), "f32", ())
    assert (found.padding_slots, found.padding_value) == (3, 0)
    assert found.layout is not None
    assert found.layout.size_in_bytes == 16


def test_what_a_result_says() -> None:
    found = tj.infer(lambda x: x.T.copy(), "f32", (300, 200))
    assert repr(found).splitlines() == [
        "f32[300,200]{0,1}",
        "pattern   M N -> N M",
        "cute      (300,200):(1,300)",
        "elements  32 bits each, in arrays of float32",
        "buffer    240000 bytes, returned as float32[200,300]",
        "padding   none",
        "calls     7",
    ]
    assert found.show().text == tj.show("f32[300,200]{0,1}").text
    with pytest.raises(AttributeError):
        found.calls = 3  # type: ignore[misc]


def test_arrays_and_buffers_that_do_not_fit() -> None:
    found = tj.infer(lambda x: x.T, "uint8", DIMS)
    with pytest.raises(tj.LayoutError, match=r"expected an array uint8\[8,12\], got uint8\[12,8\]"):
        found.pack(np.zeros((12, 8), np.uint8))
    with pytest.raises(tj.LayoutError, match=r"expected an array uint8\[8,12\], got int8\[8,12\]"):
        found.pack(np.zeros(DIMS, np.int8))
    with pytest.raises(tj.LayoutError, match="expected a buffer of 96 bytes, got 95"):
        found.unpack(bytes(95))
    with pytest.raises(TypeError, match="expected a bytes-like buffer, got int"):
        found.unpack(3)  # type: ignore[arg-type]


@pytest.mark.parametrize("name", ARRAYS)
def test_patterns_and_arrays(name: str) -> None:
    """Both directions, and random elements are finite and not denormal."""
    element = PRIMITIVE_TYPES[name]
    assert element.numpy is not None
    patterns = random_patterns(element, 500, 3)
    array = array_of(patterns, element, element.numpy)
    assert np.array_equal(patterns_of(array, element), patterns)
    if element.kind == "float":
        values = array.astype(np.float64)
        assert np.isfinite(values).all()
        least = float(ml_dtypes.finfo(element.numpy).smallest_normal)
        assert ((np.abs(values) >= least) | (values == 0)).all()
