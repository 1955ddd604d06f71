"""A kernel that only moves elements has the inner loop of the copy that moves them."""

from __future__ import annotations

import re
from collections.abc import Callable
from itertools import takewhile
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

import tilejit as tj
from codegen.schedule.machine import described
from tests.codegen.emit.golden_kernels import Kernel
from tests.tools.goldens import MACHINE


def flat(a, c):
    for i in range(c.shape[0]):
        c[i] = a[i]


def backward(a, c):
    for i in range(c.shape[0]):
        c[i] = a[c.shape[0] - 1 - i]


def interleaved(a, c):
    for i in range(a.shape[1]):
        for j in range(2):
            c[2 * i + j] = a[j, i]


def deinterleaved(a, c):
    for i in range(c.shape[1]):
        for j in range(2):
            c[j, i] = a[2 * i + j]


def transposed(a, c):
    for i in range(c.shape[0]):
        for j in range(c.shape[1]):
            c[i, j] = a[j, i]


Arrays = tuple[NDArray[Any], NDArray[Any]]
FLAT, ROWS = np.zeros(4096, np.float32), np.zeros((2, 2048), np.float32)
SQUARE = np.zeros((64, 64), np.float32)

CASES: dict[str, tuple[Callable[..., Any], Arrays]] = {
    "flat": (flat, (FLAT, FLAT)),
    "backward": (backward, (FLAT, FLAT[::-1])),
    "interleaved": (interleaved, (FLAT.reshape(2048, 2), ROWS.T)),
    "deinterleaved": (deinterleaved, (ROWS, FLAT.reshape(2048, 2).T)),
    "transposed": (transposed, (SQUARE, SQUARE.T)),
}
"""Kernels of a source and a destination; the destination of a copy, and its source."""


def inner_loop(source: str) -> list[str]:
    """The operations of each line of the first loop over super-vectors, without element types and shapes."""
    lines = source.splitlines()
    first = next(k for k, line in enumerate(lines) if re.match(r" +(block = |store_)", line))
    depth = re.match(" +", lines[first])
    assert depth is not None
    body = takewhile(lambda line: line.startswith(depth[0]), lines[first:])
    return [
        " ".join(re.findall(r"block\b|load|store|\w*reversed\w*|\w*interleaved\w*|transposed", x))
        for x in body
    ]


@pytest.mark.parametrize("name", CASES)
def test_inner_loops_are_alike(name: str) -> None:
    function, (dst, src) = CASES[name]
    ranks = {"interleaved": (2, 1), "deinterleaved": (1, 2), "transposed": (2, 2)}.get(name, (1, 1))
    with described(MACHINE):
        kernel = Kernel(function, " ".join(f"f32:{rank}" for rank in ranks)).kernels(None).kernel.source
        copy = tj.plan_copy(np.empty_like(dst), src).source
    assert inner_loop(kernel) == inner_loop(copy)
