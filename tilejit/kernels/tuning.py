"""tune=True for loops: measure a few super-vectors once on copies of the arrays, and remember the fastest."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial
from time import perf_counter
from typing import Any

import numpy as np

from codegen import (
    Function,
    best_times,
    default_store,
    fastest,
    machine_facts,
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

MOST_RUNS = 1000
"""Runs of one measurement."""


def tuned(function: Function, options: LoopOptions, given: Sequence[Any]) -> LoopOptions:
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
    choices = {str(x): _with_size(plain, x) for x in CANDIDATES}

    def times() -> Sequence[float]:
        return _timed([LoopProgram(function, x) for x in choices.values()], given)

    facts = function, plain, size.bit_length(), machine_facts()
    return fastest("loops", choices, facts, default_store(), times)


def _with_size(options: LoopOptions, size: str) -> LoopOptions:
    return options if size == AUTO else replace(options, virtual_vector_size=read_vector_sizes(size, 1, ""))


def _timed(programs: Sequence[LoopProgram], given: Sequence[Any]) -> Sequence[float]:
    """The best of several times of each program; programs alternate, on copies of the arrays."""
    held = [_copy(x) if isinstance(x, np.ndarray) else x for x in given]
    moved = sum(x.nbytes for x in held if isinstance(x, np.ndarray))

    def runner(program: LoopProgram) -> Callable[[], object]:
        return partial(program, *held)

    with np.errstate(all="ignore"):
        return best_times([partial(runner, x) for x in programs], moved, perf_counter, MOST_RUNS)


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
