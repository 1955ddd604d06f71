"""How the lines of a loop are stored past the cache."""

from __future__ import annotations

from typing import Literal

from codegen.support.dataclasses import as_call, dataclass


@dataclass(frozen=True, slots=True)
class Stream:
    """Store full lines past the cache, if the address and the number of iterations allow this form.

    A directive. Transposes and kernels have at most one; other copies take the first one that applies.

    form    given    the caller ensures that blocks fill lines
            full     all iterations fill lines, from the first one on
            begun    the first iterations fill lines, and the others are stored through the cache
            carried  blocks of a transpose complete lines of result rows that begin anywhere in a line, with
                     bytes of the block before
            headed   the iterations before the first line are also stored through the cache; with Stage, they
                     leave scratch as the lines do
            aligned  as headed, but the lines are stored through the cache as well
    least   iterations from which on the form is faster
    """

    form: Literal["given", "full", "begun", "carried", "headed", "aligned"]
    least: int = 0

    __str__ = as_call
