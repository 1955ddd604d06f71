"""What the store notes of a program: numbers that its launches run with, and its kernels by their digests.

The store has checked who wrote a note and that it is undamaged, as it does with machine code. A note is read
strictly all the same: anything that no version of this module wrote is an error, which counts as no note.
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
"""The most launches of a program that is noted."""

SCRATCH_BYTES = range(1 << 30)
"""The sizes of scratch that are valid in a note."""

NUMBERS = range(-(1 << 63), 1 << 64)
"""The arguments of kernels, and offsets, that are."""

ENTRIES = range(-(1 << 63), 1 << 63)
"""The entries of tables that are."""

Compile = Callable[[], CopyProgram]
"""Compiles the program of a note, whose stages the note lacks."""

T = TypeVar("T")


def note_of(program: CopyProgram) -> dict[str, Any] | None:
    """The note of a program; None if launches are many, or need tables that are built while they run."""
    launches = *program.first, *program.launches
    others = tuple(x.misaligned for x in launches if x.misaligned)
    if len(launches) > MOST_LAUNCHES or any(x.misaligned for x in others):
        return None
    if not all(_is_plain(x, program) for x in (*launches, *others)):
        return None
    return {
        "reads": program.reads,
        "first": [_note_of_launch(launch) for launch in program.first],
        "launches": [_note_of_launch(launch) for launch in program.launches],
    }


def _is_plain(launch: Launch, program: CopyProgram) -> bool:
    """Whether a launch is one call, proven within the bounds of the program."""
    return type(launch.calls) is PlainCall and launch.bounds == program.bounds


def _note_of_launch(launch: Launch) -> dict[str, Any]:
    step, kernel = launch.step, launch.step.kernel
    return {
        "kernel": [kernel.name, kernel.digest, *kernel.arguments],
        "numbers": step.numbers,
        "tables": {name: table.ravel().tolist() for name, table in step.tables.items()},
        "step": [step.scratch_bytes, step.unit_bits, step.loop_stride],
        "launch": [launch.src_offset, launch.dst_offset, launch.trips],
        "fill": list(launch.fill) if launch.fill else None,
        "serial": launch.serial,
        "misaligned": _note_of_launch(launch.misaligned) if launch.misaligned else None,
    }


def program_of(note: dict[str, Any], src: AccessMap, dst: AccessMap, compile_it: Compile) -> CopyProgram:
    """The program that a note describes, of a copy between these maps.

    Raises:
        LookupError, TypeError, ValueError: the note does not describe one.
    """
    program = CopyProgram(src, dst, _typed(note["reads"], bool), (), ())
    first, launches = _typed(note["first"], list), _typed(note["launches"], list)
    made = tuple(
        _launch(x, program, partial(_compiled, compile_it, k)) for k, x in enumerate((*first, *launches))
    )
    return CopyProgram(src, dst, program.reads, made[: len(first)], made[len(first) :])


def _launch(note: dict[str, Any], program: CopyProgram, again: Callable[[], Launch]) -> Launch:
    name, digest, *arguments = (_typed(x, str) for x in note["kernel"])
    numbers = {_typed(key, str): _number(value) for key, value in note["numbers"].items()}
    tables = {_typed(key, str): tuple(map(_entry, _typed(x, list))) for key, x in note["tables"].items()}
    scratch, unit_bits, stride = map(_number, note["step"])
    src, dst, trips = map(_number, note["launch"])
    fill = None
    if note["fill"] is not None:
        low, high = map(_number, note["fill"])
        fill = low, high
    other = note["misaligned"]
    given = *numbers, *tables, *(FILL_ARGUMENTS if fill else ())
    if not name.isidentifier() or sorted(arguments) != sorted(given):
        raise ValueError(f"{name} has arguments that no note gives")
    if other is not None and other["misaligned"] is not None:
        raise ValueError(f"{name} has two alternatives")
    if scratch not in SCRATCH_BYTES or unit_bits not in (1, 8) or trips < 0:
        raise ValueError(f"{name} has sizes that no program has")
    kernel = noted(Kernel(name, digest, tuple(arguments), partial(_function, again)))
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
        _typed(note["serial"], bool),
        None if other is None else _launch(other, program, partial(_misaligned, again)),
    )


def _compiled(compile_it: Compile, number: int) -> Launch:
    """The launch with that number, compiled."""
    program = compile_it()
    return (*program.first, *program.launches)[number]


def _misaligned(again: Callable[[], Launch]) -> Launch:
    """The alternative of a launch, compiled."""
    launch = again()
    return launch.misaligned or launch


def _step(again: Callable[[], Launch]) -> Step:
    return again().step


def _function(again: Callable[[], Launch]) -> Function:
    return again().step.kernel.function


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
