"""The passes that run in groups, in order, and how they run.

A copy:   NORMALIZE, WIDEN, SPLIT, CUT, SELECT; `parametrize_sizes` names its sizes, and `lower_copy`
          makes its loops. Copies of joined boxes have JOIN instead of the passes before these two.
A kernel: `tile`, for the order of its loops, `super_vectorize`, `tile`; its registers are chosen from the
          vectorized loops.
Both:     `function_passes`.

Each pass takes a form and the decision that it obeys, which a file of `schedule/` made.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, TypeAlias

from codegen.ir.streams import Stream
from codegen.passes.join_boxes import join_boxes
from codegen.passes.make_nest import make_nest
from codegen.passes.move_bytes import move_bytes
from codegen.passes.normalize import coalesce, drop_units, face_forward, order_by_destination
from codegen.passes.split_axes import cut_axes, split_axes
from codegen.passes.widen_elements import widen_elements
from codegen.pipeline.observer import Form, Observer, nobody, verifying
from codegen.schedule.directives import (
    Assemble,
    Directed,
    Directive,
    Parallel,
    Prefetch,
    Registers,
    Relax,
    Reorder,
    Stage,
    Tile,
    Vectorize,
)

if TYPE_CHECKING:  # copies whose kernels are stored load no loops
    from codegen.ir.nodes import Function

Pass: TypeAlias = Callable[[Any, Any], Any]
"""A form and a decision in, a form out; or several, of the boxes that one was split into."""

NORMALIZE = (drop_units, face_forward, coalesce, order_by_destination)
"""Box to box: one form for equivalent copies. These take no decision."""

WIDEN = (widen_elements,)
"""Box to box: the axes that `wide_axes` chose become a part of the element."""

SPLIT = (split_axes, drop_units)
"""Box to boxes, as `choose_cuts` says."""

CUT = (move_bytes, cut_axes)
"""Box to boxes, as the schedule says."""

SELECT = (make_nest,)
"""Box to nest: the schedule as directives."""

JOIN = (join_boxes,)
"""Boxes to one nest, as `choose_joined` decided."""


def function_passes() -> tuple[tuple[Pass, tuple[type[Directive], ...]], ...]:
    """Function to function, for copies and kernels: from loops to what the emitter prints as it is.

    Each pass obeys directives of these kinds, and does not run without one; those with none always run.
    Stored kernels need no passes, so they are imported here.
    """
    from codegen.passes.assemble_rows import assemble_rows
    from codegen.passes.expand_accumulations import expand_accumulations
    from codegen.passes.fence_streams import fence_streams
    from codegen.passes.hoist_elements import hoist_elements
    from codegen.passes.hoist_rows import hoist_rows
    from codegen.passes.lower_addresses import lower_addresses
    from codegen.passes.peel_strips import peel_strips
    from codegen.passes.peel_tails import peel_tails
    from codegen.passes.peel_vectors import peel_vectors
    from codegen.passes.prefetch import prefetch
    from codegen.passes.relax_floats import relax_floats
    from codegen.passes.resize_integers import resize_integers
    from codegen.passes.run_rows import run_rows
    from codegen.passes.select_instructions import select_instructions
    from codegen.passes.select_moves import select_moves
    from codegen.passes.share_loop import share_loop
    from codegen.passes.simplify import simplify
    from codegen.passes.split_registers import split_registers
    from codegen.passes.stage import stage
    from codegen.passes.stream_lines import stream_lines
    from codegen.passes.super_vectorize import super_vectorize
    from codegen.passes.tile import tile
    from codegen.passes.widen_halves import widen_halves

    return (
        (tile, (Tile, Reorder)),
        (assemble_rows, (Assemble,)),
        (expand_accumulations, ()),
        (share_loop, (Parallel,)),
        (run_rows, (Registers,)),
        (hoist_elements, (Registers,)),
        (peel_strips, (Tile, Registers)),
        (stage, (Stage,)),
        (stream_lines, (Stream,)),
        (lower_addresses, ()),
        (super_vectorize, (Vectorize,)),
        (peel_vectors, (Vectorize,)),
        (select_moves, (Vectorize,)),
        (peel_tails, (Registers,)),
        (prefetch, (Prefetch,)),
        (hoist_rows, (Registers,)),
        (split_registers, (Registers,)),
        (select_instructions, (Registers,)),
        (relax_floats, (Relax,)),
        (widen_halves, ()),
        (resize_integers, ()),
        (simplify, ()),
        (fence_streams, ()),
    )


def lower(function: Function, schedule: Directed, observe: Observer = nobody) -> Function:
    """The function as the emitter prints it; `observe` sees it after each pass."""
    seen = verifying(observe)
    for run, kinds in function_passes():
        if not kinds or any(isinstance(x, kinds) for x in schedule.directives):
            function = run(function, schedule)
        seen(run.__name__, function)
    return function


def run_passes(
    passes: tuple[Pass, ...], form: Any, decision: Any, observe: Observer = nobody
) -> tuple[Any, ...]:
    """Run the passes on a form; return one form, or the boxes that a box was split into.

    `observe` sees the results of each pass.
    """
    forms: tuple[Form, ...] = (form,)
    for run in passes:
        results = [run(each, decision) for each in forms]
        forms = tuple(x for made in results for x in (made if isinstance(made, tuple) else (made,)))
        for each in forms:
            observe(run.__name__, each)
    return forms
