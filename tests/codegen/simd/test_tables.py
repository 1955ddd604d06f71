"""Copies through tables request what later entries read, and are right at every alignment and level."""

from __future__ import annotations

import numpy as np
import pytest

from codegen.schedule.call_limits import MOST_PREFETCHED_BYTES
from codegen.schedule.limits import PAGE_PREFETCH_BYTES
from tests.codegen.simd.case import Case, called_names
from tests.codegen.simd.cases import STREAM, by_table, through_tables
from tests.codegen.simd.levels import AtLevels
from tests.conftest import SEED
from tests.tools.guard import Guarded

LINE = 64
CASES = {case.name.removeprefix(STREAM): case for case in through_tables(np.random.default_rng(SEED), STREAM)}
ARENA = 1 << 17


@pytest.mark.parametrize("name", CASES)
def test_every_alignment(name: str) -> None:
    """Streaming stores go to full lines. Requests do not affect what is written."""
    case = CASES[name]
    source, target = Guarded(ARENA), Guarded(ARENA)
    for gap in range(LINE):
        for at_end in (False, True):
            case.run_at(source, target, at_end, src_gap=0, dst_gap=gap)


def calls(case: Case) -> set[str]:
    return set().union(*(called_names(kernel.source) for kernel in case.program.kernels))


def test_which_kernels_request_ahead() -> None:
    """Only kernels that stream through tables."""
    for name, case in CASES.items():
        assert "prefetch_line" in calls(case), name
    for case in through_tables(np.random.default_rng(SEED)):
        assert "prefetch_line" not in calls(case), case


def ahead(dims: tuple[int, ...], src: tuple[int, ...]) -> tuple[int, int, int]:
    """How many entries ahead, the first byte, and the bytes that are requested for an entry of u32."""
    rows = np.arange(3) * (1 << 18)
    dst = (dims[1] * 4, 4)
    case = by_table(np.random.default_rng(0), STREAM, 4, dims, (rows, dst), (rows, src))
    (launch,) = case.program.launches
    entries, low, count = launch.sizes[2:5].tolist()
    return entries, low, count


def test_how_far_kernels_request_ahead() -> None:
    """A page's worth of entries: all of an entry, unless it is long or mostly holes."""
    assert ahead((16, 16), (4, 64)) == (PAGE_PREFETCH_BYTES // 1024, 0, 1024)
    assert ahead((16, 16), (4, 100)) == (PAGE_PREFETCH_BYTES // 1024, 0, 15 * 100 + 64)
    assert ahead((16, 16), (4, 1000)) == (PAGE_PREFETCH_BYTES // 1024, 0, 0), "mostly holes"
    assert ahead((16, 16), (-4, 64)) == (PAGE_PREFETCH_BYTES // 1024, -60, 1024), "backwards"
    side = MOST_PREFETCHED_BYTES // 64
    assert ahead((16, side), (4, 64)) == (1, 0, MOST_PREFETCHED_BYTES)
    assert ahead((16, side + 1), (4, 64)) == (1, 0, 0), "long"


def at_lower_levels() -> AtLevels:
    return AtLevels(__file__, ["test_every_alignment"], len(CASES))
