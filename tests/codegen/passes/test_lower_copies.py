"""The passes that lower copies keep the meaning, for copies of every kind."""

from __future__ import annotations

import numpy as np
import pytest

import tilejit
from codegen import Function, format_function
from codegen.pipeline.copies import compile_copy
from codegen.pipeline.observer import Form
from codegen.runtime.kernel import Kernel
from tests.codegen.ir.printed import check_names
from tests.codegen.simd.case import Case
from tests.codegen.simd.cases import GROUPS, cases
from tests.tools.replay import Watched, interpreted_when_lowered

MOST_BYTES = 8000


def forms(case: Case) -> dict[str, dict[str, Function]]:
    """The functions of each kernel after each pass."""
    seen: dict[str, dict[str, Function]] = {}

    def observe(run: str, form: Form) -> None:
        if isinstance(form, Function):
            seen.setdefault(form.name, {})[run] = form

    compile_copy(case.request, observe)
    return seen


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
        made = forms(case)
        for name in dict.fromkeys(name for each in made.values() for name in each):

            def form(
                kernel: Kernel, name: str = name, made: dict[str, dict[str, Function]] = made
            ) -> Function:
                return made[kernel.name][name]

            assert np.array_equal(interpreted_when_lowered(watched, form), case.after), f"{case}: {name}"


@pytest.mark.full
@pytest.mark.parametrize("group", GROUPS)
def test_each_stage_prints(group: str) -> None:
    """The printer raises on unknown nodes and names."""
    for case in chosen(group):
        for stages in forms(case).values():
            for made in stages.values():
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
