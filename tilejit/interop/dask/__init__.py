"""Tiled arrays larger than memory, chunk by chunk on the workers of a cluster. Needs the extra `dask`.

Tasks carry the layout of a chunk as a Shape, never a compiled kernel. Each worker loads kernels from its
machine's store, or compiles them. A task needs only the elements of its chunk, so it can run again on another
worker.
"""

from __future__ import annotations

from importlib.util import find_spec

if find_spec("dask") is None:
    raise ImportError("tilejit.interop.dask needs dask: pip install 'tilejit[dask]'", name="dask")

from tilejit.interop.dask.flat import to_flat
from tilejit.interop.dask.tiled_dask import TiledDask, from_zarr, pack

__all__ = ["TiledDask", "from_zarr", "pack", "to_flat"]
