from __future__ import annotations

import ml_dtypes
import numpy as np
import pytest

from codegen.support.errors import LayoutError
from tilejit.layout.dtypes import PRIMITIVE_TYPES, lookup, primitive_type

ARRAYS = [row for row in PRIMITIVE_TYPES.values() if row.numpy is not None]


@pytest.mark.parametrize("row", ARRAYS, ids=lambda row: row.name)
def test_storage_matches_numpys(row) -> None:
    assert row.numpy.itemsize * 8 == row.storage_bits
    assert row.bits <= row.storage_bits
    assert (row.bits < 8) <= (row.storage_bits == 8)


@pytest.mark.parametrize("row", ARRAYS, ids=lambda row: row.name)
def test_dtypes_round_trip(row) -> None:
    assert primitive_type(row.numpy) is row
    assert primitive_type(row.numpy.type) is row
    assert primitive_type(row.name) is row
    assert lookup(row.name.upper()) is row
    assert primitive_type(row.numpy.newbyteorder(">")) is row


def test_names_of_numpy_and_xla() -> None:
    assert primitive_type("float32").name == "f32"
    assert primitive_type("bfloat16").name == "bf16"
    assert primitive_type(ml_dtypes.int4).name == "s4"
    assert primitive_type("u1").bits == 1
    assert primitive_type(np.dtype("u1")).name == "u8"
    assert primitive_type(bool).name == "pred"
    assert primitive_type(np.longlong).name == "s64"


@pytest.mark.parametrize(
    "dtype",
    [np.dtype("O"), np.dtype("U3"), np.dtype("f4,i4"), np.dtype("M8[s]"), np.dtype("(2,)f4"), np.longdouble],
)
def test_dtypes_without_a_counterpart_are_refused(dtype) -> None:
    with pytest.raises(LayoutError, match="no XLA counterpart"):
        primitive_type(dtype)


@pytest.mark.parametrize(
    ("name", "fix"),
    [
        ("f33", "write f32"),
        ("Bf16", "write bf16"),
        ("int4", "write s4"),
        ("f4", "write f32, which is NumPy's f4"),
        ("<i8", "write s64, which is NumPy's <i8"),
        ("i3", "write a type such as pred, "),
        ("nope", "write a type such as pred, "),
    ],
)
def test_errors_name_the_nearest_dtype(name: str, fix: str) -> None:
    with pytest.raises(LayoutError, match=fix):
        lookup(name)


@pytest.mark.parametrize("name", ["nope", "opaqe1234", "tokn", "opaq"])
def test_only_near_misses_match_types_without_elements(name: str) -> None:
    with pytest.raises(LayoutError) as caught:
        lookup(name)
    near = name in ("tokn", "opaq")
    assert any(word in str(caught.value) for word in ("token", "opaque")) == near


@pytest.mark.parametrize("value", [3, None, 1.5, ["f32"]])
def test_wrong_types(value) -> None:
    with pytest.raises(TypeError):
        primitive_type(value)
    with pytest.raises(TypeError):
        lookup(value)


@pytest.mark.parametrize("row", ARRAYS, ids=lambda row: row.name)
def test_ranges_of_values(row) -> None:
    if row.kind not in ("pred", "signed", "unsigned"):
        assert row.integer_range is None
        assert row.byte_dtype is None
        return
    low, high = row.integer_range
    assert high - low + 1 == 2**row.bits
    assert (low < 0) == (row.kind == "signed")
    if row.byte_dtype is not None:
        values = np.arange(low, high + 1).astype(row.byte_dtype)
        assert (values.astype(row.numpy).astype(np.int64) == values).all()
    assert (row.byte_dtype is not None) == (row.bits < 8 and row.kind != "pred")
