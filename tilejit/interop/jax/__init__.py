"""jax arrays and layouts: convert `jax.experimental.layout` and share arrays. Needs the extra `jax`.

`layout_of(array)`, `to_jax_layout(layout)`, `to_jax(t)`, `from_jax(array, layout)`, `pack(array, layout)` and
`unpack(array, layout)` take complete arrays on the CPU, outside of jit.
"""

from __future__ import annotations

from importlib.util import find_spec

if find_spec("jax") is None:
    raise ImportError("tilejit.interop.jax needs jax: pip install 'tilejit[jax]'", name="jax")

from tilejit.interop.jax.arrays import from_jax, numpy_view, pack, to_jax, unpack
from tilejit.interop.jax.layouts import layout_of, to_jax_format, to_jax_layout

__all__ = [
    "from_jax",
    "layout_of",
    "numpy_view",
    "pack",
    "to_jax",
    "to_jax_format",
    "to_jax_layout",
    "unpack",
]
