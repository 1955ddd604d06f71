"""Tiled arrays larger than memory, chunk by chunk on the workers of a cluster. The extra `dask`.

Tasks carry the layout of a chunk as a Shape, never a compiled kernel: each worker loads kernels from the
store of its machine, or builds them. A task needs the elements of its chunk and nothing else, so one that is
lost with its worker is done again.
"""

from __future__ import annotations

from importlib.util import find_spec

if find_spec("dask") is None:
    raise ImportError(
        "tilejit.interop.dask works on arrays of dask: pip install 'tilejit[dask]'", name="dask"
    )

from tilejit.interop.dask.flat import to_flat
from tilejit.interop.dask.tiled_dask import TiledDask, from_zarr, pack

__all__ = ["TiledDask", "from_zarr", "pack", "to_flat"]
