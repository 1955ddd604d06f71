"""Golden files of copies and kernels: decisions, loops after every pass, and sources, by sizes."""

from __future__ import annotations

import re
from functools import cache

import pytest

from codegen.schedule.machine import described
from tests.codegen.emit.golden_copies import COPIES, Copy
from tests.codegen.emit.golden_kernels import KERNELS, Kernel
from tests.codegen.emit.golden_texts import BOX, KERNEL, SIZES, Part, text_by_size
from tests.tools.goldens import GOLDEN, check_golden

STAGES = GOLDEN / "stages"
CASES: dict[str, Copy | Kernel] = {**COPIES, **KERNELS}


@cache
def parts_of(name: str) -> dict[str, list[Part]]:
    """The parts of a golden file by sizes."""
    case = CASES[name]
    with described(case.machine):
        parts = {text: case.parts(size) for text, size in SIZES.items() if size is None or not case.in_brief}
    if case.in_brief:
        parts["auto"] = [part for part in parts["auto"] if part.is_result or part.heading == BOX]
    return parts


@pytest.mark.parametrize("name", CASES)
def test_golden(name: str, request: pytest.FixtureRequest) -> None:
    case = CASES[name]
    text = text_by_size(f"{case.title}\n{case.machine}", parts_of(name))
    check_golden(STAGES / f"{name}.txt", text, request)


def test_every_golden_file_has_a_case() -> None:
    assert {path.stem for path in STAGES.iterdir()} == {*CASES}


@pytest.mark.parametrize("name", CASES)
def test_sources_are_python(name: str) -> None:
    """Each source compiles and defines the function with its name, in lines of at most 110 characters."""
    sources = [part.text for parts in parts_of(name).values() for part in parts if part.heading == KERNEL]
    assert sources
    for source in sources:
        namespace: dict[str, object] = {}
        exec(compile(source, name, "exec"), namespace)
        (defined,) = re.findall(r"^def (\w+)\(", source, re.MULTILINE)
        assert callable(namespace[defined])
        assert all(len(line) <= 110 for line in source.splitlines())
