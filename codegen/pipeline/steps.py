"""Turn a box and its schedule into a kernel, and the kernel into a launch."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING

from codegen.analysis.ranges import affine_range, check_range
from codegen.ir.streams import Stream
from codegen.ir.strided_box import StridedBox
from codegen.maps.refine import PairTable
from codegen.passes.parametrize import loop_axes, loop_letters, parametrize_sizes
from codegen.pipeline.copy_options import SIZES, STRUCTURE
from codegen.pipeline.observer import Observer, nobody
from codegen.pipeline.passes import CUT, SELECT, run_passes
from codegen.pipeline.verify import check_lanes, check_stage
from codegen.runtime.calls import FILL_ARGUMENTS, Pattern
from codegen.runtime.copy_calls import OFFSET_ARGUMENTS, calls_for
from codegen.runtime.kernel import Kernel, shared
from codegen.runtime.launch import Launch
from codegen.runtime.step import Step
from codegen.schedule.choose import misaligned
from codegen.schedule.conditions import Conditions
from codegen.schedule.copy_nest import (
    CopyNest,
    kernel_name,
    offset_tables,
    structure_digest,
)
from codegen.schedule.directives import Gather, Vectorize
from codegen.schedule.loops import int_size
from codegen.schedule.schedule import Schedule
from codegen.schedule.segments import SEGMENT_ARGUMENTS
from codegen.support.caching import Cache
from codegen.support.errors import KernelError, ScheduleError
from codegen.support.locks import compiler_lock
from codegen.support.settings import settings

if TYPE_CHECKING:  # copies whose kernels are stored load no loops
    from codegen.ir.nodes import Function


def step_of(
    box: StridedBox,
    schedule: Schedule,
    *,
    specialize: str = STRUCTURE,
    given: str = "",
    literals: tuple[str, ...] = (),
    observe: Observer = nobody,
) -> Step:
    """Run a box through the scheduled passes and find its kernel.

    given     directives as text, instead of those of the schedule
    literals  the names of sizes that remain numbers
    """
    (nest,) = run_passes(SELECT, box, schedule, observe)
    if given:
        from codegen.schedule.given_nest import given_nest  # which few copies need

        schedule = replace(schedule, given=True)
        nest = given_nest(nest, given)
    elif settings().verify:
        from codegen.schedule.check_nest import check_nest

        check_nest(nest)

    def is_literal(name: str) -> bool:
        return specialize == SIZES or name in literals

    kernel, sizes = kernel_of(nest, first_arguments(nest), observe, is_literal)
    if given:
        check_instructions(nest, given, kernel)
    return Step(box, schedule, nest, kernel, sizes)


def kernel_of(
    nest: CopyNest,
    arguments: tuple[str, ...],
    observe: Observer,
    is_literal: Callable[[str], bool] = lambda name: False,
) -> tuple[Kernel, tuple[tuple[str, int], ...]]:
    """The kernel of a nest, and the values of its sizes.

    arguments   the kernel's first arguments; names of sizes follow
    is_literal  as in `parametrize_sizes`
    """
    made = parametrize_sizes(nest, loop_letters(nest), is_literal)
    names = (*arguments, *(name for name, _ in made.sizes))
    with compiler_lock:
        key = made.nest, names
        kernel = _by_structure.get(key) or _by_structure.keep(key, _kernel(*key))
    if observe is not nobody:
        function_of(nest, kernel, observe)
    return kernel, made.sizes


def function_of(nest: CopyNest, kernel: Kernel, observe: Observer = nobody) -> Function:
    """The loops of a nest's kernel for readers: names of axes in place of the letters that copies share."""
    from codegen.pipeline.lower_nest import lower_nest  # which kernels that are stored do not need

    letters = dict(zip(loop_axes(nest), loop_letters(nest), strict=True))

    def is_literal(name: str) -> bool:
        axis, _, size = name.rpartition("_")
        shared = f"{letters[axis]}_{size}" if axis in letters else name
        return shared not in kernel.arguments

    made = parametrize_sizes(nest, loop_axes(nest), is_literal)
    observe("parametrize_sizes", made)
    arguments = *first_arguments(nest), *(name for name, _ in made.sizes)
    return lower_nest(made.nest, arguments, observe, kernel.name)


def source_of_step(step: Step) -> str:
    """The source of a step's kernel with the names of the box's axes, and a comment with their extents."""
    from codegen.emit.source import source_of

    return f"# {step.axes}\n{source_of(function_of(step.nest, step.kernel))}"


_by_structure: Cache[tuple[CopyNest, tuple[str, ...]], Kernel] = Cache()


def _kernel(nest: CopyNest, arguments: tuple[str, ...]) -> Kernel:
    """The kernel of a nest whose sizes are names; it is lowered when its loops are first needed."""
    digest = structure_digest(nest, arguments)
    name = kernel_name(nest, digest)
    return shared(Kernel(name, digest, arguments, partial(_lowered, nest, arguments, name)))


def _lowered(nest: CopyNest, arguments: tuple[str, ...], name: str) -> Function:
    from codegen.pipeline.lower_nest import lower_nest  # which kernels that are stored do not need

    return lower_nest(nest, arguments, nobody, name)


