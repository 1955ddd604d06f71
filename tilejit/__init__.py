"""Convert NumPy arrays to and from tiled, blocked and swizzled memory layouts, at memory speed."""

from importlib import import_module as _import_module
from typing import TYPE_CHECKING as _TYPE_CHECKING
from typing import Any as _Any

import codegen as _codegen

if not hasattr(_codegen, "TILEJIT"):
    raise ImportError(
        f"another package named codegen ({_codegen.__file__}) hides TileJIT's compiler; "
        "remove it from sys.path, or put TileJIT's site-packages before it"
    )

from codegen import (
    FallbackWarning,
    IntegerError,
    KernelError,
    KernelIndexError,
    KernelValueError,
    LayoutError,
    LayoutIndexError,
    OperandError,
    OutOfMemoryError,
    PowerError,
    ScheduleError,
    StoreError,
    TilejitError,
)
from codegen import compiler_lock as _lock

if _TYPE_CHECKING:
    from tilejit import cute as cute
    from tilejit import mlir as mlir
    from tilejit.copies.convert import pack, unpack
    from tilejit.copies.explanations import Explanation, explain
    from tilejit.copies.plan import CopyPlan, plan_copy
    from tilejit.copies.planes import PackedPlanes
    from tilejit.copies.relayouts import relayout
    from tilejit.copies.tiled_plans import plan_pack, plan_relayout, plan_unpack
    from tilejit.copies.tiles import gather_tiles, scatter_tiles
    from tilejit.expressions.elementwise import Elementwise, elementwise
    from tilejit.expressions.stand_in import UnknownAttributeError
    from tilejit.kernels.declarations import (
        min_distance,
        parallel,
        permutation,
        reduction,
        scan,
        vectorizable,
    )
    from tilejit.kernels.failures import KernelWarning
    from tilejit.kernels.kernel import Kernel, kernel
    from tilejit.layout.as_layout import ArrayUnknownError, as_layout, named_format
    from tilejit.layout.formats import (
        FormatDescription,
        describe_format,
        formats,
        register_format,
        unregister_format,
    )
    from tilejit.layout.from_parts import make_shape
    from tilejit.layout.helpers import (
        axis_letters,
        bump_indices,
        dimension_stride,
        in_bounds,
        is_dim_major,
        is_dim_minor,
        is_monotonic_with_dim0_major,
        is_monotonic_with_dim0_minor,
        normalize_dimension,
    )
    from tilejit.layout.indexing import linear_index, multi_index
    from tilejit.layout.shape import BufferShape, Layout, Shape, TupleShape, parse_shape
    from tilejit.numpy_api.accelerate import accelerate
    from tilejit.numpy_api.along_axis import put_along_axis, take_along_axis
    from tilejit.numpy_api.array_methods import astype, byteswap, tobytes
    from tilejit.numpy_api.copying import (
        array,
        asarray,
        ascontiguousarray,
        asfortranarray,
        copy,
        require,
    )
    from tilejit.numpy_api.copyto import copyto
    from tilejit.numpy_api.joining import concatenate, stack
    from tilejit.numpy_api.padding import pad
    from tilejit.numpy_api.putting import put
    from tilejit.numpy_api.taking import take
    from tilejit.numpy_api.views import (
        broadcast_to,
        flip,
        moveaxis,
        roll,
        rollaxis,
        rot90,
        swapaxes,
        transpose,
    )
    from tilejit.recognize.formats.identification import Identification
    from tilejit.recognize.formats.identify import identify
    from tilejit.recognize.probes.infer import infer
    from tilejit.recognize.probes.inferred import InferredLayout
    from tilejit.support.caches import clear_caches
    from tilejit.tiled.plans import PackPlan, RelayoutPlan, UnpackPlan
    from tilejit.tiled.tiled_array import TiledArray
    from tilejit.view.picture import LayoutPicture, show

__version__ = "0.1.0"

