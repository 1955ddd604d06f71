"""`tilejit demo`, `explain`, `cache`, help and errors."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

import tilejit
from tests.cli.running import COMMAND, child, fails, refuses, run
from tests.tools.oracle import environment
from tilejit.cli import demo
from tilejit.cli.errors import explained
from tilejit.support.units import human_bytes

SHAPE = "bf16[100,300]{1,0:T(8,128)(2,1)}"


ROWS = ("TileJIT pack", "TileJIT unpack", "TileJIT copy", "NumPy pack", "memcpy")


@pytest.mark.full
def test_demo_shows_speeds_and_the_figure() -> None:
    result = run("demo", "--mib", 1)
    assert result.exit_code == 0, result.output
    assert result.stdout.isascii()
    for word in ("bf16[64,8192]{1,0:T(8,128)(2,1)}", "threads", "GB/s", "37.5%", "np.copyto"):
        assert word in result.stdout
    shown = re.findall(r"^\|(\S.*?) +\| +(\d+) \|", result.stdout, re.MULTILINE)
    assert shown == [(name, "1") for name in ROWS]
    assert max(map(len, result.stdout.splitlines())) <= 80


@pytest.mark.full
def test_demo_fits_narrow_terminals() -> None:
    shown = run("demo", "--mib", 1, "--threads", 3, columns=36).stdout
    assert max(map(len, shown.splitlines())) <= 36
    assert re.findall(r"^(.*), 3 threads$", shown, re.MULTILINE) == list(ROWS)
    shares = re.findall(r"^  [\d.]+ ms, [\d.]+ GB/s, share (\d+)%$", shown, re.MULTILINE)
    assert len(shares) == len(ROWS)
    assert max(int(shares[ROWS.index(name)]) for name in ("TileJIT copy", "memcpy")) == 100


@pytest.mark.full
@pytest.mark.parametrize("threads", [1, 3, 64])
def test_all_rows_of_the_demo_have_the_same_threads(threads: int) -> None:
    facts = json.loads(run("demo", "--mib", 1, "--threads", threads, "--json").stdout)
    assert [(t["name"], t["threads"]) for t in facts["timings"]] == [(name, threads) for name in ROWS]
    assert all(t["gb_per_second"] > 0 for t in facts["timings"])
    parts = demo.parts_of_rows(64, threads)
    assert len(parts) == threads
    assert [row for part in parts for row in range(64)[part]] == list(range(64))


def test_demo_checks_answers_before_timing(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(demo, "numpy_pack", lambda x, out: out.fill(0))
    assert "packed different bytes" in fails("demo", "--mib", 1)


def test_the_demos_numpy_code_packs_the_layout() -> None:
    x = np.arange(16 * 256, dtype=np.uint16).reshape(16, 256)
    out = np.empty(x.size, np.uint16)
    demo.numpy_pack(x, out)
    assert np.array_equal(out, tilejit.pack(x, "{1,0:T(8,128)(2,1)}").buffer)


@pytest.mark.full
@pytest.mark.parametrize("stage", ["nest", "schedule", "directives", "source", "llvm", "asm", "all"])
def test_explain_prints_a_stage(stage: str) -> None:
    result = run("explain", "C", SHAPE, "--stage", stage)
    assert result.exit_code == 0, result.output
    explanation = tilejit.explain(SHAPE, None)
    texts = {"nest": explanation.nest, "schedule": explanation.schedule, "source": explanation.source}
    for name, text in texts.items():
        assert (text.strip() in result.stdout) == (stage in (name, "all"))
    if stage in ("directives", "all"):
        assert f"{explanation.directives}\n" in result.stdout
    assert ("define " in result.stdout) == (stage in ("llvm", "all"))


def test_explain_reports() -> None:
    assert "def " in run("explain", SHAPE, "c").stdout
    alone = run("explain", "{1,0:T(8,128)(2,1)}", "bf16[100,300]").stdout
    assert alone == run("explain", SHAPE, "bf16[100,300]").stdout
    stages = json.loads(run("explain", "C", SHAPE, "--stage", "nest", "--json").stdout)
    assert list(stages) == ["nest"]


def test_explain_takes_sizes_and_threads() -> None:
    shape = "f32[1000,300]{0,1}"
    strips = 'Tile("row", 32, level="strip"), Tile("column", 64, level="strip")'
    assert strips in run("explain", "C", shape, "--virtual-vector-size", "32,64").stdout
    assert "became 256x256" in run("explain", "C", shape, "--virtual-vector-size", "256").stdout
    one, two = (run("explain", "C", shape, "--threads", n).stdout for n in ("1", "16"))
    assert one != two
    assert "expected one or two sizes" in refuses("explain", "C", shape, "--virtual-vector-size", "1,2,3")
    assert "not a list of numbers" in refuses("explain", "C", shape, "--virtual-vector-size", "x")
    refuses("explain", "C", shape, "--threads", "0")


def test_printed_directives_are_a_schedule() -> None:
    arguments = "explain", "C", "u32[300,200]{0,1}", "--stage"
    given = run(*arguments, "directives").stdout.strip()
    assert given == tilejit.explain("u32[300,200]{0,1}", None).directives
    assert run(*arguments, "directives", "--schedule", given).stdout.strip() == given
    other = given.replace("96", "32")
    assert other in run(*arguments, "schedule", "--schedule", other).stdout


def test_explain_takes_parameters() -> None:
    want = run("explain", "f32[30,20]{1,0:T(8,128)}", "f32[30,20]{1,0:T(4,1)}").stdout
    assert run("explain", "f32[30,20]{1,0:T(8,128)}", "blis-a", "mr=4").stdout == want
    assert "it takes mr" in refuses("explain", "f32[30,20]", "blis-a", "nr=4")
    assert "parameter mr" in refuses("explain", "f32[30,20]", "C", "mr=4")


@pytest.mark.full
@pytest.mark.parametrize(
    ("layout", "parameters"),
    [
        ("tpu", ()),
        ("blis-a", ("mr=4",)),
        ("blis-a, mr=4", ()),
        ("(m mi) n -> m n mi", ("mi=4",)),
        ("{0,1:T(4)}", ()),
        ("(6,8):(1,6)", ()),
        ("f32[6,8]{0,1}", ()),
        ("C", ()),
    ],
    ids=str,
)
def test_all_commands_read_the_same_layouts(layout: str, parameters: tuple[str, ...], tmp_path: Path) -> None:
    values = {key: int(value) for key, value in (text.split("=") for text in parameters)}
    spec = tilejit.as_layout("... -> ..." if layout == "C" else layout, dtype="f32", dims=(6, 8), **values)
    arguments = ("f32[6,8]", "--layout", layout, *parameters)
    assert json.loads(run("show", *arguments, "--json").stdout)["shape"] == str(spec)
    page = run("view", *arguments, "-o", "-").stdout
    assert page == run("view", str(spec), "-o", "-").stdout
    assert run("explain", "f32[6,8]{0,1}", layout, *parameters).stdout == (
        run("explain", "f32[6,8]{0,1}", str(spec)).stdout
    )
    x, y = tmp_path / "x.npy", tmp_path / "y.npy"
    np.save(x, np.arange(48, dtype=np.float32).reshape(6, 8))
    assert run("pack", x, y, "--layout", layout, *parameters).exit_code == 0
    assert np.load(y).tobytes() == tilejit.pack(np.load(x), spec).buffer.tobytes()
    alone = "layout" if layout == "C" else layout
    for command in (("show", "f32[3"), ("explain", "f32[3", alone), ("view", "f32[3", "--layout", layout)):
        assert "  f32[3\n       ^\n" in refuses(*command)


def test_a_cute_layout_needs_no_array() -> None:
    facts = json.loads(run("show", "(4,8):(10,1)", "--json").stdout)
    assert (facts["shape"], facts["dtype"], facts["size_in_bytes"]) == ("(4,8):(10,1)", None, None)
    assert facts["physical_size"] == 38
    assert run("show", "(4,8):(10,1)").stdout == f"{tilejit.show('(4,8):(10,1)')}\n"


def test_summaries_fit_the_list_of_commands() -> None:
    for group in ((), ("cache",)):
        commands = run(*group, "--help", columns=60).stdout.partition("Commands:\n")[2].partition("\n\n")[0]
        assert max(map(len, commands.splitlines())) <= 60
        assert all(line[:4].strip() for line in commands.splitlines())


def test_explain_needs_dimensions() -> None:
    assert "size of the array" in refuses("explain", "C", "c")
    assert "size of the array" in refuses("explain", "C", "tpu")
    refuses("explain", SHAPE, "bf16[3,4]")
    refuses("explain", SHAPE, "C", "--stage", "none")


@pytest.mark.full
def test_cache_is_shown_and_cleared(tmp_path: Path) -> None:
    store = {"TILEJIT_CACHE_DIR": str(tmp_path / "store")}
    empty = json.loads(child("cache", "info", "--json", **store).stdout)
    counts = {"kernels": 0, "bytes": 0, "most_bytes": 512 << 20, "tuned": 0, "stream_bytes": None}
    compiled = {"compiled": 0, "compile_seconds": 0.0}
    assert empty == {"directory": store["TILEJIT_CACHE_DIR"], "reason": None, **counts, **compiled}
    (tmp_path / "store" / ("0" * 64 + ".kernel")).write_bytes(b"abc")
    text = child("cache", "info", **store, TILEJIT_CACHE_BYTES="2048").stdout
    assert "kernels    1\n" in text
    assert "streaming  not measured yet\n" in text
    assert "compiled   0 kernels in 0.0 s\n" in text
    assert "size       3 bytes of at most 2.0 KiB\n" in text
    assert child("cache", "clear", **store).stdout.startswith("removed 1 ")
    assert not list((tmp_path / "store").glob("*.kernel"))


@pytest.mark.full
def test_a_disabled_cache_gives_the_reason() -> None:
    assert "TILEJIT_NO_CACHE is set" in child("cache", "info", TILEJIT_NO_CACHE="1").stdout
    result = child("cache", "clear", TILEJIT_NO_CACHE="1")
    assert result.returncode == 1
    assert "TILEJIT_NO_CACHE is set" in result.stderr


@pytest.mark.parametrize(
    "arguments", [(), ("cache",), ("--help",), ("pack", "-h"), ("cache", "info", "--help")], ids=str
)
def test_help(arguments: tuple[str, ...]) -> None:
    result = run(*arguments)
    assert result.exit_code == 0
    assert "Usage:" in result.stdout


@pytest.mark.parametrize(
    "arguments", [("foo",), ("--foo",), ("show",), ("cache", "foo"), ("demo", "--mib", "x")], ids=str
)
def test_usage_errors(arguments: tuple[str, ...]) -> None:
    refuses(*arguments)


def test_errors_say_what_is_missing_and_where_to_look() -> None:
    assert (
        refuses("pack", "x.npy") == "tilejit: missing argument 'OUT'\n  tilejit pack --help shows the usage\n"
    )


def test_the_usage_line_names_arguments() -> None:
    assert "Usage: tilejit pack [OPTIONS] IN OUT [KEY=VALUE]...\n" in run("pack", "-h").stdout
    assert "Usage: tilejit show [OPTIONS] {SHAPE|FILE} [TENSOR|KEY=VALUE]...\n" in run("show", "-h").stdout


def test_commands_import_nothing_heavy() -> None:
    heavy = "{'numba', 'llvmlite', 'safetensors', 'rich.console'}"
    code = f"import sys, tilejit.cli; print(*({heavy} & set(sys.modules)))"
    result = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, env=environment(), check=True
    )
    assert result.stdout == "\n"


@pytest.mark.full
def test_python_m_tilejit_runs_the_command() -> None:
    results = [
        subprocess.run(
            [*command, "formats", "nope"], capture_output=True, text=True, env=environment(), check=False
        )
        for command in (COMMAND, (sys.executable, "-m", "tilejit"))
    ]
    (want, found) = ((r.returncode, r.stdout, r.stderr) for r in results)
    assert found == want
    assert want[0] == 2


def test_texts_of_system_errors() -> None:
    assert explained(FileNotFoundError(2, os.strerror(2), "x.npy")) == "No such file or directory: 'x.npy'"
    assert explained(MemoryError()) == "out of memory"
    missing = FileNotFoundError(2, os.strerror(2), "none/x.npy")
    assert (
        explained(missing) == "No such file or directory: 'none/x.npy'\n  the directory 'none' does not exist"
    )


def test_readable_sizes() -> None:
    sizes = {
        0: "0 bytes",
        1: "1 byte",
        1023: "1023 bytes",
        1024: "1.0 KiB",
        64 << 20: "64.0 MiB",
        1 << 60: "1024.0 PiB",
    }
    assert {size: human_bytes(size) for size in sizes} == sizes
