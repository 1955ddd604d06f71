"""NumPy arrays to and from tiled, blocked and swizzled memory layouts, at the speed of memory."""

from typing import TYPE_CHECKING as _TYPE_CHECKING
from typing import Any as _Any

import codegen as _codegen

if not hasattr(_codegen, "TILEJIT"):
    raise ImportError(
        f"another package named codegen ({_codegen.__file__}) hides TileJIT's compiler; "
        "take it off the path or put TileJIT's site-packages before it"
    )

from codegen.errors import KernelError, LayoutError, LayoutIndexError, StoreError, TilejitError
from tilejit.convert import pack, unpack
from tilejit.copies import copyto
from tilejit.elementwise import Elementwise, elementwise
from tilejit.explain import Explanation, explain
from tilejit.kernels import Kernel, KernelWarning, kernel, parallel, reduction
from tilejit.layout.as_layout import as_layout, named_format
from tilejit.layout.formats import formats, register_format
from tilejit.layout.indexing import linear_index, multi_index
from tilejit.layout.layout import Layout
from tilejit.layout.shape import BufferShape, Shape, TupleShape, make_shape
from tilejit.plan import CopyPlan, plan_copy
from tilejit.relayout import relayout
from tilejit.routines.accelerate import accelerate
from tilejit.routines.copying import (
    array,
    asarray,
    ascontiguousarray,
    asfortranarray,
    astype,
    byteswap,
    copy,
    require,
    tobytes,
)
from tilejit.routines.joining import concatenate, stack
from tilejit.routines.padding import pad
from tilejit.routines.taking import take
from tilejit.routines.views import (
    broadcast_to,
    flip,
    moveaxis,
    roll,
    rollaxis,
    rot90,
    swapaxes,
    transpose,
)
from tilejit.tiled_array import TiledArray
from tilejit.tiles import gather_tiles, scatter_tiles

if _TYPE_CHECKING:
    from tilejit import cute as cute
    from tilejit import mlir as mlir

__version__ = "0.1.0"

__all__ = [
    "BufferShape",
    "CopyPlan",
    "Elementwise",
    "Explanation",
    "Kernel",
    "KernelError",
    "KernelWarning",
    "Layout",
    "LayoutError",
    "LayoutIndexError",
    "Shape",
    "StoreError",
    "TiledArray",
    "TilejitError",
    "TupleShape",
    "accelerate",
    "array",
    "as_layout",
    "asarray",
    "ascontiguousarray",
    "asfortranarray",
    "astype",
    "broadcast_to",
    "byteswap",
    "concatenate",
    "copy",
    "copyto",
    "cute",
    "elementwise",
    "explain",
    "flip",
    "formats",
    "gather_tiles",
    "kernel",
    "linear_index",
    "make_shape",
    "moveaxis",
    "multi_index",
    "named_format",
    "pack",
    "pad",
    "parallel",
    "plan_copy",
    "reduction",
    "register_format",
    "relayout",
    "require",
    "roll",
    "rollaxis",
    "rot90",
    "scatter_tiles",
    "stack",
    "swapaxes",
    "take",
    "tobytes",
    "transpose",
    "unpack",
]


def __getattr__(name: str) -> _Any:
    """`tilejit.cute` and `tilejit.mlir`, imported when first asked for."""
    if name not in ("cute", "mlir"):
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    import importlib

    return importlib.import_module(f"tilejit.{name}")
