"""`tilejit show` and the pictures themselves."""

from __future__ import annotations

import json
import subprocess
from math import prod
from pathlib import Path

import numpy as np
import pytest
from rich.text import Text

import tilejit
from tests.cli.running import COMMAND, refuses, run
from tests.tools.oracle import environment
from tilejit.layout.shape import Shape
from tilejit.view.text import Style, memory_picture, picture

SHAPES = [
    "f32[3,5]{1,0:T(2,2)}",
    "bf16[4,8]{1,0:T(2,4)(2,1)}",
    "bf16[1000,300]{1,0:T(8,128)(2,1)}",
    "f32[]",
    "f32[]{:T(256)}",
    "f32[7]{0:T(128)}",
    "f32[2,3]{0,1}",
    "f32[2,3]",
    "s4[12,3,4]{2,1,0:T(2,2)E(4)}",
    "f32[2,7,8,11,10]{4,3,2,1,0:T(*,*,2,*,3)}",
    "pred[1,1,1,5]{0,1,2,3:T(4)}",
    "f32[5,0,3]",
    "u8[1000000000,1000000000]",
    "f32[5]{0:L(8)}",
]


def shape(text: str) -> Shape:
    return tilejit.as_layout(text)


def test_figure_1() -> None:
    board = picture(shape("f32[3,5]{1,0:T(2,2)}"), Style())
    assert board.plain == "  0  1| 4  5| 8\n  2  3| 6  7|10\n------+-----+--\n 12 13|16 17|20"
    memory = memory_picture(shape("f32[3,5]{1,0:T(2,2)}"), Style(40))
    assert memory is not None
    assert memory.plain.splitlines() == [
        " 0: 0,0 0,1 1,0 1,1|0,2 0,3 1,2 1,3",
        " 8: 0,4   . 1,4   .|2,0 2,1   .   .",
        "16: 2,2 2,3   .   .|2,4   .   .   .",
    ]


def test_figure_2() -> None:
    board = picture(shape("bf16[4,8]{1,0:T(2,4)(2,1)}"), Style())
    rows = [line.replace("|", " ").split() for line in board.plain.splitlines() if "-" not in line]
    assert rows == [
        ["0", "2", "4", "6", "8", "10", "12", "14"],
        ["1", "3", "5", "7", "9", "11", "13", "15"],
        ["16", "18", "20", "22", "24", "26", "28", "30"],
        ["17", "19", "21", "23", "25", "27", "29", "31"],
    ]


@pytest.mark.parametrize("text", SHAPES)
@pytest.mark.parametrize("width", [1, 12, 40, 80])
@pytest.mark.parametrize("color", [False, True])
def test_a_picture_fits_the_terminal(text: str, width: int, color: bool) -> None:
    style = Style(width, color)
    for drawn in (picture(shape(text), style), memory_picture(shape(text), style)):
        if drawn is None:
            continue
        assert color or drawn.plain.isascii()
        if width >= 40:
            assert max(map(len, drawn.plain.splitlines())) <= width
        assert len(drawn.plain.splitlines()) <= 120


@pytest.mark.parametrize("text", [s for s in SHAPES if prod(shape(s).dimensions) <= 96])
def test_the_memory_picture_shows_every_slot(text: str) -> None:
    spec = shape(text)
    memory = memory_picture(spec, Style(400))
    if memory is None:
        return
    shown = [
        cell for line in memory.plain.splitlines() for cell in line.split(":")[1].replace("|", " ").split()
    ]
    held = [tilejit.multi_index(spec, slot) for slot in range(spec.physical_size)]
    assert shown == ["." if index is None else ",".join(map(str, index)) or "()" for index in held]


def test_tiles_that_touch_differ_in_color() -> None:
    spec = shape("u8[24,40]{1,0:T(2,4)}")
    board = picture(spec, Style(200, True))
    colors = np.array([_styles(line) for line in board.split("\n")]).reshape(12, 2, 10, 4)
    assert (colors == colors[:, :1, :, :1]).all()
    tiles = colors[:, 0, :, 0]
    assert (tiles[1:] != tiles[:-1]).all()
    assert (tiles[:, 1:] != tiles[:, :-1]).all()
    assert (tiles[1:, 1:] != tiles[:-1, :-1]).all()
    assert (tiles[1:, :-1] != tiles[:-1, 1:]).all()


