"""XLA's own data tests, replayed: transposes, nested tiles, indices, packed integers, detiling."""

from __future__ import annotations

import json
from math import prod
from pathlib import Path
from typing import Any

import ml_dtypes
import numpy as np
import pytest

import tilejit as tj
from tests.tools.oracle import packed_bits, packed_by_definition, unpacked_by_definition
from tilejit.layout.dtypes import lookup

CASES = json.loads((Path(__file__).parents[1] / "data" / "xla_cases.json").read_text())
MOST_ELEMENTS = 300_000
"""Larger cases have their largest dimensions reduced, because they test tiles, not sizes."""

TYPES = {1: "u8", 2: "bf16", 4: "f32", 8: "f64", 16: "c128"}


def shrunk(dims: list[int]) -> tuple[int, ...]:
    out = list(dims)
    while prod(out) > MOST_ELEMENTS:
        k = out.index(max(out))
        out[k] = out[k] // 2 + 1
    return tuple(out)


def shape_of(name: str, dims: tuple[int, ...], tile: list[int]) -> tj.Shape:
    """Row-major, with XLA's transpose tiling, which applies to the minor-most dimensions."""
    return tj.make_shape(lookup(name), dims, tiles=(tuple(tile),) if tile else ())


def numbered(dims: tuple[int, ...], width: int) -> np.ndarray[Any, Any]:
    """Distinct bytes, as far as the width allows."""
    count = prod(dims)
    flat = (np.arange(count * width, dtype=np.uint64) * 2654435761 >> np.uint64(7)).astype(np.uint8)
    return flat.view(tj.Shape.parse(f"{TYPES[width]}[1]").dtype).reshape(dims)


def same(a: np.ndarray[Any, Any], b: np.ndarray[Any, Any]) -> bool:
    return a.shape == b.shape and a.tobytes() == np.ascontiguousarray(b).tobytes()


@pytest.mark.full
@pytest.mark.parametrize("width", [1, 2, 4, 8, 16])
@pytest.mark.parametrize(
    "case",
    CASES["transpose_cases"],
    ids=lambda c: f"{c['dims']}{c['permutation']}{c['input_tiling']}{c['output_tiling']}",
)
def test_transposes(case: dict[str, Any], width: int) -> None:
    """A transpose with tiles on one side is a pack or an unpack whose other side is a transposed view."""
    dims, order = shrunk(case["dims"]), case["permutation"]
    x = numbered(dims, width)
    if case["input_tiling"]:
        tiled = shape_of(TYPES[width], dims, case["input_tiling"])
        buffer = packed_by_definition(x, tiled, np.zeros(1, x.dtype), np.zeros(tiled.size_in_bytes, np.uint8))
        out = np.empty([dims[k] for k in order], x.dtype)
        tj.unpack(buffer, tiled, out=out.transpose(np.argsort(order)), threads=2)
        assert same(out, x.transpose(order))
        return
    moved = x.transpose(order)
    if case["input_striding"]:
        moved = _strided_like(x, case["input_striding"]).transpose(order)
    tiled = shape_of(TYPES[width], moved.shape, case["output_tiling"])
    want = packed_by_definition(moved, tiled, np.zeros(1, x.dtype), np.zeros(tiled.size_in_bytes, np.uint8))
    assert (tj.pack(moved, tiled, threads=2).buffer.view(np.uint8) == want).all()


def _strided_like(x: np.ndarray[Any, Any], striding: list[int]) -> np.ndarray[Any, Any]:
    """The values in memory that XLA's input strides visit: the same signs, order and zeros."""
    signs = tuple(slice(None, None, -1 if s < 0 else 1) for s in striding)
    order = sorted(range(x.ndim), key=lambda d: -abs(striding[d]))
    room = np.empty([x.shape[d] for d in order], x.dtype)
    view = room.transpose(np.argsort(order))[signs]
    view[...] = x
    return view


