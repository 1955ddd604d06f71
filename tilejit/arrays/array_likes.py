"""View arrays of other libraries as NumPy arrays, without copying them or importing the libraries."""

from __future__ import annotations

import sys
from typing import Any

import numpy as np

BY_BITS = {"bfloat16": "int16"} | {
    f"float8_{kind}": "uint8" for kind in ("e5m2", "e4m3fn", "e4m3fnuz", "e5m2fnuz", "e8m0fnu")
}
"""torch dtypes with ml_dtypes names, and the integers of that width that torch and NumPy share."""


def as_numpy(x: Any) -> Any:
    """Return an array over the memory of a torch CPU tensor or a jax CPU array; anything else unchanged.

    torch's bfloat16 and 8-bit floats become ml_dtypes types, which NumPy itself does not know. A tensor that
    needs a gradient or is on a device is returned unchanged. NumPy then requests an array, and torch raises
    an error.
    """
    if type(x) is np.ndarray:
        return x
    torch = sys.modules.get("torch")
    if torch is not None and isinstance(x, torch.Tensor):
        return _of_tensor(x, torch)
    jax = sys.modules.get("jax")
    if jax is not None and isinstance(x, jax.Array):
        return np.asarray(x)
    return x


def view_of_tensor(x: Any, torch: Any) -> Any:
    """A NumPy array over the memory of a strided CPU tensor with a plain dtype; torch raises for others.

    bfloat16 -> ml_dtypes.bfloat16    float8_e5m2 -> ml_dtypes.float8_e5m2    int8 -> int8
    """
    name = str(x.dtype).removeprefix("torch.")
    if name not in BY_BITS:
        return x.numpy()
    import ml_dtypes

    dtype = getattr(ml_dtypes, name, None)
    bits = x.view(getattr(torch, BY_BITS[name])).numpy()
    return bits if dtype is None else bits.view(dtype)


def _of_tensor(x: Any, torch: Any) -> Any:
    if x.device.type != "cpu" or x.requires_grad or x.is_sparse or x.is_conj() or x.is_neg():
        return x
    return view_of_tensor(x, torch)
