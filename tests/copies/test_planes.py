"""Formats of several planes: which arrays and buffers they take, and that a refused call writes nothing."""

from __future__ import annotations

from typing import Any

import ml_dtypes
import numpy as np
import pytest

import tilejit as tj
from tests.catalog.cases import mix
from tilejit.catalog.packing import Field, Packing, Plane
from tilejit.copies.plane_fields import place_fields
from tilejit.layout.dtypes import lookup

Array = np.ndarray[Any, np.dtype[Any]]


@pytest.mark.parametrize(("dtype", "rows"), [(np.bool_, 8), (ml_dtypes.int4, 2)], ids=str)
def test_elements_of_a_record_have_a_byte_unless_they_are_codes(dtype: Any, rows: int) -> None:
    scales, zeros = (mix((rows, 16), 2, seed).astype(dtype) for seed in (0, 99))
    packed = tj.pack({"scales": scales, "zeros": zeros}, "tinygemm-scales-and-zeros")
    assert packed.buffer.tobytes() == np.stack([scales.T, zeros.T], axis=-1).tobytes()


def test_a_table_moves_elements_of_a_record() -> None:
    field = Field(("codes",), "R (C c) -> R C c", sizes={"c": (2, 0, 3, 1)})  # type: ignore[dict-item]
    packing = Packing((Plane("codes", "R C", 8), Plane("d", "R", dtype="u8")), (field, Field(("d",))), "R")
    sizes = packing.sizes((3, 8), "the format")
    buffer = np.zeros(27, np.uint8)
    codes, d = mix((3, 8), 256).astype(np.uint8), np.arange(3, dtype=np.uint8)
    for placed in place_fields(packing, "buffer", sizes, {"codes": lookup("u8"), "d": lookup("u8")}):
        arrays = {"codes": codes, "d": d}
        placed.write(buffer, placed.encoded(arrays, None), arrays, None)
        (name,) = placed.field.planes
        np.testing.assert_array_equal(placed.read(buffer, {}, None)[name], arrays[name])
    want = np.empty((3, 2, 4), np.uint8)
    want[..., [2, 0, 3, 1]] = codes.reshape(3, 2, 4)
    np.testing.assert_array_equal(buffer.reshape(3, 9), np.column_stack([want.reshape(3, 8), d]))


def test_layouts_of_a_format_with_a_field_without_planes() -> None:
    planes = {"weight": np.zeros((8, 128), np.int8), "weight_scale": np.ones((8, 1), np.float16)}
    packed = tj.pack(planes, "compressed-tensors-wna16")
    assert set(packed.layouts) == {"weight", "weight_scale"}


