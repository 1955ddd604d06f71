"""The CPU level that kernels are compiled for: what cpuid reports, or a lower one that was asked for."""

from __future__ import annotations

import ctypes
import os
import platform
import sys
from dataclasses import dataclass
from functools import cache

from codegen.support.errors import KernelError
from codegen.support.settings import settings

_NEEDED = {
    "avx512": ("avx512f", "avx512bw", "avx512cd", "avx512dq", "avx512vl", "avx2", "fma", "bmi2"),
    "avx2": ("avx2", "fma", "bmi", "bmi2", "f16c", "lzcnt"),
    "sse2": (),
}
_BITS = {
    **{"fma": (0, 6, 12), "f16c": (0, 6, 29), "lzcnt": (2, 6, 5)},
    **{"bmi": (1, 5, 3), "avx2": (1, 5, 5), "bmi2": (1, 5, 8), "avx512f": (1, 5, 16)},
    **{"avx512dq": (1, 5, 17), "avx512cd": (1, 5, 28), "avx512bw": (1, 5, 30), "avx512vl": (1, 5, 31)},
}
"""Where glibc keeps a flag that may be used: the leaf, the word in it (four tell what the CPU has, then four
what the system supports of that) and the bit."""

_LLVM = {
    "avx512": ("x86_64", "x86-64-v4", "-prefer-256-bit"),
    "avx2": ("x86_64", "x86-64-v3", ""),
    "sse2": ("x86_64", "x86-64", ""),
    "neon": ("aarch64", "generic", "+neon"),
}
_ARCHITECTURES = {"x86_64": "x86_64", "amd64": "x86_64", "aarch64": "aarch64", "arm64": "aarch64"}

LEVELS = tuple(_LLVM)
"""Every level by name, those of one architecture from the highest down."""


@dataclass(frozen=True, slots=True)
class CpuLevel:
    """A level by name, and how LLVM spells it."""

    name: str
    triple: str
    llvm_cpu: str
    llvm_features: str


def level_named(name: str) -> CpuLevel:
    """A level, in letters of either case, whether or not this machine has it: code is made for others too.

    On this machine's architecture it is for this machine's system, on another for Linux.

    >>> level_named("neon")
    CpuLevel(name='neon', triple='aarch64-unknown-linux-gnu', llvm_cpu='generic', llvm_features='+neon')

    Raises:
        KernelError: there is no such level.
    """
    known = name.lower()
    if known not in _LLVM:
        raise KernelError(f"TILEJIT_CPU={name} names no CPU level\n  set it to one of {', '.join(LEVELS)}")
    architecture, cpu, features = _LLVM[known]
    own = architecture == _own_architecture()
    return CpuLevel(known, _own_triple() if own else f"{architecture}-unknown-linux-gnu", cpu, features)


def host_levels() -> tuple[str, ...]:
    """The levels that this CPU has, the highest first; none where its architecture has none.

    Flags decide, not the CPU's name: on virtual machines LLVM guesses a wrong name and half the vector width.
    """
    if _own_architecture() != "x86_64":
        return tuple(name for name in LEVELS if _LLVM[name][0] == _own_architecture())
    flags = _flags_of_glibc()
    if flags is None:
        from llvmlite import binding

        flags = frozenset(name for name, there in binding.get_host_cpu_features().items() if there)
    return tuple(name for name, needed in _NEEDED.items() if flags.issuperset(needed))


def _flags_of_glibc() -> frozenset[str] | None:
    """The flags of `_NEEDED` that the CPU and the system have, as `sys/platform/x86.h` tells them; None
    before glibc 2.33. LLVM knows them too, but its library takes longer to load than the first copy.
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
    """What the system calls this CPU, or else LLVM, and how many of them: good enough to tell machines
    apart, no more.
    """
    try:
        with open("/proc/cpuinfo", encoding="utf-8", errors="replace") as file:
            lines = file.read(1 << 12).splitlines()
        name = next(line for line in lines if line.startswith("model name")).partition(":")[2].strip()
    except (OSError, StopIteration):
        from llvmlite import binding

        name = binding.get_host_cpu_name()
    return f"{name} x {os.cpu_count()}"


@cache
def cpu_level() -> CpuLevel:
    """The level of this process: the host's highest, or TILEJIT_CPU (read once).

    Raises:
        KernelError: TILEJIT_CPU names no level, or one that this CPU does not have.
    """
    wanted, levels = settings().cpu, host_levels()
    if not wanted:
        return level_named(levels[0]) if levels else CpuLevel("generic", _own_triple(), "generic", "")
    level = level_named(wanted)
    if level.name not in levels:
        raise KernelError(f"TILEJIT_CPU={wanted}, but this CPU has only {', '.join(levels) or 'generic'}")
    return level


def _own_architecture() -> str:
    return _ARCHITECTURES.get(platform.machine().lower(), "")


def _own_triple() -> str:
    if sys.platform == "linux" and _own_architecture():
        return f"{_own_architecture()}-unknown-linux-gnu"
    from llvmlite import binding

    return str(binding.get_process_triple())
