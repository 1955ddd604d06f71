"""Kernels for NEON: built here for aarch64, linked with a small C driver, run by qemu.

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

import numpy as np
import pytest

from codegen.build import assembly, machine_code
from codegen.cpu import level_named
from codegen.ir import Transpose
from codegen.kernel import Kernel
from tests.codegen.cases import WIDTHS, Bytes, Call, Case, calls_of, cases, in_numbas_ir, kernels

COMPILER, EMULATOR = "aarch64-linux-gnu-gcc", "qemu-aarch64"
DRIVER = Path(__file__).with_name("driver.c")
NEON_REGISTER = re.compile(r"\b(q\d+|v\d+\.\d+[bhsd])\b")
PLACEMENTS = 5
"""In how many places the driver runs each case."""


@pytest.fixture(autouse=True)
def tools() -> None:
    missing = [tool for tool in (COMPILER, EMULATOR) if which(tool) is None]
    if not missing:
        return
    reason = f"no {' and no '.join(missing)}: apt-get install qemu-user {COMPILER[8:]} libc6-dev-arm64-cross"
    if os.environ.get("TILEJIT_REQUIRE_QEMU"):
        pytest.fail(reason)
    pytest.skip(reason)


def test_kernels_on_neon(tmp_path: Path) -> None:
    """Every case in every placement: the bytes that NumPy writes, and none beside them."""
    done = emulated(cases(), tmp_path)
    assert done.returncode == 0, named(done)
    assert done.stdout == f"{len(cases())} cases, 0 failures\n"


def test_transposes_use_neon() -> None:
    level = level_named("neon")
    inner = {kernel: kernel.nest.innermost for kernel in kernels()}
    plain = {k: x for k, x in inner.items() if isinstance(x, Transpose) and not (x.interleave or x.stream)}
    assert {x.width for x in plain.values()} == set(WIDTHS)
    for kernel in plain:
        text = assembly(machine_code(in_numbas_ir(kernel), level).llvm_ir, level)
        assert NEON_REGISTER.search(text), kernel.source


def test_the_driver_sees_what_is_wrong(tmp_path: Path) -> None:
    """A wrong byte is reported in every placement; a byte beyond either storage ends the run."""
    case = next(case for case in cases() if case.name == "elements of 4 bytes, steps 2 and 3")
    after = case.after.copy()
    after[-1] ^= 1
    done = emulated([case, replace(case, after=after)], tmp_path)
    assert done.returncode == 1
    wrong = f"a wrong byte of the destination, byte {len(after) - 1} of {len(after)}\n"
    assert done.stdout.count(wrong) == PLACEMENTS
    assert done.stdout.startswith("case 1, placement 0")

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


def emulated(chosen: Sequence[Case], directory: Path) -> CompletedProcess[str]:
    """What the driver says of those cases, run by kernels for aarch64."""
    calls = [calls_of(case.program) for case in chosen]
    used = list({call.kernel.name: call.kernel for made in calls for call in made}.values())
    program = linked(used, directory)
    data = directory / "cases"
    data.write_bytes(encoded(chosen, calls, {kernel.name: k for k, kernel in enumerate(used)}))
    return run([EMULATOR, program, data], capture_output=True, text=True, check=False, timeout=120)


def linked(used: Sequence[Kernel], directory: Path) -> Path:
    """An aarch64 program of the driver and those kernels."""
    level, objects = level_named("neon"), []
    for kernel in used:
        objects.append(directory / f"{kernel.name}.o")
        objects[-1].write_bytes(machine_code(in_numbas_ir(kernel), level).object_code)
    names = [kernel.name for kernel in used]
    header = [f"extern kernel {name};" for name in names]
    header.append(f"static kernel *const kernels[] = {{{', '.join(names)}}};\n")
    (directory / "kernels.h").write_text("\n".join(header))
    program = directory / "driver"
    command = [COMPILER, "-O1", "-Wall", "-Wextra", "-Werror", "-static", "-no-pie", f"-I{directory}"]
    done = run([*command, DRIVER, *objects, "-o", program], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return program


def encoded(chosen: Sequence[Case], calls: Sequence[Sequence[Call]], numbers: dict[str, int]) -> bytes:
    """The file that the driver reads; its head says what stands in it."""
    out = [words(len(chosen))]
    for case, made in zip(chosen, calls, strict=True):
        out.append(words(len(case.src), len(case.before), *case.lows, len(made)))
        out += [encoded_call(call, numbers[call.kernel.name]) for call in made]
        out += [filled_up(data) for data in (case.src, case.before, case.after)]
    return b"".join(out)


def encoded_call(call: Call, number: int) -> bytes:
    units = {buffer.name: buffer.unit_bits for buffer in call.kernel.nest.buffers}
    tables = call.tables or ((), ())
    entries = len(tables[0]) if call.tables else -1
    head = words(number, units.get("src", 8), units["dst"], call.src, call.dst, call.begin, call.end)
    return head + words(entries, len(call.sizes), *call.sizes, *tables[0], *tables[1])


def filled_up(data: Bytes) -> bytes:
    return data.tobytes().ljust(-(-len(data) // 8) * 8, b"\0")


def words(*numbers: int) -> bytes:
    return np.array(numbers, np.int64).tobytes()


def named(done: CompletedProcess[str]) -> str:
    """The driver's report with the cases' names."""
    every = cases()
    return re.sub(r"case (\d+)", lambda m: f"case {m[1]} ({every[int(m[1])]})", done.stdout) + done.stderr
