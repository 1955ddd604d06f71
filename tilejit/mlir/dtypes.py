"""Dtypes of kernels as NumPy's, and the arrays of a text."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from ml_dtypes import bfloat16

from codegen.loops.index import Index

NUMPY = {
    "i1": np.dtype(np.bool_),
    **{f"i{bits}": np.dtype(f"int{bits}") for bits in (8, 16, 32, 64)},
    **{f"u{bits}": np.dtype(f"uint{bits}") for bits in (8, 16, 32, 64)},
    "f16": np.dtype(np.float16),
    "bf16": np.dtype(bfloat16),
    "f32": np.dtype(np.float32),
    "f64": np.dtype(np.float64),
}
"""The dtypes of arrays, by their names in kernels."""
INDEX = "i64"
"""An `index` is a 64-bit integer here."""


@dataclass(frozen=True, slots=True)
class MemRef:
    """An array in a function: its name, dtype, and the size of each dimension, a number or made of others."""

    name: str
    dtype: str
    sizes: tuple[Index, ...]