__all__ = [
    "ArrayUnknownError",
    "BufferShape",
    "CopyPlan",
    "Elementwise",
    "Explanation",
    "FallbackWarning",
    "FormatDescription",
    "Identification",
    "InferredLayout",
    "IntegerError",
    "Kernel",
    "KernelError",
    "KernelIndexError",
    "KernelValueError",
    "KernelWarning",
    "Layout",
    "LayoutError",
    "LayoutIndexError",
    "LayoutPicture",
    "OperandError",
    "OutOfMemoryError",
    "PackPlan",
    "PackedPlanes",
    "PowerError",
    "RelayoutPlan",
    "ScheduleError",
    "Shape",
    "StoreError",
    "TiledArray",
    "TilejitError",
    "TupleShape",
    "UnknownAttributeError",
    "UnpackPlan",
    "accelerate",
    "array",
    "as_layout",
    "asarray",
    "ascontiguousarray",
    "asfortranarray",
    "astype",
    "axis_letters",
    "broadcast_to",
    "bump_indices",
    "byteswap",
    "clear_caches",
    "concatenate",
    "copy",
    "copyto",
    "cute",
    "describe_format",
    "dimension_stride",
    "elementwise",
    "explain",
    "flip",
    "formats",
    "gather_tiles",
    "identify",
    "in_bounds",
    "infer",
    "is_dim_major",
    "is_dim_minor",
    "is_monotonic_with_dim0_major",
    "is_monotonic_with_dim0_minor",
    "kernel",
    "linear_index",
    "make_shape",
    "min_distance",
    "moveaxis",
    "multi_index",
    "named_format",
    "normalize_dimension",
    "pack",
    "pad",
    "parallel",
    "parse_shape",
    "permutation",
    "plan_copy",
    "plan_pack",
    "plan_relayout",
    "plan_unpack",
    "put",
    "put_along_axis",
    "reduction",
    "register_format",
    "relayout",
    "require",
    "roll",
    "rollaxis",
    "rot90",
    "scan",
    "scatter_tiles",
    "show",
    "stack",
    "swapaxes",
    "take",
    "take_along_axis",
    "tobytes",
    "transpose",
    "unpack",
    "unregister_format",
    "vectorizable",
]

_HOMES = {
    "copies.convert": "pack unpack",
    "copies.explanations": "Explanation explain",
    "copies.plan": "CopyPlan plan_copy",
    "copies.planes": "PackedPlanes",
    "copies.relayouts": "relayout",
    "copies.tiled_plans": "plan_pack plan_relayout plan_unpack",
    "copies.tiles": "gather_tiles scatter_tiles",
    "expressions.elementwise": "Elementwise elementwise",
    "expressions.stand_in": "UnknownAttributeError",
    "kernels.failures": "KernelWarning",
    "kernels.declarations": "min_distance parallel permutation reduction scan vectorizable",
    "kernels.kernel": "Kernel kernel",
    "layout.as_layout": "ArrayUnknownError as_layout named_format",
    "layout.formats": "FormatDescription describe_format formats register_format unregister_format",
    "layout.from_parts": "make_shape",
    "layout.helpers": (
        "axis_letters bump_indices dimension_stride in_bounds is_dim_major is_dim_minor "
        "is_monotonic_with_dim0_major is_monotonic_with_dim0_minor normalize_dimension"
    ),
    "layout.indexing": "linear_index multi_index",
    "layout.shape": "BufferShape Layout Shape TupleShape parse_shape",
    "numpy_api.accelerate": "accelerate",
    "numpy_api.along_axis": "put_along_axis take_along_axis",
    "numpy_api.array_methods": "astype byteswap tobytes",
    "numpy_api.copying": "array asarray ascontiguousarray asfortranarray copy require",
    "numpy_api.copyto": "copyto",
    "numpy_api.joining": "concatenate stack",
    "numpy_api.padding": "pad",
    "numpy_api.putting": "put",
    "numpy_api.taking": "take",
    "numpy_api.views": "broadcast_to flip moveaxis roll rollaxis rot90 swapaxes transpose",
    "recognize.formats.identification": "Identification",
    "recognize.formats.identify": "identify",
    "recognize.probes.infer": "infer",
    "recognize.probes.inferred": "InferredLayout",
    "support.caches": "clear_caches",
    "tiled.plans": "PackPlan RelayoutPlan UnpackPlan",
    "tiled.tiled_array": "TiledArray",
    "view.picture": "LayoutPicture show",
}
"""The module of each public name. Importing all of them would take ten times as long as the first pack needs.

No module may have the name of a public function, because importing the module would replace the function.
"""

_HOME_OF = {name: f"tilejit.{home}" for home, names in _HOMES.items() for name in names.split()}


def __getattr__(name: str) -> _Any:
    """A public name, imported on first access."""
    if name in ("cute", "mlir"):
        return _imported(f"tilejit.{name}")
    home = _HOME_OF.get(name)
    if home is None:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    found = globals()[name] = getattr(_imported(home), name)
    return found


def _imported(module: str) -> _Any:
    """Import a module; a fork waits until it is loaded, because a child would wait forever for the rest."""
    with _lock:
        return _import_module(module)


def __dir__() -> list[str]:
    return sorted({*__all__, "mlir", *(name for name in globals() if name.startswith("__"))})
