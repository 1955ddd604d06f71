"""`tilejit formats`: the list, and the complete description of one format."""

from __future__ import annotations

import json
from typing import Any

import numpy as np
import pytest

import tilejit as tj
from tests.cli.running import refuses, run
from tests.tools.extent import few_by_default
from tests.tools.named import LAYOUTS
from tests.tools.oracle import slots_of
from tilejit.cli.output import table


def families() -> dict[str, list[dict[str, Any]]]:
    return {row["name"]: row["formats"] for row in json.loads(run("formats", "--json").stdout)}


@pytest.mark.parametrize("columns", [20, 30, 40, 47, 48, 80, 200])
@pytest.mark.parametrize("family", [(), ("cpu",)])
def test_lists_fit_the_terminal(columns: int, family: tuple[str, ...]) -> None:
    result = run("formats", *family, columns=columns)
    assert result.exit_code == 0, result.output
    assert result.stdout.isascii()
    assert max(map(len, result.stdout.splitlines())) <= columns


def test_all_families_are_listed() -> None:
    text = run("formats", columns=200).stdout
    for name, rows in families().items():
        assert f"\n{name} " in f"\n{text}"
        assert rows[0]["name"] in text
        assert name not in tj.formats()


@pytest.mark.parametrize("family", few_by_default([*families()], 8))
def test_a_family_lists_its_formats(family: str) -> None:
    text = " ".join(run("formats", family, columns=80).stdout.split())
    assert tj.formats(family)
    for name in tj.formats(family):
        assert f"{name} {tj.describe_format(name).description}" in text


def test_a_narrow_table_puts_descriptions_below() -> None:
    assert table([("a", "one two"), ("bcd", "three")], 80) == ["a    one two", "bcd  three"]
    assert table([("a", "one two"), ("bcd", "three")], 9) == ["a", "  one two", "bcd", "  three"]


def test_the_list_as_json() -> None:
    rows = [row for own in families().values() for row in own]
    assert [row["name"] for row in rows] == list(tj.formats())
    assert families()["cpu"] == json.loads(run("formats", "cpu", "--json").stdout)
    assert {
        "name": "blis-a",
        "description": tj.describe_format("blis-a").description,
        "parameters": ["mr"],
    } in rows


@pytest.mark.full
@pytest.mark.parametrize("name", [*LAYOUTS, "aBc8b", "gOIhw8o4i", "nhwc"])
def test_the_description_of_one_format(name: str) -> None:
    result = run("formats", name, columns=60)
    assert result.exit_code == 0, result.output
    assert result.stdout.isascii()
    assert result.stdout.startswith(f"{name}: ")
    facts = json.loads(run("formats", name, "--json").stdout)
    described = tj.describe_format(name)
    assert result.stdout.startswith(f"{described}\n\nimport numpy as np\n")
    assert facts["formula"] == described.formula
    assert (facts["ranks"], facts["source"]) == (described.ranks, described.source)
    assert (tuple(facts["dtypes"]), tuple(facts["takes"])) == (described.dtypes, described.parameters)
    assert facts["shape"] in result.stdout
    assert facts["recipe"].strip() in result.stdout
    spec = tj.as_layout(facts["shape"].partition(", filled with")[0])
    source: dict[str, Any] = {}
    exec(facts["recipe"], source)
    if not spec.packed:
        x = np.arange(1, 1 + np.prod(spec.dimensions)).reshape(spec.dimensions)
        slots = slots_of(spec)
        assert np.array_equal(source["pack"](x), np.where(slots < 0, int(described.padding or 0), slots + 1))


def test_a_picture_shows_blocks() -> None:
    """Height and width are one, so the board shows the other dimensions."""
    for name in ("OIhw4i16o4i", "OIhw16i16o"):
        text = run("formats", name, columns=80).stdout
        assert "[:, :, 0, 0]" in text
        assert "more slices" not in text
    assert " 0   1   2   3  64  65  66  67" in run("formats", "OIhw4i16o4i", columns=80).stdout
    assert "more slices" not in run("formats", "nChw16c", columns=80).stdout


