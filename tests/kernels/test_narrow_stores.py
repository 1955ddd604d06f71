"""The last lanes of stores that are narrower than a register."""

from __future__ import annotations

import numpy as np
import pytest

import tilejit as tj


@tj.kernel
def narrow_and_wide(a, b, c, o0, o1, o2, o3):  # type: ignore[no-untyped-def]
    for i in range(a.shape[0]):
        o0[i] = b[i] // a[i]
        o1[i] = b[i] ** 3
        o2[i] = (c[i] if i >= 2 else b[i]) // 7
        o3[i] = ((b[i] + 1) > (c[i] + -3)) ** 0.5


@pytest.mark.parametrize("n", [1, 5, 17, 33])
def test_nothing_is_written_behind_the_array(n: int) -> None:
    """LLVM 22 widens the mask of a store of 8 bytes to 16 lanes, of which 8 were undefined."""
    memory = {name: np.full(64, 255, np.uint8) for name in ("cubes", "roots")}
    outputs = np.zeros(n, "f4"), memory["cubes"][:n], np.zeros(n, "u8"), memory["roots"][:n]
    narrow_and_wide(np.ones(n, "u2"), np.ones(n, "i4"), np.ones(n, "f2"), *outputs)
    for values in memory.values():
        assert values[:n].tolist() == [1] * n
        assert np.all(values[n:] == 255)
