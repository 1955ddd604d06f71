"""Launch plans, the form in which the store caches programs: the kernels by their digests, and all arguments.

The store has checked who wrote a plan and that it is undamaged, as it does with machine code. Plans are still
read strictly: anything that no version of this module writes is an error, and the plan counts as missing.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING, Any, TypeVar

from codegen.maps.access import AccessMap
from codegen.pipeline.program import CopyProgram
from codegen.runtime.calls import FILL_ARGUMENTS, PlainCall
from codegen.runtime.kernel import Kernel, noted
from codegen.runtime.launch import Launch
from codegen.runtime.stored_step import StoredStep

if TYPE_CHECKING:  # a stored program loads neither loops nor schedules
    from codegen.ir.nodes import Function
    from codegen.runtime.step import Step

MOST_LAUNCHES = 16
"""The largest number of launches in a plan."""

SCRATCH_BYTES = range(1 << 30)
"""Valid sizes of scratch."""

NUMBERS = range(-(1 << 63), 1 << 64)
"""Valid kernel arguments and offsets."""

ENTRIES = range(-(1 << 63), 1 << 63)
"""Valid entries of tables."""

Compile = Callable[[], CopyProgram]
"""Compiles the program of a plan, because the plan lacks its stages."""

T = TypeVar("T")


def plan_of(program: CopyProgram) -> dict[str, Any] | None:
    """The launch plan of a program; None if it has many launches, or builds tables while it runs.

    A fallback has none either, so that the next process tries again, and warns again if that fails.
    """
    launches = *program.first, *program.launches
    others = tuple(x.misaligned for x in launches if x.misaligned)
    if program.fallback or len(launches) > MOST_LAUNCHES or any(x.misaligned for x in others):
        return None
    if not all(_is_plain(x, program) for x in (*launches, *others)):
        return None
    return {
        "reads": program.reads,
        "first": [_plan_of_launch(launch) for launch in program.first],
        "launches": [_plan_of_launch(launch) for launch in program.launches],
    }


def _is_plain(launch: Launch, program: CopyProgram) -> bool:
    """Whether a launch is one call, proven within the bounds of the program."""
    return type(launch.calls) is PlainCall and launch.bounds == program.bounds


def _plan_of_launch(launch: Launch) -> dict[str, Any]:
    step, kernel = launch.step, launch.step.kernel
    return {
        "kernel": [kernel.name, kernel.digest, *kernel.arguments],
        "numbers": step.numbers,
        "tables": {name: table.ravel().tolist() for name, table in step.tables.items()},
        "step": [step.scratch_bytes, step.unit_bits, step.loop_stride],
        "launch": [launch.src_offset, launch.dst_offset, launch.trips],
        "fill": list(launch.fill) if launch.fill else None,
        "serial": launch.serial,
        "misaligned": _plan_of_launch(launch.misaligned) if launch.misaligned else None,
    }


def program_of(plan: dict[str, Any], src: AccessMap, dst: AccessMap, compile_it: Compile) -> CopyProgram:
    """The program that a launch plan describes, of a copy between these maps.

    compile_it  called to inspect the program, or if the machine code of a kernel is missing

    Raises:
        LookupError, TypeError, ValueError, AttributeError: the plan is invalid.
    """
    program = CopyProgram(src, dst, _typed(plan["reads"], bool), (), ())
    first, launches = _typed(plan["first"], list), _typed(plan["launches"], list)
    made = tuple(
        _launch(x, program, partial(_compiled, compile_it, k)) for k, x in enumerate((*first, *launches))
    )
    return CopyProgram(src, dst, program.reads, made[: len(first)], made[len(first) :])


def _launch(plan: dict[str, Any], program: CopyProgram, again: Callable[[], Launch]) -> Launch:
    name, digest, *arguments = (_typed(x, str) for x in plan["kernel"])
    numbers = {_typed(key, str): _number(value) for key, value in plan["numbers"].items()}
    tables = {_typed(key, str): tuple(map(_entry, _typed(x, list))) for key, x in plan["tables"].items()}
    scratch, unit_bits, stride = map(_number, plan["step"])
    src, dst, trips = map(_number, plan["launch"])
    fill = None
    if plan["fill"] is not None:
        low, high = map(_number, plan["fill"])
        fill = low, high
    other = plan["misaligned"]
    given = *numbers, *tables, *(FILL_ARGUMENTS if fill else ())
    if not name.isidentifier() or not digest.isalnum():
        raise ValueError(f"{name} is not a kernel of the digest {digest}")
    if sorted(arguments) != sorted(given):
        raise ValueError(f"{name} has arguments that the plan does not give")
    if other is not None and other["misaligned"] is not None:
        raise ValueError(f"{name} has two alternatives")
    if scratch not in SCRATCH_BYTES or unit_bits not in (1, 8) or trips < 0:
        raise ValueError(f"{name} has sizes that no program has")
    kernel = noted(Kernel(name, digest, tuple(arguments), partial(_function, again, digest)))
    return Launch(
        StoredStep(
            kernel,
            tuple(numbers.items()),
            tuple(tables.items()),
            scratch,
            unit_bits,
            stride,
            partial(_step, again),
        ),
        PlainCall(),
        src,
        dst,
        trips,
        program.bounds,
        fill,
        _typed(plan["serial"], bool),
        None if other is None else _launch(other, program, partial(_misaligned, again)),
    )


def _compiled(compile_it: Compile, number: int) -> Launch:
    """The launch with that number, compiled."""
    program = compile_it()
    launches = *program.first, *program.launches
    if number >= len(launches):
        raise AssertionError(f"a program of {len(launches)} launches has a plan with launch {number + 1}")
    return launches[number]


def _misaligned(again: Callable[[], Launch]) -> Launch:
    """The alternative of a launch, compiled."""
    found = again().misaligned
    if found is None:
        raise AssertionError("a launch without a misaligned alternative has a plan with one")
    return found


def _step(again: Callable[[], Launch]) -> Step:
    return again().step


def _function(again: Callable[[], Launch], digest: str) -> Function:
    """The loops of the kernel with that digest, compiled."""
    kernel = again().step.kernel
    if kernel.digest != digest:
        raise AssertionError(f"{kernel.name} is not the kernel of its launch plan")
    return kernel.function


def _typed(value: Any, kind: type[T]) -> T:
    if type(value) is not kind:
        raise TypeError(f"expected {kind.__name__}, got {type(value).__name__}")
    return value


def _entry(value: Any) -> int:
    if _typed(value, int) not in ENTRIES:
        raise ValueError(f"{value} is not an entry of a table")
    return int(value)


def _number(value: Any) -> int:
    if _typed(value, int) not in NUMBERS:
        raise ValueError(f"{value} is not an argument of a kernel")
    return int(value)
