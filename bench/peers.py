"""The same copies by other libraries. Peers that are not installed are reported, never hidden.

All use as many threads as TileJIT, except NumPy, which uses one. All write to given memory, except jax: each
of its calls allocates the result, page faults included. (Donating the argument does not help, because a
transposed result cannot share its memory.) Its source is already on the device.
"""

from __future__ import annotations

import ctypes
import os
from collections.abc import Callable
from functools import cache
from importlib.metadata import PackageNotFoundError, files, version
from typing import Any

import numpy as np

from bench.arrays import BF16, Array
from bench.recipe import Steps

NAMES = ("numpy", "torch", "jax", "mkl")
NOT_INSTALLED = "not installed"
Call = Callable[[], object]


def versions() -> dict[str, str]:
    """Each peer's version, or "not installed"."""
    found = {}
    for name in NAMES:
        try:
            found[name] = version(name)
        except PackageNotFoundError:
            found[name] = NOT_INSTALLED
    return found


def by_numpy(steps: Steps) -> Call:
    """Call numpy.copyto, step by step."""

    def run() -> None:
        for to, source in steps:
            np.copyto(to, source, casting="unsafe")

    return run


def by_torch(steps: Steps, threads: int) -> Call:
    """Call Tensor.copy_ between tensors on the same memory."""
    torch = _torch(threads)
    pairs = [(_tensor(torch, to), _tensor(torch, source)) for to, source in steps]

    def run() -> None:
        for to, source in pairs:
            to.copy_(source)

    return run


def by_torch_fresh(view: Array, threads: int) -> Call:
    """Call Tensor.contiguous, which writes to memory that torch allocates."""
    tensor = _tensor(_torch(threads), view)
    return lambda: tensor.contiguous() if not tensor.is_contiguous() else tensor.clone()


def by_jax(trace: Callable[[Any], Callable[[Any], Any]], source: Array, threads: int) -> Call:
    """Call a jitted function of the source. `trace` takes jax.numpy and returns the function."""
    jax = _jax(threads)
    function = jax.jit(trace(jax.numpy))
    argument = jax.device_put(source)
    return lambda: function(argument).block_until_ready()


def by_mkl(out: Array, source: Array, threads: int) -> Call:
    """Call mkl_?omatcopy: the transpose of a C-contiguous matrix with 4- or 8-byte elements."""
    rows, columns = source.shape
    suffix, number = {4: ("somatcopy", ctypes.c_float), 8: ("domatcopy", ctypes.c_double)}[source.itemsize]
    function = getattr(_mkl(threads), f"MKL_{suffix.capitalize()}")
    function.restype = None
    size, pointer = ctypes.c_size_t, ctypes.c_void_p
    function.argtypes = (ctypes.c_char, ctypes.c_char, size, size, number, pointer, size, pointer, size)
    arguments = (b"R", b"T", rows, columns, 1.0, source.ctypes.data, columns, out.ctypes.data, rows)
    return lambda: function(*arguments)


@cache
def _torch(threads: int) -> Any:
    import torch

    torch.set_num_threads(threads)
    return torch


def _tensor(torch: Any, array: Array) -> Any:
    """A tensor on the array's memory. torch copies signed integers of every width."""
    if array.dtype == BF16:
        return torch.from_numpy(array.view(np.int16)).view(torch.bfloat16)
    return torch.from_numpy(array.view(f"i{array.itemsize}") if array.dtype.kind == "u" else array)


@cache
def _jax(threads: int) -> Any:
    """Import jax with the requested number of threads.

    XLA counts the processors that the process may use when the client is created, and its pool keeps that
    number. The flags that once set it no longer have an effect.
    """
    restricts = hasattr(os, "sched_setaffinity")
    allowed = os.sched_getaffinity(0) if restricts else set()
    if restricts:
        os.sched_setaffinity(0, set(sorted(allowed)[:threads]))
    try:
        os.environ.setdefault("JAX_PLATFORMS", "cpu")
        import jax

        jax.config.update("jax_enable_x64", True)
        jax.devices()
    finally:
        if restricts:
            os.sched_setaffinity(0, allowed)
    return jax


@cache
def _mkl(threads: int) -> Any:
    """Load MKL from its wheel, whose library is outside the package."""
    if threads == 1:
        os.environ["MKL_THREADING_LAYER"] = "SEQUENTIAL"
    path = next(f.locate() for f in files("mkl") or () if "mkl_rt" in f.name)
    library = ctypes.CDLL(os.path.realpath(str(path)))
    library.MKL_Set_Num_Threads(threads)
    return library
