"""NumPy's own tests of its copy routines have the same outcomes with TileJIT's routines."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

NUMPY = Path(np.__file__).parent
FILES = (
    "_core/tests/test_multiarray.py",
    "_core/tests/test_numeric.py",
    "_core/tests/test_shape_base.py",
    "_core/tests/test_mem_overlap.py",
    "lib/tests/test_arraypad.py",
    "lib/tests/test_function_base.py",
    "lib/tests/test_shape_base.py",
)

KEPT = (
    "test_numeric",
    "test_shape_base",
    "test_mem_overlap",
    "test_arraypad",
    "test_function_base",
    *(
        "copy",
        "Copy",
        "contiguous",
        "concat",
        "stack",
        "take",
        "put",
        "Put",
        "assign",
        "Assign",
        "create",
        "Creat",
    ),
    *("Attr", "Subscripting", "flat", "tobytes", "swap", "transpose", "astype", "array_like", "Flag", "Zero"),
    *("Alignment", "resize", "choose", "Broadcast", "AsArray", "AsCArray", "FromBuffer", "NewBuffer", "Bool"),
)
"""NumPy's test files, classes and tests about copies; for test_multiarray, a fifth."""

LEFT_OUT = (
    "TestTextSignatures",  # checks that inspect finds no signature without __wrapped__; ours have one
    "huge",  # uses lists of 16 GB
    "fuzz",  # tests NumPy's solver for overlaps, which is slow and makes no copies
    *(
        "Percentile",
        "Quantile",
        "count_nonzero",
        "Clip",
        "Hist",
        "Interp",
        "Leaks",
        "Dot",
        "TestIO",
        "Matmul",
    ),
    *("Corr", "Vectorize", "partition", "Trim", "Median", "argm", "Sort", "sort"),
    # These call none of the routines, and take half of the time of all.
    *("ufunc_1d_manual", "various_alignments", "zeros_big", "internal_overlap"),
)
"""Tests without copies, and slow tests."""


def outcomes(folder: Path, accelerate: str, chosen: list[str]) -> Any:
    """The outcomes of some of NumPy's tests, in a separate process."""
    report = folder / f"outcomes{accelerate}.json"
    root = Path(__file__).parents[2]
    environment = os.environ | {
        "ACCELERATE": accelerate,
        "OUTCOMES": str(report),
        "PYTEST_ADDOPTS": "",
        "PYTHONPATH": os.pathsep.join([str(root), os.environ.get("PYTHONPATH", "")]),
    }
    command = [
        sys.executable,
        "-m",
        "pytest",
        "-p",
        "tests.numpy_api.outcomes",
        "-p",
        "no:cacheprovider",
        "-q",
    ]
    places = ["-c", os.devnull, "--rootdir", str(NUMPY), "-W", "ignore", "-n", "0"]
    done = subprocess.run(
        [*command, *places, *chosen],
        env=environment,
        capture_output=True,
        text=True,
        check=False,
        timeout=500,
    )
    assert report.exists(), done.stdout[-2000:] + done.stderr[-2000:]
    return json.loads(report.read_text())


@pytest.mark.full
def test_same_passes_and_failures(tmp_path: Path) -> None:
    """Of NumPy's own tests, those of the routines that TileJIT replaces."""
    words = f"({' or '.join(KEPT)}) and not ({' or '.join(LEFT_OUT)})"
    every = ["-k", words, *(str(NUMPY / f) for f in FILES)]
    ours = outcomes(tmp_path, "1", every)
    assert len(ours) > 3000
    plain = outcomes(tmp_path, "0", every)
    names = plain.keys() | ours.keys()
    different = {
        name: (plain.get(name), ours.get(name)) for name in names if plain.get(name) != ours.get(name)
    }
    assert not different
