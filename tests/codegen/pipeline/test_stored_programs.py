"""Programs from launch plans run like compiled ones, and an invalid plan counts as missing."""

from __future__ import annotations

import json
import pickle
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from codegen.backend.store import PLANS_PER_PROCESS, KernelStore
from codegen.ir.strided_box import Element
from codegen.maps.access import AccessMap, Root, strided_map
from codegen.maps.digit_trees import Opaque
from codegen.pipeline import stored_programs
from codegen.pipeline.copies import compile_copy
from codegen.pipeline.copy_options import CopyOptions
from codegen.pipeline.copy_request import CopyRequest
from codegen.pipeline.launch_plans import plan_of, program_of
from codegen.pipeline.program import CopyProgram
from codegen.pipeline.stored_programs import find_copy, request_digest
from codegen.runtime.launch import Launch
from codegen.runtime.stored_step import StoredStep
from codegen.schedule.machine import Machine, described, machine
from codegen.schedule.thresholds import Thresholds
from tests.codegen.simd.case import Case
from tests.codegen.simd.cases import GROUPS, cases
from tests.tools.extent import spread
from tests.tools.guard import Guarded

BYTE, FLOAT = Element("u8", 8), Element("f32", 32)
SRC = strided_map((60, 40), (160, 4), (0, 9600), element_bits=32)
DST = strided_map((60, 40), (4, 240), (0, 9600), element_bits=32)
REQUEST = CopyRequest(SRC, DST, FLOAT, FLOAT)


def planned_cases(group: str) -> Iterator[tuple[Case, dict[str, Any]]]:
    """The cases whose programs have launch plans, with the plans as the store returns them."""
    for case in cases(group):
        plan = plan_of(case.program)
        if plan is not None:
            yield case, json.loads(json.dumps(plan))


def read(plan: dict[str, Any], program: CopyProgram) -> CopyProgram:
    return program_of(plan, program.src, program.dst, partial(replace, program))


def values(launch: Launch) -> dict[str, object]:
    """The arguments of a launch, with the contents of tables."""
    addresses = dict(zip(launch.runs.kernel.arguments, launch.sizes.tolist(), strict=True))
    tables = {name: table.ravel().tolist() for name, table in launch.runs.tables.items()}
    assert all(addresses[name] == table.ctypes.data for name, table in launch.runs.tables.items())
    return {**addresses, **tables}


def every_launch(program: CopyProgram) -> list[Launch]:
    launches = [*program.first, *program.launches]
    return [x for launch in launches for x in (launch, launch.misaligned) if x]


@pytest.mark.parametrize("group", GROUPS)
def test_a_planned_program_makes_the_same_calls(group: str) -> None:
    """Every number that a call depends on is the same, and so is every stage, which is compiled again."""
    seen = 0
    for case, plan in planned_cases(group):
        program = read(plan, case.program)
        assert (program.bounds, program.reads, program.kernels) == (
            *(case.program.bounds, case.program.reads, case.program.kernels),
        ), case
        pairs = zip(every_launch(program), every_launch(case.program), strict=True)
        for launch, compiled in pairs:
            assert isinstance(launch.runs, StoredStep)
            assert values(launch) == values(compiled), case
            for name in ("calls", "src_offset", "dst_offset", "trips", "bounds", "fill", "serial", "units"):
                assert getattr(launch, name) == getattr(compiled, name), (case, name)
            for name in ("scratch_bytes", "is_one_call", "_step_bytes", "step"):
                assert getattr(launch, name) == getattr(compiled, name), (case, name)
            assert launch.runs.kernel.source == compiled.runs.kernel.source
            seen += 1
    assert seen > 100


@pytest.mark.full
@pytest.mark.parametrize("group", GROUPS)
def test_a_planned_program_stays_in_its_memory(group: str) -> None:
    some = spread([*planned_cases(group)], 20)
    size = max(max(len(case.src), len(case.before)) for case, _ in some) + 64
    src, dst = Guarded(size), Guarded(size)
    for case, plan in some:
        replace(case, program=read(plan, case.program)).run(src, dst)


def test_programs_with_tables_of_entries_have_no_plan() -> None:
    programs = [case.program for group in GROUPS for case in cases(group)]
    tabled = [program for program in programs if any(x.tables for x in program.launches)]
    assert tabled
    assert not any(plan_of(program) for program in tabled)


def test_a_planned_program_can_be_pickled() -> None:
    program = compile_copy(REQUEST)
    again = program_of(plan_of(program) or {}, SRC, DST, partial(compile_copy, REQUEST))
    (launch,) = pickle.loads(pickle.dumps(again)).launches
    assert launch.step == program.launches[0].step


