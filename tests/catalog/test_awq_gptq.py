"""AWQ and GPTQ: the bytes of their own packers."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import tilejit as tj
from tests.catalog.cases import Array, check_bytes, check_case, given, mix


def codes(name: str) -> Array:
    return given(name).astype(np.uint8)


@pytest.mark.parametrize(
    ("case", "layout", "parameters"),
    [
        ("awq_gemm_int4_64x128", "awq-gemm", {}),
        ("awq_v2_llm_awq_64x128", "awq-v2", {}),
        ("gptq_qweight_int3_128x64", "gptq", {"bits": 3}),
        ("gptq_qweight_int4_128x64", "gptq", {"bits": 4}),
        ("gptq_qweight_int8_128x64", "gptq", {"bits": 8}),
        ("gptq_qzeros_v1_4x64", "gptq-qzeros", {"version": 1}),
        ("gptq_qzeros_v2_2x8", "gptq-qzeros", {"version": 2}),
    ],
)
def test_case(case: str, layout: str, parameters: dict[str, int]) -> None:
    check_case(case, codes(case), layout, **parameters)


def zero_points(shape: tuple[int, int], bits: int, version: int) -> Array:
    """Version 1 has zero points 1 to 2**bits, which may exceed a byte."""
    kind = np.uint16 if bits == 8 and version == 1 else np.uint8
    return (version % 2 + mix(shape, 1 << bits)).astype(kind)


@pytest.mark.full
@pytest.mark.parametrize("version", [1, 2])
@pytest.mark.parametrize("bits", [2, 3, 5, 6, 7, 8])
def test_zeros_of_every_width_are_a_stream_along_rows(bits: int, version: int) -> None:
    zeros = zero_points((3, 64), bits, version)
    packed = tj.pack(zeros, "gptq-qzeros", bits=bits, version=version)
    assert packed.buffer.view(np.int32).size == 3 * 64 * bits // 32
    for row, buffer in zip(zeros - version % 2, packed.buffer.reshape(3, -1), strict=True):
        number = sum(int(code) << bits * k for k, code in enumerate(row))
        assert buffer.tobytes() == number.to_bytes(64 * bits // 8, "little")
    found = tj.unpack(packed.buffer, "gptq-qzeros", bits=bits, version=version, dims=(3, 64), dtype="uint8")
    np.testing.assert_array_equal(np.asarray(found), zeros)


def test_a_zero_point_of_0_does_not_wrap_in_version_1() -> None:
    with pytest.raises(tj.LayoutError, match=r"element \[0, 0\] is 0, but codes are 1 to 16"):
        tj.pack(np.zeros((1, 8), np.uint8), "gptq-qzeros", version=1)


def _layer(bits: int = 4, group: int = 32, version: int = 1) -> dict[str, Array]:
    k, n = 128, 64
    groups = 1 if group == -1 else -(-k // group)
    return {
        "codes": mix((k, n), 1 << bits).astype(np.uint8),
        "zeros": zero_points((groups, n), bits, version),
        "scales": mix((groups, n), 500).astype(np.float16),
        "g_idx": (np.arange(k) // (k if group == -1 else group)).astype(np.int32),
    }


def _check_layer(planes: dict[str, Array], layout: str, **parameters: Any) -> tj.PackedPlanes:
    packed = tj.pack(planes, layout, **parameters)
    again = tj.unpack(dict(packed.buffers), layout, dims=planes["codes"].shape, **parameters)
    for found in (packed.unpack(), again):
        assert set(found) == set(planes)
        for name, plane in planes.items():
            assert found[name].dtype == plane.dtype
            np.testing.assert_array_equal(found[name], plane, err_msg=name)
    return packed


@pytest.mark.full
def test_gptq_checkpoint_has_the_bytes_of_its_tensors() -> None:
    planes = {**_layer(), "zeros": codes("gptq_qzeros_v1_4x64"), "codes": codes("gptq_qweight_int4_128x64")}
    packed = _check_layer(planes, "gptq-checkpoint", group=32)
    check_bytes("gptq_qweight_int4_128x64", packed.buffers["qweight"])
    check_bytes("gptq_qzeros_v1_4x64", packed.buffers["qzeros"])
    shapes = {name: (buffer.dtype.name, buffer.shape) for name, buffer in packed.buffers.items()}
    assert shapes == {
        "qweight": ("int32", (16, 64)),
        "qzeros": ("int32", (4, 8)),
        "scales": ("float16", (4, 64)),
        "g_idx": ("int32", (128,)),
    }


@pytest.mark.full
@pytest.mark.parametrize("version", [1, 2])
@pytest.mark.parametrize(("bits", "group"), [(2, 64), (3, 32), (4, 48), (4, -1), (8, 128)])
def test_gptq_checkpoint_of_other_widths_and_groups(bits: int, group: int, version: int) -> None:
    own = {"bits": bits, "group": group, "version": version}
    packed = _check_layer(_layer(**own), "gptq-checkpoint", **own)
    alone = tj.pack(_layer(**own)["zeros"], "gptq-qzeros", bits=bits, version=version)
    assert packed.buffers["qzeros"].tobytes() == alone.buffer.tobytes()


def test_scales_of_a_checkpoint_have_any_dtype_and_g_idx_may_be_omitted() -> None:
    planes = _layer()
    del planes["g_idx"]
    packed = _check_layer(
        {**planes, "scales": planes["scales"].astype(np.float32)}, "gptq-checkpoint", group=32
    )
    assert packed.dtype == "f32"
    assert "g_idx" not in packed.buffers


def test_scales_given_as_bytes_need_a_dtype() -> None:
    packed = tj.pack(_layer(), "gptq-checkpoint", group=32)
    buffers = {name: buffer.tobytes() for name, buffer in packed.buffers.items()}
    with pytest.raises(tj.LayoutError, match="'scales' takes any dtype\n  pass dtype="):
        tj.unpack(buffers, "gptq-checkpoint", dims=(128, 64), group=32)
    found = tj.unpack(buffers, "gptq-checkpoint", dims=(128, 64), group=32, dtype="f16")
    np.testing.assert_array_equal(found["scales"], _layer()["scales"])


def test_awq_checkpoint_has_the_bytes_of_its_tensors() -> None:
    planes = {
        "codes": codes("awq_gemm_int4_64x128"),
        "zeros": mix((2, 128), 16).astype(np.uint8),
        "scales": mix((2, 128), 500).astype(np.float16),
    }
    packed = _check_layer(planes, "awq-checkpoint", group=32)
    check_bytes("awq_gemm_int4_64x128", packed.buffers["qweight"])
    assert (
        packed.buffers["qzeros"].tobytes()
        == np.asarray(tj.pack(planes["zeros"], "awq-gemm").buffer).tobytes()
    )
    assert packed.buffers["qzeros"].shape == (2, 16)


def test_g_idx_without_act_order_counts_groups() -> None:
    planes = _layer(group=32) | {
        "codes": np.zeros((256, 64), np.uint8),
        "g_idx": given("gptq_g_idx_256_g32") // 32,
    }
    planes |= {"zeros": np.ones((8, 64), np.uint8), "scales": np.ones((8, 64), np.float16)}
    planes["g_idx"] = planes["g_idx"].astype(np.int32)
    check_bytes("gptq_g_idx_256_g32", tj.pack(planes, "gptq-checkpoint", group=32).buffers["g_idx"])


def _act_order() -> Array:
    g_idx = np.empty(64, np.int32)
    g_idx[np.argsort(mix((64,), 64000), kind="stable")] = np.arange(64) // 16
    return g_idx


def test_act_order_sorts_rows_by_group() -> None:
    case = "gptq_act_order_sorted_rows_64x32"
    planes = {"codes": codes(case), "g_idx": _act_order()}
    packed = _check_layer(planes, "gptq-act-order")
    check_bytes(case, packed.buffers["qweight"])
    np.testing.assert_array_equal(packed.buffers["g_idx"], planes["g_idx"])
    with pytest.raises(tj.LayoutError, match="needs both buffers"):
        tj.unpack({"qweight": packed.buffers["qweight"]}, "gptq-act-order", dims=(64, 32))


@pytest.mark.full
def test_identify_finds_a_checkpoint_by_its_buffers_and_planes() -> None:
    planes = _layer(bits=3, group=64)
    packed = tj.pack(planes, "gptq-checkpoint", bits=3, group=64)
    found = tj.identify(dict(packed.buffers), planes)
    assert found.format == "gptq-checkpoint"
    assert dict(found.matches[0].parameters) == {"bits": 3, "group": 64, "version": 1}


def test_out_is_a_mapping_of_buffers() -> None:
    planes = _layer()
    expected = tj.pack(planes, "gptq-checkpoint", group=32)
    out = {name: np.zeros_like(buffer) for name, buffer in expected.buffers.items()}
    tj.pack(planes, "gptq-checkpoint", group=32, out=out)
    for name, buffer in expected.buffers.items():
        np.testing.assert_array_equal(out[name], buffer)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"zeros": np.ones((3, 64), np.uint8)}, r"zeros: expected an array of \[4, 64\] \(K/32 N\)"),
        ({"g_idx": np.zeros(128, np.int64)}, "g_idx: expected s32, got s64"),
        ({"codes": np.zeros((100, 64), np.uint8)}, "multiple of 32 as K, got 100\n  pad K to 128"),
        ({"codes": np.full((128, 64), 16, np.uint8)}, "codes are 0 to 15"),
        ({"bias": np.zeros(64)}, "no plane 'bias'"),
    ],
)
def test_wrong_planes_are_refused(change: dict[str, Array], message: str) -> None:
    with pytest.raises(tj.LayoutError, match=message):
        tj.pack({**_layer(), **change}, "gptq-checkpoint", group=32)


@pytest.mark.parametrize(
    ("layout", "parameters", "message"),
    [
        ("gptq", {"bits": 1}, "bits is 1\n  pass one of 2, 3, 4, 5, 6, 7, 8"),
        ("gptq-qzeros", {"version": 3}, "version is 3\n  pass one of 1, 2"),
        ("gptq-checkpoint", {"group": 0}, "group is 0"),
    ],
)
def test_wrong_parameters_and_sizes_are_refused(
    layout: str, parameters: dict[str, int], message: str
) -> None:
    with pytest.raises(tj.LayoutError, match=message):
        tj.pack(np.zeros((32, 32), np.uint8), layout, **parameters)
