"""The check of `virtual_vector_size`: one for copies, kernels and MLIR text."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import tilejit as tj
from codegen.schedule.vector_size import MOST_ELEMENTS, read_vector_sizes
from codegen.support.errors import ScheduleError


def test_sizes() -> None:
    assert read_vector_sizes(256, 2, "") == (256,)
    assert read_vector_sizes([np.int8(4), 8], 2, "") == (4, 8)
    assert read_vector_sizes(MOST_ELEMENTS, 1, "") == (MOST_ELEMENTS,)


WRONG = (
    (0, ScheduleError, "is 0; .* at least one element"),
    ((4, -1), ScheduleError, "is 4, -1; .* at least one element"),
    ((), ScheduleError, "has 0 numbers; expected one"),
    ((1, 2, 3, 4), ScheduleError, "has 4 numbers; expected one"),
    (MOST_ELEMENTS + 1, ScheduleError, "more than 1048576 elements"),
    ((1 << 11, 1 << 11), ScheduleError, "more than 1048576 elements"),
    (2**70, ScheduleError, "is a number of 71 bits, which is more than"),
    (4.0, TypeError, "number or a tuple of numbers, not float"),
    (None, TypeError, "not NoneType"),
    (True, TypeError, "not bool"),
    ((4, "4"), TypeError, "not str"),
    (np.array([4]), TypeError, "not ndarray"),
    (np.array(4), TypeError, "not ndarray"),
)


def doubled(x, y):  # type: ignore[no-untyped-def]
    for i in range(x.shape[0]):
        y[i] = 2 * x[i]


@pytest.mark.parametrize(("size", "error", "text"), WRONG, ids=lambda x: repr(x)[:20])
def test_copies_and_kernels_refuse_the_same_sizes(size: Any, error: type[Exception], text: str) -> None:
    x, y = np.ones((3, 4), "f4"), np.zeros((4, 3), "f4")
    for call in (
        lambda: tj.copyto(y, x.T, virtual_vector_size=size),
        lambda: tj.pack(x, "{1,0:T(2,2)}", virtual_vector_size=size),
        lambda: tj.kernel(virtual_vector_size=size)(doubled),
        lambda: tj.elementwise(virtual_vector_size=size),
    ):
        with pytest.raises(error, match=text):
            call()
    assert not y.any()


def test_either_class_catches_the_error() -> None:
    assert issubclass(ScheduleError, tj.LayoutError)
    assert issubclass(ScheduleError, tj.KernelError)
