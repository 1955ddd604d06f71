"""Request the lines that a later iteration reads, while this one runs."""

from __future__ import annotations

from codegen.ir.nodes import Function
from codegen.passes.prefetch_bytes import prefetch_bytes
from codegen.passes.prefetch_entry import prefetch_entry
from codegen.passes.prefetch_tile import prefetch_tile
from codegen.schedule.copy_nest import CopyNest
from codegen.schedule.directives import Prefetch

FORMS = {"tile": prefetch_tile, "entry": prefetch_entry}
"""How the requests for a later iteration of a loop are made; of other loops by `prefetch_bytes`."""


def prefetch(function: Function, nest: CopyNest) -> Function:
    """Request the source of later iterations: the loads of this one, at other indices.

    before:  for x in 0..count step 64: dst[x] = src[x] [64]                         Prefetch("x", 256)
    after:   for x in 0..count step 64: dst[x] = src[x] [64]; prefetch src[x + 256] [64]
    """
    for how in nest.obeying(Prefetch):
        function = FORMS.get(how.loop, prefetch_bytes)(function, nest, how)
    return function
