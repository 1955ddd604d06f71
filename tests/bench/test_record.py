"""`python -m bench record`: the corpus, the schedules of a case, and a file that later calls continue."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from functools import partial
from math import prod
from pathlib import Path
from time import sleep
from typing import Any

import numpy as np
import pytest
import typer

from bench import corpus, corpus_kernels, record, saved
from bench.arrays import BF16, Array
from bench.corpus import Recorded, cases, is_held_out, tight
from bench.formats import F32
from bench.kernel_space import KernelSpace
from bench.peers import Call
from bench.record import Method, measured, packed_texts, shares_of
from bench.space import CopySpace, Program, program_text
from bench.swizzles import SWIZZLED
from bench.timing import WARM_CALLS, WARM_SECONDS, interleaved
from codegen import Element, Machine, known_sizes
from tilejit.layout.as_layout import as_layout
from tilejit.programs.copy_programs import copy_program
from tilejit.programs.moves import move_for
from tilejit.programs.pack_programs import pack_program, unpack_program
from tilejit.programs.relayout_programs import relayout_program
from tilejit.programs.tuning import DEFAULT

KINDS = {
    *("permutations", "random copies", "packs", "unpacks", "relayouts", "swizzles", "conversions"),
    *("transposes", "gathers", "kernels"),
}


def test_the_corpus_is_the_same_in_every_run_and_mixed_from_the_start() -> None:
    names = [case.name for case in cases()]
    assert names == [case.name for case in cases()]
    assert len(names) == len({*names}) >= 600
    assert {case.kind for case in cases()} == KINDS == {case.kind for case in cases()[:100]}


def test_a_third_is_held_out_whatever_else_the_corpus_has() -> None:
    for kind in KINDS:
        held_out = [case.held_out for case in cases() if case.kind == kind]
        assert 0.1 < sum(held_out) / len(held_out) < 0.6, kind
    assert 0.3 < sum(case.held_out for case in cases()) / len(cases()) < 0.37
    assert [k for k in range(14) if is_held_out(f"case {k}")] == [5, 12, 13]


def test_random_copies_have_the_documented_ranks_and_sizes() -> None:
    found = [case.name for case in cases() if case.kind == "random copies"]
    assert len(found) == 250
    widths = set()
    for name in found:
        width, dims = re.match(r"random u(\d+) \[([\d,]+)\]", name).groups()  # type: ignore[union-attr]
        extents = [int(n) for n in dims.split(",")]
        widths.add(int(width))
        assert 2 <= len(extents) <= 5
        assert 1 << 16 <= prod(extents) * int(width) // 8 <= 128 << 20
    assert widths == {8, 16, 32, 64, 128}
    assert any("-" in name for name in found), "some axes are reversed"


@pytest.mark.full
@pytest.mark.parametrize("case", cases(), ids=lambda case: case.name)
def test_every_case_has_a_choice_and_facts(case: Recorded) -> None:
    space = case.space()
    assert space.chosen()
    assert json.dumps(space.facts)
    assert space.moved_bytes >= 1 << 15


@pytest.mark.parametrize("kind", sorted(KINDS))
def test_the_choice_is_the_first_of_several_schedules(kind: str) -> None:
    space: Any = next(case for case in cases() if case.kind == kind).space()
    texts = [*(space.kernels() if isinstance(space, KernelSpace) else space.programs())]
    assert texts[0] == space.chosen()
    assert len(texts) > 1 or kind == "conversions"


def copied(dims: tuple[int, ...], order: tuple[int, ...], dtype: str, to: str) -> tuple[CopySpace, Program]:
    """A permutation as the corpus and as `copyto` plan it."""
    source, target = np.dtype(dtype), np.dtype(to)
    steps = tuple(tight(dims, source.itemsize)[d] for d in order)
    shape = tuple(dims[d] for d in order)
    written, move = tight(shape, target.itemsize), move_for(source, target)
    assert move
    space = corpus.arrays(shape, steps, written, dtype, to)
    return space, copy_program(shape, written, steps, move, 1, DEFAULT)


def packed(dims: tuple[int, ...], dtype: Any, layout: str) -> tuple[CopySpace, Program]:
    spec, space = as_layout(layout, dtype=dtype, dims=dims), corpus.packed(layout, dtype, dims)
    strides = tight(dims, np.dtype(dtype).itemsize)
    return space, pack_program(spec, strides, space.source, space.padding, False, 1, DEFAULT)


def unpacked(dims: tuple[int, ...], dtype: Any, layout: str) -> tuple[CopySpace, Program]:
    spec, space = as_layout(layout, dtype=dtype, dims=dims), corpus.unpacked(layout, dtype, dims)
    strides = tight(dims, np.dtype(dtype).itemsize)
    return space, unpack_program(spec, strides, space.target, False, 1, DEFAULT)


def relaid(dims: tuple[int, ...], dtype: Any, source: str, target: str) -> tuple[CopySpace, Program]:
    specs = [as_layout(layout, dtype=dtype, dims=dims) for layout in (source, target)]
    space = corpus.relaid(dtype, dims, source, target)
    return space, relayout_program(*specs, space.padding, 1, DEFAULT)


SWIZZLED_DIMS = 1024, 1024
AS_USERS_CALL_THEM: dict[str, Callable[[], tuple[CopySpace, Program]]] = {
    "transpose": partial(copied, (700, 500), (1, 0), "u4", "u4"),
    "staged digits": partial(copied, (50, 62, 70, 80), (1, 3, 2, 0), "f4", "f4"),
    "conversion": partial(copied, (2048, 1536), (1, 0), "f8", "f4"),
    "pack": partial(packed, (1000, 1300), F32, "{1,0:T(8,128)}"),
    "pack of swizzled": partial(packed, SWIZZLED_DIMS, np.float32, SWIZZLED[2].layout(SWIZZLED_DIMS)),
    "unpack": partial(unpacked, (1000, 1300), BF16, "{1,0:T(8,128)(2,1)}"),
    "relayout": partial(relaid, (2048, 1500), F32, "{1,0:T(8,128)}", "{1,0:T(32,32)(16,16)}"),
}


@pytest.mark.parametrize("name", AS_USERS_CALL_THEM)
def test_the_choice_is_what_users_get(name: str) -> None:
    space, program = AS_USERS_CALL_THEM[name]()
    assert space.chosen() == program_text(program)


@pytest.mark.parametrize("name", ["kernel triad f32 [4096,4096]", "kernel transposed f32 [4096,4096]"])
def test_the_text_of_a_kernel_gives_the_kernel_that_large_arrays_have(name: str) -> None:
    """One of them bypasses the cache, the other has tiles."""
    space = next(make for _, found, make in corpus_kernels.cases() if found == name)()
    given, text = space.arguments(False), space.chosen()
    assert ("Stream" in text) != ("Tile" in text)
    kernels = space.kernels()
    program = kernels[text].specialize(*given).program
    arrays = {x.name: array for x, array in zip(program.function.arguments, given, strict=True)}
    sized = program.sized_kernel(arrays, known_sizes({k: x.shape for k, x in arrays.items()}, {}))
    written = space._kernel(schedule=text).specialize(*given).program.kernel
    assert written.emitted.function == sized.emitted.function


TRANSPOSE = Recorded("transposes", "a transpose", partial(lambda: copied((300, 200), (1, 0), "u2", "u2")[0]))


def test_the_line_of_a_case_has_every_schedule() -> None:
    """Without time, only the first one is measured."""
    line = measured(TRANSPOSE, Method(1, 0.0))
    assert (line["case"], line["kind"], line["bytes"]) == ("a transpose", "transposes", 240_000)
    assert line["facts"]["digits"] == [[200, 2, 600], [300, 400, 2]]
    assert line["memcpy_us"] > 0
    assert line["spread"] >= 1
    shares = shares_of(line)
    assert [*shares] == [*copied((300, 200), (1, 0), "u2", "u2")[0].programs()]
    first, *others = shares.values()
    assert first
    assert others == [None] * len(others) != []


def test_packed_texts_are_unpacked() -> None:
    shares = {
        'outer i | row = j | dst = u8 src: Tile("row", 64), Vectorize(row=64, column=2)': 0.5,
        'outer i | row = j | dst = u8 src: Vectorize(row=64), Tail("x", "shift", sizes=("rest",))': 1.25,
        "3 of 2x2, each copied into 4 bytes in cache and from there || outer none | element by element": None,
        "": 2.0,
    }
    line = packed_texts(shares)
    assert shares_of(line) == shares
    assert line["parts"].count("outer i |") == 1


class Bytes:
    """Schedules that write a number into every byte."""

    moved_bytes = 16

    def __init__(self, **numbers: int) -> None:
        self.numbers, self.facts = numbers, dict[str, Any]()

    def chosen(self) -> str:
        return next(iter(self.numbers))

    def calls(self) -> tuple[Array, dict[str, Callable[[], Call]]]:
        out = np.zeros(8, np.uint8)
        return out, {text: partial(partial, out.fill, n) for text, n in self.numbers.items()}


def test_other_bytes_and_errors_are_problems() -> None:
    line = measured(Recorded("made up", "different", lambda: Bytes(a=1, b=2)), Method(1, 1.0))
    assert line["problem"] == "WrongAnswer: this schedule writes other bytes than the first one: b"
    assert "schedules" not in line
    failing = Recorded("made up", "failing", lambda: Bytes(a=1, b=300))
    assert "problem" in measured(failing, Method(1, 1.0))


@pytest.fixture
def made(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The cases whose schedules were made, of a corpus of three."""
    found: list[str] = []

    def space(name: str) -> Bytes:
        found.append(name)
        return Bytes(a=1, b=1)

    monkeypatch.setattr(record, "cases", lambda: [Recorded("k", x, partial(space, x)) for x in "abc"])
    return found