def test_a_program_that_differs_from_its_plan_is_an_error() -> None:
    """The digest covers the code that compiles it, so only a bug causes this."""
    program = compile_copy(REQUEST)
    plan = json.loads(json.dumps(plan_of(program)))
    (launch,) = plan["launches"]
    shorter = program_of(plan, SRC, DST, lambda: replace(program, launches=()))
    with pytest.raises(AssertionError, match="a program of 0 launches has a plan with launch 1"):
        _ = shorter.steps
    launch["misaligned"] = {**launch, "misaligned": None}
    (found,) = program_of(plan, SRC, DST, lambda: program).launches
    assert found.misaligned
    with pytest.raises(AssertionError, match="without a misaligned alternative"):
        _ = found.misaligned.step
    launch["misaligned"], launch["kernel"][:2] = None, ["kernel_of_no_program", "0" * 64]
    (found,) = program_of(plan, SRC, DST, lambda: program).launches
    with pytest.raises(AssertionError, match="is not the kernel of its launch plan"):
        _ = found.runs.kernel.function


def edits() -> Iterator[tuple[str, Callable[[dict[str, Any]], None]]]:
    """Plans that no version of the module writes, by name."""

    def put(key: str, value: object, *, launch: bool = True) -> Callable[[dict[str, Any]], None]:
        return lambda plan: (plan["launches"][0] if launch else plan).update({key: value})

    yield "no launches", lambda plan: plan.pop("launches")
    yield "launches not a list", put("launches", {}, launch=False)
    yield "reads a number", put("reads", 1, launch=False)
    yield "a launch that is not one", lambda plan: plan["launches"].append(None)
    for key in ("kernel", "numbers", "tables", "step", "launch", "fill", "serial", "misaligned"):
        yield f"no {key}", lambda plan, key=key: plan["launches"][0].pop(key)  # type: ignore[misc]
        yield f"{key} a string", put(key, "text")
    yield "too few numbers", put("launch", [0, 0])
    yield "a float", put("launch", [0.0, 0, 1])
    yield "a boolean", put("launch", [False, 0, 1])
    yield "a number beyond 64 bits", put("launch", [1 << 64, 0, 1])
    yield "trips below zero", put("launch", [0, 0, -1])
    yield "scratch below zero", put("step", [-1, 8, 0])
    yield "scratch of a terabyte", put("step", [1 << 40, 8, 0])
    yield "units of three bits", put("step", [0, 3, 0])
    yield "padding that no argument takes", put("fill", [0, 0])
    yield "an entry beyond 64 bits", put("tables", {"rows": [1 << 63]})
    yield "a table that no argument takes", put("tables", {"more": [0]})
    yield "an argument too many", of_kernel(lambda kernel: [*kernel, "more"])
    yield "an argument twice", of_kernel(lambda kernel: [*kernel, kernel[2]])
    yield "an argument that is missing", of_kernel(lambda kernel: kernel[:-1])
    yield "a name that is not one", of_kernel(lambda kernel: ["../kernel", *kernel[1:]])
    yield "a digest that is not one", of_kernel(lambda kernel: ["kernel", "../kernel", *kernel[2:]])
    yield "another kernel of that name", of_kernel(lambda kernel: [kernel[0], "0" * 64, *kernel[2:]])
    yield "an alternative of an alternative", of_launch(lambda x: {**x, "misaligned": {**x, "misaligned": x}})


def of_launch(change: Callable[[dict[str, Any]], dict[str, Any]]) -> Callable[[dict[str, Any]], None]:
    return lambda plan: plan["launches"].__setitem__(0, change(dict(plan["launches"][0])))


def of_kernel(change: Callable[[list[str]], list[str]]) -> Callable[[dict[str, Any]], None]:
    return of_launch(lambda launch: {**launch, "kernel": change(launch["kernel"])})


