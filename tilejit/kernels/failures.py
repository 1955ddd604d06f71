"""What is said of loops that stay scalar: nothing, a warning or an error, as `on_fail` asks."""

from __future__ import annotations

import warnings

from codegen import KernelError
from tilejit.kernels.program import LoopProgram
from tilejit.support.callers import caller_stacklevel


class KernelWarning(UserWarning):
    """A kernel runs, but not in super-vectors, and `on_fail="warn"` was asked for."""

    __module__ = "tilejit"


def judge(program: LoopProgram, name: str) -> None:
    """Say, or refuse, where loops stay scalar, as the options of a program ask.

    Raises:
        KernelError: a nest has no loop that runs as lanes, and on_fail="raise".
    """
    on_fail = program.options.on_fail
    failures = () if on_fail == "scalar" else program.failures
    if not failures:
        return
    text = "\n  ".join([f"{name} is not vectorized throughout", *map(str, failures)])
    if on_fail == "raise":
        raise KernelError(text)
    warnings.warn(text, KernelWarning, stacklevel=caller_stacklevel())
