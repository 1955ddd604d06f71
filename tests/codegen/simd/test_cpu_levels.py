"""The CPU levels: what their code may contain, and which CPUs have them."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path

import pytest
from llvmlite import binding

from codegen.runtime.kernel import Kernel
from codegen.support.cpu import LEVELS, VBMI, CpuLevel, cpu_level, host_level, host_levels, level_named
from codegen.support.errors import KernelError
from tests.codegen.simd.case import Case
from tests.codegen.simd.cases import (
    GROUPS,
    cases,
    chosen_cases,
    kernels_of,
)
from tests.codegen.simd.objects import machine_texts, object_code
from tests.tools.oracle import run_python

X86 = ("avx512", "avx2", "sse2")
FORBIDDEN = {"avx512": (), "avx2": (r"%zmm", r"%k\d"), "sse2": (r"%zmm", r"%ymm", r"%k\d", r"\tv[a-z]")}
"""What no kernel's code contains. At sse2, no instruction has AVX's encoding either."""
WIDEST = {"avx512": "%zmm", "avx2": "%ymm", "sse2": "%xmm"}


@pytest.mark.full
def test_cases_have_unique_names() -> None:
    assert len({case.name for case in cases()}) == len(cases())


@pytest.mark.full
@pytest.mark.timeout(1200)  # compiles hundreds of kernels: minutes on a slow machine
@pytest.mark.parametrize("group", GROUPS)
@pytest.mark.parametrize("level", X86)
def test_kernels_at_each_level_of_x86(level: str, group: str, tmp_path: Path) -> None:
    """No vector is wider than the level's, and every case is right if this CPU has the level.

    `chosen_cases` says which cases a level has.
    """
    chosen = chosen_cases(group, level)
    target = host_level(level) if level in host_levels() else level_named(level)
    built = {kernel: object_code(kernel, target) for kernel in kernels_of(chosen)}
    assert_registers(target, built, tmp_path)
    if level in host_levels():
        assert_right(level, group, chosen)


def assert_registers(level: CpuLevel, built: Mapping[Kernel, bytes], directory: Path) -> None:
    """No register is wider than the level's, and some are as wide."""
    texts = machine_texts(level, built, directory)
    for kernel, text in texts.items():
        for pattern in FORBIDDEN[level.name]:
            assert not re.search(pattern, text), f"{kernel.name} has {pattern}\n{kernel.source}"
    assert any(WIDEST[level.name] in text for text in texts.values())


RUN_ALL = """
import sys
from codegen.backend.store import default_store
from tests.codegen.simd.cases import cases
from tests.tools.guard import Guarded
every = cases(sys.argv[1])
chosen = [every[int(k)] for k in sys.argv[2].split(",")]
size = max(max(len(case.src), len(case.after)) for case in chosen) + 64
source, target = Guarded(size), Guarded(size)
for case in chosen:
    print(case, flush=True)
    case.run(source, target)
print("all right,", default_store().misses, "kernels missing")
"""


def assert_right(level: str, group: str, chosen: Sequence[Case]) -> None:
    """Every case between guard pages, in a process of that level, which finds their kernels in the store.

    A streaming case whose destination begins inside a line may need another kernel.
    """
    names = {case.name for case in chosen}
    places = ",".join(str(k) for k, case in enumerate(cases(group, level)) if case.name in names)
    done = run_python(RUN_ALL, group, places, TILEJIT_CPU=level)
    last = "".join(done.stdout.splitlines()[-1:])
    wanted = "all right, " if group == "stream" else "all right, 0 kernels missing"
    assert last.startswith(wanted), f"{level}: {done.returncode} in {last}\n{done.stderr}"


@pytest.mark.full
@pytest.mark.parametrize("level", [*LEVELS, "AVX2", "Sse2", "avx", "generic", "NEON"])
def test_the_cpu_level_setting(level: str) -> None:
    """A level that this CPU has is used; any other is an error that lists the levels."""
    code = "from codegen.support.cpu import cpu_level; print(cpu_level().name)"
    done = run_python(code, TILEJIT_CPU=level)
    if level.lower() in host_levels():
        assert done.stdout.strip() == level.lower(), done.stderr
    else:
        wanted = "but this CPU supports only" if level.lower() in LEVELS else "is not a CPU level"
        assert f"KernelError: TILEJIT_CPU={level}" in done.stderr
        assert wanted in done.stderr


def test_levels() -> None:
    assert {level_named(name).triple.split("-")[0] for name in X86} == {"x86_64"}
    assert level_named("neon").triple.split("-")[0] in ("aarch64", "arm64")
    highest = level_named(host_levels()[0])
    assert replace(cpu_level(), llvm_features=highest.llvm_features) == highest
    with pytest.raises(KernelError, match="avx512, avx2, sse2, neon"):
        level_named("avx9")


def test_this_cpu_has_its_levels_by_llvm() -> None:
    """LLVM finds the features of each level that this CPU has."""
    here = {name for name, there in binding.get_host_cpu_features().items() if there}
    for level in (cpu_level(), *map(level_named, host_levels())):
        wanted = {feature[1:] for feature in level.llvm_features.split(",") if feature.startswith("+")}
        assert wanted <= here, level
    assert (VBMI in cpu_level().llvm_features) == (cpu_level().name == "avx512" and VBMI in here)
