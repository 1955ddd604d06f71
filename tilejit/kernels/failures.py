"""Ignore loops that stay scalar, warn about them, or raise, depending on `on_fail`."""

from __future__ import annotations

import warnings

from codegen import KernelError, caller_stacklevel
from tilejit.kernels.program import LoopProgram


class KernelWarning(UserWarning):
    """Warning that a kernel runs without super-vectors; `on_fail="warn"` requests it."""

    __module__ = "tilejit"


def report_failures(program: LoopProgram, name: str) -> None:
    """Warn or raise for loops that stay scalar, depending on the options of a program.

    Raises:
        KernelError: a nest has no vectorized loop, and on_fail="raise".
    """
    on_fail = program.options.on_fail
    failures = () if on_fail == "scalar" else program.failures
    if not failures:
        return
    text = "\n  ".join([f"{name} is not fully vectorized", *map(str, failures)])
    if on_fail == "raise":
        raise KernelError(text)
    warnings.warn(text, KernelWarning, stacklevel=caller_stacklevel())