def layer() -> dict[str, Array]:
    return {
        "codes": mix((128, 64), 16).astype(np.uint8),
        "zeros": (1 + mix((4, 64), 16)).astype(np.uint8),
        "scales": (mix((4, 64), 500) / 8).astype(np.float16),
        "g_idx": (np.arange(128) // 32).astype(np.int32),
    }


def q4_0(rows: int = 2) -> dict[str, Array]:
    return {"codes": mix((rows, 64), 16).astype(np.uint8), "d": (mix((rows, 2), 99) / 8).astype(np.float16)}


def like(arrays: dict[str, Array]) -> dict[str, Array]:
    """Arrays for `out` with numbers that no copy writes."""
    return {name: np.full_like(array, 77) for name, array in arrays.items()}


def assert_untouched(out: dict[str, Array]) -> None:
    for name, array in out.items():
        assert (array == np.full_like(array, 77)).all(), name


class Subclass(np.ndarray[Any, np.dtype[Any]]):
    """An array of another class."""


@pytest.mark.parametrize("change", ["swap", "fortran", "step", "field", "memmap", "subclass"])
def test_out_of_unpack_has_any_strides_and_byte_order(change: str, tmp_path: Any) -> None:
    planes = layer()
    packed = tj.pack(planes, "gptq-checkpoint", group=32)
    out: dict[str, Array] = {}
    for name, x in planes.items():
        if change == "swap":
            out[name] = np.zeros(x.shape, x.dtype.newbyteorder(">"))
        elif change == "fortran":
            out[name] = np.zeros(x.shape, x.dtype, order="F")
        elif change == "step":
            out[name] = np.zeros((*x.shape, 3), x.dtype)[..., 1]
        elif change == "field":
            out[name] = np.zeros(x.shape, [("a", "u1"), ("b", x.dtype)])["b"]
        elif change == "memmap":
            out[name] = np.memmap(tmp_path / name, x.dtype, "w+", shape=x.shape)
        else:
            out[name] = np.zeros_like(x).view(Subclass)
    found = tj.unpack(packed, out=out)
    for name, x in planes.items():
        assert found[name] is out[name]
        np.testing.assert_array_equal(np.asarray(out[name]), x)


def test_out_of_unpack_takes_fields_of_one_record_and_signed_codes() -> None:
    planes = {"codes": (mix((2, 64), 256) - 128).astype(np.int8), "d": q4_0()["d"]}
    records = np.zeros((2, 2), [("d", "<f2"), ("codes", "i1", 32)])
    out = {"d": records["d"], "codes": np.zeros((2, 64), np.int8)}
    tj.unpack(tj.pack(planes, "ggml-q8_0"), out=out)
    np.testing.assert_array_equal(records["d"], planes["d"])
    np.testing.assert_array_equal(out["codes"], planes["codes"])


@pytest.mark.parametrize(
    ("change", "error", "message"),
    [
        ({"codes": np.full((64, 128), 77, np.uint8)}, tj.LayoutError, r"codes of out is uint8\[64, 128\]"),
        ({"codes": np.full((128, 64), 77, np.int8)}, tj.LayoutError, r"codes of out is int8\[128, 64\]"),
        ({"scales": np.full((2, 64), 77, np.float32)}, tj.LayoutError, r"scales of out is float32\[2, 64\]"),
        ({"g_idx": np.full(128, 77, np.float32)}, tj.LayoutError, r"g_idx of out is float32\[128\]"),
        ({"g_idx": [0] * 128}, TypeError, "g_idx of out: expected an array, got list"),
        ({"g_idx": np.broadcast_to(np.int32(77), (128,))}, tj.LayoutError, "g_idx of out is read-only"),
        (
            {"more": np.zeros(3)},
            tj.LayoutError,
            "out: expected codes, zeros, scales, g_idx, got codes, .*more",
        ),
    ],
)
def test_unpack_refuses_other_arrays_before_it_writes(change: Any, error: Any, message: str) -> None:
    packed = tj.pack(layer(), "gptq-checkpoint", group=32)
    out = like(layer())
    with pytest.raises(error, match=message):
        tj.unpack(packed, out={**out, **change})
    assert_untouched(out)


def test_arrays_of_out_share_no_memory() -> None:
    planes = {"codes": np.zeros((2, 64), np.uint8), "scales": np.ones((2, 1), np.float16)}
    planes["biases"] = -planes["scales"]
    packed = tj.pack(planes, "mlx-affine")
    buffers = like(dict(packed.buffers))
    with pytest.raises(tj.LayoutError, match="out: scales and biases share memory"):
        tj.pack(planes, "mlx-affine", out={**buffers, "biases": buffers["scales"]})
    assert_untouched(buffers)
    with pytest.raises(tj.LayoutError, match="out: scales and biases share memory"):
        tj.unpack(packed, out={**like(planes), "scales": buffers["biases"], "biases": buffers["biases"]})
    assert_untouched(buffers)
    with pytest.raises(tj.LayoutError, match="biases of out overlaps the array that is copied into it"):
        tj.unpack(packed, out={**like(planes), "biases": packed.buffers["scales"]})
    with pytest.raises(tj.LayoutError, match="scales of out overlaps"):
        tj.pack(planes, "mlx-affine", out={**buffers, "scales": planes["biases"]})
    assert planes["biases"].tolist() == [[-1], [-1]]


def test_out_is_untouched_if_a_buffer_holds_what_the_format_never_stores() -> None:
    planes = {"weight": np.full((8, 128), 3, np.int8), "weight_scale": np.ones((8, 1), np.float16)}
    packed = tj.pack(planes, "compressed-tensors-wna16")
    packed.buffers["weight_shape"][0] = 5
    out = like(planes)
    with pytest.raises(tj.LayoutError, match="weight_shape"):
        tj.unpack(packed, out=out)
    assert_untouched(out)


@pytest.mark.parametrize(
    ("name", "change", "message"),
    [
        ("scales", lambda x: x.astype(">f2"), r"expected float16\[4, 64\] as scales of .*, got >f2\[4, 64\]"),
        ("qweight", lambda x: x.astype(">i4"), r"expected int32\[16, 64\] as qweight of .*, got >i4"),
        ("qweight", lambda x: np.ascontiguousarray(x.T), r"got int32\[64, 16\]"),
        ("qweight", lambda x: x.view(np.uint8).reshape(64, 64), r"got uint8\[64, 64\]"),
        ("qzeros", lambda x: x.view(np.int16), r"got int16\[4, 16\]"),
        (
            "g_idx",
            lambda x: x.astype(np.float32),
            r"expected int32\[128\] as g_idx of .*, got float32\[128\]",
        ),
        ("g_idx", lambda x: x[:-1], "expected 512 bytes as g_idx of .*, got 508"),
    ],
)
def test_buffers_of_another_form_are_refused(name: str, change: Any, message: str) -> None:
    packed = tj.pack(layer(), "gptq-checkpoint", group=32)
    with pytest.raises(tj.LayoutError, match=message):
        tj.unpack(
            {**packed.buffers, name: change(packed.buffers[name])},
            "gptq-checkpoint",
            dims=(128, 64),
            group=32,
        )
    out = like(dict(packed.buffers))
    odd = change(out[name])
    before = odd.tobytes()
    with pytest.raises(tj.LayoutError):
        tj.pack(layer(), "gptq-checkpoint", group=32, out={**out, name: odd})
    assert_untouched(out)
    assert odd.tobytes() == before


@pytest.mark.parametrize(
    "change",
    [
        lambda x: x.view(np.uint8).reshape(-1),
        lambda x: x.view(np.uint8),
        lambda x: x.view(f"V{x.itemsize}"),
        lambda x: x.view(x.dtype.str.replace("i", "u")),
        lambda x: x.reshape(-1),
        lambda x: x[:, None],
        lambda x: np.stack([x, x], axis=-1)[..., 0],
        np.asfortranarray,
        lambda x: memoryview(x).toreadonly(),
        lambda x: bytearray(x.tobytes()),
    ],
)
def test_buffers_are_elements_or_bytes_of_any_strides(change: Any) -> None:
    planes = layer()
    packed = tj.pack(planes, "gptq-checkpoint", group=32)
    buffers: dict[str, Any] = dict(packed.buffers)
    buffers |= {name: change(buffers[name]) for name in ("qweight", "qzeros", "g_idx")}
    found = tj.unpack(buffers, "gptq-checkpoint", dims=(128, 64), group=32)
    for name, plane in planes.items():
        np.testing.assert_array_equal(found[name], plane)
    out = {name: x for name, x in buffers.items() if isinstance(x, np.ndarray)}
    if len(out) == len(buffers):
        again = tj.pack(planes, "gptq-checkpoint", group=32, out=out)
        assert again.buffers["qzeros"] is out["qzeros"]
        assert again.buffers["qzeros"].tobytes() == packed.buffers["qzeros"].tobytes()
        assert list(again.unpack()) == list(planes)


def test_buffers_that_take_any_dtype_have_one() -> None:
    planes = {"codes": np.zeros((2, 64), np.uint8), "scales": np.ones((2, 1), np.float16)}
    planes["biases"] = -planes["scales"]
    buffers = dict(tj.pack(planes, "mlx-affine").buffers)
    other = {**buffers, "biases": buffers["biases"].astype(ml_dtypes.bfloat16)}
    with pytest.raises(tj.LayoutError, match="expected one dtype, got scales f16, biases bf16"):
        tj.unpack(other, "mlx-affine", dims=(2, 64))
    with pytest.raises(tj.LayoutError, match=r"expected bfloat16\[2, 1\] as scales of .*, got float16"):
        tj.unpack(buffers, "mlx-affine", dims=(2, 64), dtype="bf16")
    raw = {**buffers, "biases": buffers["biases"].tobytes()}
    found = tj.unpack(raw, "mlx-affine", dims=(2, 64))
    np.testing.assert_array_equal(found["biases"], planes["biases"])


def test_records_are_bytes() -> None:
    planes = q4_0()
    records = np.zeros((2, 2), [("d", "<f2"), ("codes", "u1", 16)])
    tj.pack(planes, "ggml-q4_0", out=records)
    np.testing.assert_array_equal(records["d"], planes["d"])
    found = tj.unpack(records, "ggml-q4_0", dims=(2, 64))
    np.testing.assert_array_equal(found["codes"], planes["codes"])
    swapped = records.astype([("d", ">f2"), ("codes", "u1", 16)])
    with pytest.raises(tj.LayoutError, match=r"expected uint8\[2, 36\] as buffer"):
        tj.unpack(swapped, "ggml-q4_0", dims=(2, 64))
    gaps = np.zeros((2, 2), [("record", records.dtype), ("rest", "u1", 3)])
    packed = tj.pack(planes, "ggml-q4_0", out=gaps["record"])
    assert gaps["record"].tobytes() == records.tobytes()
    assert not gaps["rest"].any()
    np.testing.assert_array_equal(packed.unpack()["codes"], planes["codes"])


@pytest.mark.parametrize(
    ("layout", "plane", "wrong", "message"),
    [
        (
            "ggml-q8_0",
            "codes",
            np.full((2, 64), 200, np.uint8),
            r"\[0, 0\] is 200, but codes are -128 to 127",
        ),
        ("ggml-q4_0", "codes", np.full((2, 64), -1, np.int8), r"\[0, 0\] is -1, but codes are 0 to 15"),
        (
            "ggml-q4_0",
            "codes",
            np.full((2, 64), -1, ml_dtypes.int4),
            r"\[0, 0\] is -1, but codes are 0 to 15",
        ),
        (
            "ggml-q4_0",
            "codes",
            np.zeros((2, 64), np.float32),
            "expected codes of 4 bits, got f32\n  pass them as",
        ),
        ("ggml-q4_0", "d", np.zeros((2, 2), np.float32), "d: expected f16, got f32"),
        ("ggml-mxfp4", "e", np.zeros((2, 2), ml_dtypes.float8_e5m2), "e: expected f8e8m0fnu, got f8e5m2"),
    ],
)
def test_elements_keep_their_values(layout: str, plane: str, wrong: Array, message: str) -> None:
    planes = q4_0()
    if layout == "ggml-mxfp4":
        planes = {"codes": planes["codes"], "e": np.zeros((2, 2), np.uint8)}
    with pytest.raises(tj.LayoutError, match=message):
        tj.pack({**planes, plane: wrong}, layout)


def test_signed_weights_are_not_taken_from_bytes() -> None:
    planes = {"bias": np.zeros(8, np.int32), "weights": np.full((8, 16), 200, np.uint8)}
    with pytest.raises(tj.LayoutError, match="weights: expected s8, got u8"):
        tj.pack(planes, "xnnpack-gemm-qs8")


def test_packed_arrays_are_unpacked_first() -> None:
    planes = q4_0()
    packed = tj.pack(planes, "ggml-q4_0")
    for codes, message in (
        (tj.pack(planes["codes"], "{1,0}"), "codes: expected an array to pack, got a TiledArray"),
        (packed, "expected an array, got PackedPlanes"),
    ):
        with pytest.raises(TypeError, match=f"{message}\n  unpack it first"):
            tj.pack({**planes, "codes": codes}, "ggml-q4_0")
    with pytest.raises(TypeError, match="expected an array, got PackedPlanes\n  unpack it first"):
        tj.pack(packed, "{1,0}")
    tiled = tj.pack(np.zeros((2, 36), np.uint8), "{1,0}")
    with pytest.raises(TypeError, match="buffer: expected a bytes-like buffer, got TiledArray"):
        tj.unpack({"buffer": tiled}, "ggml-q4_0", dims=(2, 64))


@pytest.mark.parametrize(
    ("dims", "error", "message"),
    [
        ((-20, -4), tj.LayoutError, "a dimension is -20\n  pass a size from 0"),
        ((20, 1 << 63), tj.LayoutError, "a dimension is 9223372036854775808"),
        ((20, 4.0), TypeError, "dims: expected a sequence of integers"),
        (20, TypeError, "dims: expected a sequence of integers"),
    ],
)
def test_dims_of_unpack_are_sizes(dims: Any, error: Any, message: str) -> None:
    with pytest.raises(error, match=message):
        tj.unpack(np.zeros((2, 4), np.int32), "hqq-3bit-32", dims=dims)


@pytest.mark.parametrize("dims", [(0, 64), (2, 0)])
def test_arrays_without_elements(dims: tuple[int, int]) -> None:
    planes = {"codes": np.zeros(dims, np.uint8), "d": np.zeros((dims[0], dims[1] // 32), np.float16)}
    packed = tj.pack(planes, "ggml-q4_0")
    assert packed.nbytes == 0
    out = like(planes)
    assert tj.unpack(packed, out=out)["codes"] is out["codes"]
    tj.pack(planes, "ggml-q4_0", out=np.zeros(0, np.uint8))


@pytest.mark.full
def test_relayout_to_a_layout_takes_its_options() -> None:
    codes = mix((32, 6), 8).astype(np.uint8)
    packed = tj.pack(codes, "gptq", bits=3)
    tiled = tj.relayout(packed, "{1,0:T(4,4)}", padding=5, specialize="sizes")
    np.testing.assert_array_equal(tiled.buffer, tj.pack(codes, "{1,0:T(4,4)}", padding=5).buffer)
    assert 5 in tiled.buffer[-8:]
    for source in (packed, tiled):
        with pytest.raises(tj.LayoutError, match="takes only out, threads and the format's parameters"):
            tj.relayout(source, "gptq", bits=3, padding=5)
        again = tj.relayout(source, "gptq", bits=3)
        assert again.buffer.tobytes() == packed.buffer.tobytes()
    with pytest.raises(tj.LayoutError, match="expected the name of a format for planes"):
        tj.relayout(tj.pack(q4_0(), "ggml-q4_0"), "{0,1}")
    with pytest.raises(TypeError, match="expected a TiledArray or PackedPlanes, got ndarray"):
        tj.relayout(codes, "gptq", bits=3)  # type: ignore[call-overload]


@pytest.mark.parametrize("layout", ["{0,1}", "a b -> b a", tj.as_layout("f32[2,64]{1,0}"), 3], ids=str)
def test_planes_need_the_name_of_a_format(layout: Any) -> None:
    planes = q4_0()
    for call in (
        lambda: tj.pack(planes, layout),
        lambda: tj.unpack({"buffer": np.zeros(72, np.uint8)}, layout, dims=(2, 64)),
    ):
        with pytest.raises((tj.LayoutError, TypeError), match="expected the name of a format for planes"):
            call()
    with pytest.raises(TypeError, match="buffers need the name of their format"):
        tj.unpack({"buffer": np.zeros(72, np.uint8)})


def test_elements_of_a_byte_have_no_byte_order() -> None:
    planes = {"codes": q4_0()["codes"], "e": np.full((2, 2), 100, np.uint8).view(ml_dtypes.float8_e8m0fnu)}
    swapped = planes["e"].dtype.newbyteorder(">")
    packed = tj.pack({**planes, "e": planes["e"].view(swapped)}, "ggml-mxfp4")
    out = {"codes": np.zeros((2, 64), np.uint8), "e": np.zeros((2, 2), swapped)}
    tj.unpack(packed, out=out)
    assert out["e"].tobytes() == planes["e"].tobytes()
    tiled = tj.pack(planes["e"].view(swapped), "{0,1}")
    assert tj.unpack(tiled, out=np.zeros((2, 2), swapped)).tobytes() == planes["e"].tobytes()


def test_dtype_of_unpack_is_that_of_the_planes() -> None:
    buffer = tj.pack(q4_0(), "ggml-q4_0").buffer
    assert tj.unpack(buffer, "ggml-q4_0", dims=(2, 64), dtype="uint8")["codes"].dtype == np.uint8
    with pytest.raises(tj.LayoutError, match="dtype is f32, but codes of ggml-q4_0 is uint8\n  omit dtype"):
        tj.unpack(buffer, "ggml-q4_0", dims=(2, 64), dtype="f32")


def test_fields_of_one_record_are_apart() -> None:
    planes = {"codes": q4_0()["codes"], "scales": mix((2, 1), 9).astype(np.float32)}
    planes["biases"] = -planes["scales"]
    packed = tj.pack(planes, "mlx-affine")
    records = np.zeros((2, 1), [("a", "<f4"), ("b", "<f4")])
    tj.unpack(
        packed, out={"codes": np.zeros((2, 64), np.uint8), "scales": records["a"], "biases": records["b"]}
    )
    np.testing.assert_array_equal(records["a"], planes["scales"])
    np.testing.assert_array_equal(records["b"], planes["biases"])


def test_masked_arrays_are_refused() -> None:
    packed = tj.pack(q4_0(), "ggml-q4_0")
    masked = np.ma.masked_array(packed.buffer, mask=packed.buffer == packed.buffer[0, 0])
    for call in (
        lambda: tj.unpack(masked, "ggml-q4_0", dims=(2, 64)),
        lambda: tj.pack(q4_0(), "ggml-q4_0", out=masked),
        lambda: tj.pack({**q4_0(), "d": np.ma.masked_array(q4_0()["d"], mask=True)}, "ggml-q4_0"),
    ):
        with pytest.raises(TypeError, match="masked"):
            call()


def test_buffers_of_bytes_may_have_any_dtype() -> None:
    scales = np.arange(2, dtype=np.uint8).reshape(2, 1)
    buffers = dict(tj.pack({"codes": np.zeros((2, 32), np.uint8), "scales": scales}, "mlx-mxfp4").buffers)
    buffers["scales"] = buffers["scales"].view(ml_dtypes.float8_e8m0fnu)
    np.testing.assert_array_equal(tj.unpack(buffers, "mlx-mxfp4", dims=(2, 32))["scales"], scales)
    planes = {"bias": np.arange(8, dtype=np.float32), "weights": np.ones((8, 3), np.float32)}
    words = tj.pack(planes, "xnnpack-gemm").buffer.view(np.float32)
    found = tj.unpack(words.reshape(4, 8), "xnnpack-gemm", dims=(8, 3))
    np.testing.assert_array_equal(found["bias"], planes["bias"])


def test_threads_are_checked_without_a_copy_that_uses_them() -> None:
    planes = np.zeros((32, 32), np.float32)
    for call in (
        lambda: tj.pack(planes, "tenstorrent-bfp8_b", threads=0),
        lambda: tj.unpack(bytes(1088), "tenstorrent-bfp8_b", dims=(32, 32), threads=0),
    ):
        with pytest.raises(tj.KernelValueError, match="threads=0"):
            call()


def test_out_of_codes_that_are_stored_minus_a_number() -> None:
    zeros = (1 + mix((2, 32), 256)).astype(np.uint16)
    packed = tj.pack(zeros, "gptq-qzeros", bits=8)
    out = np.zeros_like(zeros)
    assert packed.unpack(out=out) is out
    np.testing.assert_array_equal(out, zeros)
