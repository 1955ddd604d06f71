"""How every routine that kernels call is compiled."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from numba import njit

from codegen.simd.register.numba_passes import KernelPasses

_OPTIONS: dict[str, Any] = {
    "error_model": "numpy",
    "no_cpython_wrapper": True,
    "no_cfunc_wrapper": True,
    "pipeline_class": KernelPasses,
}


def for_kernels(function: Callable[..., Any]) -> Callable[..., Any]:
    """Compile a function that kernels alone call: nothing that Python or C would call it by is made.

        @for_kernels
        def copy_line(dst, src):
            move_64(dst, src)

    Numba would make both for every routine and optimize them too, which takes as long as a short routine.
    """
    compiled: Callable[..., Any] = njit(**_OPTIONS)(function)
    return compiled