def test_a_second_call_continues(made: list[str], tmp_path: Path) -> None:
    file = tmp_path / "records.jsonl"
    record.main(file, rounds=1, only="b")
    assert made == ["b"]
    with file.open("a") as incomplete:
        incomplete.write('{"case": "a", "kin')
    record.main(file, rounds=1, seconds=0.0)
    assert made == ["b"], "no time for another case"
    record.main(file, rounds=1)
    assert made == ["b", "a", "c"]
    head, lines = record.read(file)
    assert {"machine", "level", "date", "commit", "schedules_for", "versions"} <= head.keys()
    assert head["schedules_for"]["stream_bytes"] > 0
    assert [line["case"] for line in lines] == ["b", "a", "c"]
    assert [*shares_of(lines[0])] == ["a", "b"]


def timed(name: str, size: int, memcpy_us: float, spread: float = 1.0) -> dict[str, Any]:
    return {"case": name, "bytes": size, "memcpy_us": memcpy_us, "spread": spread}


def test_other_work_makes_memcpy_vary_or_slower_than_in_similar_cases() -> None:
    lines = [timed(f"case {k}", 1000 + k, 10.0) for k in range(20)]
    lines += [timed("slow", 1010, 13.0), timed("varies", 5000, 50.0, spread=1.3)]
    lines += [{"case": "failed", "problem": "WrongAnswer"}]
    assert record.disturbed(lines) == {"slow", "varies"}


