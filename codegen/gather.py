"""All boxes of a copy in one launch: where runs share lines, a line is put together once and written once."""

from __future__ import annotations

from math import prod

from codegen.calls import Pattern, PlainCall, StretchCalls
from codegen.choose import padded_rank
from codegen.choose_places import Places, places_of
from codegen.choose_stretches import STRETCH_LIMITS, stretches_of
from codegen.ir import Buffer, CopyPieces, Element, For, Gather, LoopNest, Ref, wrap
from codegen.kernel import Step, kernel_for
from codegen.launch import Launch
from codegen.lower_copy import LoweredCopy, box_nest, pad_nest
from codegen.passes.lift_sizes import lift_sizes
from codegen.passes.normalise import int_size
from codegen.passes.pad_rank import pad_rank
from codegen.refine import Box
from codegen.schedule import Schedule
from codegen.steps import Observer
from codegen.stretches import STRETCH_TABLES, Stretches
from codegen.tiles import LINE_TABLE, PackedLines
from codegen.verify import affine_range, check_bounds


def gathered(
    copy: LoweredCopy, element: Element, pattern: Pattern | None, observe: Observer
) -> Launch | None:
    """The launch of a whole copy without conversions; None where its boxes are better moved one by one.

    `pattern` is the padding as two numbers of eight bytes, or None to leave padding as it is.
    """
    stretches = stretches_of(copy, padded=pattern is not None, limits=STRETCH_LIMITS)
    if stretches is None:
        return None
    _check(copy)
    _check_stretches(copy, stretches)
    largest, *others = sorted(copy.boxes, key=lambda b: -b.volume)
    nests = [box_nest(copy, box, element, element) for box in (largest, *(b for b in others if b.volume))]
    for pad in copy.pads if pattern is not None else ():
        digits = tuple((n, 0, step) for n, step in pad.digits)
        if prod(n for n, _, _ in digits):
            nests.append(pad_nest(copy, Box(0, pad.dst_base, digits), element))
    for nest in nests:
        observe("box", nest)
    transfer = Gather(Ref("dst", copy.dst.bounds[0], ()), Ref("src", 0, ()), stretches)
    vectorised = LoopNest(nests[0].buffers, transfer)
    observe("gathered", vectorised)
    lifted, _ = lift_sizes(vectorised)
    observe("lift_sizes", lifted)
    kernel = kernel_for(lifted, STRETCH_TABLES)
    step = Step(nests[0], Schedule("gather", (), (), stream=True), vectorised, kernel, (), tuple(nests[1:]))
    calls, bounds = StretchCalls(stretches, pattern), (copy.src.byte_bounds, copy.dst.byte_bounds)
    return Launch(step, calls, 0, copy.dst.bounds[0], stretches.count, pattern, bounds=bounds)


def placed(
    copy: LoweredCopy, element: Element, pattern: Pattern | None, observe: Observer, *, stream: bool
) -> Launch | None:
    """The launch of a copy whose boxes write the same pieces side by side, place after place, by one table of
    them; None where they do not, where padding is written besides, or where another way reads better.
    """
    found = places_of(copy)
    pads = pattern is not None and (copy.fill_first or any(p.volume for p in copy.pads))
    if found is None or pads or (stream and not found.is_near):
        return None
    _check(copy)
    _check_places(copy, found)
    nests = [box_nest(copy, box, element, element) for box in copy.boxes if box.volume]
    for nest in nests:
        observe("box", nest)
    axes = [f"d{k}" for k in range(len(found.outer))]
    src, dst = (
        Ref(name, at, tuple((a, d[k]) for a, d in zip(axes, found.outer, strict=True)))
        for k, name, at in ((1, "src", found.src), (2, "dst", found.dst))
    )
    piece = Element(f"u{8 * found.width}", 8 * found.width)
    lines = PackedLines(listed=found.offsets)
    transfer = CopyPieces(dst, src, found.width, len(found.offsets), lines, stream)
    loops = tuple(For(a, d[0], transfer) for a, d in zip(axes, found.outer, strict=True))
    schedule = Schedule("pieces", tuple(axes), (), rank=padded_rank(len(axes)), stream=stream)
    buffers = tuple(Buffer(name, piece, 8) for name in ("src", "dst"))
    vectorised = pad_rank(LoopNest(buffers, wrap(loops, None, transfer)), schedule)
    observe("placed", vectorised)
    lifted, sizes = lift_sizes(vectorised)
    observe("lift_sizes", lifted)
    kernel = kernel_for(lifted, (LINE_TABLE, *(name for name, _ in sizes)))
    step = Step(nests[0], schedule, vectorised, kernel, sizes, tuple(nests[1:]))
    bounds = copy.src.byte_bounds, copy.dst.byte_bounds
    trips = int_size(vectorised.loops[0].extent)
    return Launch(step, PlainCall(), found.src, found.dst, trips, bounds=bounds)


def _check_stretches(copy: LoweredCopy, stretches: Stretches) -> None:
    """Prove of the tables themselves that what they gather stays in the source, the buffer, the destination.

    A part's runs are read from `src` on, put at `place` of the buffer, and go out with the stretch at `dst`.
    """
    for part in stretches.parts:
        digits = (*part.inner, *part.outer)
        low, high = affine_range(part.src, [(n, step) for n, step, _ in digits])
        if not part.fills:
            check_bounds("source", low, high + part.run, copy.src.bounds)
        low, high = affine_range(part.place, [(n, step) for n, _, step in part.inner])
        check_bounds("buffer of a stretch", low, high + part.run, (0, stretches.length))
        at, last = affine_range(part.dst, [(n, step) for n, _, step in part.outer])
        check_bounds("destination", at + low, last + high + part.run, (0, stretches.stop))
        along = sum((n - 1) * step for n, _, step in part.outer if step % stretches.row)
        at = part.dst % stretches.row
        check_bounds("row of stretches", at + low, at + along + high + part.run, (0, stretches.filled))
    low, stop = copy.dst.bounds
    check_bounds("destination", low, low + stretches.stop, (low, stop))


def _check_places(copy: LoweredCopy, places: Places) -> None:
    """The same of the pieces that are read at every place, and written there side by side."""
    low, high = affine_range(places.src, [(n, step) for n, step, _ in places.outer])
    nearest, farthest = min(places.offsets), max(places.offsets) + places.width
    check_bounds("source", low + nearest, high + farthest, copy.src.bounds)
    low, high = affine_range(places.dst, [(n, step) for n, _, step in places.outer])
    check_bounds("destination", low, high + places.bytes_each, copy.dst.bounds)


def _check(copy: LoweredCopy) -> None:
    """Prove that no box leaves the storages."""
    for box in copy.boxes:
        for side, base, k, access in (
            ("source", box.src_base, 1, copy.src),
            ("destination", box.dst_base, 2, copy.dst),
        ):
            low, high = affine_range(base, [(d[0], d[k]) for d in box.digits])
            check_bounds(side, low, high + access.width, access.bounds)
