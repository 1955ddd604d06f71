"""Requests of a box: each line that it reads once, in two boxes of similar size."""

from __future__ import annotations

from dataclasses import replace
from math import prod

import numpy as np
import pytest
from numpy.typing import NDArray

from codegen.ir.lines import LINE_BYTES
from codegen.ir.strided_box import StridedBox
from codegen.schedule.choose_requests import RUN, request_boxes, request_schedule
from tests.tools.boxes import box_of

DIGITS = [
    [(16, 64, 768), (12, 1024, 64), (64, 1, 1)],
    [(8, 4, 512), (4, 1, 64), (4, 65536, 8), (2, 32, 256)],
    [(3, 4096, 1), (5, 512, 3), (100, 1, 15)],
    [(7, -256, 64), (32, 1, 1)],
    [(40, 1, 1)],
    [(64, 0, 64), (64, 1, 1)],
]


def bytes_read(box: StridedBox) -> NDArray[np.int64]:
    offsets = np.array([box.src])
    for axis in box.axes:
        offsets = (offsets[:, None] + np.arange(axis.extent) * axis.src).ravel()
    return offsets


@pytest.mark.parametrize("digits", DIGITS, ids=str)
def test_every_line_is_requested(digits: list[tuple[int, int, int]]) -> None:
    """Bytes in short gaps of a run are requested too, and no others."""
    box = box_of(digits, src=4096)
    boxes = request_boxes(box)
    requested = np.concatenate([bytes_read(x) for x in boxes])
    read = np.unique(bytes_read(box))
    assert np.isin(read, requested).all()
    assert len(np.unique(requested)) == len(requested)
    extra = np.setdiff1d(requested, read)
    assert all(np.abs(read - byte).min() < LINE_BYTES for byte in extra.tolist())
    sizes = [prod(x.extents.values()) for x in boxes]
    assert len(boxes) == 2 or sum(sizes) <= LINE_BYTES
    assert max(sizes) <= 2 * min(sizes)
    for each in boxes:
        schedule = request_schedule(each)
        assert (*schedule.outer, *schedule.inner) == tuple(x.name for x in each.axes)
        assert each.axes[-1].name == RUN


def test_boxes_without_requests() -> None:
    """Tables of offsets are not followed, and padding reads nothing."""
    assert request_boxes(replace(box_of(DIGITS[0]), entries=3)) == ()
    far = [(2, 1 << (k + 8), 1 << k) for k in range(7)]
    assert request_boxes(box_of(far)) == (), "more loops than kernels have"
