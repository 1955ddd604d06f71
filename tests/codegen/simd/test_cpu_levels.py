"""The CPU levels: what their code may contain, which CPUs have them, and that cases cover all routines."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest
from llvmlite import binding

from codegen.ir.element_types import dtype_of
from codegen.ir.lines import LINE_BYTES
from codegen.runtime.kernel import Kernel
from codegen.schedule.transposes import Transpose
from codegen.simd.routines import LISTED, bound_routines
from codegen.support import cpu
from codegen.support.cpu import LEVELS, CpuLevel, cpu_level, host_levels, level_named
from codegen.support.errors import KernelError
from tests.codegen.simd.case import Case, called_names
from tests.codegen.simd.cases import (
    CONVERTED,
    GROUPS,
    WIDTHS,
    cases,
    chosen_cases,
    kernels,
    kernels_of,
    levels_of,
    routine_of,
    transfers,
)
from tests.codegen.simd.objects import machine_texts, object_code
from tests.tools.oracle import run_python

X86 = ("avx512", "avx2", "sse2")
FORBIDDEN = {"avx512": (), "avx2": (r"%zmm", r"%k\d"), "sse2": (r"%zmm", r"%ymm", r"%k\d", r"\tv[a-z]")}
"""What no kernel's code contains. At sse2, no instruction has AVX's encoding either."""


@pytest.mark.full
def test_every_routine_has_a_case() -> None:
    """Some case's kernel calls the routine, or another routine does."""
    known = dict(LISTED)
    for kernel in kernels():
        called = called_names(kernel.source)
        bound = bound_routines(called)
        assert called == set(bound)
        known |= bound
    called = set().union(*(called_names(kernel.source) for kernel in kernels()))
    reached: list[Any] = []
    todo = [known[name] for name in called]
    while todo:
        routine = todo.pop()
        if not any(routine is other for other in reached):
            reached.append(routine)
            todo += _uses(routine)
    left_out = [name for name, routine in known.items() if not any(routine is other for other in reached)]
    assert not left_out, f"no case calls {left_out}"


@pytest.mark.full
def test_every_conversion_is_transposed() -> None:
    """In registers, for elements stored in place."""
    wanted = {
        f"swap_{source.removeprefix('swap u')}"
        if source.startswith("swap")
        else f"convert_{dtype_of(source)}_to_{dtype_of(target)}"
        for source, target in CONVERTED
    }
    called = [called_names(kernel.source) for kernel in kernels("plain")]
    found = set().union(*(names for names in called if "transposed" in names))
    assert wanted <= found, f"no case transposes {wanted - found}"


def _uses(routine: Any) -> Iterator[Any]:
    """The objects that a compiled routine's Python function refers to by a global name or in its closure."""
    function = getattr(routine, "py_func", None)
    if function is not None:
        yield from (function.__globals__.get(name) for name in function.__code__.co_names)
        yield from (cell.cell_contents for cell in function.__closure__ or ())


def test_cases_have_unique_names() -> None:
    assert len({case.name for case in cases()}) == len(cases())


@pytest.mark.full
def test_every_kind_streams_at_every_level() -> None:
    """Each family and each width with enough cases does; a case runs at the first level and one more."""
    met: dict[str, set[str]] = {}
    cases_of: dict[str, set[tuple[str, str]]] = {}
    for case in cases("stream"):
        assert len(levels_of(case)) == 2
        for part in routine_of(case):
            met.setdefault(part, set()).update(levels_of(case))
            cases_of.setdefault(part, set()).add(routine_of(case))
    for part, found in cases_of.items():
        assert len(met[part]) >= min(len(found) + 1, len(LEVELS)), part
    assert {f"u{8 * width}" for width in WIDTHS} <= set(met)
    assert all(levels_of(case) == set(LEVELS) for case in cases("plain"))


@pytest.mark.full
@pytest.mark.timeout(1200)  # compiles hundreds of kernels: minutes on a slow machine
@pytest.mark.parametrize("group", GROUPS)
@pytest.mark.parametrize("level", X86)
def test_kernels_at_each_level_of_x86(level: str, group: str, tmp_path: Path) -> None:
    """No vector is wider than the level's, and every case is right if this CPU has the level.

    Plain cases run at every level, streaming ones at two: see `levels_of`.
    """
    chosen = chosen_cases(group, level)
    built = {kernel: object_code(kernel, level_named(level)) for kernel in kernels_of(chosen)}
    assert_registers(level_named(level), built, tmp_path)
    if level in host_levels():
        assert_right(level, group, chosen)


@pytest.mark.full
def test_kernels_of_this_cpu_move_full_lines(tmp_path: Path) -> None:
    chosen = [kernel for kernel in kernels("plain") if moves_lines(kernel)]
    assert chosen
    assert_registers(cpu_level(), {kernel: object_code(kernel, cpu_level()) for kernel in chosen}, tmp_path)


def assert_registers(level: CpuLevel, built: Mapping[Kernel, bytes], directory: Path) -> None:
    """No register is wider than the level's. Kernels that move full lines have registers of a line."""
    whole_lines = {kernel for kernel in built if level.name == "avx512" and moves_lines(kernel)}
    wanted = {k: code for k, code in built.items() if FORBIDDEN.get(level.name, ()) or k in whole_lines}
    for kernel, text in machine_texts(level, wanted, directory).items():
        named = f"{kernel.name} at {level.name}"
        for pattern in FORBIDDEN.get(level.name, ()):
            assert not re.search(pattern, text), f"{named} has {pattern}\n{kernel.source}"
        if kernel in whole_lines:
            assert "%zmm" in text, f"{named} has no register of a whole line\n{kernel.source}"


def moves_lines(kernel: Kernel) -> bool:
    inner = transfers()[kernel]
    if isinstance(inner, Transpose):
        return all(n * inner.width == LINE_BYTES for n in inner.block)
    return False


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
    """Every case between guard pages, in a process of that level that finds its kernels in the store.

    Streaming cases run at two levels; a launch may need the kernel of a case that does not run.
    """
    names = {case.name for case in chosen}
    places = ",".join(str(k) for k, case in enumerate(cases(group)) if case.name in names)
    done = run_python(RUN_ALL, group, places, TILEJIT_CPU=level)
    last = "".join(done.stdout.splitlines()[-1:])
    wanted = "all right, " if group == "stream" else "all right, 0 kernels missing"
    assert last.startswith(wanted), f"{level}: {done.returncode} in {last}\n{done.stderr}"


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
    assert cpu_level() == level_named(host_levels()[0])
    with pytest.raises(KernelError, match="avx512, avx2, sse2, neon"):
        level_named("avx9")


def test_glibc_agrees_with_llvm() -> None:
    flags = cpu._flags_of_glibc()
    if flags is None:
        pytest.skip("glibc before 2.33, or none")
    assert flags == {name for name in cpu._BITS if binding.get_host_cpu_features().get(name)}
    assert cpu._BITS.keys() == {name for needed in cpu._NEEDED.values() for name in needed}


def test_levels_without_glibc(monkeypatch: pytest.MonkeyPatch) -> None:
    found = host_levels()
    monkeypatch.setattr(cpu, "_flags_of_glibc", lambda: None)
    assert host_levels() == found
