"""The passes that lower copies keep the meaning, for copies of every kind."""

from __future__ import annotations

from dataclasses import replace
from functools import cache

import numpy as np
import pytest

from codegen.ir.nodes import Function
from codegen.ir.printer import format_function
from codegen.pipeline import steps
from codegen.pipeline.lower_nest import lower_nest
from codegen.pipeline.observer import Form
from codegen.pipeline.passes import transfer_passes
from codegen.pipeline.steps import launch_of, step_of, with_prefetch
from codegen.runtime.kernel import Kernel
from codegen.schedule.choose_requests import request_boxes, request_schedule
from codegen.schedule.transfers import KINDS, Elementwise, RequestRun, TransferNest
from tests.codegen.ir.printed import check_names
from tests.codegen.simd.case import Case
from tests.codegen.simd.cases import GROUPS, cases
from tests.tools.replay import Watched, interpreted_when_lowered

MOST_BYTES = 8000
PASSES = [run.__name__ for run in transfer_passes()]
FLAGS = ("stream", "staged", "side", "lines", "groups", "convert", "lanes", "order", "prefetch", "layers")
"""The fields of transfers that determine the loops."""


def made_from() -> dict[str, tuple[TransferNest, tuple[str, ...]]]:
    """The nest and the arguments of each kernel."""
    return {kernel.name: made for made, kernel in steps._by_structure._held.items()}


@cache
def forms(name: str, nest: TransferNest, arguments: tuple[str, ...]) -> dict[str, Function]:
    """The function of a kernel after each pass."""
    seen: dict[str, Function] = {}

    def observe(run: str, form: Form) -> None:
        assert isinstance(form, Function)
        seen[run] = form

    assert lower_nest(nest, arguments, observe).name == name
    return seen


def structure(nest: TransferNest) -> tuple[object, ...]:
    """The fields that determine the loops of a nest."""
    inner = nest.transfer
    flags = (bool(getattr(inner, flag, False)) for flag in FLAGS)
    return type(inner), bool(nest.entries), getattr(inner, "count", 1) == 1, *flags


def chosen(group: str) -> dict[tuple[object, ...], Case]:
    """A small case for each structure."""
    small = sorted((c for c in cases(group) if len(c.after) <= MOST_BYTES), key=lambda case: len(case.after))
    known, found = made_from(), dict[tuple[object, ...], Case]()
    for case in small[::-1]:
        for kernel in case.program.kernels:
            found[structure(known[kernel.name][0])] = case
    return found


@pytest.mark.full
@pytest.mark.parametrize("group", GROUPS)
def test_each_pass_keeps_the_meaning(group: str) -> None:
    some = {case.name: case for case in chosen(group).values()}
    known = made_from()
    for case in some.values():
        low, dst_low = case.lows
        watched = Watched(case.program, case.src, case.before, case.after, (-low, -dst_low))
        for name in PASSES:

            def form(kernel: Kernel, name: str = name) -> Function:
                return forms(kernel.name, *known[kernel.name])[name]

            assert np.array_equal(interpreted_when_lowered(watched, form), case.after), f"{case}: {name}"


@pytest.mark.full
def test_elements_with_prefetches_keep_the_meaning() -> None:
    """Runs of 64 elements, and the elements after them: conversions in blocks call such kernels."""
    tried = 0
    for case in (c for c in cases("plain") if len(c.after) <= MOST_BYTES):
        inner = [x.step.nest.transfer for x in case.program.launches]
        if case.program.first or not all(isinstance(x, Elementwise) and x.convert for x in inner):
            continue
        made = replace(case.program, launches=tuple(with_prefetch(x, 256) for x in case.program.launches))
        low, dst_low = case.lows
        plain = Watched(case.program, case.src, case.before, case.after, (-low, -dst_low))
        wanted = interpreted_when_lowered(plain)
        assert np.array_equal(interpreted_when_lowered(replace(plain, program=made)), wanted), case
        tried += 1
    assert tried


def test_requests_write_nothing() -> None:
    """Between the stages of a block, requests name lines that the next block reads."""
    tried = 0
    for case in (c for c in cases("plain") if len(c.after) <= MOST_BYTES and not c.program.first):
        requests = [
            launch_of(step_of(box, request_schedule(box)), (launch.bounds[0], (0, 1)))
            for launch in case.program.launches
            for box in request_boxes(launch.step.box)
        ]
        made = replace(case.program, launches=tuple(requests))
        low, dst_low = case.lows
        watched = Watched(made, case.src, case.before, case.after, (-low, -dst_low))
        assert np.array_equal(interpreted_when_lowered(watched), case.before), case
        tried += bool(requests)
    assert tried


def test_every_kind_is_tried() -> None:
    assert {RequestRun, *(kind for group in GROUPS for kind, *_ in chosen(group))} >= {*KINDS}


@pytest.mark.parametrize("group", GROUPS)
def test_each_stage_prints(group: str) -> None:
    """The printer raises on unknown nodes and names."""
    some = chosen(group).values()
    known = made_from()
    for case in some:
        for kernel in case.program.kernels:
            for made in forms(kernel.name, *known[kernel.name]).values():
                check_names(format_function(made))


def test_the_passes_leave_no_blocks() -> None:
    """The emitter prints only plain loops."""
    assert cases()
    for nest, arguments in list(steps._by_structure._held):
        assert "Blocks(" not in str(lower_nest(nest, arguments))
    assert len(set(PASSES)) == len(PASSES)
