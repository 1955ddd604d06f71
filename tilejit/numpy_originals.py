"""NumPy's own routines, kept from before `accelerate` can put ours in their places.

`numpy_x` is what `numpy.x` was when TileJIT first copied. A routine of ours that hands a case back calls it
by this name: `numpy.x` may be that routine itself.
"""

from __future__ import annotations

from numpy import ascontiguousarray as numpy_ascontiguousarray
from numpy import asfortranarray as numpy_asfortranarray
from numpy import concatenate as numpy_concatenate
from numpy import copyto as numpy_copyto
from numpy import pad as numpy_pad
from numpy import stack as numpy_stack
from numpy import take as numpy_take

__all__ = [
    "numpy_ascontiguousarray",
    "numpy_asfortranarray",
    "numpy_concatenate",
    "numpy_copyto",
    "numpy_pad",
    "numpy_stack",
    "numpy_take",
]