def _styles(line: Text) -> list[str]:
    return [str(span.style) for span in line.spans]


@pytest.mark.parametrize("text", SHAPES)
def test_show_prints_the_facts(text: str) -> None:
    result = run("show", text, columns=40)
    assert result.exit_code == 0, result.output
    assert result.stdout.isascii()
    assert f"{shape(text).padding_fraction:.1%}" in result.stdout


def test_a_terminal_without_a_width_has_80_columns() -> None:
    text = run("show", "f32[3,5]{1,0:T(2,2)}", columns=0).stdout
    assert text == run("show", "f32[3,5]{1,0:T(2,2)}", columns=80).stdout
    assert "elements  15" in text


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("{1,0:T(8,128)}", '--layout "{1,0:T(8,128)}"'),
        ("tpu", '--layout "tpu"'),
        ("<2:1,4:1>", "tilejit show"),
        ("Sw<1,0,1>", "write the array"),
        ("m n -> n m", '--layout "m n -> n m"'),
    ],
)
def test_a_layout_without_an_array_says_how_to_give_one(text: str, says: str) -> None:
    assert says in refuses("show", text)


def test_a_file_that_is_not_a_shape(tmp_path: Path) -> None:
    """A file of another kind is reported as one, not as an unknown format."""
    other = tmp_path / "notes.txt"
    other.write_text("f32[3]")
    for command in ("show", "view"):
        assert "is a file of another kind\n  pass a .npy or .safetensors file" in refuses(command, other)
    assert "unknown format" in refuses("show", "notes.txt")


def test_slices_go_along_dimensions_of_more_than_one_index() -> None:
    drawn = picture(shape("f32[3,1,5,1]"), Style()).plain
    assert drawn.splitlines() == ["[:, 0, :, 0]", "  0  1  2  3  4", "  5  6  7  8  9", " 10 11 12 13 14"]
    assert picture(shape("f32[1,1,5]"), Style()).plain.splitlines()[0] == "[0, :, :]"
    assert "[1, :, :]" in picture(shape("f32[2,3,5]"), Style()).plain
    assert "[:, 0, :]" in picture(shape("f32[2,1,5]"), Style()).plain


def test_show_takes_a_layout() -> None:
    assert run("show", "bf16[33,300]", "--layout", "tpu").stdout.startswith(
        "bf16[33,300]{1,0:T(8,128)(2,1)}\n"
    )


@pytest.mark.parametrize("text", SHAPES)
def test_json_lists_every_index(text: str) -> None:
    spec = shape(text)
    facts = json.loads(run("show", text, "--json").stdout)
    assert facts["physical_size"] == spec.physical_size
    assert facts["size_in_bytes"] == spec.size_in_bytes
    assert facts["padding_fraction"] == spec.padding_fraction
    if prod(spec.dimensions) > 1 << 16:
        assert facts["linear_index"] is None
        return
    listed = np.array(facts["linear_index"], np.int64).reshape(spec.dimensions)
    for index in np.ndindex(*spec.dimensions):
        assert listed[index] == tilejit.linear_index(spec, index)


def test_errors_of_show() -> None:
    assert "write each" in refuses("show", "f32[3,5]{1,1}") or "twice" in refuses("show", "f32[3,5]{1,1}")
    refuses("show", "f32[3,")
    refuses("show", "(f32[3], f32[4])")
    refuses("show", "f32[?]")
    refuses("show", "tpu")
    refuses("show", "")
    refuses("show", "f32[" + "(" * 60_000)
    refuses("show", "f32[3,5]", "--layout", "nope")


@pytest.mark.full
def test_a_reader_that_closes_the_pipe_causes_no_error() -> None:
    command = [*COMMAND, "show", "bf16[1000,300]{1,0:T(8,128)(2,1)}", "--json"]
    with subprocess.Popen(
        command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, env=environment()
    ) as process:
        assert process.stdout is not None
        assert process.stderr is not None
        process.stdout.read(1)
        process.stdout.close()
        assert process.stderr.read() == b""
        assert process.wait(60) in (0, 1)
