"""The passes from the nest of a copy to loops over super-vectors that the emitter prints as they are."""

from __future__ import annotations

from codegen.ir.nodes import Alloc, Function
from codegen.passes.lower_copy import lower_copy
from codegen.pipeline.observer import Observer, verifying
from codegen.pipeline.passes import lower
from codegen.schedule.copy_nest import CopyNest


def lower_nest(nest: CopyNest, arguments: tuple[str, ...], observe: Observer, name: str) -> Function:
    """The loops of a nest as the emitter prints them; `observe` sees the function after each pass.

    arguments, name  as in `lower_copy`
    """
    function = lower_copy(nest, arguments, name)
    verifying(observe)("lower_copy", function)
    function = lower(function, nest, observe)
    in_scratch = [x.size_bytes for x in function.body if isinstance(x, Alloc) and x.space == "scratch"]
    lent = [nest.scratch_bytes] if nest.scratch_bytes else []
    if in_scratch != lent:
        raise AssertionError(f"expected {lent} bytes of scratch, got {in_scratch}")
    return function
