"""`tilejit.infer` on every plane of every format of the catalog, with the other planes constant."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import tilejit as tj
from tests.catalog.test_laws import FORMATS, example_planes
from tests.recognize.functions import Array
from tests.tools.extent import few_by_default

CASES = [(name, plane.name) for name, packing in FORMATS.items() for plane in packing.planes]
REFUTED = {
    ("gptq-act-order", "g_idx"): "combined",
    ("ggml-tq1_0", "codes"): "combined",
    ("tenstorrent-bfp8_b", "values"): "too small",
    ("tenstorrent-bfp4_b", "values"): "too small",
    ("tenstorrent-bfp2_b", "values"): "too small",
}
"""Planes that other planes order, codes in base 3, and values with shared exponents."""
TABLES = {
    ("gptq-act-order", "codes"),
    ("tinygemm-cpu", "values"),
    ("tinygemm-cpu-avx2", "values"),
    ("tinygemm-cpu-default", "values"),
}
"""Rows in the order of another plane, and examples whose last block of rows has another layout."""


def packed_bytes(packed: Any) -> bytes:
    """All bytes of a packed value, one buffer after the other."""
    if isinstance(packed, tj.TiledArray):
        return packed.buffer.tobytes()
    return b"".join(np.ascontiguousarray(buffer).tobytes() for buffer in packed.buffers.values())


@pytest.mark.parametrize(("name", "plane"), few_by_default(CASES, 16))
def test_every_plane(name: str, plane: str) -> None:
    planes = example_planes(name)
    given = planes if isinstance(planes, dict) else {plane: planes}
    x = given[plane]

    def function(changed: Array) -> bytes:
        return packed_bytes(tj.pack({**given, plane: changed} if isinstance(planes, dict) else changed, name))

    keywords: dict[str, Any] = {}
    described = next(p for p in FORMATS[name].planes if p.name == plane)
    if described.bits:
        keywords["value_range"] = described.code_range
        if described.bits < 8:
            keywords["element_size_in_bits"] = described.bits
    found = tj.infer(function, x.dtype, x.shape, **keywords)
    kind = REFUTED.get((name, plane))
    if kind:
        assert found.counterexample is not None
        assert found.counterexample.kind == kind
        return
    assert found.is_layout, found
    assert (found.text == "no closed form") == ((name, plane) in TABLES)
    assert found.unpack(function(x)).tobytes() == x.tobytes()
    assert found.pack(x).tobytes() == function(x)
