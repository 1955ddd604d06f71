"""The machine that schedules target: vector registers of the CPU level, and caches."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from functools import cache
from typing import Any

from codegen.support.caching import clear_caches
from codegen.support.cpu import VBMI, cpu_level
from codegen.support.dataclasses import dataclass
from codegen.support.errors import KernelError
from codegen.support.settings import settings

REGISTERS = {"avx512": (64, 32), "avx2": (32, 16), "sse2": (16, 16), "neon": (16, 32)}
"""The size in bytes and the number of vector registers at each CPU level."""

ALIAS_BYTES = 2048
"""Rows whose distance is a multiple of this share L1 cache sets, which have few ways."""

SET_BYTES = 4096
"""Lines at a multiple of this distance share a set of an L1 cache."""

STREAM_BYTES = 16 << 20
"""The size from which copies bypass the cache, if it was not measured."""

ALWAYS_STREAM, NEVER_STREAM = 0, 1 << 62
"""The same for copies that bypass it at any size, and at none."""

MACHINE_FACTS = {
    "first_cache_bytes": range(1 << 12, 1 << 24),
    "first_cache_ways": range(1, 1 << 10),
    "second_cache_bytes": range(1 << 16, 1 << 30),
    "last_cache_bytes": range(1 << 40),
    "stream_bytes": range((1 << 62) + 1),
}
"""What a file of TILEJIT_MACHINE may state; the CPU level decides the rest, and TILEJIT_CPU the level."""

CACHES = "/sys/devices/system/cpu/cpu0/cache"
TOPOLOGY = "/sys/devices/system/cpu/cpu{}/topology/{}"


@dataclass(frozen=True, slots=True)
class Machine:
    """The machine properties that scheduling decisions depend on.

    Attributes:
        level: the CPU level that kernels are compiled for.
        register_bytes: bytes per vector register.
        registers: the number of vector registers.
        first_cache_ways: ways of a core's L1 data cache: how many lines 4 KiB apart it holds at one time.
        second_cache_bytes: the size of a core's L2 cache.
        last_cache_bytes: the size of the L3 cache, which cores share; 0 if it is not known.
        first_cache_bytes: the size of a core's L1 data cache.
        stream_bytes: the size from which copies bypass the cache; None if it is measured.
        joins_bytes: whether an instruction puts the bytes of two registers in any order.
    """

    level: str
    register_bytes: int
    registers: int
    first_cache_ways: int
    second_cache_bytes: int
    last_cache_bytes: int
    first_cache_bytes: int = 1 << 15
    stream_bytes: int | None = None
    joins_bytes: bool = False


_described: Machine | None = None


def machine() -> Machine:
    """The machine that schedules target: this one, or the one that `described` names.

    Raises:
        KernelError: TILEJIT_CPU names a level that this CPU does not have, or the file of TILEJIT_MACHINE
            does not describe a machine.
    """
    return _described or _this_machine()


@contextmanager
def described(other: Machine) -> Iterator[None]:
    """Inside the block, schedule for another machine, on all threads.

    >>> with described(replace(machine(), first_cache_ways=12, stream_bytes=2 << 20)):
    ...     tilejit.copyto(out, a)

    Kernels are still compiled for this CPU. Caches are emptied on entry and on exit, so that no plan outlives
    its machine. Plans that the caller holds do.
    """
    global _described
    before, _described = _described, other
    clear_caches()
    try:
        yield
    finally:
        _described = before
        clear_caches()


@cache
def _this_machine() -> Machine:
    """This machine, at the CPU level of this process, or the one that TILEJIT_MACHINE describes."""
    level, joins_bytes = cpu_level().name, VBMI in cpu_level().llvm_features
    ways, size = _read("index0/ways_of_associativity"), _read("index2/size")
    last, first = _read("index3/size") << 10, _read("index0/size") << 10
    sizes = size << 10 or 1 << 20, last, first or 1 << 15
    found = Machine(level, *REGISTERS.get(level, (16, 16)), ways or 8, *sizes, joins_bytes=joins_bytes)
    given: dict[str, Any] = read_machine(settings().machine) if settings().machine else {}
    return replace(found, **given) if given else found


def read_machine(path: str) -> dict[str, int]:
    """What a file of TILEJIT_MACHINE states: a JSON object of numbers, such as `tilejit calibrate` prints.

    Raises:
        KernelError: the file cannot be read, or states something else.
    """
    try:
        with open(path, encoding="utf-8") as file:
            facts = json.load(file)
    except (OSError, ValueError, RecursionError) as error:
        raise _mistake(path, str(error)) from error
    if not isinstance(facts, dict):
        raise _mistake(path, f"expected an object, got {type(facts).__name__}")
    for name, number in facts.items():
        if name not in MACHINE_FACTS:
            raise _mistake(path, f"expected {', '.join(MACHINE_FACTS)}; got {name[:40]!r}")
        valid = MACHINE_FACTS[name]
        if type(number) is not int or number not in valid:
            raise _mistake(path, f"{name}: expected {valid[0]} to {valid[-1]}, got {json.dumps(number)[:40]}")
    return facts


def _mistake(path: str, cause: str) -> KernelError:
    return KernelError(f"TILEJIT_MACHINE={path}: {cause}\n  write what `tilejit calibrate --json` prints")


@cache
def usable_cores() -> int:
    """The number of physical cores that this process may run on."""
    if not hasattr(os, "sched_getaffinity"):
        return os.cpu_count() or 1
    return len({_topology(cpu, "thread_siblings_list", str(cpu)) for cpu in os.sched_getaffinity(0)})


@cache
def usable_sockets() -> int:
    """The number of sockets (CPU packages) with cores that this process may run on; 1 if it is not known."""
    if not hasattr(os, "sched_getaffinity"):
        return 1
    return len({_topology(cpu, "physical_package_id", "") for cpu in os.sched_getaffinity(0)})


def _topology(cpu: int, what: str, unknown: str) -> str:
    """The system's information on the place of a CPU; `unknown` if there is none."""
    try:
        with open(TOPOLOGY.format(cpu, what), encoding="utf-8") as file:
            return file.read().strip()
    except OSError:
        return unknown


def _read(name: str) -> int:
    """A number from the system's cache description (sizes are in KiB); 0 if it is not available."""
    try:
        with open(f"{CACHES}/{name}", encoding="utf-8") as file:
            return int(file.read().strip().removesuffix("K"))
    except (OSError, ValueError):
        return 0