def test_a_format_without_a_cute_layout_says_so() -> None:
    tj.register_format("halves", lambda dtype, dims: "{1,0:T(3,5)(2,2)}")
    for name in ("tpu", "blis-a", "halves"):
        arguments = ("formats", name, "--dims", "6,200")
        cute = json.loads(run(*arguments, "--json").stdout)["cute"]
        (line,) = [x for x in run(*arguments).stdout.splitlines() if x.startswith("CuTe")]
        if name == "halves":
            assert cute is None
            assert line.startswith("CuTe      none: f32[6,200]{1,0:T(3,5)(2,2)}")
        else:
            dtype = json.loads(run(*arguments, "--json").stdout)["dtype"]
            assert cute == str(tj.cute.from_xla(tj.as_layout(name, dims=(6, 200), dtype=dtype)))
            assert line == f"CuTe      {cute}"


@pytest.mark.full
def test_dimensions_and_parameters_are_options() -> None:
    text = run("formats", "blis-a", "mr=4", "--dims", "10, 6", "--dtype", "f64").stdout
    assert "f64[10,6]{1,0:T(4,1)}" in text
    assert "x = x.reshape(3, 4, 6)" in text
    assert "u8[0,6]" in run("formats", "morton", "--dims", "0,6").stdout
    assert run("formats", "blis-a, mr=4").stdout == run("formats", "blis-a", "mr=4").stdout
    for value in ("16,32", "(16, 32)"):
        assert "{1,0:T(16,32)(16,16)}" in run("formats", "tenstorrent", f"tile={value}").stdout
    for given in (
        ("gptq-checkpoint", "group=-1"),
        ("bitsandbytes-nf4", "nested=true"),
        ("gptq-qzeros", "bits=8"),
    ):
        assert run("formats", *given).exit_code == 0
        assert run("formats", ", ".join(given)).stdout == run("formats", *given).stdout
    pattern = run("formats", "(m mi) n -> m n mi", "mi=4", "--dims", "10,6")
    assert pattern.stdout.startswith("(m mi) n -> m n mi\n")
    assert "f32[10,6]{1,0:T(4,1)}" in pattern.stdout


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (("nope",), "unknown format"),
        (("nChw16",), "no letter"),
        (("blis-a", "nr=4"), "it takes mr"),
        (("blis-a", "mr=x"), "not a parameter"),
        (("blis-a", "mr=-4"), "mr is -4"),
        (("blis-a", "mr"), "not a parameter"),
        (("blis-a", "=4"), "not a parameter"),
        (("blis-a", "mr=4,4"), "integer"),
        (("gptq-checkpoint, bits=3", "bits=8"), "bits is given both in the text and as a keyword"),
        (("ggml-q4_0", "--dtype", "f32"), "planes, which have dtypes of their own"),
        (("blis-a", "mr=" + "9" * 50), "not a parameter"),
        (("blis-a", "--dims", "3"), "2 or more dimensions"),
        (("blis-a", "--dims", "3,x"), "expected sizes separated by commas, got '3,"),
        (("blis-a", "--dims", "3,-1"), "expected sizes separated by commas, got '3,"),
        (("blis-a", "--dtype", "int"), "dtype"),
        (("vnni", "--dtype", "f32"), "no rule"),
        (("m n -> n m",), "pass them, e.g. --dims"),
        (("(m mi) n -> m n mi", "mi=2"), "pass them, e.g. --dims"),
        (("Sw<1,0,1> o 0 o (2,4):(4,1)",), "is a layout, not the name"),
        (("{1,0:T(8,128)}",), "is a layout, not the name"),
        (("(threads b) n -> b threads n", "threads=2"), "the name threads"),
        (("(threads b) n -> b threads n", "--dims", "4,5"), "the name threads"),
        (("m n -> n", "--dims", "2,3"), "missing"),
        (("m n -> n m", "k=3", "--dims", "2,3"), "no axis"),
    ],
    ids=str,
)
def test_errors(arguments: tuple[str, ...], says: str) -> None:
    assert says in refuses("formats", *arguments)


def test_pack_takes_a_pattern(tmp_path: Any) -> None:
    x = np.arange(30, dtype=np.float32).reshape(5, 6)
    np.save(tmp_path / "x.npy", x)
    layout = "(m mi) n -> m n mi, mi=4"
    result = run("pack", tmp_path / "x.npy", tmp_path / "t.npy", "--layout", layout)
    assert result.exit_code == 0, result.output
    want = np.pad(x, ((0, 3), (0, 0))).reshape(2, 4, 6).swapaxes(1, 2).ravel()
    assert np.array_equal(np.load(tmp_path / "t.npy"), want)
    assert "{1,0:T(4,1)}" in run("show", "f32[5,6]", "--layout", "blis-a, mr=4").stdout
