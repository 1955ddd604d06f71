"""The CPU level that kernels are compiled for: what cpuid reports, or a lower one that was asked for."""

from __future__ import annotations

import os
import platform
from dataclasses import dataclass
from functools import cache

from codegen.errors import KernelError
from codegen.settings import settings

_NEEDED = {
    "avx512": ("avx512f", "avx512bw", "avx512cd", "avx512dq", "avx512vl", "avx2", "fma", "bmi2"),
    "avx2": ("avx2", "fma", "bmi", "bmi2", "f16c", "lzcnt"),
    "sse2": (),
}
_LLVM = {
    "avx512": ("x86-64-v4", "-prefer-256-bit"),
    "avx2": ("x86-64-v3", ""),
    "sse2": ("x86-64", ""),
    "generic": ("generic", ""),
}


@dataclass(frozen=True, slots=True)
class CpuLevel:
    """A level by name, and how LLVM spells it."""

    name: str
    llvm_cpu: str
    llvm_features: str


def cpu_name() -> str:
    """What LLVM takes this CPU for, and how many of them: good enough to tell machines apart, no more."""
    from llvmlite import binding

    return f"{binding.get_host_cpu_name()} x {os.cpu_count()}"


@cache
def cpu_level() -> CpuLevel:
    """The level of this process: the host's highest, or TILEJIT_CPU (read once).

    Flags decide, not the CPU's name: on virtual machines LLVM guesses a wrong name and half the vector width.

    Raises:
        KernelError: TILEJIT_CPU names no level, or one that this CPU does not have.
    """
    if platform.machine().lower() not in ("x86_64", "amd64"):
        return CpuLevel("generic", *_LLVM["generic"])
    from llvmlite import binding

    flags = binding.get_host_cpu_features()
    levels = [name for name, needed in _NEEDED.items() if all(flags.get(f) for f in needed)]
    wanted = settings().cpu
    if not wanted:
        return CpuLevel(levels[0], *_LLVM[levels[0]])
    if wanted not in _NEEDED:
        raise KernelError(f"TILEJIT_CPU={wanted} names no CPU level\n  set it to one of {', '.join(_NEEDED)}")
    if wanted not in levels:
        raise KernelError(f"TILEJIT_CPU={wanted}, but this CPU has only {', '.join(levels)}")
    return CpuLevel(wanted, *_LLVM[wanted])
