"""The steps from the transfer of a copy to loops over super-vectors that the emitter prints as they are."""

from __future__ import annotations

from collections.abc import Callable

from codegen.ir.nodes import Function
from codegen.passes.fence_streams import fence_streams
from codegen.passes.lower_transfer import declared, lower_transfer
from codegen.passes.narrow_tails import narrow_tails
from codegen.passes.prefetch_ahead import prefetch_ahead
from codegen.passes.prefetch_elements import prefetch_elements
from codegen.passes.prefetch_later_entry import prefetch_later_entry
from codegen.passes.prefetch_next_tile import prefetch_next_tile
from codegen.passes.stage_rows import stage_rows
from codegen.passes.stream_lines import stream_lines
from codegen.schedule.transfers import TransferNest

LOWER_COPIES = (
    lower_transfer,
    prefetch_later_entry,
    stream_lines,
    stage_rows,
    prefetch_ahead,
    prefetch_elements,
    prefetch_next_tile,
    narrow_tails,
    fence_streams,
)
"""The passes that lower a copy, in order; each takes a function and the nest of its transfer."""


def lower_copy(
    nest: TransferNest,
    arguments: tuple[str, ...],
    observe: Callable[[str, Function], None] | None = None,
) -> Function:
    """The loops of a nest; `observe` sees the function after each pass.

    arguments  as in `declared`
    """
    function = declared(nest, arguments)
    for run in LOWER_COPIES:
        function = run(function, nest)
        if observe is not None:
            observe(run.__name__, function)
    return function