def first_arguments(nest: CopyNest) -> tuple[str, ...]:
    """The arguments of a kernel before its sizes: tables and padding."""
    return (
        *(OFFSET_ARGUMENTS if nest.entries else ()),
        *offset_tables(nest),
        *(SEGMENT_ARGUMENTS if nest.obeying(Gather) else ()),
        *(FILL_ARGUMENTS if nest.fills else ()),
    )


def check_instructions(nest: CopyNest, text: str, kernel: Kernel) -> None:
    """Check that the lanes of a text have instructions.

    Raises:
        ScheduleError: there is none.
    """
    from codegen.ir.instruction import NoInstructionError
    from codegen.ir.verifier import verify
    from codegen.schedule.read_directives import pointing, refuse

    try:
        verify(kernel.function)
    except NoInstructionError as error:
        lanes = next(iter(nest.obeying(Vectorize)), None)
        with pointing(
            text, nest.directives, "write other powers of two; `explain` prints the compiler's own"
        ):
            refuse(str(error), lanes)


def with_given_schedule(launch: Launch, otherwise: Launch) -> Launch:
    """The launch of a schedule that a user wrote, once every access of its kernel is proven.

    otherwise  the launch of the same box with the compiler's schedule, for destinations that do not begin
               a line if the schedule streams blocks in place

    Raises:
        ScheduleError: an access may be outside of its storage.
    """
    from codegen.pipeline.proofs import prove_launch

    try:
        prove_launch(launch)
    except KernelError as error:
        raise ScheduleError(f"schedule: {error}\n  `explain` prints lanes and tails of the copy") from None
    if all(x.form != "given" for x in launch.step.nest.obeying(Stream)):
        return launch
    return replace(launch, misaligned=otherwise.misaligned or otherwise)


def launch_of(
    step: Step,
    bounds: tuple[tuple[int, int], tuple[int, int]],
    tables: tuple[PairTable, ...] = (),
    fill: Pattern | None = None,
) -> Launch:
    """The launch of a box that has a kernel; it is proven to stay within `bounds`.

    bounds  [low, stop) of source and destination, in units

    Raises:
        KernelError: the box leaves the bounds, or a transpose leaves the box or its block. Entries of tables
            are checked when they are made. With TILEJIT_VERIFY, also if an access of the kernel may leave
            its storage.
    """
    reach = reach_of(step.box)
    if not tables:
        if step.box.source:
            check_range("source", *reach[:2], bounds[0])
        check_range("destination", *reach[2:], bounds[1])
    box, scale = step.box, step.nest.unit_bits // step.box.unit_bits
    starts = box.src // scale, box.dst // scale
    _check_nest(step.nest, starts, reach)
    calls = calls_for(step, tables, bounds, reach)
    src_bytes, dst_bytes = ((low * box.unit_bits // 8, -(-stop * box.unit_bits // 8)) for low, stop in bounds)
    trips = step.nest.trips
    launch = Launch(
        step,
        calls,
        *starts,
        trips,
        (src_bytes, dst_bytes),
        fill,
        serial=step.nest.unit_bits == 1,
    )
    return proven(launch)


def _check_nest(nest: CopyNest, starts: tuple[int, int], reach: tuple[int, int, int, int]) -> None:
    """The bounds of nests that read lanes beyond rows, or stage complete result rows."""
    others = [(int_size(x.extent), int_size(x.src)) for x in nest.others]
    if nest.reads:
        check_lanes(nest.reads, nest.axis("row"), nest.lanes["row"], others, starts[0], reach)
    if nest.stages_rows:
        check_stage(nest, starts, reach)


def proven(launch: Launch) -> Launch:
    """The launch; with TILEJIT_VERIFY, once every access of its kernel is proven.

    Raises:
        KernelError: an access may be outside of its storage.
    """
    if settings().verify:
        from codegen.pipeline.proofs import prove_launch

        prove_launch(launch)
    return launch


def with_alternative(
    launch: Launch, when: Conditions, make: Callable[[StridedBox, Schedule], Launch]
) -> Launch:
    """The launch with a fallback for destinations that are not aligned to a cache line.

    Its schedule is chosen for the box of the launch, which is cut for it as it says.
    """
    otherwise = misaligned(launch.step.schedule, launch.step.box, when)
    if otherwise is None:
        return launch
    parts = run_passes(CUT, launch.step.box, otherwise)
    if len(parts) > 1:
        raise AssertionError(f"expected a schedule for one launch, got one for {len(parts)}: {otherwise}")
    return replace(launch, misaligned=make(parts[0], otherwise))


def reach_of(box: StridedBox) -> tuple[int, int, int, int]:
    """The units that a box touches: [low, stop) of the source, then of the destination.

    A missing source has zeros.
    """
    low, high = affine_range(box.dst, [(x.extent, x.dst) for x in box.axes])
    written = low, high + box.width
    if box.source is None:
        return 0, 0, *written
    low, high = affine_range(box.src, [(x.extent, x.src) for x in box.axes])
    return low, high + box.source_width, *written
