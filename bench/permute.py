"""The 57 permutations of the benchmark in the TTC and HPTT papers, f32, about 50 MB each."""

from __future__ import annotations

import json
from functools import partial
from pathlib import Path

import numpy as np

from bench.arrays import shrunk
from bench.jobs import Case, permutation

QUICK_STEP = 6
"""A quick run takes every sixth case."""


def cases(quick: bool) -> list[Case]:
    """All permutations. `ttc57.json` names their source."""
    listed = json.loads((Path(__file__).parent / "ttc57.json").read_text())["cases"]
    return [
        _case(tuple(case["perm"]), shrunk(tuple(case["shape"]), np.float32, quick))
        for case in listed[:: QUICK_STEP if quick else 1]
    ]


def _case(order: tuple[int, ...], dims: tuple[int, ...]) -> Case:
    name = f"{','.join(map(str, order))} of {'x'.join(map(str, dims))}"
    group = "2-D" if len(dims) == 2 else "inner dimension kept" if order[-1] == len(dims) - 1 else "others"
    return Case("permutations", group, name, partial(permutation, dims, order, np.float32))
