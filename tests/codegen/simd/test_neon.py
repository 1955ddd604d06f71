"""Kernels for NEON: built here for aarch64, linked with a small C driver, and run by qemu.

Without the cross compiler and qemu the tests are skipped, unless TILEJIT_REQUIRE_QEMU is set, as in CI.
Debian: apt-get install qemu-user gcc-aarch64-linux-gnu libc6-dev-arm64-cross
"""

from __future__ import annotations

import os
import re
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from shutil import which
from subprocess import CompletedProcess, run
from typing import TypeAlias

import numpy as np
import pytest

from codegen.ir.instructions import instructions
from codegen.support.cpu import level_named
from tests.codegen.simd.case import Bytes, Call, Case, Compiled
from tests.codegen.simd.cases import GROUPS, cases, chosen_cases, kernels_of
from tests.codegen.simd.instruction_cases import TURNS, InstructionCase, instruction_cases
from tests.codegen.simd.objects import machine_texts, object_code
from tests.tools.extent import spread

COMPILER, EMULATOR = "aarch64-linux-gnu-gcc", "qemu-aarch64"
PACKAGES = "qemu-user gcc-aarch64-linux-gnu libc6-dev-arm64-cross"
DRIVER = Path(__file__).with_name("driver.c")
NEON = level_named("neon")
NEON_REGISTER = re.compile(r"\b(q\d+|v\d+\.\d+[bhsd])\b")
PAGE = 4096
AnyCase: TypeAlias = Case | InstructionCase
Placement: TypeAlias = tuple[bool, int, bool, int]
PLACEMENTS: tuple[Placement, ...] = (
    (False, 0, False, 0),
    (True, 0, True, 0),
    (False, 3, False, 16),
    (True, 1, False, 32),
    (False, 0, True, 1),
)
"""Where a case runs: at the start or the end of its pages, and the bytes between."""


@pytest.fixture(autouse=True)
def tools() -> None:
    missing = [tool for tool in (COMPILER, EMULATOR) if which(tool) is None]
    if not missing:
        return
    reason = f"no {' and no '.join(missing)}: apt-get install {PACKAGES}"
    if os.environ.get("TILEJIT_REQUIRE_QEMU"):
        pytest.fail(reason)
    pytest.skip(reason)


@pytest.mark.full
@pytest.mark.timeout(1200)  # compiles hundreds of kernels: minutes on a slow machine
@pytest.mark.parametrize("group", GROUPS[::-1])
def test_kernels_on_neon(group: str, tmp_path: Path) -> None:
    """Every case, or a third of the streaming ones, changes the bytes that NumPy writes, and no others."""
    chosen = chosen_cases(group, NEON.name)
    done = emulated(chosen, tmp_path)
    assert done.returncode == 0, named(done, chosen)
    assert done.stdout == f"{len(chosen) * len(PLACEMENTS)} cases, 0 failures\n"


PARTS = 4
"""The number of programs that the kernels of all instructions are linked into."""


@pytest.mark.full
@pytest.mark.timeout(1200)
@pytest.mark.parametrize("part", range(PARTS))
def test_instructions_on_neon(part: int, tmp_path: Path) -> None:
    """Every instruction alone, for every second shape that it supports, gives what its meaning says."""
    names = spread(instructions()[part::PARTS], 3)
    chosen = [case for each in names for case in instruction_cases(each.name)[::TURNS]]
    done = emulated(chosen, tmp_path)
    assert done.returncode == 0, named(done, chosen)
    assert done.stdout == f"{len(chosen) * len(PLACEMENTS)} cases, 0 failures\n"


@pytest.mark.full
def test_transposes_use_neon(tmp_path: Path) -> None:
    turned = tuple(case for case in cases("plain", NEON.name) if case.name.startswith("transpose, 4 bytes"))
    built = {kernel: object_code(kernel, NEON) for kernel in kernels_of(turned)}
    texts = machine_texts(NEON, built, tmp_path).values()
    assert any(NEON_REGISTER.search(text) for text in texts)


