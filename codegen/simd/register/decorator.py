"""The decorator that compiles every routine that kernels call."""

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
    """Compile a function that only kernels call, without wrappers for Python or C.

        @for_kernels
        def copy_line(dst, src):
            move_64(dst, src)

    By default Numba generates and optimizes both wrappers, which takes as long as compiling a short routine.
    """
    compiled: Callable[..., Any] = njit(**_OPTIONS)(function)
    return compiled
