from __future__ import annotations

import sys

import ml_dtypes
import numpy as np
import pytest

import tilejit as tj
from codegen.support.errors import LayoutError
from tilejit.layout.dtypes import PRIMITIVE_TYPES, lookup, primitive_type, unambiguous_name

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
    assert primitive_type(unambiguous_name(row)) is row
    assert lookup(row.name) is row
    assert lookup(row.name.upper()) is row
    assert primitive_type(row.numpy.newbyteorder(">")) is row


def test_codes_of_the_other_byte_order_are_refused() -> None:
    """An element type has none, so the request would be ignored; arrays and results of unpack have one."""
    other, own = (">f4", "<f4") if sys.byteorder == "little" else ("<f4", ">f4")
    x = np.arange(15, dtype=np.float32).reshape(3, 5)
    packed = tj.pack(x, "tpu")
    for refused in (
        lambda: tj.make_shape(other, (3, 5)),
        lambda: tj.as_layout("tpu", dtype=other, dims=(3, 5)),
        lambda: tj.show("tpu", dtype=other, dims=(3, 5)),
    ):
        with pytest.raises(LayoutError, match="not in native byte order\n  pass 'f4': "):
            refused()
    assert tj.make_shape(own, (3, 5)) == tj.make_shape("f32", (3, 5))
    for y in (
        tj.unpack(packed, dtype=other),
        tj.unpack(packed.buffer, "tpu", dtype=other, dims=x.shape),
    ):
        assert y.dtype == np.dtype(other)
        assert np.array_equal(x, y)


def test_names_of_numpy_and_xla() -> None:
    assert primitive_type("float32").name == "f32"
    assert primitive_type("bfloat16").name == "bf16"
    assert primitive_type(ml_dtypes.int4).name == "s4"
    assert primitive_type("uint1").bits == 1
    assert primitive_type(np.dtype("u1")).name == primitive_type("|u1").name == "u8"
    assert primitive_type(bool).name == "pred"
    assert primitive_type(np.longlong).name == "s64"


def test_no_name_has_two_meanings() -> None:
    """If a name is a type of XLA and also NumPy's code of another type that XLA has, it is refused."""
    refused = []
    for code in (f"{kind}{size}" for kind in "biufcSU" for size in range(1, 65)):
        xlas = PRIMITIVE_TYPES.get(code.lower())
        try:
            numpys = primitive_type(np.dtype(code))
        except (TypeError, LayoutError):  # not a dtype, or one that XLA lacks, such as long double
            numpys = None
        try:
            assert primitive_type(code) is (xlas or numpys), code
            assert xlas is None or numpys is None or xlas is numpys, code
        except LayoutError as error:
            if "is ambiguous" in str(error):
                refused.append(code)
    assert refused == ["u1", "u2", "u4", "u8", "U1", "U2", "U4", "U8"]


@pytest.mark.parametrize("name", ["u1", "u2", "u4", "u8", "U1", "U8"])
def test_ambiguous_names_are_refused_with_both_spellings(name: str) -> None:
    """In every argument named dtype; shapes, layouts and codes with a byte order keep one meaning."""
    bits = int(name[1:])
    fix = f"write 'uint{bits}' or 'uint{8 * bits}'"
    t = tj.pack(np.zeros((4, 8), np.uint8), "{1,0}")
    for call in (
        lambda: primitive_type(name),
        lambda: tj.as_layout("{1,0}", dtype=name, dims=(4, 8)),
        lambda: tj.make_shape(name, (4, 8)),
        lambda: tj.named_format("tpu", name, (4, 8)),
        lambda: tj.unpack(t, dtype=name),
        lambda: tj.unpack(bytes(32), "{1,0}", dtype=name, dims=(4, 8)),
        lambda: tj.plan_pack("{1,0}", (4, 8), name),
        lambda: tj.plan_unpack("u8[4,8]{1,0}", result_dtype=name),
        lambda: tj.linear_index("{1,0}", (0, 0), dtype=name, dims=(4, 8)),
        lambda: tj.show("{1,0}", dtype=name, dims=(4, 8)),
        lambda: tj.explain("{1,0}", "{0,1}", dtype=name, dims=(4, 8)),
        lambda: tj.cute.to_xla(tj.cute.parse("(4,8):(8,1)"), dtype=name),
    ):
        with pytest.raises(LayoutError, match=fix):
            call()
    assert lookup(name).bits == bits
    assert primitive_type(f"uint{bits}").bits == bits
    assert primitive_type(f"<u{bits}").bits == 8 * bits
    assert tj.as_layout(f"{name}[4,8]{{1,0}}").element.bits == bits


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
        ("I8", "write a type such as pred, s8"),
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