@pytest.mark.full
def test_the_driver_detects_errors(tmp_path: Path) -> None:
    """A wrong byte is reported in every placement; a byte beyond either storage ends the run."""
    case = next(case for case in cases() if case.name == "elements of 4 bytes, steps 2 and 3")
    after = case.after.copy()
    after[-1] ^= 1
    done = emulated([case, replace(case, after=after)], tmp_path)
    assert done.returncode == 1
    wrong = f"a wrong byte of the destination, byte {len(after) - 1} of {len(after)}\n"
    assert done.stdout.count(wrong) == len(PLACEMENTS)
    assert done.stdout.startswith(f"case {len(PLACEMENTS)}: ")

    short = replace(case, before=case.before[:-1], after=case.after[:-1])
    assert_stopped(
        emulated([short], tmp_path), f"{len(short.before)} of {len(short.before)} of the destination"
    )
    short = replace(case, src=case.src[:-1])
    assert_stopped(emulated([short], tmp_path), f"byte {len(short.src)} of {len(short.src)} of the source")


def assert_stopped(done: CompletedProcess[str], where: str) -> None:
    assert done.returncode == 2, done.stdout
    assert "touched byte" in done.stdout
    assert where in done.stdout


def emulated(chosen: Sequence[AnyCase], directory: Path) -> CompletedProcess[str]:
    """The driver's output for those cases, each in every placement, run by kernels for aarch64."""
    placed = [(case, place) for case in chosen for place in PLACEMENTS]
    calls = [case.calls(base_address(case, *place[2:])) for case, place in placed]
    used = list({call.kernel.name: call.kernel for made in calls for call in made}.values())
    program = linked(used, directory)
    numbers = {kernel.name: k for k, kernel in enumerate(used)}
    with (directory / "cases").open("wb") as file:
        file.write(words(len(placed)))
        for (case, place), made in zip(placed, calls, strict=True):
            file.write(encoded(case, place, made, numbers))
    return run([EMULATOR, program, file.name], capture_output=True, text=True, check=False, timeout=120)


def base_address(case: AnyCase, at_end: bool, gap: int) -> int:
    """The destination's base address in the driver, up to full pages: kernels differ by alignment."""
    place = -len(case.before) - gap if at_end else gap
    return (place - case.lows[1]) % PAGE


def linked(used: Sequence[Compiled], directory: Path) -> Path:
    """An aarch64 program of the driver and those kernels."""
    objects = []
    for kernel in reversed(used):  # in the opposite order of the x86 tests, which share what Numba makes
        objects.append(directory / f"{kernel.name}.o")
        objects[-1].write_bytes(object_code(kernel, NEON))
    names = [kernel.name for kernel in used]
    header = [f"extern kernel {name};" for name in names]
    header.append(f"static kernel *const kernels[] = {{{', '.join(names)}}};\n")
    (directory / "kernels.h").write_text("\n".join(header))
    program = directory / "driver"
    command = [COMPILER, "-O1", "-Wall", "-Wextra", "-Werror", "-static", "-no-pie", f"-I{directory}"]
    done = run([*command, DRIVER, *objects, "-o", program], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return program


def encoded(case: AnyCase, place: Placement, calls: Sequence[Call], numbers: dict[str, int]) -> bytes:
    """One case of the file that the driver reads. The driver's first comment describes the format."""
    out = [words(len(case.src), len(case.before), *case.lows, *place, len(calls))]
    out += [encoded_call(call, numbers[call.kernel.name]) for call in calls]
    out += [filled_up(data) for data in (case.src, case.before, case.after)]
    return b"".join(out)


def encoded_call(call: Call, number: int) -> bytes:
    head = number, *call.unit_bits, call.src, call.dst, call.begin, call.end
    counts = call.scratch, len(call.sizes), len(call.tables)
    tables = [words(k, len(table), *table) for k, table in call.tables.items()]
    return words(*head, *counts, *call.sizes) + b"".join(tables)


def filled_up(data: Bytes) -> bytes:
    return data.tobytes().ljust(-(-len(data) // 8) * 8, b"\0")


def words(*numbers: int) -> bytes:
    return np.array(numbers, np.int64).tobytes()


def named(done: CompletedProcess[str], every: Sequence[AnyCase]) -> str:
    """The driver's report with the names of the cases."""
    places = len(PLACEMENTS)
    return re.sub(r"case (\d+):", lambda m: f"{every[int(m[1]) // places]}:", done.stdout) + done.stderr
