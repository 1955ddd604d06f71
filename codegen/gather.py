"""All boxes of a copy in one launch: where runs share lines, a line is put together once and written once."""

from __future__ import annotations

from math import prod

from codegen.calls import Pattern, StretchCalls
from codegen.choose_stretches import STRETCH_LIMITS, stretches_of
from codegen.ir import Element, Gather, LoopNest, Ref
from codegen.kernel import Step, kernel_for
from codegen.launch import Launch
from codegen.lower_copy import LoweredCopy, box_nest, pad_nest
from codegen.passes.lift_sizes import lift_sizes
from codegen.refine import Box
from codegen.schedule import Schedule
from codegen.steps import Observer
from codegen.stretches import STRETCH_TABLES
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
    for box in copy.boxes:
        low, high = affine_range(box.src_base, [(n, s) for n, s, _ in box.digits])
        check_bounds("source", low, high + copy.src.width, copy.src.bounds)
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
    return Launch(step, StretchCalls(stretches, pattern), 0, copy.dst.bounds[0], stretches.count, pattern)