def test_disturbed_cases_are_measured_again(
    made: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = tmp_path / "records.jsonl"
    record.main(file, rounds=1)
    monkeypatch.setattr(record, "disturbed", lambda lines: {"b"})
    record.main(file, rounds=1)
    assert made == ["a", "b", "c"]
    record.main(file, rounds=1, again=True)
    assert made == ["a", "b", "c", "b"]
    assert [line["case"] for line in record.read(file)[1]] == ["a", "c", "b"]


def test_records_of_another_machine_are_refused(made: list[str], tmp_path: Path) -> None:
    file = tmp_path / "records.jsonl"
    record.main(file, seconds=0.0)
    text = file.read_text()
    file.write_text(text.replace('"level":"', '"level":"not '))
    with pytest.raises(typer.BadParameter, match="another machine or level"):
        record.main(file)


def test_a_failure_sets_the_exit_code(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    wrong = Recorded("k", "wrong", lambda: Bytes(a=1, b=2))
    monkeypatch.setattr(record, "cases", lambda: [wrong])
    with pytest.raises(typer.Exit) as raised:
        record.main(tmp_path / "records.jsonl", rounds=1)
    assert raised.value.exit_code == 1


@pytest.mark.parametrize("same_data", [False, True])
def test_slow_calls_meet_what_their_own_calls_leave_in_the_caches(same_data: bool) -> None:
    calls = {"fast": 0, "slow": 0}

    def run(name: str, seconds: float) -> None:
        calls[name] += 1
        sleep(seconds)

    slow, count = 2 * WARM_SECONDS, dict[str, int]()
    makers = {"fast": partial(run, "fast", 0.0), "slow": partial(run, "slow", slow)}
    for rounds in (1, 2):
        calls["slow"] = 0
        interleaved(makers, rounds, same_data=same_data)
        count[str(rounds)] = calls["slow"]
    assert count["2"] - count["1"] == 1 + (WARM_CALLS if same_data else 1)


def test_sources_of_conversions_hold_ordinary_numbers() -> None:
    space, _ = copied((512, 256), (1, 0), "f4", "f2")
    assert space.source == Element("f32", 32)
    out, _ = space.calls()
    assert out.size == 2 * 512 * 256


@pytest.mark.parametrize("path", sorted(saved.FOLDER.glob("record-*.jsonl")), ids=lambda path: path.name)
def test_saved_records_have_every_case(path: Path) -> None:
    head, lines = record.read(path)
    assert Machine(**head["schedules_for"]).level == head["level"]
    assert {line["case"] for line in lines} == {case.name for case in cases()}
    assert not any("problem" in line for line in lines)
    assert path.stat().st_size < 1 << 20
