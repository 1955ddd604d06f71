"""All programs of a copy in one pass, for those who measure them."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace

from codegen.ir.strided_box import StridedBox
from codegen.pipeline.copies import compile_copy
from codegen.pipeline.copy_options import AnyProgram
from codegen.pipeline.copy_request import CopyRequest
from codegen.pipeline.program import CopyProgram
from codegen.schedule.schedule import Schedule


def single_passes(request: CopyRequest) -> Iterator[CopyProgram]:
    """The compiler's choices, with boxes joined and one by one; then other schedules of the largest boxes.

    The most promising come first. Some programs may be equal.
    """
    counts: dict[int, int] = {}
    yield from _programs(request, 0, 0, counts)
    largest = max(counts, default=0)
    for number in range(1, counts.get(largest, 0)):
        yield from _programs(request, number, largest, {})


def _programs(request: CopyRequest, number: int, largest: int, counts: dict[int, int]) -> list[CopyProgram]:
    """The programs with the schedule of that number for boxes of so many bytes, and the first for others.

    counts: receives how many schedules boxes have, by their bytes
    """
    found: list[CopyProgram] = []

    def pick(box: StridedBox, schedules: tuple[Schedule, ...]) -> Schedule:
        size = box.size_bytes
        counts[size] = max(len(schedules), counts.get(size, 0))
        return schedules[number if size == largest and number < len(schedules) else 0]

    def pick_copy(programs: Sequence[AnyProgram]) -> AnyProgram:
        found.extend(x for x in programs if isinstance(x, CopyProgram))
        return programs[0]

    options = replace(request.options, pick=pick, pick_copy=pick_copy)
    only = compile_copy(replace(request, options=options))
    return found or [only]
