"""`tilejit.infer` on functions that are not layouts: what refutes them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import ml_dtypes
import numpy as np
import pytest

import tilejit as tj
from tests.recognize.functions import Array

DIMS = (8, 10)


def refuted(function: Callable[[Array], Any], dtype: Any = "uint8", dims: tuple[int, ...] = DIMS) -> Any:
    """The counterexample for a function."""
    found = tj.infer(function, dtype, dims)
    assert not found.is_layout, found
    assert found.counterexample is not None
    assert (found.text, found.layout, found.pattern) == ("not a layout", None, "")
    assert str(found.counterexample) in repr(found)
    for call in (found.show, found.slots, lambda: found.pack(np.zeros(dims)), lambda: found.unpack(b"")):
        with pytest.raises(tj.LayoutError, match="the function is not a layout: "):
            call()
    return found.counterexample


def changes(function: Callable[[Array], Any], element: tuple[int, ...], value: int) -> Array:
    """The positions of the bytes that change if one element of an array of threes becomes a value."""
    x = np.full(DIMS, 3, np.uint8)
    y = x.copy()
    y[element] = value
    before, after = (np.frombuffer(np.asarray(function(z)).tobytes(), np.uint8) for z in (x, y))
    return np.flatnonzero(before != after)


def summed(x: Array) -> Array:
    return x + np.roll(x, 1)


def xored(x: Array) -> Array:
    return x ^ np.roll(x, 1, axis=0)


def larger(x: Array) -> Array:
    return np.maximum(x, np.roll(x, 1))


@pytest.mark.parametrize("function", [summed, xored, larger], ids=lambda f: f.__name__)
def test_a_slot_depends_on_two_elements(function: Callable[[Array], Array]) -> None:
    found = refuted(function)
    assert found.kind == "combined"
    (slot,) = found.slots
    first, second = found.elements
    assert first != second
    assert slot in changes(function, first, 250)
    assert slot in changes(function, second, 250)
    assert f"slot {slot} depends on elements {first} and {second}" in str(found)


def test_two_codes_overlap() -> None:
    """Codes of 4 bits that are shifted by 3."""
    found = refuted(lambda x: x[:, ::2] | x[:, 1::2] << 3, "uint4")
    assert found.kind == "combined"
    (first, second) = found.elements
    assert first[0] == second[0]
    assert first[1] // 2 == second[1] // 2


@pytest.mark.parametrize("value", [0, 77])
def test_a_constant(value: int) -> None:
    found = refuted(lambda x: np.full(100, value, np.uint8))
    assert (found.kind, found.elements, found.slots) == ("lost", ((0, 0),), ())
    assert str(found) == "element (0, 0) is lost: no byte of the buffer changes with it"


def test_a_dropped_element() -> None:
    found = refuted(lambda x: np.delete(x.reshape(-1), 37))
    assert (found.kind, found.elements) == ("lost", ((3, 7),))


def test_an_overwritten_element() -> None:
    """Elements 1 and 2 go to one slot; the later one remains."""

    def function(x: Array) -> Array:
        out = x.reshape(-1).copy()
        out[1] = out[2]
        out[2] = 0
        return out

    found = refuted(function)
    assert (found.kind, found.elements) == ("lost", ((0, 1),))


def test_a_duplicated_element() -> None:
    found = refuted(lambda x: np.append(x, x[2, 3]))
    assert (found.kind, found.elements, found.slots) == ("duplicated", ((2, 3),), (23, 80))
    assert str(found) == "element (2, 3) is in slots 23 and 80"


def test_padding_that_repeats_the_edge() -> None:
    found = refuted(lambda x: np.pad(x, ((0, 0), (0, 2)), mode="edge"))
    assert found.kind == "duplicated"
    ((row, column),) = found.elements
    first, second = found.slots
    assert column == 9
    assert first // 12 == second // 12 == row


@pytest.mark.parametrize("dtype", ["uint8", "s8", "uint4"])
def test_clipped_integers(dtype: str) -> None:
    found = refuted(lambda x: np.clip(x, -3, 5), dtype)
    assert found.kind == "changed"
    assert "leaves the same in slot" in str(found)
    (row, column), slot = found.elements[0], found.slots[0]
    assert slot == 10 * row + column


@pytest.mark.parametrize("dims", [(3,), (8, 10), (40, 50)])
@pytest.mark.parametrize("value", [-128, 127, 5])
def test_one_value_is_changed(value: int, dims: tuple[int, ...]) -> None:
    """Symmetric quantization has no -128; small arrays contain all bytes only together."""
    found = refuted(lambda x: np.where(x == value, value ^ 1, x).astype(np.int8), "s8", dims)
    assert found.kind == "changed"


def test_clipped_extremes() -> None:
    assert refuted(lambda x: np.maximum(x, -(2**31) + 1), "s32").kind == "changed"


@pytest.mark.parametrize("dtype", ["f32", "f64", "f16"])
def test_clipped_floats(dtype: str) -> None:
    found = refuted(lambda x: np.clip(x, -1, 1), dtype)
    assert (found.kind, found.elements, found.slots) == ("changed", ((0, 0),), (0,))
    assert "leaves the same" in str(found)


UNUSUAL: dict[str, tuple[Callable[[Array], Any], str]] = {
    "clipped at 448": (lambda x: np.clip(x, -448, 448), "448.0"),
    "clipped at 1e30": (lambda x: np.clip(x, np.float32(-1e30), np.float32(1e30)), "1e+30"),
    "without infinities": (np.nan_to_num, "3.4028235e+38"),
    "without NaNs": (lambda x: np.where(np.isnan(x), np.float32(0), x), "is nan, but"),
    "without denormals": (lambda x: np.where(np.abs(x) < 1e-38, np.float32(0), x), "e-45"),
    "without -0": (lambda x: x + np.float32(0), "is -0.0, but"),
}


@pytest.mark.parametrize("name", UNUSUAL)
@pytest.mark.parametrize("dims", [(16, 32), (3,)])
def test_unusual_floats_are_changed(name: str, dims: tuple[int, ...]) -> None:
    function, text = UNUSUAL[name]
    found = refuted(lambda x: function(x).T.copy(), "float32", dims)
    assert found.kind == "changed"
    assert "in an array of extreme values, element" in str(found)
    ((*index,), slot) = (*found.elements, found.slots[0])
    assert slot == np.ravel_multi_index(index[::-1], dims[::-1])
    if dims != (3,):
        assert text in str(found) or text == "3.4028235e+38"


@pytest.mark.parametrize("dtype", ["f16", "bf16", "f64", "f8e4m3", "f8e5m2", "c64"])
def test_infinities_of_every_width(dtype: str) -> None:
    found = refuted(lambda x: np.where(np.isinf(x), x.dtype.type(1), x), dtype)
    assert "inf" in str(found)


def test_small_integers_take_another_path() -> None:
    found = refuted(lambda x: x.T if x.max() < 250 else x.T[::-1], dims=(15, 17))
    assert "in an array of small values, element" in str(found)


def test_rounded_floats() -> None:
    found = refuted(lambda x: x.astype(ml_dtypes.bfloat16).astype(np.float32), "f32")
    assert found.kind == "changed"
    assert "but slot 0 holds" in str(found) or "leaves the same" in str(found)


def test_values_change_differently_by_position() -> None:
    found = refuted(lambda x: x ^ np.arange(80, dtype=np.uint8).reshape(DIMS))
    assert found.kind == "changed"


@pytest.mark.parametrize("dtype", [np.float16, np.int8, np.uint8])
def test_narrower_dtypes(dtype: type) -> None:
    found = refuted(lambda x: x.astype(dtype), "f32")
    assert found.kind == "too small"
    assert "80 elements of 32 bits need 320" in str(found)


@pytest.mark.parametrize("dtype", [np.int16, np.float32])
def test_wider_dtypes(dtype: type) -> None:
    """A conversion is not a layout."""
    refuted(lambda x: x.astype(dtype), "s8")


def test_the_size_depends_on_values() -> None:
    found = refuted(lambda x: x[x > 1])
    assert found.kind == "varying size"
    assert "0 bytes" in str(found)


def test_random_results() -> None:
    rng = np.random.default_rng(1)
    found = refuted(lambda x: x ^ rng.integers(0, 2, x.shape, np.uint8))
    assert found.kind == "not deterministic"


def test_results_that_depend_on_earlier_calls() -> None:
    calls = []

    def function(x: Array) -> Array:
        calls.append(None)
        return np.roll(x, len(calls))

    assert refuted(function).kind == "not deterministic"


def test_results_of_the_call_before() -> None:
    last = [np.zeros(DIMS, np.uint8)]

    def function(x: Array) -> Array:
        last.append(x.copy())
        return last[-2]

    assert refuted(function).kind == "not deterministic"


def test_the_first_result_is_kept() -> None:
    kept: list[Array] = []

    def function(x: Array) -> Array:
        kept.append(x.copy())
        return kept[0]

    assert refuted(function).kind == "lost"


def test_parts_of_complex_numbers_in_two_planes() -> None:
    found = refuted(lambda x: np.stack([x.real, x.imag]), "c64")
    assert (found.kind, found.elements) == ("split", ((0, 0),))
    assert "the bits of element (0, 0) are not a slot of 64 bits" in str(found)


def test_a_checksum() -> None:
    found = refuted(lambda x: np.append(x, x.sum(dtype=np.uint8)))
    assert (found.kind, found.slots) == ("combined", (80,))


def test_a_derived_field() -> None:
    """The largest element of each row, beside the row."""
    found = refuted(lambda x: np.concatenate([x, x.max(axis=1, keepdims=True)], axis=1))
    assert found.kind == "combined"
    assert found.slots[0] % 11 == 10
    assert {place[0] for place in found.elements} == {found.slots[0] // 11}


def test_an_element_beside_its_copy_with_another_value() -> None:
    found = refuted(lambda x: np.append(x, ~x[0, 0]))
    assert (found.kind, found.elements) == ("duplicated", ((0, 0),))


def test_quantization() -> None:
    """Each row divided by its largest magnitude."""
    refuted(lambda x: np.rint(x / np.abs(x).max(axis=1, keepdims=True) * 127).astype(np.int8), "f32")


def test_an_error_names_the_array_and_the_cause() -> None:
    def function(x: Array) -> Array:
        if x.shape[1] % 64:
            raise ValueError("N must be a multiple of 64")
        return x

    with pytest.raises(tj.LayoutError, match="N must be a multiple of 64") as caught:
        tj.infer(function, "uint8", (8, 10))
    assert "on uint8[8,10] it raised ValueError" in str(caught.value)
    assert isinstance(caught.value.__cause__, ValueError)
    assert tj.infer(function, "uint8", (8, 64)).is_layout


def test_an_error_of_some_values() -> None:
    def function(x: Array) -> Array:
        if x.max() > 15:
            raise ValueError("codes must be below 16")
        return x

    with pytest.raises(tj.LayoutError, match="codes must be below 16"):
        tj.infer(function, "uint8", DIMS)
    assert tj.infer(function, "uint4", DIMS).is_layout


@pytest.mark.parametrize(
    ("result", "error"),
    [
        (None, "got NoneType"),
        ("text", "got str"),
        ([1], "got list"),
        ((b"", b""), "got tuple"),
        ({}, "got dict"),
    ],
)
def test_results_without_bytes(result: Any, error: str) -> None:
    with pytest.raises(TypeError, match=f"expected the function to return an array or bytes, {error}"):
        tj.infer(lambda x: result, "uint8", DIMS)


def test_results_of_objects() -> None:
    with pytest.raises(TypeError, match="an array of object"):
        tj.infer(lambda x: x.astype(object), "uint8", DIMS)


def test_wrong_arguments() -> None:
    with pytest.raises(TypeError, match="expected a function of one array, got int"):
        tj.infer(3, "uint8", DIMS)  # type: ignore[arg-type]
    with pytest.raises(tj.LayoutError, match="'u4' is ambiguous"):
        tj.infer(np.copy, "u4", DIMS)
    with pytest.raises(tj.LayoutError, match="no elements"):
        tj.infer(np.copy, "uint8", (3, 0))
    with pytest.raises(tj.LayoutError, match="a dimension is -1"):
        tj.infer(np.copy, "uint8", (-1, 4))
    with pytest.raises(tj.LayoutError, match="more than 2\\^27"):
        tj.infer(np.copy, "uint8", (1 << 14, 1 << 14))
    with pytest.raises(tj.LayoutError, match="cannot have dtype token"):
        tj.infer(np.copy, "token", DIMS)
    with pytest.raises(TypeError, match="dims: expected a sequence of integers"):
        tj.infer(np.copy, "uint8", 5)  # type: ignore[arg-type]
