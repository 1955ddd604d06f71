"""The passes that run in groups, in order, and how they run.

A copy:   NORMALIZE, WIDEN, SPLIT, STRIP, SELECT, PARAMETRIZE, `copy_passes`.
          Copies of joined boxes have JOIN instead of the passes before PARAMETRIZE.
A kernel: `tile`, for the order of its loops, `super_vectorize`, `tile`, `vector_passes`.

Each pass takes a form and the decision that it obeys, which a file of `schedule/` made.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from typing import Any, TypeAlias

from codegen.passes.block_axes import block_axes
from codegen.passes.join_boxes import join_boxes
from codegen.passes.make_nest import make_nest
from codegen.passes.move_bytes import move_bytes
from codegen.passes.normalize import coalesce, drop_units, face_forward, order_by_destination
from codegen.passes.parametrize import parametrize_sizes
from codegen.passes.split_axes import split_axes
from codegen.passes.strip_mine import strip_mine
from codegen.passes.widen_elements import widen_elements
from codegen.pipeline.observer import Form, Observer, nobody

Pass: TypeAlias = Callable[[Any, Any], Any]
"""A form and a decision in, a form out; or several, of the boxes that one was split into."""

NORMALIZE = (drop_units, face_forward, coalesce, order_by_destination)
"""Box to box: one form for equivalent copies. These take no decision."""

WIDEN = (widen_elements,)
"""Box to box: the axes that `wide_axes` chose become a part of the element."""

SPLIT = (split_axes,)
"""Box to boxes, as `choose_cuts` says; then as `cuts_of_long_digits` does, if the schedule splits them."""

BLOCK = (block_axes,)
"""Box to boxes, as `cache_blocks` says."""

STRIP = (move_bytes, strip_mine)
"""Box to boxes, as the schedule says."""

SELECT = (make_nest,)
"""Box to nest: the schedule as directives."""

JOIN = (join_boxes,)
"""Boxes to one nest, as `choose_joined` decided."""

PARAMETRIZE = (parametrize_sizes,)
"""Nest to the same with names for sizes, unless the caller wants a size as a literal."""


def copy_passes() -> tuple[Pass, ...]:
    """Function to function: from scalar loops to super-vectors that the emitter prints as they are.

    Each obeys directives of the nest. Stored kernels need none of these, so they are imported here.
    """
    from codegen.passes.assemble_rows import assemble_rows
    from codegen.passes.fence_streams import fence_streams
    from codegen.passes.find_next_tile import find_next_tile
    from codegen.passes.lower_copy import lower_copy
    from codegen.passes.prefetch_ahead import prefetch_ahead
    from codegen.passes.prefetch_elements import prefetch_elements
    from codegen.passes.prefetch_later_entry import prefetch_later_entry
    from codegen.passes.share_loop import share_loop
    from codegen.passes.simplify import simplify
    from codegen.passes.stage_tiles import stage_tiles
    from codegen.passes.stream_lines import stream_lines
    from codegen.passes.tile import tile
    from codegen.passes.vectorize_axes import vectorize_axes

    @wraps(tile)
    def tile_nest(function: Any, nest: Any) -> Any:
        return tile(function, nest.directives)

    return (
        lower_copy,
        tile_nest,
        assemble_rows,
        share_loop,
        find_next_tile,
        stage_tiles,
        stream_lines,
        prefetch_later_entry,
        prefetch_elements,
        vectorize_axes,
        prefetch_ahead,
        simplify,
        fence_streams,
    )


def vector_passes() -> tuple[Pass, ...]:
    """Function to function: from super-vectors to registers, as the schedule of registers says."""
    from codegen.passes.expand_accumulations import expand_accumulations
    from codegen.passes.fence_streams import fence_streams
    from codegen.passes.fit_lines import fit_lines
    from codegen.passes.hoist_elements import hoist_elements
    from codegen.passes.hoist_rows import hoist_rows
    from codegen.passes.lower_addresses import lower_addresses
    from codegen.passes.order_arguments import order_arguments
    from codegen.passes.peel_tails import peel_tails
    from codegen.passes.relax_floats import relax_floats
    from codegen.passes.resize_integers import resize_integers
    from codegen.passes.run_rows import run_rows
    from codegen.passes.share_first_loop import share_first_loop
    from codegen.passes.simplify import simplify
    from codegen.passes.split_registers import split_registers
    from codegen.passes.unmask_lanes import unmask_lanes
    from codegen.passes.widen_halves import widen_halves

    return (
        unmask_lanes,
        expand_accumulations,
        share_first_loop,
        run_rows,
        hoist_elements,
        lower_addresses,
        peel_tails,
        hoist_rows,
        split_registers,
        relax_floats,
        widen_halves,
        resize_integers,
        simplify,
        order_arguments,
        fit_lines,
        fence_streams,
    )


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
