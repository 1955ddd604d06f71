"""Bugs in planning: the copy runs by the simplest plan, and a warning asks to report them."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

import tilejit as tj
from codegen.ir.strided_box import Element, StridedBox
from codegen.pipeline.copies import compile_copy
from codegen.pipeline.copy_options import CopyOptions
from codegen.pipeline.copy_request import CopyRequest
from codegen.pipeline.launch_plans import plan_of
from codegen.schedule.machine import Machine, described, machine
from codegen.schedule.schedule import Joined, Schedule
from tests.tools.oracle import packed_by_definition, random_elements, run_python
from tilejit.arrays.memory import address, array_map

UNKNOWN: Any = "unknown"
"""In place of a number, this makes every decision that depends on it fail with a TypeError."""

NO_THRESHOLD = replace(machine(), stream_bytes=UNKNOWN)
NO_CACHE = replace(machine(), second_cache_bytes=UNKNOWN, stream_bytes=0)
WORD = Element("u32", 32)


def warned(call: Callable[[], Any], other: Machine = NO_THRESHOLD) -> Any:
    """The result of a call on a machine for which planning fails."""
    with described(other), pytest.warns(tj.FallbackWarning, match="please report") as found:
        result = call()
    assert found[0].filename == __file__
    assert "TypeError" in str(found[0].message)
    assert "CopyRequest" in str(found[0].message)
    return result


def test_one_warning_per_copy() -> None:
    a = np.arange(300 * 200, dtype=np.uint32).reshape(300, 200)
    out = np.zeros((200, 300), np.uint32)
    with described(NO_THRESHOLD):
        with pytest.warns(tj.FallbackWarning):
            tj.copyto(out, a.T)
        for _ in range(3):
            tj.copyto(out, a.T)  # a warning is an error here
    assert np.array_equal(out, a.T)


def test_a_conversion_on_threads() -> None:
    a = np.arange(300 * 200, dtype=np.float64).reshape(300, 200)
    out = np.zeros((200, 300), np.float32)
    warned(lambda: tj.copyto(out, a.T, threads=3))
    assert np.array_equal(out, a.T.astype(np.float32))


LAYOUTS = [
    "u32[130,260]{0,1:T(8,128)}",
    "s4[30,257]{1,0:T(8,128)(8,1)E(4)}",
    "s8[3,2,3,2,3,2,3,20]{0,2,4,6,1,3,5,7:T(2,2,2,3)}",
]
"""Layouts with padding: a transpose, packed bits, and more digits than a kernel has loops."""


@pytest.mark.parametrize("text", LAYOUTS)
def test_layouts(text: str, seed: int) -> None:
    spec: Any = tj.as_layout(text)
    count = int(np.prod(spec.dimensions))
    a = random_elements(np.random.default_rng(seed), spec.dtype, count).reshape(spec.dimensions)
    t = warned(lambda: tj.pack(a, spec, padding=3))
    fill = np.full(1, 3, spec.dtype)
    wanted = packed_by_definition(a, spec, fill, np.zeros(spec.size_in_bytes, np.uint8))
    assert np.array_equal(t.buffer.view(np.uint8), wanted)
    assert np.array_equal(warned(lambda: tj.unpack(t)), a)


def test_a_relayout_in_two_stages_runs_in_one() -> None:
    """Blocks depend on the second cache."""
    a = np.arange(1024 * 2048, dtype=np.uint16).reshape(1024, 2048)
    t = tj.pack(a, "{1,0:T(8,128)(2,1)}")
    again = warned(lambda: tj.relayout(t, "{0,1:T(8,128)(2,1)}"), NO_CACHE)
    assert np.array_equal(tj.unpack(again), a)


def requested(pick: Callable[[StridedBox, tuple[Schedule, ...]], Schedule]) -> CopyRequest:
    """A transpose of 300 x 200 words whose schedule `pick` returns."""
    a = np.zeros((300, 200), np.uint32)
    src, dst = array_map(a.T), array_map(np.zeros((200, 300), np.uint32))
    return CopyRequest(src, dst, WORD, WORD, options=CopyOptions(pick=pick))


def test_a_schedule_that_does_not_fit_its_box() -> None:
    """The message names the axis, and no process finds the plan in the store."""

    def unfit(_: StridedBox, schedules: tuple[Schedule, ...]) -> Schedule:
        return replace(schedules[0], outer=("i", "strip"), loops=(Joined("x", ("j",)),), directives=())

    with pytest.warns(tj.FallbackWarning, match="expected axis strip in"):
        program = compile_copy(requested(unfit))
    a, out = np.arange(300 * 200, dtype=np.uint32).reshape(300, 200), np.zeros((200, 300), np.uint32)
    program.run(address(a), address(out))
    assert np.array_equal(out, a.T)
    assert plan_of(program) is None


@pytest.mark.parametrize("kind", [tj.KernelError, tj.LayoutError, MemoryError, KeyboardInterrupt])
def test_other_errors_pass_through(kind: type[BaseException]) -> None:
    def fail(_: StridedBox, schedules: tuple[Schedule, ...]) -> Schedule:
        raise kind("as it is")

    with pytest.raises(kind, match="as it is"):
        compile_copy(requested(fail))


VERIFIED = """
from dataclasses import replace
import numpy as np, tilejit
from codegen.schedule.machine import described, machine
with described(replace(machine(), stream_bytes="unknown")):
    tilejit.copyto(np.zeros((200, 300)), np.zeros((300, 200)).T)
"""


def test_verified_processes_see_bugs() -> None:
    done = run_python(VERIFIED, TILEJIT_VERIFY="1")
    assert done.returncode == 1
    assert "TypeError" in done.stderr
    assert "FallbackWarning" not in done.stderr
