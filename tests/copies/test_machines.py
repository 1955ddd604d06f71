"""Copies as other machines plan them."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

import tilejit as tj
from codegen.pipeline.calibrate import streamed_from
from codegen.schedule.machine import Machine, described, machine

LINE = 64
INTEL = replace(
    machine(),
    first_cache_ways=12,
    first_cache_bytes=48 << 10,
    second_cache_bytes=2 << 20,
    last_cache_bytes=300 << 20,
    stream_bytes=16 << 20,
)
"""An Intel server's caches, at the level of this CPU."""

IN_BLOCKS = [
    (np.uint32, (128, 168, 16, 8), (3, 1, 0, 2)),
    (np.uint64, (64, 370, 7, 8), (1, 3, 0, 2)),
]
"""Transposes whose groups of rows move in blocks where the destination begins inside a line."""


@pytest.mark.parametrize(("dtype", "shape", "axes"), IN_BLOCKS, ids=["u32", "u64"])
def test_groups_in_blocks_at_every_alignment(
    dtype: type[Any], shape: tuple[int, ...], axes: tuple[int, ...]
) -> None:
    a = np.arange(np.prod(shape), dtype=dtype).reshape(shape).transpose(axes)
    wanted = np.ascontiguousarray(a)
    memory = np.empty(a.nbytes + 2 * LINE, np.uint8)
    start = -memory.ctypes.data % LINE
    with described(INTEL):
        for offset in range(0, LINE, a.itemsize):
            memory[:] = 0xA5
            out = memory[start + offset :][: a.nbytes].view(dtype).reshape(a.shape)
            tj.copyto(out, a, threads=1)
            assert np.array_equal(out, wanted), offset
            around = memory[: start + offset], memory[start + offset + a.nbytes :]
            assert all((side == 0xA5).all() for side in around), offset


def test_plans_do_not_outlive_their_machine() -> None:
    """The schedule is the one of the described machine inside the block, and this one's outside."""
    a = np.empty((1024, 3072), np.uint32)

    def schedules() -> str:
        return str(tj.explain(a, "{0,1:T(8,128)}"))

    def on(other: Machine) -> str:
        with described(other):
            return schedules()

    large, small = replace(INTEL, stream_bytes=1 << 40), replace(INTEL, stream_bytes=0)
    own = schedules()
    assert on(large) != on(small)
    assert on(large) == on(large)
    assert own == schedules()


def test_machines_nest_and_end_with_errors() -> None:
    own, other = machine(), replace(INTEL, stream_bytes=12345)

    def fail() -> None:
        with described(INTEL):
            with described(other):
                assert machine() == other
                assert streamed_from(1) == streamed_from(1 << 40) == 12345
            assert machine() == INTEL
            raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        fail()
    assert machine() == own


def test_the_schedule_of_a_copy_in_two_stages_begins_with_its_blocks() -> None:
    """A copy in one pass has none."""
    dst, src = "bf16[512,1024]{0,1:T(8,128)(2,1)}", "bf16[512,1024]{1,0:T(8,128)(2,1)}"
    with described(replace(machine(), stream_bytes=0, first_cache_ways=12, second_cache_bytes=1 << 20)):
        first, *_ = tj.explain(dst, src).schedule.splitlines()
    assert first.startswith("blocks    4 of 128x1024, each copied into ")
    with described(replace(machine(), stream_bytes=1 << 40)):
        assert not tj.explain(src, src).schedule.startswith("blocks")
