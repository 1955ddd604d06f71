"""NumPy's own routines, saved before `accelerate` can replace them.

`numpy_x` is the function that `numpy.x` was when this module was imported. A routine that leaves a case to
NumPy calls it by this name, because `numpy.x` may be that routine itself. The arguments have no types,
because NumPy's functions accept more than the overloads of its stubs.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

Routine: TypeAlias = Callable[..., NDArray[Any]]
"""A routine that returns an array."""

numpy_asarray: Routine = np.asarray
numpy_ascontiguousarray: Routine = np.ascontiguousarray
numpy_asfortranarray: Routine = np.asfortranarray
numpy_concatenate: Routine = np.concatenate
numpy_copyto: Any = np.copyto
numpy_flip: Routine = np.flip
numpy_pad: Routine = np.pad
numpy_put: Any = np.put
numpy_put_along_axis: Any = np.put_along_axis
numpy_require: Routine = np.require
numpy_rot90: Routine = np.rot90
numpy_stack: Routine = np.stack
numpy_take: Any = np.take
numpy_take_along_axis: Any = np.take_along_axis
