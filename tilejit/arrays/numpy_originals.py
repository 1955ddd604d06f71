"""NumPy's own routines, kept from before `accelerate` can put TileJIT's in their places.

`numpy_x` is what `numpy.x` was when TileJIT first copied. A routine that hands a case back to NumPy calls it
by this name, because `numpy.x` may be that routine itself. They have no types: NumPy's functions accept more
than the overloads of its stubs.
"""

from __future__ import annotations

from typing import Any

import numpy as np

numpy_asarray: Any = np.asarray
numpy_ascontiguousarray: Any = np.ascontiguousarray
numpy_asfortranarray: Any = np.asfortranarray
numpy_concatenate: Any = np.concatenate
numpy_copyto: Any = np.copyto
numpy_flip: Any = np.flip
numpy_pad: Any = np.pad
numpy_require: Any = np.require
numpy_rot90: Any = np.rot90
numpy_stack: Any = np.stack
numpy_take: Any = np.take
