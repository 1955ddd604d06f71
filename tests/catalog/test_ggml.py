"""ggml's records: structs built from integer codes."""

from __future__ import annotations

import numpy as np
import pytest

import tilejit as tj
from tests.catalog.cases import CASES, Array, check_case, mix
from tests.catalog.ggml_planes import SIZES, planes, planes_of, varied

RECORDS = [name for name in CASES if name.startswith("ggml_") and "repack" not in name]


def random_bytes(rows: int, size: int, blocks: int) -> Array:
    """Rows of records, every byte at random."""
    return mix((rows, blocks * size), 256, 5).astype(np.uint8)


@pytest.mark.full
@pytest.mark.parametrize("name", RECORDS)
def test_record(name: str) -> None:
    packed = check_case(name, planes_of(name), CASES[name]["format"])
    assert packed.buffer.shape[0] == CASES[name]["input"]["shape"][0]


@pytest.mark.full
@pytest.mark.parametrize("kind", SIZES)
def test_any_bytes_come_back(kind: str) -> None:
    size, block = SIZES[kind]
    data = random_bytes(3, size, 2)
    found = tj.unpack(data, f"ggml-{kind}", dims=(3, 2 * block))
    assert isinstance(found, dict)
    np.testing.assert_array_equal(tj.pack(found, f"ggml-{kind}").buffer, data)


def test_q8_1() -> None:
    given = varied("q8_1", 3, 64)
    blocks = np.zeros((3, 2), [("d", "<f2"), ("s", "<f2"), ("qs", "i1", 32)])
    blocks["d"], blocks["s"], blocks["qs"] = given["d"], given["s"], given["codes"].reshape(3, 2, 32)
    assert tj.pack(given, "ggml-q8_1").buffer.tobytes() == blocks.tobytes()


def test_q8_k_of_ik_llama() -> None:
    given = varied("q8_k", 3, 512)
    given["sum"] = mix((3, 2), 100).astype(np.float32)
    blocks = np.zeros((3, 2), [("d", "<f4"), ("sum", "<f4"), ("qs", "i1", 256), ("sums", "<i2", 16)])
    blocks["d"], blocks["sum"], blocks["qs"] = given["d"], given["sum"], given["codes"].reshape(3, 2, 256)
    blocks["sums"] = given["sums"].reshape(3, 2, 16)
    packed = tj.pack(given, "ik-q8_k")
    assert packed.buffer.tobytes() == blocks.tobytes()
    np.testing.assert_array_equal(packed.unpack()["sum"], given["sum"])


@pytest.mark.full
def test_q5_0_writes_bit_4_as_a_word() -> None:
    codes = np.zeros((1, 32), np.uint8)
    codes[0, [0, 9, 31]] = 16
    packed = tj.pack({"codes": codes, "d": np.ones((1, 1), np.float16)}, "ggml-q5_0")
    assert packed.buffer.tobytes() == bytes.fromhex("003c01020080") + bytes(16)


def test_several_matrices_are_rows_after_rows() -> None:
    flat = planes("q4_k", 8, 512, 16)
    cube = {name: array.reshape(2, 4, *array.shape[1:]) for name, array in flat.items()}
    packed = tj.pack(cube, "ggml-q4_k")
    assert packed.buffer.shape == (2, 4, 288)
    assert packed.buffer.tobytes() == tj.pack(flat, "ggml-q4_k").buffer.tobytes()
    found = packed.unpack()
    assert isinstance(found, dict)
    np.testing.assert_array_equal(found["mins"], cube["mins"])


def test_codes_may_have_their_own_dtype() -> None:
    import ml_dtypes

    given = planes("mxfp4", 2, 32, 16)
    right = tj.pack(given, "ggml-mxfp4").buffer
    given["codes"] = given["codes"].view(ml_dtypes.float4_e2m1fn)
    given["e"] = given["e"].view(np.uint8)
    np.testing.assert_array_equal(tj.pack(given, "ggml-mxfp4").buffer, right)


def test_tq1_0_has_three_codes() -> None:
    import ml_dtypes

    given = planes("tq2_0", 1, 256, 3)
    given["codes"][0, 7] = 3
    for codes in (given["codes"], given["codes"].astype(ml_dtypes.uint2)):
        with pytest.raises(tj.LayoutError, match=r"codes: element \[0, 7\] is 3, but codes are 0 to 2"):
            tj.pack(given | {"codes": codes}, "ggml-tq1_0")


def test_out_is_a_row_of_a_file() -> None:
    given = planes("q6_k", 2, 256, 64)
    file = np.zeros(500, np.uint8)
    tj.pack(given, "ggml-q6_k", out=file[40:460].reshape(2, 210))
    np.testing.assert_array_equal(file[40:460].reshape(2, 210), tj.pack(given, "ggml-q6_k").buffer)
    assert not file[:40].any()
    assert not file[460:].any()


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"mins": None}, "lacks its plane 'mins'"),
        ({"m": np.zeros((2, 1), np.float16)}, "has no plane 'm'"),
        ({"d": np.zeros((2, 2), np.float16)}, r"d: expected an array of \[2, 1\]"),
        ({"d": np.zeros((2, 1), np.float32)}, "d: expected f16, got f32"),
        ({"scales": np.full((2, 8), 64, np.uint8)}, r"element \[0, 0\] is 64, but codes are 0 to 63"),
        ({"codes": np.zeros((2, 96), np.uint8)}, "multiple of 256 as C, got 96\n  pad C to 256"),
    ],
)
def test_wrong_planes(change: dict[str, Array | None], message: str) -> None:
    given = planes("q4_k", 2, 256, 16) | change
    with pytest.raises(tj.LayoutError, match=message):
        tj.pack({name: array for name, array in given.items() if array is not None}, "ggml-q4_k")
