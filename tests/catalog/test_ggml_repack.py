"""Repacks of ggml's records: llama.cpp for CPUs and Hexagon, and ik_llama.cpp."""

from __future__ import annotations

import re
from typing import Any

import numpy as np
import pytest

import tilejit as tj
from tests.catalog.cases import CASES, check_case
from tests.catalog.ggml_planes import SIZES, planes, planes_of, varied

REPACKS = [n for n in CASES if n.startswith(("ggml_repack", "ik_", "hexagon_"))]


def parameters_of(name: str) -> dict[str, Any]:
    chunk = CASES[name]["parameters"].get("interleave_bytes")
    return {"chunk": chunk} if chunk else {}


@pytest.mark.parametrize("name", REPACKS)
def test_repack(name: str) -> None:
    check_case(name, planes_of(name), CASES[name]["format"], **parameters_of(name))


@pytest.mark.parametrize(
    ("kind", "rows", "chunk", "parts", "flip"),
    [
        ("q4_0", 4, 8, [(2, 18)], 0x88),
        ("q8_0", 4, 8, [(2, 34)], 0),
        ("q4_k", 8, 4, [(16, 144)], 0),
        ("q5_k", 8, 4, [(16, 48), (48, 176)], 0),
        ("q6_k", 8, 4, [(0, 128), (128, 192)], 0),
    ],
)
def test_chunks_of_the_plain_bytes(
    kind: str, rows: int, chunk: int, parts: list[tuple[int, int]], flip: int
) -> None:
    """The parts of a record that come in chunks are its end; what precedes them has no chunks."""
    size, block = SIZES[kind]
    given = varied(kind, 2 * rows, 3 * block)
    plain = tj.pack(given, f"ggml-{kind}").buffer.reshape(2, rows, 3, size).transpose(0, 2, 1, 3)
    body = [
        plain[..., low:high].reshape(2, 3, rows, -1, chunk).swapaxes(2, 3).reshape(2, 3, -1)
        for low, high in parts
    ]
    want = np.concatenate(body, axis=-1) ^ np.uint8(flip)
    found, other = (
        tj.pack(given, f"ggml-{kind}x{rows}", chunk=own).buffer.reshape(2, 3, rows * size)
        for own in (chunk, 12 - chunk)
    )
    head = found.shape[-1] - want.shape[-1]
    np.testing.assert_array_equal(found[..., head:], want)
    np.testing.assert_array_equal(found[..., :head], other[..., :head])


@pytest.mark.parametrize("name", sorted({CASES[n]["format"] for n in REPACKS if "hexagon" not in n}))
def test_a_record_begins_with_the_numbers_of_its_rows(name: str) -> None:
    kind, rows = re.sub(r"^\w+-|x\d+$|-r\d$", "", name.lower()), int(re.findall(r"\d+", name)[-1])
    block = SIZES[kind][1]
    given = varied(kind, 2 * rows, 3 * block)
    records = tj.pack(given, name).buffer.reshape(2, 3, -1)
    at = 0
    for number in ("d", "dmin", "e"):
        if number in given:
            want = given[number].reshape(2, rows, 3).swapaxes(1, 2).copy().view(np.uint8).reshape(2, 3, -1)
            np.testing.assert_array_equal(records[..., at : at + want.shape[-1]], want, err_msg=number)
            at += want.shape[-1]


@pytest.mark.parametrize(("kind", "names"), [("q4_1", "d m"), ("q8_0", "d"), ("mxfp4", "e")])
def test_a_hexagon_tile_ends_with_the_numbers_of_its_rows(kind: str, names: str) -> None:
    given = varied(kind, 64, 96)
    tiles = tj.pack(given, f"hexagon-{kind}-tiled").buffer.reshape(2, 3, -1)
    both = np.stack([given[name].reshape(2, 32, 3).swapaxes(1, 2) for name in names.split()], axis=-1)
    want = both.view(np.uint8).reshape(2, 3, -1)
    np.testing.assert_array_equal(tiles[..., -want.shape[-1] :], want)


@pytest.mark.full
def test_rows_of_several_matrices_are_interleaved_within_each() -> None:
    flat = planes("q5_k", 16, 512, 32)
    cube = {name: array.reshape(2, 8, *array.shape[1:]) for name, array in flat.items()}
    packed = tj.pack(cube, "ggml-q5_Kx8")
    assert packed.buffer.tobytes() == tj.pack(flat, "ggml-q5_Kx8").buffer.tobytes()
    found = packed.unpack()
    assert isinstance(found, dict)
    for name, array in cube.items():
        np.testing.assert_array_equal(found[name], array, err_msg=name)


@pytest.mark.full
@pytest.mark.parametrize(("rows", "padding"), [(40, 24), (64, 0), (1, 31)])
def test_hexagon_writes_missing_rows(rows: int, padding: int) -> None:
    given = planes("q4_0", rows, 64, 16)
    tiles = tj.pack(given, "hexagon-q4_0-tiled").buffer.reshape(-1, 2, 576)[-1]
    codes = tiles[:, :512].reshape(2, 16, 32)[..., 32 - padding :]
    assert codes.size == 32 * padding
    assert np.all(codes == 0x88)
    assert not tiles[:, 512:].reshape(2, 32, 2)[:, 32 - padding :].any()


def test_hexagon_pads_each_of_several_matrices() -> None:
    flat = planes("mxfp4", 66, 32, 16)
    cube = {name: array.reshape(2, 33, -1) for name, array in flat.items()}
    packed = tj.pack(cube, "hexagon-mxfp4-tiled").buffer
    parts = [{name: array[k] for name, array in cube.items()} for k in range(2)]
    assert packed.tobytes() == b"".join(tj.pack(p, "hexagon-mxfp4-tiled").buffer.tobytes() for p in parts)


@pytest.mark.parametrize(
    ("name", "chunk", "choices"),
    [("ggml-q4_0x4", 16, "4, 8"), ("ggml-q4_0x8", 4, "8"), ("ggml-q4_0x16", 8, "1")],
)
def test_chunks_that_no_kernel_reads(name: str, chunk: int, choices: str) -> None:
    with pytest.raises(tj.LayoutError, match=f"chunk is {chunk}\n  pass one of {choices}"):
        tj.pack(planes("q4_0", 16, 32, 16), name, chunk=chunk)


ALL = tuple(
    name
    for family in ("ggml", "ggml-repack", "ik-llama", "hexagon")
    for name in tj.formats(family)
    if name != "crouton"
)
CODECS = {"ggml-q4_k", "ggml-q5_k", "ggml-q4_kx8", "ggml-q5_kx8", "ggml-tq1_0"}


@pytest.mark.full
@pytest.mark.parametrize("name", ALL)
def test_every_plane_is_a_layout_but_for_codecs(name: str) -> None:
    kind = re.sub(r"^\w+-|x\d+$|-r\d$|-tiled$", "", name)
    given = varied(kind, 32, 512)
    if name == "ik-q8_k":
        given["sum"] = given["d"]
    found = {re.sub(r"\[.*", "", part) for key in tj.pack(given, name).layouts for part in key.split(", ")}
    missing = {"codes"} if name == "ggml-tq1_0" else {"scales", "mins"} if name in CODECS else set()
    assert found == set(given) - missing