@pytest.fixture
def store(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> KernelStore:
    """A separate store."""
    tmp_path.chmod(0o700)
    found = KernelStore(tmp_path)
    monkeypatch.setattr(stored_programs, "default_store", lambda: found)
    return found


def plans(store: KernelStore) -> list[Path]:
    """The launch plans, without notes of other facts."""
    return [path for path in store.notes() if path.name.startswith("plan-")]


def found() -> CopyProgram:
    return find_copy(REQUEST)


def is_stored(program: CopyProgram) -> bool:
    return all(isinstance(launch.runs, StoredStep) for launch in every_launch(program))


def test_the_second_process_finds_the_program(store: KernelStore) -> None:
    assert not is_stored(found())
    assert len(plans(store)) == 1
    program = found()
    assert is_stored(program)
    x, out = np.arange(2400, dtype=np.float32).reshape(60, 40), np.zeros((40, 60), np.float32)
    program.run(x.ctypes.data, out.ctypes.data)
    assert (out == x.T).all()


@pytest.mark.parametrize("change", [pytest.param(x, id=name) for name, x in edits()])
def test_an_invalid_plan_is_replaced(store: KernelStore, change: Callable[[dict[str, Any]], None]) -> None:
    found()
    (path,) = plans(store)
    plan = store.get_note(path.stem)
    assert plan is not None
    found()  # the process knows the kernel now
    change(plan)
    store.put_note(path.stem, plan)
    assert not is_stored(found())
    assert is_stored(found())


def test_a_damaged_plan_is_replaced(store: KernelStore) -> None:
    found()
    (path,) = plans(store)
    data = path.read_bytes()
    for k in range(0, len(data), 37):
        path.write_bytes(data[:k] + bytes([data[k] ^ 1]) + data[k + 1 :])
        assert not is_stored(found())
        assert path.read_bytes() == data
    path.chmod(0o666)
    assert not is_stored(found())


def test_a_plan_under_another_name_is_ignored(store: KernelStore) -> None:
    found()
    (path,) = plans(store)
    find_copy(replace(REQUEST, options=CopyOptions(threads=2)))
    (other,) = set(plans(store)) - {path}
    other.write_bytes(path.read_bytes())
    assert not is_stored(find_copy(replace(REQUEST, options=CopyOptions(threads=2))))


def test_without_a_store_programs_still_compile(
    tmp_path: Path, store: KernelStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    found()
    missing, unwritable = KernelStore(tmp_path / "missing"), KernelStore(tmp_path, only_read=True)
    for other in (KernelStore(None), missing, unwritable):
        monkeypatch.setattr(stored_programs, "default_store", lambda other=other: other)
        assert is_stored(found()) == (other.directory == tmp_path)
    before = plans(store)
    find_copy(replace(REQUEST, options=CopyOptions(threads=2)))
    assert plans(store) == before


def test_a_process_writes_few_plans_and_reads_all(
    tmp_path: Path, store: KernelStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each process continues where the one before it stopped."""
    several = [replace(REQUEST, options=CopyOptions(threads=k)) for k in range(1, 2 * PLANS_PER_PROCESS + 6)]
    for wanted in (0, PLANS_PER_PROCESS, 2 * PLANS_PER_PROCESS, len(several)):
        assert sum(is_stored(find_copy(request)) for request in several) == wanted
        process = KernelStore(tmp_path)
        monkeypatch.setattr(stored_programs, "default_store", lambda process=process: process)


def test_a_process_may_write_more_plans(store: KernelStore) -> None:
    store.plans_left += 5
    for threads in range(1, PLANS_PER_PROCESS + 10):
        find_copy(replace(REQUEST, options=CopyOptions(threads=threads)))
    assert len(plans(store)) == PLANS_PER_PROCESS + 5


OTHERS = {
    "source": replace(REQUEST, src=strided_map((60, 40), (160, 4), (0, 9604), element_bits=32)),
    "destination": replace(REQUEST, dst=replace(DST, slots=2400)),
    "element": replace(REQUEST, source=Element("u32", 32)),
    "swap": replace(REQUEST, swap=True),
    "padding": replace(REQUEST, padding=bytes(4)),
    "other padding": replace(REQUEST, padding=b"\0\0\x80\x3f"),
    "threads": replace(REQUEST, options=CopyOptions(threads=2)),
    "size": replace(REQUEST, options=CopyOptions(virtual_vector_size=16)),
    "sizes": replace(REQUEST, options=CopyOptions(virtual_vector_size=(16, 16))),
    "specialize": replace(REQUEST, options=CopyOptions(specialize="sizes")),
    "thresholds": replace(REQUEST, options=CopyOptions(thresholds=Thresholds(1 << 20))),
    "apart": replace(REQUEST, apart=True),
}


def test_every_input_is_part_of_the_digest(store: KernelStore, monkeypatch: pytest.MonkeyPatch) -> None:
    digests = {
        request_digest(REQUEST, store),
        *(request_digest(request, store) for request in OTHERS.values()),
    }
    monkeypatch.setattr(stored_programs, "lowering_digest", lambda store: "other code")
    digests.add(request_digest(REQUEST, store))
    facts = {"level": "none"} | dict.fromkeys([*Machine.__dataclass_fields__][1:], 12345)
    for name, value in facts.items():
        with described(replace(machine(), **{name: value})):
            digests.add(request_digest(REQUEST, store))
    assert None not in digests
    assert len(digests) == 2 + len(OTHERS) + len(facts)


def test_dataclasses_with_equal_names_have_different_digests() -> None:
    class First:
        @dataclass
        class Box:
            size: int

    class Second:
        @dataclass
        class Box:
            size: int

    given = First.Box(1), Second.Box(1), First.Box(2)
    assert len({repr(stored_programs._facts(value)) for value in given}) == 3


def test_requests_with_functions_have_no_plan(store: KernelStore) -> None:
    tree = Opaque(240, lambda m: m, 0, 239)
    opaque = AccessMap((6, 40), (Root((0, 1), tree),), 0, 8, 8, (0, 240))
    plain = strided_map((6, 40), (40, 1), (0, 240), element_bits=8)
    picked = CopyOptions(pick=lambda _, schedules: schedules[0])
    of_functions = CopyRequest(opaque, plain, BYTE, BYTE), replace(REQUEST, options=picked)
    for request in of_functions:
        assert request_digest(request, store) is None
        find_copy(request)
    assert not plans(store)
