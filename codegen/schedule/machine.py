"""The machine that schedules are made for: registers of the CPU level, and caches."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache
from pathlib import Path

from codegen.support.cpu import cpu_level

REGISTERS = {"avx512": (64, 32), "avx2": (32, 16), "sse2": (16, 16), "neon": (16, 32)}
"""Bytes of a vector register at each CPU level, and how many registers there are."""

CACHES = Path("/sys/devices/system/cpu/cpu0/cache")


@dataclass(frozen=True, slots=True)
class Machine:
    """What decisions depend on, besides the copy or the kernel itself.

    Attributes:
        level: the CPU level that kernels are compiled for.
        register_bytes: bytes of a vector register.
        registers: the number of vector registers.
        first_cache_ways: lines 4 KiB apart that a core's first data cache holds at the same time.
        second_cache_bytes: the size of a core's second cache.
    """

    level: str
    register_bytes: int
    registers: int
    first_cache_ways: int
    second_cache_bytes: int


@cache
def machine() -> Machine:
    """This machine, at the CPU level of this process.

    Raises:
        KernelError: TILEJIT_CPU names a level that this CPU does not have.
    """
    level = cpu_level().name
    ways, size = _read("index0/ways_of_associativity"), _read("index2/size")
    return Machine(level, *REGISTERS.get(level, (16, 16)), ways or 8, size << 10 or 1 << 20)


def _read(name: str) -> int:
    """A number of the system's description of the caches, in KiB for a size; 0 where there is none."""
    try:
        return int((CACHES / name).read_text().strip().removesuffix("K"))
    except (OSError, ValueError):
        return 0
