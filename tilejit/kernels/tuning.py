"""tune=True for loops: measure a few super-vectors once on copies of the arrays, and remember the fastest."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from hashlib import sha256
from time import perf_counter
from typing import Any

import numpy as np

from codegen import (
    Cache,
    Function,
    KernelStore,
    compiler_digest,
    cpu_level,
    cpu_name,
    default_store,
    read_vector_sizes,
)
from tilejit.arrays.memory import Array
from tilejit.kernels.loop_options import LoopOptions
from tilejit.kernels.program import LoopProgram
from tilejit.programs.tuning import AUTO

CANDIDATES = (AUTO, "1*hw", "2*hw", "16*hw")
"""Super-vectors to try; the first is kept if nothing can be measured."""

MOST_BYTES = 256 << 20
"""The most bytes of arrays to copy for a measurement."""

REPEATS = 5
BATCH_BYTES = 4 << 20
"""The fewest bytes that one measurement moves."""

Measure = Callable[[Sequence[LoopProgram], Sequence[Any]], Sequence[float]]
"""Seconds that each program takes with these arguments."""

_winners: Cache[str, str] = Cache()
"""Results measured in this process, for use without a store."""


def tuned(
    function: Function,
    options: LoopOptions,
    given: Sequence[Any],
    *,
    measure: Measure | None = None,
    store: KernelStore | None = None,
) -> LoopOptions:
    """The options with the fastest virtual_vector_size for such arguments, if `tune` requests it.

    It is measured once for a function, its options, the power of two nearest to the bytes of the arrays, and
    the machine. Explicit sizes and arrays larger than 256 MiB are not measured.
    """
    if not options.tune:
        return options
    plain = replace(options, tune=False)
    size = sum(x.nbytes for x in given if isinstance(x, np.ndarray))
    if options.virtual_vector_size != AUTO or size > MOST_BYTES:
        return plain
    store = store or default_store()
    facts = function, plain, size.bit_length(), CANDIDATES, cpu_name(), cpu_level().name, compiler_digest()
    name = f"loops-{sha256(repr(facts).encode()).hexdigest()[:32]}"
    known = _winners.get(name) or (store.get_note(name) or {}).get("winner")
    if known not in CANDIDATES:
        programs = [LoopProgram(function, _with_size(plain, c)) for c in CANDIDATES]
        times = list((measure or timed)(programs, given))
        known = CANDIDATES[times.index(min(times))]
        store.put_note(name, {"winner": known})
    return _with_size(plain, _winners.keep(name, known))


def _with_size(options: LoopOptions, size: str) -> LoopOptions:
    return options if size == AUTO else replace(options, virtual_vector_size=read_vector_sizes(size, 1, ""))


def timed(programs: Sequence[LoopProgram], given: Sequence[Any]) -> list[float]:
    """The best of several times of each program; programs alternate, on copies of the arrays."""
    held = [_copy(x) if isinstance(x, np.ndarray) else x for x in given]
    moved = sum(x.nbytes for x in held if isinstance(x, np.ndarray))
    runs = min(1000, max(1, BATCH_BYTES // max(1, moved)))
    best = [float("inf")] * len(programs)
    with np.errstate(all="ignore"):
        for _ in range(REPEATS):
            for k, program in enumerate(programs):
                program(*held)
                start = perf_counter()
                for _ in range(runs):
                    program(*held)
                best[k] = min(best[k], (perf_counter() - start) / runs)
    return best


def _copy(x: Array) -> Array:
    """An array of the same shape and order with the same elements; strided copies keep the distances."""
    if not x.size or 0 in x.strides or min(x.strides, default=0) < 0:
        return x.copy(order="K")
    reach = sum((n - 1) * s for n, s in zip(x.shape, x.strides, strict=True)) + x.itemsize
    if reach > 2 * x.nbytes:
        return x.copy(order="K")
    out: Array = np.ndarray(x.shape, x.dtype, np.empty(reach, np.uint8), 0, x.strides)
    out[...] = x
    return out