@pytest.mark.parametrize("case", CASES["transpose_negative_strides_exact"], ids=str)
def test_negative_strides(case: dict[str, Any]) -> None:
    x = np.array(case["input"], np.int16)[:, ::-1]
    assert x.strides == tuple(case["strides"])
    assert tj.pack(x.T, "{1,0}").buffer.reshape(4, 3).tolist() == case["expect"]


@pytest.mark.parametrize(
    "case", CASES["linear_index_nested_tiling"], ids=lambda c: f"{c['shape']} {c['index']}"
)
def test_linear_index(case: dict[str, Any]) -> None:
    shape = tj.Shape.parse(case["shape"])
    assert tj.linear_index(shape, tuple(case["index"])) == case["linear"]
    assert tj.multi_index(shape, case["linear"]) == tuple(case["index"])


@pytest.mark.parametrize("case", CASES["index_util"], ids=lambda c: f"{c['dims']}{c['m2m']}")
def test_index_util(case: dict[str, Any]) -> None:
    shape = tj.make_shape("f32", case["dims"], case["m2m"])
    assert tj.linear_index(shape, tuple(case["multi"])) == case["linear"]
    assert tj.multi_index(shape, case["linear"]) == tuple(case["multi"])


@pytest.mark.parametrize("order", CASES["index_util_roundtrip"]["m2m"], ids=str)
def test_index_util_round_trip(order: list[int]) -> None:
    shape = tj.make_shape("f32", CASES["index_util_roundtrip"]["dims"], order)
    slots = np.array(CASES["index_util_roundtrip"]["linear"])
    for slot in slots.tolist():
        assert tj.linear_index(shape, tj.multi_index(shape, slot)) == slot
    assert (tj.linear_index(shape, tj.multi_index(shape, slots)) == slots).all()


@pytest.mark.full
@pytest.mark.parametrize("case", CASES["pack_subbyte"], ids=lambda c: f"{c['bits']} {c['dims']}{c['perm']}")
@pytest.mark.parametrize("sign", ["s", "u"])
def test_packed_integers(case: dict[str, Any], sign: str) -> None:
    """Transposed and packed, with the first element of a byte in its low bits."""
    bits, dims = case["bits"], case["dims"]
    values = (np.arange(prod(dims), dtype=np.uint8) * 7 & ((1 << bits) - 1)).reshape(dims)
    moved = values.transpose(case["perm"])
    dtype = np.dtype(getattr(ml_dtypes, f"{'u' * (sign == 'u')}int{bits}"))
    order = ",".join(map(str, reversed(range(moved.ndim))))
    text = f"{sign}{bits}[{','.join(map(str, moved.shape))}]{{{order}:E({bits})}}"
    tiled = tj.pack(
        moved.view(dtype) if moved.flags.c_contiguous else values.view(dtype).transpose(case["perm"]), text
    )
    flat = np.zeros(-(-moved.size * bits // 8) * 8 // bits, np.uint8)
    flat[: moved.size] = moved.reshape(-1)
    assert tiled.buffer.tolist() == packed_bits(flat, bits).tolist()
    assert (tj.unpack(tiled).view(np.uint8) & ((1 << bits) - 1) == moved).all()


def _detile_shapes() -> list[str]:
    out: list[str] = []
    for case in CASES["tpu_sync_detile_tests"]:
        if "shape" in case:
            out.append(case["shape"])
        for key, shapes in case.items():
            if key.startswith("bf16_shapes_"):
                out += [f"bf16[{a},{b}]{{1,0:{key.removeprefix('bf16_shapes_')}}}" for a, b in shapes]
    return out


@pytest.mark.parametrize("text", _detile_shapes())
def test_detiling(text: str) -> None:
    shape = tj.Shape.parse(text)
    data = np.frombuffer(np.random.default_rng(1).bytes(shape.size_in_bytes), np.uint8)
    want = unpacked_by_definition(data, shape)
    assert same(tj.unpack(data, shape), want)
    assert same(tj.pack(want, shape).unpack(), want)
