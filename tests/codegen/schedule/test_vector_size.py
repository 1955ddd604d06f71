"""The check of `virtual_vector_size`, shared by copies, kernels and MLIR text."""

from __future__ import annotations

import os
from typing import Any

import numpy as np
import pytest

import tilejit as tj
from codegen.schedule.machine import machine, usable_cores, usable_sockets
from codegen.schedule.vector_size import MOST_ELEMENTS, read_vector_sizes, sizes_in_elements
from codegen.support.errors import ScheduleError


def test_valid_sizes() -> None:
    assert read_vector_sizes(256, 2, "") == (256,)
    assert read_vector_sizes([np.int8(4), 8], 2, "") == (4, 8)
    assert read_vector_sizes(MOST_ELEMENTS, 1, "") == (MOST_ELEMENTS,)


BYTES, CORES, SOCKETS = machine().register_bytes, usable_cores(), usable_sockets()


@pytest.mark.parametrize(
    ("text", "bits", "elements"),
    [
        ("hw", 32, BYTES // 4),
        ("2*hw", 8, 2 * BYTES),
        ("2*hw", 64, BYTES // 4),
        ("l1/4", 32, machine().first_cache_bytes // 16),
        ("l1 / 4 / 2", 64, machine().first_cache_bytes // 64),
        ("2*cores*hw", 32, CORES * BYTES // 2),
        ("cores", 32, CORES),
        ("2*sockets", 32, 2 * SOCKETS),
        ("2*warp", 64, 64),
        ("3*hw/2", 32, 3 * BYTES // 8),
        ("hw/3*2", 32, 2 * BYTES // 12),
        ("hw/64", 64, 1),
        ("64", 32, 64),
        (" 4*4 ", 8, 16),
    ],
)
def test_sizes_in_terms_of_the_machine(text: str, bits: int, elements: int) -> None:
    assert sizes_in_elements(read_vector_sizes(text, 1, ""), bits) == (elements,)


def test_texts_in_tuples() -> None:
    sizes = read_vector_sizes(("4", "2*hw"), 2, "")
    assert sizes_in_elements(sizes, 32) == (4, BYTES // 2)
    assert [str(each) for each in sizes] == ["4", "2*hw"]


def test_too_many_elements_on_this_machine_are_refused_once_the_dtype_is_known() -> None:
    text = f"{2 * MOST_ELEMENTS // machine().first_cache_bytes}*l1"
    sizes = read_vector_sizes(text, 1, "")
    assert sizes_in_elements(sizes, 64) == (MOST_ELEMENTS // 4,)
    with pytest.raises(ScheduleError, match=r"\*l1, which is more than"):
        sizes_in_elements(sizes, 8)


def test_cores_are_those_of_this_process() -> None:
    assert 1 <= usable_sockets() <= usable_cores() <= (os.cpu_count() or 1)


WRONG = (
    (0, ScheduleError, "is 0; .* at least one element"),
    ((4, -1), ScheduleError, "is 4, -1; .* at least one element"),
    ((), ScheduleError, "has 0 numbers; expected one"),
    ((1,) * 9, ScheduleError, "has 9 numbers; expected one"),
    (MOST_ELEMENTS + 1, ScheduleError, "more than 1048576 elements"),
    ((1 << 11, 1 << 11), ScheduleError, "more than 1048576 elements"),
    (2**70, ScheduleError, "is a number of 71 bits, which is more than"),
    (4.0, TypeError, "number or a tuple of numbers, got float"),
    (None, TypeError, "got NoneType"),
    (True, TypeError, "got bool"),
    (
        (4, "four"),
        ScheduleError,
        "expected a number, hw, l1, cores, sockets, warp; got 'four'\n  four\n  \\^\n  write",
    ),
    ("2*hw*", ScheduleError, "the text ends\n  2\\*hw\\*\n       \\^"),
    ("2 hw", ScheduleError, "expected \\* or / between two factors\n  2 hw\n    \\^"),
    ("2*hw/0", ScheduleError, "expected numbers of at least 1, got 0"),
    ("-2*hw", ScheduleError, "got '-'"),
    ("", ScheduleError, "the text ends"),
    ("2**hw", ScheduleError, "got '\\*'"),
    ("1/2", ScheduleError, "is 0; .* at least one element"),
    ("0*hw", ScheduleError, "of at least 1, got 0"),
    ("1234567890*hw", ScheduleError, "at most 9 digits"),
    ("9999999*hw", ScheduleError, "is 9999999\\*hw, which is more than 1048576 elements"),
    ("hw" + "*1" * 99, ScheduleError, "more than 80 characters"),
    ("２*hw", ScheduleError, "got"),
    (np.array([4]), TypeError, "got ndarray"),
    (np.array(4), TypeError, "got ndarray"),
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


def test_either_exception_class_catches_the_error() -> None:
    assert issubclass(ScheduleError, tj.LayoutError)
    assert issubclass(ScheduleError, tj.KernelError)
