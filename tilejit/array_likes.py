"""Arrays of other libraries as NumPy's, without a copy; masked ones. What made an array is imported."""

from __future__ import annotations

import sys
from typing import Any

import numpy as np


def as_numpy(x: Any) -> Any:
    """The array over the memory of a torch CPU tensor or a jax CPU array; anything else as it is.

    torch's bfloat16 becomes ml_dtypes', which NumPy does not know by itself. A tensor that needs a gradient,
    or lies on a device, is left as it is: NumPy asks it for an array, and torch says why there is none.
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


def is_masked_array(x: object) -> bool:
    """Whether it is an array of numpy.ma's, whose import takes 10 ms."""
    return isinstance(x, getattr(sys.modules.get("numpy.ma"), "MaskedArray", ()))


def _of_tensor(x: Any, torch: Any) -> Any:
    if x.device.type != "cpu" or x.requires_grad or x.is_sparse or x.is_conj() or x.is_neg():
        return x
    if x.dtype is not torch.bfloat16:
        return x.numpy()
    import ml_dtypes

    return x.view(torch.int16).numpy().view(ml_dtypes.bfloat16)
