"""The bytes of formats of planes: the owner of each bit, in words and as a picture."""

from __future__ import annotations

import re
from functools import partial
from math import prod
from typing import Any
from xml.etree import ElementTree

import numpy as np
import pytest

import tilejit as tj
from tests.catalog.cases import mix
from tests.catalog.test_laws import FORMATS
from tests.cli.running import refuses, run
from tests.tools.extent import few_by_default
from tilejit.layout.formats.examples import example_planes, free_element
from tilejit.layout.formats.registry import find_format
from tilejit.view.bit_owners import COMPUTED, CONSTANT, owners
from tilejit.view.byte_map import MOST_LINES, Line, byte_lines, index_of, lines_of, shortened
from tilejit.view.byte_picture import byte_svg

PLANES = [name for name, packing in FORMATS.items() if not packing.is_layout]
SPACE = "{http://www.w3.org/2000/svg}"


def bits_of(packed: Any) -> dict[str, Any]:
    flat = {key: np.ascontiguousarray(b).reshape(-1).view(np.uint8) for key, b in packed.buffers.items()}
    return {key: np.unpackbits(data, bitorder="little") for key, data in flat.items()}


def mixed(seed: int, shape: tuple[int, ...], number: int, plane: int) -> Any:
    return mix(shape, number, seed + plane)


