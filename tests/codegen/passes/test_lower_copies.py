"""The passes that lower copies keep the meaning, for copies of every kind."""

from __future__ import annotations

import numpy as np
import pytest

import tilejit
from codegen import format_function
from tests.codegen.ir.printed import check_names
from tests.codegen.simd.case import Case
from tests.codegen.simd.cases import GROUPS, cases
from tests.tools.replay import Watched, forms, interpreted_when_lowered

MOST_BYTES = 8000


def chosen(group: str) -> list[Case]:
    """A small case for each kind of kernel."""
    small = sorted((c for c in cases(group) if len(c.after) <= MOST_BYTES), key=lambda case: -len(case.after))
    kinds = {kernel.name.rpartition("_")[0]: case for case in small for kernel in case.program.kernels}
    return list({case.name: case for case in kinds.values()}.values())


@pytest.mark.full
@pytest.mark.parametrize("group", GROUPS)
def test_each_pass_keeps_the_meaning(group: str) -> None:
    for case in chosen(group):
        low, dst_low = case.lows
        watched = Watched(case.program, case.src, case.before, case.after, (-low, -dst_low))
        made = {kernel: forms(kernel) for kernel in case.program.kernels}
        for name in dict.fromkeys(name for each in made.values() for name in each):
            functions = {kernel: each[name] for kernel, each in made.items()}
            after = interpreted_when_lowered(watched, functions.__getitem__)
            assert np.array_equal(after, case.after), f"{case}: {name}"


@pytest.mark.full
@pytest.mark.parametrize("group", GROUPS)
def test_each_stage_prints(group: str) -> None:
    """The printer raises on unknown nodes and names."""
    for case in chosen(group):
        for kernel in case.program.kernels:
            for made in forms(kernel).values():
                check_names(format_function(made))


@pytest.mark.parametrize(
    ("dims", "has_tail", "may_be_long"),
    [((64, 128), False, False), ((64, 100), True, False), ((64, 512), False, True)],
    ids=str,
)
def test_docstrings_leave_out_what_literal_sizes_decide(
    dims: tuple[int, int], has_tail: bool, may_be_long: bool
) -> None:
    """A tail that no run has, and memcpy for runs that are short."""
    x = np.zeros(dims, np.float32)
    source = tilejit.explain(np.zeros((dims[0], 600), np.float32)[:, : dims[1]], x, specialize="sizes").source
    _, docstring, code = source.split('"""')
    assert ("Tail(" in docstring) == has_tail == ("336" in code)
    assert ("CopyBlock(" in docstring) == may_be_long == ("copy_block(" in code)
