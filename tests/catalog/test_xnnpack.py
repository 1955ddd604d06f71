"""XNNPACK's weights, compared with the bytes of its reference packers."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import tilejit as tj
from tests.catalog.cases import Array, check_case, given, mix


@pytest.mark.full
@pytest.mark.parametrize(("rows", "columns", "kr", "sr"), [(16, 10, 1, 1), (10, 10, 4, 1), (16, 12, 1, 4)])
def test_f32(rows: int, columns: int, kr: int, sr: int) -> None:
    case = f"xnnpack_f32_goi_nr8_kr{kr}_sr{sr}_{rows}x{columns}"
    weights = (np.arange(rows * columns, dtype=np.float32) + 1).reshape(rows, columns)
    bias = -1 - np.arange(rows, dtype=np.float32)
    check_case(case, {"weights": weights, "bias": bias}, "xnnpack-gemm", nr=8, kr=kr, sr=sr)


@pytest.mark.full
def test_qs8() -> None:
    weights = (mix((8, 8), 256) - 128).astype(np.int8)
    planes = {"weights": weights, "bias": 10 * np.arange(8, dtype=np.int32)}
    check_case("xnnpack_qs8_goi_nr8_kr4_sr1_8x8", planes, "xnnpack-gemm-qs8", kr=4, input_zero_point=1)


def test_qc4w() -> None:
    codes = given("xnnpack_qc4w_goi_nr8_kr4_sr1_8x16").astype(np.uint8)
    planes = {"weights": codes, "bias": np.zeros(8, np.int32)}
    check_case("xnnpack_qc4w_goi_nr8_kr4_sr1_8x16", planes, "xnnpack-gemm-qc4w", nr=8, kr=4)


def reference(weights: Array, bias: Array, nr: int, kr: int, sr: int, point: int) -> bytes:
    """The formula, value by value."""
    skr, out = sr * kr, []
    rows, columns = weights.shape
    for start in range(0, rows, nr):
        part = weights[start : start + nr].astype(np.int64)
        head = np.zeros(nr, np.int32)
        head[: len(part)] = bias[start : start + nr] - point * part.sum(-1)
        out.append(head.tobytes())
        for block in range(0, -(-columns // skr) * skr, kr):
            for n in range(nr):
                first = block // skr * skr + (block + n * kr) % skr
                values = [int(weights[start + n, k]) if start + n < rows and k < columns else 0
                          for k in range(first, first + kr)]  # fmt: skip
                out.append(np.array(values, np.int8).tobytes())
    return b"".join(out)


@pytest.mark.parametrize(
    ("rows", "columns", "nr", "kr", "sr", "point"),
    [(8, 8, 8, 4, 1, 0), (11, 21, 8, 2, 4, -128), (5, 9, 4, 4, 2, 255), (3, 3, 6, 1, 1, 3)],
)
def test_any_parameters(rows: int, columns: int, nr: int, kr: int, sr: int, point: int) -> None:
    planes = {
        "weights": (mix((rows, columns), 256) - 128).astype(np.int8),
        "bias": mix((rows,), 60_000, 7).astype(np.int32),
    }
    own = {"nr": nr, "kr": kr, "sr": sr, "input_zero_point": point}
    packed = tj.pack(planes, "xnnpack-gemm-qs8", **own)
    assert packed.buffer.tobytes() == reference(planes["weights"], planes["bias"], nr, kr, sr, point)
    for found in (packed.unpack(), tj.unpack(packed.buffer, "xnnpack-gemm-qs8", dims=(rows, columns), **own)):
        for name, plane in planes.items():
            assert found[name].dtype == plane.dtype
            assert np.array_equal(found[name], plane)


def test_sums_of_4_bit_rows_subtract_8_and_count_16_times() -> None:
    codes = mix((9, 11), 16).astype(np.uint8)
    bias = 100 * np.arange(9, dtype=np.int32)
    plain = tj.pack({"weights": codes, "bias": bias}, "xnnpack-gemm-qc4w", nr=4, kr=2)
    moved = tj.pack({"weights": codes, "bias": bias}, "xnnpack-gemm-qc4w", nr=4, kr=2, input_zero_point=3)
    records = [packed.buffer.reshape(3, -1) for packed in (plain, moved)]
    assert np.array_equal(records[0][:, 16:], records[1][:, 16:])
    found = records[1][:, :16].copy().view(np.int32).reshape(-1)
    assert found[:9].tolist() == (bias - 48 * (codes.astype(int) - 8).sum(-1)).tolist()
    assert not found[9:].any()
    again = moved.unpack()
    assert np.array_equal(again["bias"], bias)
    assert np.array_equal(again["weights"], codes)


def test_out() -> None:
    planes = {"weights": np.ones((8, 8), np.float32), "bias": np.zeros(8, np.float32)}
    out = np.full(8 * 9, 7, np.float32)
    tj.pack(planes, "xnnpack-gemm", out=out)
    assert out.tolist() == [0.0] * 8 + [1.0] * 64


ONES: dict[str, Any] = {"weights": np.ones((8, 8), np.int8), "bias": np.zeros(8, np.int32)}


@pytest.mark.parametrize(
    ("planes", "parameters", "message"),
    [
        (ONES, {"kr": 3}, "kr \\* sr is 3"),
        (ONES, {"nr": 2, "kr": 1, "sr": 4}, "sr is 4 and nr is 2"),
        (ONES, {"input_zero_point": 256}, "input_zero_point is 256"),
        ({"weights": ONES["weights"]}, {}, "lacks its plane 'bias'"),
        ({**ONES, "bias": np.zeros(7, np.int32)}, {}, r"bias: expected an array of \[8\] \(N\), got \[7\]"),
        ({**ONES, "bias": np.zeros(8, np.float32)}, {}, "bias: expected s32, got f32"),
    ],
)
def test_refused(planes: dict[str, Any], parameters: dict[str, int], message: str) -> None:
    with pytest.raises(tj.LayoutError, match=message):
        tj.pack(planes, "xnnpack-gemm-qs8", **parameters)


def test_a_zero_point_is_an_integer() -> None:
    with pytest.raises(TypeError, match="input_zero_point: expected an integer, got float"):
        tj.pack(ONES, "xnnpack-gemm-qs8", input_zero_point=0.5)