@pytest.mark.parametrize("name", few_by_default([n for n in PLANES if not FORMATS[n].rounds], 6))
def test_a_change_of_an_element_changes_its_own_bits(name: str) -> None:
    """The planes hold other values than the probes, and one element at a time gets another value."""
    found, packing = owners(name), FORMATS[name]
    sizes, free = packing.sizes(found.dims, name), free_element(find_format(name), packing)
    planes, others = (example_planes(packing, sizes, free, partial(mixed, seed)) for seed in (3, 4))
    if "g_idx" in planes:
        planes["g_idx"] = np.zeros_like(planes["g_idx"])  # another order moves rows
    base = bits_of(tj.pack(planes, name))
    for plane in planes:
        if plane == "g_idx":
            continue
        for element in {0, prod(found.shapes[plane]) // 2, prod(found.shapes[plane]) - 1}:
            changed = planes[plane].copy()
            changed.flat[element] = others[plane].flat[element]
            after = bits_of(tj.pack({**planes, plane: changed}, name))
            for key, rows in found.buffers.items():
                own = {
                    (byte, bit)
                    for byte, row in enumerate(rows)
                    for run in row
                    for bit in range(run.low, run.high + 1)
                    if (run.plane, run.element) == (plane, element) or run.element == COMPUTED
                }
                moved = {divmod(int(k), 8) for k in np.flatnonzero(after[key] != base[key])}
                assert moved <= own, (key, element)


RUN = re.compile(r"(\w+)\[([^]]*)\](?: in bits? (\d)(?:-(\d))?)?")


def indices_of(text: str, count: int) -> list[tuple[int, ...]]:
    """The indices that a line names: "0, 0..6 by 2" -> (0, 0), (0, 2), …; at most one dimension varies."""
    columns: list[list[int]] = []
    for place in filter(None, text.split(", ")):
        numbers = [int(n) for n in re.findall(r"\d+", place)]
        if ".." in place:
            first, last, *step = numbers
            columns.append(list(range(first, last + 1, *step)))
        else:
            columns.append(numbers if " and " in place else numbers * count)
    assert sum(column.count(column[0]) < len(column) for column in columns) <= 1
    return list(zip(*columns, strict=True)) if columns else [()] * count


@pytest.mark.parametrize("name", few_by_default(PLANES, 6))
def test_lines_say_what_the_owners_are(name: str) -> None:
    found = owners(name)
    for key, rows in found.buffers.items():
        for line in lines_of(found, key):
            own = {k: rows[k] for k in range(line.first, line.last + 1)}
            named = RUN.findall(line.text)
            if not named:
                assert all(run.element < 0 for row in own.values() for run in row)
                continue
            units = len(set(own.values())) if len(next(iter(own.values()))) == 1 else len(own)
            said: dict[tuple[int, int], list[tuple[str, tuple[int, ...]]]] = {}
            for plane, places, low, high in named:
                bits = (int(low or 0), int(high or low or 7))
                said[bits] = [(plane, index) for index in indices_of(places, units)]
            each = len(own) // units
            for k, row in own.items():
                held = {(r.low, r.high): (r.plane, index_of(r, found.shapes)) for r in row if r.plane}
                assert held == {bits: elements[(k - line.first) // each] for bits, elements in said.items()}


def test_lines_of_a_record() -> None:
    texts = [str(line) for line in byte_lines("ggml-q5_1")["buffer"]]
    assert texts[:2] == ["0 to 1: d[0, 0]", "2 to 3: m[0, 0]"]
    assert texts[2].startswith("4 to 7: codes[0, 0..24 by 8] in bit 0, codes[0, 1..25 by 8] in bit 1, ")
    assert texts[3] == "8 to 23: codes[0, 0..15] in bits 0-3, codes[0, 16..31] in bits 4-7"


def test_lines_of_several_records_and_buffers() -> None:
    texts = [str(line) for line in byte_lines("ggml-q4_0", (2, 32))["buffer"]]
    assert texts[2:] == [
        "18 to 19: d[1, 0]",
        "20 to 35: codes[1, 0..15] in bits 0-3, codes[1, 16..31] in bits 4-7",
    ]
    found = byte_lines("awq-checkpoint", (128, 8))
    assert list(found) == ["qweight", "qzeros", "scales"]
    assert str(found["qweight"][0]) == "0 to 1: codes[0, 0 and 4] in bits 0-3, codes[0, 2 and 6] in bits 4-7"
    assert str(found["scales"][0]) == "0 to 15: scales[0, 0..7]"


@pytest.mark.parametrize(
    ("name", "buffer", "text"),
    [
        ("ggml-tq1_0", "buffer", "0 to 51: computed from several values"),
        ("tenstorrent-bfp8_b", "buffer", "0 to 63: computed from several values"),
        (
            "hqq-3bit-32",
            "buffer",
            "3: values[2, 0] in bits 0-2, values[0, 0] in bits 3-5, constant in bits 6-7",
        ),
        ("ort-matmulnbits", "zero_points", "1: zero_points[0, 2] in bits 0-3, constant in bits 4-7"),
        ("marlin-nvfp4-scales", "buffer", "0 to 1: values[0 and 16]"),
    ],
)
def test_bits_without_one_owner(name: str, buffer: str, text: str) -> None:
    assert text in [str(line) for line in byte_lines(name)[buffer]]


@pytest.mark.parametrize("name", few_by_default(PLANES, 6))
def test_shortened_lines_cover_the_buffer(name: str) -> None:
    found = owners(name)
    for key, rows in found.buffers.items():
        whole = lines_of(found, key)
        short = shortened(whole)
        assert len(short) <= MOST_LINES
        for own in (whole, short):
            assert [line.first for line in own] == [0, *(line.last + 1 for line in own[:-1])]
            assert own[-1].last == len(rows) - 1
        assert {line for line in short if line.shown} <= {*whole}


def test_series_of_lines_are_shortened() -> None:
    def lines(kinds: str) -> list[Line]:
        return [Line(k, k, f"{kind}{k}", (kind,)) for k, kind in enumerate(kinds)]

    def texts(kinds: str) -> list[str]:
        return [line.text for line in shortened(lines(kinds))]

    assert texts("aaaa") == ["a0", "a1", "a2", "a3"]
    assert texts("aaaaaab") == ["a0", "a1", "... 3 lines like these", "a5", "b6"]
    assert texts("xabababab") == ["x0", "a1", "b2", "... 4 lines like these", "a7", "b8"]
    assert texts("abcdefghijklmnopqr")[-2:] == ["o14", "... 3 lines more"]


@pytest.mark.parametrize("name", few_by_default(PLANES, 6))
def test_pictures_are_small_and_name_the_planes(name: str) -> None:
    drawn = byte_svg(name)
    assert drawn.isascii()
    assert len(drawn) < 1 << 14
    tree = ElementTree.fromstring(drawn)
    texts = [element.text or "" for element in tree.iter(f"{SPACE}text")]
    found = owners(name)
    for plane, shape in found.shapes.items():
        assert f"{plane} [{','.join(map(str, shape))}]" in texts
    labels = [element.text or "" for element in tree.iter(f"{SPACE}tspan")]
    assert all(re.fullmatch(r"\d+(,\d+)*|\*|\.\.\.", label) for label in labels)
    width, height = int(tree.attrib["width"]), int(tree.attrib["height"])
    places = [(float(e.attrib["x"]), float(e.attrib["y"])) for e in tree.iter(f"{SPACE}tspan")]
    assert all(0 < x < width and 0 < y < height for x, y in places)


def test_the_picture_of_a_record_has_each_element_once() -> None:
    drawn = ElementTree.fromstring(byte_svg("ggml-q4_0"))
    labels = [element.text for element in drawn.iter(f"{SPACE}tspan")]
    assert sorted(labels) == sorted(["0", *map(str, range(32))])


def test_the_command_prints_bytes() -> None:
    result = run("formats", "ggml-q4_0", columns=80)
    assert result.exit_code == 0, result.output
    assert "buffer of [1, 32], 18 bytes\n  0 to 1: d[0, 0]\n  2 to 17: codes[0, 0..15]" in result.stdout
    assert "\n18 to 19" not in result.stdout
    text = " ".join(run("formats", "tenstorrent-bfp4_b").stdout.split())
    assert "also depend on the others of its group." in text
    assert "qweight of [64, 32]" in run("formats", "gptq-checkpoint", "group=32", "--dims", "64,32").stdout


@pytest.mark.parametrize("columns", [40, 60, 100])
def test_lines_of_bytes_fit_the_terminal(columns: int) -> None:
    text = run("formats", "ggml-q3_k", columns=columns).stdout
    assert max(map(len, text.partition("\nbuffer of ")[2].splitlines())) <= columns


def test_bad_dimensions_are_refused() -> None:
    assert "multiple of 32" in refuses("formats", "ggml-q4_0", "--dims", "2,40")
    assert "at most 65536 elements" in refuses("formats", "ggml-q4_0", "--dims", "4096,4096")
    with pytest.raises(tj.LayoutError, match="at most 65536"):
        owners("ggml-q4_0", (4096, 4096))


def test_constant_bits_have_no_plane() -> None:
    runs = [run for row in owners("hqq-3bit-32").buffers["buffer"] for run in row]
    assert {run.plane for run in runs if run.element == CONSTANT} == {""}
