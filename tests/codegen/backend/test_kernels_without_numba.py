"""Stored kernels are called in a process that neither imports numba nor lowers a copy."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.tools.oracle import printed

COPIES = """
import sys
import ml_dtypes
import numpy as np
import tilejit as tj
from codegen.runtime.kernel import kernels_in_use
from codegen.backend.store import default_store

def copies(threads):
    sums = []
    for text in (
        "f32[33,70]{1,0:T(8,128)}",
        "bf16[33,70]{1,0:T(8,128)(2,1)}",
        "u8[33,70]{0,1:T(8,128)(4,1)}",
        "s4[33,70]{1,0:T(64,128)(8,1)E(4)}",
        "pred[33,70]{1,0:T(32,128)(32,1)E(1)}",
        "f64[2,7,8,11]{3,2,1,0:T(*,2,*,3)(4,1)}",
        "s16[100]{0:T(7)(3)}",
    ):
        shape = tj.Shape.parse(text)
        x = np.arange(np.prod(shape.dimensions)).reshape(shape.dimensions).astype(shape.dtype)
        t = tj.pack(x, shape, threads=threads)
        assert (tj.unpack(t, threads=threads) == x).all(), text
        sums.append(int(t.buffer.view(np.uint8).astype(np.int64) @ np.arange(t.nbytes)))
    t = tj.pack(np.arange(12, dtype=">i4").reshape(3, 4), "s32[3,4]{0,1:T(2,2)}")
    assert t[1:, ::2].tolist() == [[4, 6], [8, 10]]
    return sums
"""

FIRST = (
    COPIES
    + """
sums = copies(2)
assert "numba" in sys.modules
print(default_store().misses, len(kernels_in_use()), sums)
"""
)

SECOND = (
    COPIES
    + """
sums = copies(2)
assert default_store().misses == 0, default_store().misses
loaded = {m.split(".")[0] for m in sys.modules}
assert "numba" not in loaded, "numba was imported"
assert "codegen.ir.nodes" not in sys.modules, "a copy was lowered"
nothing = np.zeros(64, np.int64)
for kernel in kernels_in_use():
    kernel.call(bytes(16), 0, nothing.ctypes.data, 0, 0)
    if "b_extent" in kernel.arguments and "src_offsets" not in kernel.arguments:
        kernel.call(bytes(16), 0, nothing.ctypes.data, 0, 1)
assert "numba" not in {m.split(".")[0] for m in sys.modules}
print(default_store().hits, len(kernels_in_use()), sums)
"""
)


@pytest.mark.full
def test_stored_kernels_need_no_numba(tmp_path: Path) -> None:
    """One process builds and stores them, another calls them, also with empty loops and tables of zeros."""
    built, used, sums = printed(FIRST, tmp_path).split(maxsplit=2)
    assert int(built) > 0
    hits, again, same = printed(SECOND, tmp_path).split(maxsplit=2)
    assert (int(again), same) == (int(used), sums)
    assert int(hits) == int(built)
