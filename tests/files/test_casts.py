"""Conversions of elements in files: NumPy's rules and warnings, and counts of what is lost."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

import ml_dtypes
import numpy as np
import pytest
from safetensors.numpy import load_file, save_file

import tilejit as tj
from tests.cli.running import fails, refuses, run
from tilejit.files.casts import Losses, lost
from tilejit.files.conversion import plan_file_pack, plan_file_unpack
from tilejit.files.file_types import open_file
from tilejit.layout.dtypes import from_numpy, lookup

WEIGHTS = np.array([[0.02, -0.3, 0, 1e-42], [7e4, -1e5, 3.39e38, 12]], np.float32)
IDS = np.arange(8, dtype=np.int64).reshape(2, 4) + 2**33


@pytest.fixture
def model(tmp_path: Path) -> Path:
    path = tmp_path / "model.safetensors"
    save_file({"w": WEIGHTS, "ids": IDS, "mask": np.ones((2, 4), bool), "wave": WEIGHTS + 1j}, path)
    return path


def test_a_cast_to_another_kind_is_refused(model: Path) -> None:
    """An int8 of a weight is 0, and nothing says so unless --casting does."""
    out = model.with_name("out.safetensors")
    text = fails("pack", model, out, "--layout", "tpu", "--dtype", "s8", "--tensor", "w")
    assert "tensor 'w': it is f32, but becomes s8, and --casting same_kind forbids the conversion" in text
    assert "pass --casting unsafe" in text
    assert not out.exists()
    assert "'unsafe'" in error_of(lambda: plan_file_pack(model, "tpu", dtype="s4", tensors=["w"]))
    assert "becomes f32" in fails(
        "pack", model, out, "--layout", "tpu", "--dtype", "f32", "--tensor", "w", "--tensor", "wave"
    )
    assert "same_kind" in fails("pack", model, out, "--layout", "tpu", "--dtype", "pred")
    assert "expected one of no" in refuses(
        "pack", model, out, "--layout", "tpu", "--dtype", "s8", "--casting", "x"
    )
    assert "--dtype" in refuses("pack", model, out, "--layout", "tpu", "--casting", "unsafe")
    assert "f16" in fails("pack", model, out, "--layout", "tpu", "--dtype", "f16", "--casting", "safe")


def error_of(action: Any) -> str:
    with pytest.raises(tj.LayoutError) as caught:
        action()
    return str(caught.value)


@pytest.mark.full
def test_the_summary_counts_what_a_cast_loses(model: Path) -> None:
    out = model.with_name("out.safetensors")
    arguments = "pack", model, out, "--layout", "{1,0:T(2,2)}", "--dtype", "s8", "--casting", "unsafe"
    result = run(*arguments, "--tensor", "w", "--tensor", "ids")
    assert result.exit_code == 0
    # 3.39e38 and 1e5 become whatever the processor makes of them: 0 counts as 0, the rest as overflows
    assert "lost in the cast to s8: 14 of 16 values (" in result.stderr
    assert "  most in ids: 8 of 8\n" in result.stderr
    result = run(*arguments, "--tensor", "wave", "--json")
    (facts,) = json.loads(result.stdout)
    assert facts["cast"]["from"] == "c64"
    lost_by_kind = facts["cast"]["lost"]
    assert lost_by_kind["imaginary"] > 0
    assert sum(lost_by_kind.values()) - lost_by_kind["values"] == 8
    assert run(*arguments, "--tensor", "w", "--quiet").stderr == ""


@pytest.mark.full
def test_half_floats_overflow_and_underflow(model: Path) -> None:
    packed, back = (model.with_name(f"{name}.safetensors") for name in ("packed", "back"))
    result = run("pack", model, packed, "--layout", "{1,0:T(2,2)}", "--dtype", "f16")
    assert "not converted to f16, because they are not floating-point: ids, wave, mask\n" in result.stderr
    assert "  to convert these too, name them with --tensor\n" in result.stderr
    assert "lost in the cast to f16: 4 of 8 values (1 became 0, 3 became inf)\n  in w\n" in result.stderr
    result = run("unpack", packed, back, "--dtype", "f64")
    assert "lost" not in result.stderr
    found = load_file(back)
    assert found["ids"].tobytes() == IDS.tobytes()
    with np.errstate(over="ignore"):
        assert found["w"].tobytes() == WEIGHTS.astype(np.float16).astype(np.float64).tobytes()


def test_a_byte_order_is_refused(model: Path) -> None:
    other = ">f4" if sys.byteorder == "little" else "<f4"
    for command in ("pack", "--layout", "tpu"), ("unpack",):
        said = refuses(command[0], model, model.with_name("out.safetensors"), *command[1:], "--dtype", other)
        assert "pass 'f4': " in said


@pytest.mark.full
def test_unpack_converts(model: Path, tmp_path: Path) -> None:
    packed, back = (model.with_name(f"{name}.safetensors") for name in ("packed", "back"))
    plan_file_pack(model, "{1,0:T(2,2)}").write(packed)
    assert "tensor 'w': it is f32, but becomes s8" in fails(
        "unpack", packed, back, "--dtype", "s8", "--tensor", "w"
    )
    plan = plan_file_unpack(packed, dtype="bf16", tensors=["w", "ids"])
    plan.write(back)
    assert plan.losses == {"w": Losses(8, zero=1)}
    raw = tj.pack(WEIGHTS, "bf16[2,4]", casting="same_kind").buffer.tobytes()
    file = open_file(back)
    assert {e.name: e.dtype for e in file.entries if e.name in ("w", "ids")} == {"w": "BF16", "ids": "BF16"}
    (entry,) = (e for e in file.entries if e.name == "w")
    assert file.data.map(entry.begin, entry.end).tobytes() == raw
    np.save(tmp_path / "x.npy", tj.pack(np.array([-8, 7], ml_dtypes.int4), "s4[2]{0:E(4)}").buffer)
    arguments = "unpack", tmp_path / "x.npy", tmp_path / "y.npy", "--shape", "s4[2]{0:E(4)}"
    assert run(*arguments, "--dtype", "f32").stdout == "f32[2]\n"
    assert np.load(tmp_path / "y.npy").tolist() == [-8.0, 7.0]


@pytest.mark.full
def test_a_rule_with_a_dtype_names_its_tensors(model: Path, tmp_path: Path) -> None:
    rules, out = tmp_path / "rules.toml", tmp_path / "out.safetensors"
    rules.write_text('[[rule]]\ntensors = "ids"\nlayout = "tpu"\ndtype = "f32"\n')
    result = run("pack", model, out, "--rules", rules, "--layout", "tpu", "--dtype", "bf16", "--json")
    shapes = {facts["tensor"]: facts["shape"].partition("[")[0] for facts in json.loads(result.stdout)}
    assert shapes == {"w": "bf16", "ids": "f32", "mask": "pred", "wave": "c64"}
    assert "to convert these too, name them in a rule with a dtype" in result.stderr


@pytest.mark.full
def test_a_plan_warns_once_and_obeys_errstate(model: Path) -> None:
    out = model.with_name("out.safetensors")
    plan = plan_file_pack(model, "{1,0:T(2,2)}", dtype="f16")
    with pytest.warns(RuntimeWarning, match="overflow encountered in cast") as caught:
        plan.write(out)
    assert [w.filename for w in caught] == [__file__]
    assert plan.losses == {"w": Losses(8, inf=3, zero=1)}
    before = out.read_bytes()
    with np.errstate(over="raise"), pytest.raises(FloatingPointError, match="overflow"):
        plan.write(out)
    assert out.read_bytes() == before
    assert {p.name for p in out.parent.iterdir()} == {out.name, model.name}


@pytest.mark.filterwarnings("ignore:Casting complex values")
@pytest.mark.parametrize(
    ("have", "want", "values", "losses"),
    [
        ("f32", "s8", [1e9, np.nan, 0.25, 7.9, -128.9, 128, np.inf, 0], {}),
        ("f32", "f4e2m1fn", [6.9, 7.1, np.inf, 0.1, 0.3, -8, 0, 1], {"overflowed": 3, "zero": 1}),
        ("f32", "f8e4m3fn", [463, 465, np.inf, np.nan, 1e-4, 0, 1, -500], {"nan": 3, "zero": 1}),
        ("f64", "bf16", [3.39e38, 3.4e38, -1e300, np.inf, 1e-50, 0, 1, np.nan], {"inf": 2, "zero": 1}),
        ("f64", "f8e8m0fnu", [-1, 1, 2, 4, 0.5, 2**100, 1e-30, 2**20], {"nan": 1}),
        ("s64", "s8", [127, 128, -128, -129, 0, 1, 2, 256], {"overflowed": 2, "zero": 1}),
        ("s64", "u64", [-1, 0, 2**62, 5, 6, 7, 8, 9], {"overflowed": 1}),
        ("u64", "s64", [2**63, 2**63 - 1, 0, 1, 2, 3, 4, 5], {"overflowed": 1}),
        ("s64", "f16", [65519, 65520, -(2**40), 1, 2, 3, 4, 2049], {"inf": 2}),
        ("s8", "s4", [7, 8, -8, -9, 0, 16, 1, 2], {"overflowed": 2, "zero": 1}),
        ("f32", "pred", [0, 1, 0.5, 2, 0, 1, 1, 1], {"overflowed": 1}),
        ("c128", "c64", [1e300, 1e300j, 1e-300, 1, 1j, 0, 2, 3], {"inf": 2, "zero": 1}),
        ("c128", "c64", [1e300 + 1e300j, complex(1e300, 1e-300), 1, 1j, 0, 2, 3, 4], {"inf": 2}),
        ("c64", "s8", [7, 7j, 0.5 + 1j, 0.5, 300.5 + 1j, 1 + 1j, 1, 2], {}),
        (
            "c64",
            "f16",
            [1e9 + 1j, 1e9, 1j, 1e-30 + 1j, 1e-30, 1, 2, 3],
            {"inf": 2, "imaginary": 1, "zero": 2},
        ),
        ("s4", "f32", [7, -8, 0, 1, 2, 3, 4, 5], {}),
        ("f32", "f64", [1e-45, 3e38, np.nan, np.inf, 0, 1, 2, 3], {}),
    ],
)
def test_every_lost_value_counts_once(
    have: str, want: str, values: list[Any], losses: dict[str, int]
) -> None:
    before = np.array(values, lookup(have).numpy)
    with np.errstate(all="ignore"):
        after = before.astype(np.dtype(lookup(want).numpy))
    found = lost(before, after, from_numpy(after.dtype))
    if want == "s8" and have == "f32":  # what floats out of range become depends on the processor
        assert (found.total, found.nan, found.inf) == (5, 0, 0)
        return
    if want == "s8" and have == "c64":
        assert (found.total, found.imaginary) == (5, 2)
        return
    assert found == Losses(8, **losses)


@pytest.mark.full
def test_a_resumed_run_says_which_losses_it_cannot_count(tmp_path: Path) -> None:
    """A summary of the second run alone would suggest that the first one lost nothing."""
    model, out = tmp_path / "model", tmp_path / "out"
    model.mkdir()
    np.save(model / "a.npy", WEIGHTS)
    np.save(model / "b.npy", np.ones((2, 4), np.float32))
    (out / "b.npy").mkdir(parents=True)
    arguments = "pack", model, out, "--layout", "{1,0:T(2,2)}", "--dtype", "f16", "--resume"
    fails(*arguments)
    (out / "b.npy").rmdir()
    assert "an earlier run converted 8 values; their losses are not counted" in run(*arguments).stderr
