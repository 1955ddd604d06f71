"""The CPU level that kernels target: the highest that cpuid reports, or a lower one from TILEJIT_CPU."""

from __future__ import annotations

import ctypes
import os
import platform
import sys
from dataclasses import replace
from functools import cache

from codegen.support.dataclasses import dataclass
from codegen.support.errors import KernelError
from codegen.support.interrupts import llvm_binding
from codegen.support.settings import settings

VBMI = "avx512vbmi"
"""Permutes of the bytes of two registers, which not all CPUs with AVX-512 have."""

_NEEDED = {
    "avx512": ("avx512f", "avx512bw", "avx512cd", "avx512dq", "avx512vl", "avx2", "fma", "bmi2"),
    "avx2": ("avx2", "fma", "bmi", "bmi2", "f16c", "lzcnt"),
    "sse2": (),
}
_BITS = {
    **{"fma": (0, 6, 12), "f16c": (0, 6, 29), "lzcnt": (2, 6, 5)},
    **{"bmi": (1, 5, 3), "avx2": (1, 5, 5), "bmi2": (1, 5, 8), "avx512f": (1, 5, 16)},
    **{"avx512dq": (1, 5, 17), "avx512cd": (1, 5, 28), "avx512bw": (1, 5, 30), "avx512vl": (1, 5, 31)},
    VBMI: (1, 6, 1),
}
"""The position of each usable flag in glibc: leaf, word and bit.

A leaf has four words of CPU features, then four words of those that the operating system also supports.
"""

_LLVM = {
    "avx512": ("x86_64", "x86-64-v4", "-prefer-256-bit"),
    "avx2": ("x86_64", "x86-64-v3", ""),
    "sse2": ("x86_64", "x86-64", ""),
    "neon": ("aarch64", "generic", "+neon"),
}
_ARCHITECTURES = {"x86_64": "x86_64", "amd64": "x86_64", "aarch64": "aarch64", "arm64": "aarch64"}

LEVELS = tuple(_LLVM)
"""All level names; within an architecture, the highest first."""


@dataclass(frozen=True, slots=True)
class CpuLevel:
    """A level's name and its LLVM target."""

    name: str
    triple: str
    llvm_cpu: str
    llvm_features: str


def level_named(name: str) -> CpuLevel:
    """The level with that name, case-insensitive, whether or not this machine supports it.

    Kernels can target other machines. On its own architecture, the operating system is this machine's,
    otherwise Linux.

    >>> level_named("neon")
    CpuLevel(name='neon', triple='aarch64-unknown-linux-gnu', llvm_cpu='generic', llvm_features='+neon')

    Raises:
        KernelError: the level is unknown.
    """
    known = name.lower()
    if known not in _LLVM:
        raise KernelError(f"TILEJIT_CPU={name} is not a CPU level\n  set it to one of {', '.join(LEVELS)}")
    architecture, cpu, features = _LLVM[known]
    is_host = architecture == _host_architecture()
    return CpuLevel(known, _host_triple() if is_host else f"{architecture}-unknown-linux-gnu", cpu, features)


def host_levels() -> tuple[str, ...]:
    """The levels that this CPU supports, the highest first; empty if its architecture has none.

    The feature flags decide, and not the CPU's name: on virtual machines, LLVM guesses a wrong name and half
    the vector width.
    """
    if _host_architecture() != "x86_64":
        return tuple(name for name in LEVELS if _LLVM[name][0] == _host_architecture())
    return tuple(name for name, needed in _NEEDED.items() if _flags().issuperset(needed))


@cache
def _flags() -> frozenset[str]:
    """The flags of `_BITS` that this CPU supports, from glibc or else from LLVM."""
    flags = _flags_of_glibc()
    if flags is None:
        flags = frozenset(name for name, present in llvm_binding().get_host_cpu_features().items() if present)
    return flags


def _flags_of_glibc() -> frozenset[str] | None:
    """The flags of `_BITS` that both the CPU and the operating system support; None before glibc 2.33.

    glibc reports them as declared in `sys/platform/x86.h`. LLVM knows the flags too, but loading its library
    takes longer than the first copy.
    """
    try:
        leaf_of = ctypes.CDLL(None).__x86_get_cpuid_feature_leaf
    except (OSError, AttributeError, TypeError):
        return None
    leaf_of.restype = ctypes.POINTER(ctypes.c_uint32)
    leaf_of.argtypes = (ctypes.c_uint32,)
    return frozenset(name for name, (leaf, word, bit) in _BITS.items() if leaf_of(leaf)[word] >> bit & 1)


@cache
def cpu_name() -> str:
    """The operating system's name for this CPU (otherwise LLVM's), and the CPU count.

    Only good enough to tell machines apart.
    """
    try:
        with open("/proc/cpuinfo", encoding="utf-8", errors="replace") as file:
            lines = file.read(1 << 12).splitlines()
        name = next(line for line in lines if line.startswith("model name")).partition(":")[2].strip()
    except (OSError, StopIteration):
        name = llvm_binding().get_host_cpu_name()
    return f"{name} x {os.cpu_count()}"


@cache
def cpu_level() -> CpuLevel:
    """The level of this process: the host's highest, or TILEJIT_CPU (read once); with VBMI if the CPU has it.

    Raises:
        KernelError: TILEJIT_CPU is not a level, or this CPU does not support it.
    """
    requested, levels = settings().cpu, host_levels()
    if not requested:
        return host_level(levels[0]) if levels else CpuLevel("generic", _host_triple(), "generic", "")
    level = host_level(requested)
    if level.name not in levels:
        raise KernelError(
            f"TILEJIT_CPU={requested}, but this CPU supports only {', '.join(levels) or 'generic'}"
        )
    return level


def host_level(name: str) -> CpuLevel:
    """The level with that name, with VBMI if it is AVX-512 and this CPU has it."""
    level = level_named(name)
    if level.name != "avx512" or VBMI not in _flags():
        return level
    return replace(level, llvm_features=f"{level.llvm_features},+{VBMI}")


def _host_architecture() -> str:
    return _ARCHITECTURES.get(platform.machine().lower(), "")


def _host_triple() -> str:
    if sys.platform == "linux" and _host_architecture():
        return f"{_host_architecture()}-unknown-linux-gnu"
    return str(llvm_binding().get_process_triple())
