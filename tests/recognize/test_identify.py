"""identify: formats beside an original, mistakes before and after packing, and careful verdicts."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import tilejit as tj
from tests.catalog.test_laws import FORMATS, example_planes
from tests.tools.extent import examples, few_by_default
from tests.tools.recognition import answers

CODES = np.random.default_rng(0).integers(0, 16, (128, 256), np.uint8)
SCALES = np.random.default_rng(1).integers(1, 255, (130, 5), np.uint8)


@pytest.mark.parametrize("name", few_by_default([*FORMATS], 8))
def test_every_format_is_found(name: str) -> None:
    planes = example_planes(name)
    found = tj.identify(tj.pack(planes, name), planes)
    names = {match.format for match in found.matches}
    assert found.verdict in ("exact", "ambiguous"), found
    assert name in names, found


def test_the_format_and_its_parameters() -> None:
    assert str(tj.identify(tj.pack(CODES, "marlin-int4"), CODES)).startswith("exact: marlin-int4")
    assert str(tj.identify(tj.pack(CODES & 7, "gptq", bits=3), CODES & 7)).startswith("exact: gptq, bits=3")


def test_scales_that_were_swizzled_twice() -> None:
    once = tj.pack(SCALES, "nvfp4-scales")
    twice = tj.pack(once.buffer.reshape(256, 8), "nvfp4-scales")
    found = tj.identify(twice, SCALES)
    assert found.verdict == "exact"
    assert found.matches[0].times == 2


@pytest.mark.full
def test_a_large_array_that_a_rule_tiled_twice() -> None:
    x = np.arange(512 * 1536, dtype=np.float32).reshape(512, 1536)
    once = tj.pack(x, "tpu").buffer
    found = tj.identify(tj.pack(once.reshape(x.shape), "tpu").buffer, x)
    assert (found.format, found.matches[0].times) == ("tpu", 2)


@pytest.mark.parametrize(
    ("given", "says"),
    [
        (CODES.T.copy(), "transposed"),
        (np.roll(CODES, 64, 0), "halves of axis 0"),
        (CODES ^ 8, "^ 8"),
    ],
    ids=["transposed", "halves", "signs"],
)
def test_mistakes_are_named(given: Any, says: str) -> None:
    found = tj.identify(tj.pack(given, "awq-gemm"), CODES)
    assert found.verdict == "exact", found
    assert says in str(found)


def test_a_damaged_buffer_is_near() -> None:
    data = tj.pack(CODES, "awq-gemm").buffer.copy()
    data[5] ^= 3
    found = tj.identify(data, CODES)
    assert found.verdict == "near"
    assert found.format is None
    first = found.matches[0]
    assert first.format == "awq-gemm"
    assert 0.99 < first.agreement < 1
    assert first.first_difference is not None


@pytest.mark.parametrize(
    ("data", "says"),
    [
        (lambda b: b + b"0", "1 byte follows"),
        (lambda b: b"0" + b, "1 byte precedes"),
        (lambda b: b + b"00", "2 bytes follow"),
    ],
    ids=["follows", "precedes", "several"],
)
def test_surplus_bytes_are_counted(data: Any, says: str) -> None:
    x = CODES[:32, :64]
    found = tj.identify(data(tj.pack(x, "awq-gemm").buffer.tobytes()), x)
    assert (found.verdict, found.matches[0].format) == ("near", "awq-gemm")
    assert found.matches[0].fault == says


def test_damaged_padding_still_tells_formats_apart() -> None:
    """tpu puts the elements in the same places, and other padding beside them."""
    codes = np.random.default_rng(0).integers(0, 256, (96, 99), np.uint8)
    whole = tj.pack(codes, "exl2-q_weight", bits=8).buffer
    data = np.ascontiguousarray(whole).reshape(-1).view(np.uint8).copy()
    padded = tj.unpack(data, "exl2-q_weight", bits=8, dims=(96, 128), dtype="uint8")  # with its padding
    padded[3, 110:] ^= 1
    padded[5, 96] ^= 1
    found = tj.identify(tj.pack(padded, "exl2-q_weight", bits=8).buffer, codes)
    assert (found.verdict, found.matches[0].format) == ("near", "exl2-q_weight")


@pytest.mark.parametrize(
    "function",
    [
        lambda dtype, dims: "{1,0:T(%d,%d)}" % (dims[0], dims[2]),  # noqa: UP031
        lambda dtype, dims: 1 // 0,
        lambda dtype, dims: object(),
    ],
    ids=["index error", "division by zero", "no layout"],
)
def test_a_registered_format_that_fails_is_skipped(function: Any) -> None:
    tj.register_format("mine", function)
    data = tj.pack(SCALES, "nvfp4-scales").buffer
    assert tj.identify(data, SCALES).format == "nvfp4-scales"
    assert tj.identify(data, dims=SCALES.shape).verdict == "guess"
    with pytest.raises(tj.LayoutError, match="'mine'"):
        tj.pack(SCALES, "mine")


@pytest.mark.parametrize(
    ("name", "low", "high", "dtype"),
    [
        ("marlin-int4", 1, 16, np.uint8),
        ("awq-gemm", -3, 12, np.int8),
        ("nvfp4-scales", 1, 256, np.int16),
        ("exl2-q_scale", 0, 15, np.uint8),
    ],
)
def test_values_that_do_not_fit_are_never_exact(name: str, low: int, high: int, dtype: Any) -> None:
    x = np.random.default_rng(2).integers(low, high + 1, (64, 128)).astype(dtype)
    if name == "exl2-q_scale":  # the other way round: it holds 1 to 16, and writes 16 as it would write 0
        data = tj.pack(np.where(x == 0, 16, x).astype(np.uint8), name).buffer
    else:
        data = tj.pack((x & (255 if high > 100 else 15)).astype(np.uint8), name).buffer
    found = tj.identify(data, x)
    assert found.format != name, found
    near = [match for match in found.matches if match.format == name]
    assert all(match.agreement < 1 and "do not fit" in match.note for match in near)
    assert near or name == "exl2-q_scale", found


def test_values_fit_after_a_number_is_added() -> None:
    x = np.random.default_rng(2).integers(-3, 13, (64, 128)).astype(np.int8)
    found = tj.identify(tj.pack((x + 3).astype(np.uint8), "marlin-int4"), x)
    assert (found.format, found.matches[0].changes) == ("marlin-int4", ("values + 3",))
    found = tj.identify(tj.pack((CODES[:32, :64] + 1), "exl2-q_scale"), CODES[:32, :64] + 1)
    assert "exl2-q_scale" in {match.format for match in found.matches if match.agreement == 1.0}


@pytest.mark.parametrize(
    ("rows", "says"),
    [(1400, "padding differs"), pytest.param(8000, "unused bits not compared", marks=pytest.mark.full)],
)
def test_unused_bits_that_differ_are_noted(rows: int, says: str) -> None:
    x = np.random.default_rng(3).integers(0, 8, (rows, 200), np.uint8)
    data = np.ascontiguousarray(tj.pack(x, "hqq-3bit-32").buffer).view(np.uint32)
    found = tj.identify(data | np.uint32(3 << 30), x)
    assert found.format == "hqq-3bit-32"
    assert says in found.matches[0].note


def _equal_slices() -> dict[str, tuple[str, Any]]:
    rng = np.random.default_rng(4)
    few = rng.integers(0, 16, (4, 128), np.uint8)
    return {
        "numbered": ("tenstorrent", (np.arange(35 * 48) % 16).astype(np.float32).reshape(35, 48)),
        "random": ("tenstorrent", np.tile(rng.standard_normal(33).astype(np.float32), (35, 1))),
        "columns": ("nvfp4-scales", np.tile(rng.integers(0, 255, (131, 1), np.uint8), (1, 5))),
        "few kinds": ("marlin-int4", few[rng.integers(0, 4, 64)]),
    }


@pytest.mark.parametrize("name", _equal_slices())
def test_equal_slices_have_no_order(name: str) -> None:
    layout, x = _equal_slices()[name]
    axis = 1 if name == "columns" else 0
    found = tj.identify(tj.pack(np.random.default_rng(5).permutation(x, axis=axis), layout), x)
    if name != "few kinds":  # the order of the kinds themselves is known, and it was another
        assert (found.verdict, found.matches[0].format) == ("ambiguous", layout)
        assert f"along axis {axis} are equal" in str(found)
    assert tj.identify(tj.pack(x, layout), x).verdict == "ambiguous"


def test_a_buffer_without_bytes_is_unknown() -> None:
    assert tj.identify(b"", CODES).verdict == "unknown"
    assert tj.identify(b"", dims=(4, 4)).verdict == "unknown"


def test_a_strided_memoryview_is_read() -> None:
    x = CODES[:16, :32]
    data = np.repeat(tj.pack(x, "nvfp4-scales").buffer.reshape(-1), 2)
    assert tj.identify(memoryview(data)[::2], x).format == "nvfp4-scales"


@pytest.mark.parametrize(
    ("buffer", "original", "dims", "says"),
    [
        ({}, CODES, None, "expected buffers by name, got none"),
        ({}, None, None, "expected buffers by name, got none"),
        (b"", None, (0, 4), "expected the sizes of an array with elements"),
        ([[1, 2], [3]], CODES, None, "buffer: expected an array, got a list"),
        (CODES, [[1, 2], [3]], None, "original: expected an array, got a list"),
        (b"12", np.zeros((1,) * 63 + (2,), np.uint8), None, "expected at most 63 dimensions, got 64"),
    ],
    ids=["no buffers", "no buffers, no original", "no elements", "ragged", "ragged original", "rank"],
)
def test_inputs_that_are_no_arrays(buffer: Any, original: Any, dims: Any, says: str) -> None:
    with pytest.raises(tj.LayoutError, match=says):
        tj.identify(buffer, original, dims=dims)


def test_buffers_that_a_format_lacks_or_misses_are_noted() -> None:
    planes = example_planes("awq-checkpoint")
    codes = planes["codes"]
    whole = dict(tj.pack(planes, "awq-checkpoint").buffers)
    found = tj.identify({**whole, "bias": np.zeros(7, np.float16)}, codes)
    assert found.format == "awq-checkpoint"
    assert "buffer bias not explained" in found.matches[0].note
    found = tj.identify({**whole, "bias": np.zeros(7, np.float16)}, planes)
    assert found.format == "awq-checkpoint"
    del whole["scales"]
    found = tj.identify(whole, codes)
    assert found.format == "awq-checkpoint"
    assert "buffer scales missing" in found.matches[0].note


@pytest.mark.parametrize("rows", [80, pytest.param(8000, marks=pytest.mark.full)])
def test_halves_of_a_buffer_that_whole_array_steps_pack(rows: int) -> None:
    x = np.random.default_rng(6).integers(0, 8, (rows, 50), np.uint8)
    data = np.ascontiguousarray(tj.pack(x, "hqq-3bit-32").buffer).reshape(-1).view(np.uint8)
    found = tj.identify(np.roll(data, data.size // 2), x)
    assert found.format == "hqq-3bit-32", found
    assert "halves of the buffer swapped" in str(found)


@pytest.mark.full
@pytest.mark.parametrize("size", [100, 4096, 16384])
def test_random_bytes_are_unknown(size: int) -> None:
    data = np.random.default_rng(size).integers(0, 256, size, np.uint8)
    assert tj.identify(data, CODES[:64, :128]).verdict == "unknown"


@pytest.mark.full
def test_equal_elements_tell_no_order() -> None:
    found = tj.identify(tj.pack(np.zeros_like(CODES), "awq-gemm"), np.zeros_like(CODES))
    assert found.verdict == "ambiguous"
    assert found.format is None


@pytest.mark.full
def test_no_wrong_exact_answer() -> None:
    """Buffers whose truth is kept apart: in formats, with mistakes, damaged, foreign and random."""
    found = answers(1, examples(6, full=120))
    assert not [str(answer.made.truth) for answer in found if answer.is_wrong]
    assert sum(answer.is_expected for answer in found) >= 0.9 * len(found)
