"""Launches: where parts begin, and that addresses do not leave the process."""

from __future__ import annotations

import copy
import pickle

import pytest
from hypothesis import given
from hypothesis import strategies as st

from codegen import CopyRequest, Element, strided_map
from codegen.pipeline.copies import compile_copy
from codegen.runtime.launch import LINE_BYTES, PAGE_BYTES, on_boundary
from tests.tools.strategies import Pick


@given(st.data())
def test_parts_begin_on_boundaries(data: st.DataObject) -> None:
    """Parts begin on a page or a line if a number near enough allows it, and no nearer number does."""
    pick: Pick = lambda low, high: data.draw(st.integers(low, high))  # noqa: E731
    near, start, most_off = pick(0, 5000), pick(0, 10000), pick(0, 700)
    step = pick(-300, 300) * data.draw(st.sampled_from([1, 4, 16, 64, 512])) or 4
    found = on_boundary(near, start, step, most_off=most_off)
    assert abs(found - near) <= most_off
    numbers = range(near - most_off, near + most_off + 1)
    for boundary in (PAGE_BYTES, LINE_BYTES):
        good = [k for k in numbers if (start + k * step) % boundary == 0]
        if good:
            assert found in good or boundary == PAGE_BYTES, "a page may be there by luck"
        if found in good:
            assert abs(found - near) == min(abs(k - near) for k in good)
            return
    assert found == near


def test_calls_cannot_be_pickled() -> None:
    maps = (strided_map((9,), (4,), (0, 36), element_bits=32) for _ in range(2))
    (launch,) = compile_copy(CopyRequest(*maps, Element("f32", 32), Element("f32", 32))).launches
    calls = launch.every_call(aligned=True)
    for take in (pickle.dumps, copy.copy, copy.deepcopy):
        with pytest.raises(TypeError, match="a call holds addresses of this process\n  pickle or copy"):
            take(calls[0])
