"""Programs from launch plans run like compiled ones, and an invalid plan counts as missing."""

from __future__ import annotations

import json
import pickle
from collections.abc import Iterator
from dataclasses import fields, replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from codegen import (
    AccessMap,
    CopyOptions,
    CopyProgram,
    CopyRequest,
    Element,
    Opaque,
    Root,
    default_store,
    find_copy,
    strided_map,
)
from codegen.backend.store import PLANS_PER_PROCESS, KernelStore
from codegen.runtime.stored_step import StoredStep
from codegen.schedule.machine import described, machine
from tests.codegen.simd.cases import GROUPS, cases
from tests.tools.extent import spread
from tests.tools.guard import Guarded

BYTE, FLOAT = Element("u8", 8), Element("f32", 32)
SRC = strided_map((60, 40), (160, 4), (0, 9600), element_bits=32)
DST = strided_map((60, 40), (4, 240), (0, 9600), element_bits=32)
REQUEST = CopyRequest(SRC, DST, FLOAT, FLOAT)

pytestmark = pytest.mark.usefixtures("fresh_store")


def plans() -> list[Path]:
    """The launch plans, without notes of other facts."""
    return [path for path in default_store().notes() if path.name.startswith("plan-")]


def found() -> CopyProgram:
    return find_copy(REQUEST)


def is_stored(program: CopyProgram) -> bool:
    return all(isinstance(launch.runs, StoredStep) for launch in (*program.first, *program.launches))


def check(program: CopyProgram) -> None:
    """Copy an array with a program of REQUEST."""
    x, out = np.arange(2400, dtype=np.float32).reshape(60, 40), np.zeros((40, 60), np.float32)
    program.run(x.ctypes.data, out.ctypes.data)
    assert (out == x.T).all()


def threads(count: int) -> CopyRequest:
    return replace(REQUEST, options=CopyOptions(threads=count))


@pytest.mark.full
@pytest.mark.parametrize("group", GROUPS)
def test_planned_programs_stay_in_their_memory(group: str) -> None:
    some = spread(cases(group)[::8], 20)
    size = max(max(len(case.src), len(case.before)) for case in some) + 64
    src, dst, stored = Guarded(size), Guarded(size), 0
    for case in some:
        default_store().plans_left = 1
        find_copy(case.request)
        program = find_copy(case.request)
        stored += is_stored(program)
        replace(case, program=program).run(src, dst)
    assert stored > len(some) // 2


def test_the_second_process_finds_the_program() -> None:
    assert not is_stored(found())
    assert len(plans()) == 1
    assert is_stored(found())
    check(found())


def test_a_planned_program_can_be_pickled_and_inspected() -> None:
    compiled = found()
    again = pickle.loads(pickle.dumps(found()))
    check(again)
    assert [str(step.nest) for step in again.steps] == [str(step.nest) for step in compiled.steps]
    assert [kernel.source for kernel in again.kernels] == [kernel.source for kernel in compiled.kernels]


def damages(value: Any) -> Iterator[Any]:
    """Plans with a part that is missing or of another type."""
    yield from ("../text", 0.5, 1 << 64, [None], {"more": None})
    if isinstance(value, dict):
        for key in value:
            yield {name: part for name, part in value.items() if name != key}
            yield from ({**value, key: part} for part in damages(value[key]) if key != "tables")
    elif isinstance(value, list):
        yield from (
            [*value[:k], part, *value[k + 1 :]] for k in range(len(value)) for part in damages(value[k])
        )
        yield [*value, None]


def test_an_invalid_plan_is_replaced() -> None:
    found()
    (path,) = plans()
    store = default_store()
    plan = store.get_note(path.stem)
    found()  # the process knows the kernel now
    every = [damaged for damaged in damages(plan) if isinstance(damaged, dict)]
    assert len(every) > 100
    for damaged in every:
        store.put_note(path.stem, damaged)
        store.plans_left = 1
        assert not is_stored(found()), json.dumps(damaged)
        assert is_stored(found())


def test_a_damaged_plan_is_replaced() -> None:
    found()
    (path,) = plans()
    data = path.read_bytes()
    for k in range(0, len(data), 37):
        path.write_bytes(data[:k] + bytes([data[k] ^ 1]) + data[k + 1 :])
        assert not is_stored(found())
        assert path.read_bytes() == data
    path.chmod(0o666)
    assert not is_stored(found())


def test_a_plan_under_another_name_is_ignored() -> None:
    found()
    (path,) = plans()
    find_copy(threads(2))
    (other,) = set(plans()) - {path}
    other.write_bytes(path.read_bytes())
    assert not is_stored(find_copy(threads(2)))


@pytest.mark.parametrize("kind", ["none", "missing", "not private"])
def test_without_a_store_programs_still_compile(
    kind: str, tmp_path: Path, fresh_store: KernelStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    found()
    before = plans()
    assert fresh_store.directory
    match kind:
        case "none":
            fresh_store.clear()
        case "missing":
            fresh_store.directory.rename(tmp_path / "elsewhere")
        case "not private":
            fresh_store.directory.chmod(0o777)
    check(found())
    assert len(plans()) <= len(before)


def test_a_process_writes_few_plans_and_reads_all() -> None:
    """Each process continues where the one before it stopped."""
    several = [threads(k) for k in range(1, 2 * PLANS_PER_PROCESS + 6)]
    for wanted in (0, PLANS_PER_PROCESS, 2 * PLANS_PER_PROCESS, len(several)):
        assert sum(is_stored(find_copy(request)) for request in several) == wanted
        default_store.cache_clear()


OTHERS = {
    "source": replace(REQUEST, src=strided_map((60, 40), (160, 4), (0, 9604), element_bits=32)),
    "destination": replace(REQUEST, dst=replace(DST, slots=2400)),
    "element": replace(REQUEST, source=Element("u32", 32)),
    "swap": replace(REQUEST, swap=True),
    "padding": replace(REQUEST, padding=bytes(4)),
    "other padding": replace(REQUEST, padding=b"\0\0\x80\x3f"),
    "threads": threads(2),
    "size": replace(REQUEST, options=CopyOptions(virtual_vector_size=16)),
    "sizes": replace(REQUEST, options=CopyOptions(virtual_vector_size=(16, 16))),
    "specialize": replace(REQUEST, options=CopyOptions(specialize="sizes")),
    "stream_bytes": replace(REQUEST, options=CopyOptions(stream_bytes=1 << 20)),
    "apart": replace(REQUEST, apart=True),
}


@pytest.mark.parametrize("name", OTHERS)
def test_other_requests_have_other_plans(name: str) -> None:
    found()
    assert not is_stored(find_copy(OTHERS[name]))
    assert len(plans()) == 2


@pytest.mark.parametrize("name", [field.name for field in fields(machine())])
def test_other_machines_have_other_plans(name: str) -> None:
    found()
    with described(replace(machine(), **{name: "none" if name == "level" else 1 << 14})):
        assert not is_stored(found())
    assert len(plans()) == 2
    assert is_stored(found())


@pytest.mark.parametrize("kind", ["map", "pick"])
def test_requests_with_functions_have_no_plan(kind: str) -> None:
    tree = Opaque(240, lambda m: m, 0, 239)
    opaque = AccessMap((6, 40), (Root((0, 1), tree),), 0, 8, 8, (0, 240))
    plain = strided_map((6, 40), (40, 1), (0, 240), element_bits=8)
    picked = CopyOptions(pick=lambda _, schedules: schedules[0])
    find_copy(CopyRequest(opaque, plain, BYTE, BYTE) if kind == "map" else replace(REQUEST, options=picked))
    assert not plans()
