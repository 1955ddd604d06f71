"""Prove the accesses of a launch, or of the calls of a loop kernel, from what is known before they run."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from codegen.analysis.bounds import known_sizes
from codegen.analysis.buffer_bounds import check_buffers
from codegen.analysis.given import Between, Given, Lines, Listed, Records, Storage, Table
from codegen.analysis.ranges import affine_range
from codegen.ir.element_types import bits_of
from codegen.ir.lines import LINE_BYTES
from codegen.ir.nodes import RESULTS, ScalarArg
from codegen.runtime.copy_calls import OFFSET_ARGUMENTS, TABLE_CHUNK, SegmentCalls, TableCalls
from codegen.runtime.launch import Launch
from codegen.runtime.loop_kernel import LoopKernel
from codegen.schedule.copy_nest import offset_tables
from codegen.schedule.segments import (
    BYTES,
    DST,
    NEXT,
    PART,
    SEGMENT_FIELDS,
    SEGMENT_PADDING,
    SEGMENT_TABLES,
    SRC,
    Segments,
)


def prove_launch(launch: Launch) -> int:
    """Prove that no call of a launch leaves the storages; return the number of accesses of its kernel.

    Raises:
        KernelError: an access may be outside of its storage, or has no rule.
    """
    return check_buffers(launch.step.kernel.function, given_of(launch))


def prove_loops(
    kernel: LoopKernel,
    shapes: Mapping[str, Sequence[int]],
    strides: Mapping[str, Sequence[int]],
    integers: Mapping[str, int],
) -> int:
    """Prove that no call with arrays of these shapes and strides (in bytes) leaves them."""
    given = given_of_calls(kernel, shapes, strides, integers)
    return check_buffers(kernel.emitted.function, given)


def given_of_calls(
    kernel: LoopKernel,
    shapes: Mapping[str, Sequence[int]],
    strides: Mapping[str, Sequence[int]],
    integers: Mapping[str, int],
) -> Given:
    """The numbers and the storages of the calls of a loop kernel."""
    numbers = known_sizes(shapes, integers)
    storages = {RESULTS: Storage(0, 8 * len(kernel.emitted.results))}
    for name, shape in shapes.items():
        numbers |= {f"{name}.stride[{k}]": step for k, step in enumerate(strides[name])}
        low, high = affine_range(0, list(zip(shape, strides[name], strict=True)))
        last_bytes = bits_of(kernel.function.array(name).dtype) // 8
        storages[name] = Storage(0, 0) if 0 in shape else Storage(low, high + last_bytes)
    return Given(numbers, storages, {}, kernel.trips(shapes, integers) or 0)


def given_of(launch: Launch) -> Given:
    """The numbers, the storages and the tables of every call of a launch."""
    values = dict(zip(launch.step.kernel.arguments, launch.sizes.tolist(), strict=True))
    scalars = [a.name for a in launch.step.kernel.function.arguments if isinstance(a, ScalarArg)]
    (src_low, src_stop), (dst_low, dst_stop) = launch.bounds
    storages = {
        "src": Storage(src_low, src_stop, launch.src_offset),
        "dst": Storage(dst_low, dst_stop, launch.dst_offset),
        SEGMENT_PADDING: Storage(0, LINE_BYTES),
    }
    trips = launch.trips
    if isinstance(launch.calls, TableCalls | SegmentCalls):
        trips = TABLE_CHUNK if isinstance(launch.calls, TableCalls) else 1 << 62
    numbers = {name: values[name] for name in scalars}
    return Given(numbers, storages, _tables(launch), trips, launch.scratch_bytes)


def _tables(launch: Launch) -> dict[str, Table]:
    nest = launch.step.nest
    tables: dict[str, Table] = {name: Listed(each.offsets) for name, each in offset_tables(nest).items()}
    match launch.calls:
        case TableCalls(reach=reach, bounds=bounds):
            for k, name in enumerate(OFFSET_ARGUMENTS[:2]):
                low, stop = bounds[k][0] - reach[2 * k], bounds[k][1] - reach[2 * k + 1]
                tables[name] = Between(low, stop)
        case SegmentCalls(segments):
            tables |= zip(SEGMENT_TABLES, (_records(segments), Listed(segments.moves)), strict=True)
    return tables


def _records(segments: Segments) -> Records:
    """The entries of segments, one kind for each part.

    What is carried into a segment was read from the adjacent segment before it, in the same line.
    """
    kinds = []
    for part, head in zip(segments.parts, segments.heads, strict=True):
        src = affine_range(part.src + part.lowest, [(n, step) for n, step, _ in part.outer])
        dst = affine_range(part.dst, [(n, step) for n, _, step in part.outer])
        fields = {SRC: src, NEXT: src, DST: dst, PART: (head, head), BYTES: (0, segments.length)}
        kinds.append(tuple(fields[k] for k in range(SEGMENT_FIELDS)))
    inside = tuple(-1 if k in (DST, BYTES) else 0 for k in range(SEGMENT_FIELDS))
    return Records(tuple(kinds), ((segments.stop, inside),), Lines("carried", DST, "dst"))
