"""CuTe's layouts and their algebra: `tilejit.cute.Layout((2, 2), (2, 4))`, `parse("(2,2):(2,4)")`, … .

Every operation is exact: its result holds for every coordinate. If no layout can express a result, a
LayoutError names an index that shows it.
"""

from importlib import import_module as _import_module
from typing import TYPE_CHECKING as _TYPE_CHECKING
from typing import Any as _Any

from codegen import compiler_lock as _lock

if _TYPE_CHECKING:
    from tilejit.cute.checked import (
        compatible,
        congruent,
        elem_scale,
        inner_product,
        prefix_product,
        product,
        shape_div,
        weakly_congruent,
    )
    from tilejit.cute.composed_inverses import left_inverse, right_inverse
    from tilejit.cute.construct import (
        LayoutLeft,
        LayoutRight,
        make_identity_layout,
        make_layout_like,
        make_ordered_layout,
        product_each,
        suffix_product,
    )
    from tilejit.cute.coordinates import crd2crd, crd2idx, idx2crd
    from tilejit.cute.digit_step import DigitStep
    from tilejit.cute.exact.complement import complement
    from tilejit.cute.grid import format_layout, print_layout
    from tilejit.cute.int_tuple import IntTuple
    from tilejit.cute.inverses import max_common_layout, max_common_vector, nullspace
    from tilejit.cute.layout import Layout, coshape, cosize, offsets, size
    from tilejit.cute.modes import (
        append,
        coalesce,
        depth,
        filter_,
        filter_zeros,
        flatten,
        group,
        make_layout,
        prepend,
        rank,
        select,
    )
    from tilejit.cute.parsing import Tiler, parse
    from tilejit.cute.products import (
        blocked_product,
        flat_product,
        logical_product,
        raked_product,
        tile_to_shape,
        tiled_product,
        zipped_product,
    )
    from tilejit.cute.questions import is_bijective, is_injective
    from tilejit.cute.recast import downcast, max_alignment, recast_layout, upcast
    from tilejit.cute.slicing import dice, domain_offset, slice_, slice_and_offset
    from tilejit.cute.swizzle import ComposedLayout, Swizzle
    from tilejit.cute.tables import recognize
    from tilejit.cute.thread_values import make_layout_tv
    from tilejit.cute.underscore import Underscore, _
    from tilejit.cute.witness import NoLayoutError, Witness
    from tilejit.layout.bridge.from_offsets import from_offsets
    from tilejit.layout.bridge.from_xla import BoundedLayout, bounded, from_xla
    from tilejit.layout.bridge.to_xla import to_xla
    from tilejit.layout.cute_shape import CuteShape
    from tilejit.tiled.tile_views import TileView
    from tilejit.tiled.views import (
        composition,
        flat_divide,
        local_partition,
        local_tile,
        logical_divide,
        partition_tv,
        tiled_divide,
        zipped_divide,
    )
    from tilejit.view.thread_values import LayoutTVPicture, show_layout_tv

    filter = filter_

__all__ = [
    "BoundedLayout",
    "ComposedLayout",
    "CuteShape",
    "DigitStep",
    "IntTuple",
    "Layout",
    "LayoutLeft",
    "LayoutRight",
    "LayoutTVPicture",
    "NoLayoutError",
    "Swizzle",
    "TileView",
    "Tiler",
    "Underscore",
    "Witness",
    "_",
    "append",
    "blocked_product",
    "bounded",
    "coalesce",
    "compatible",
    "complement",
    "composition",
    "congruent",
    "coshape",
    "cosize",
    "crd2crd",
    "crd2idx",
    "depth",
    "dice",
    "domain_offset",
    "downcast",
    "elem_scale",
    "filter",
    "filter_",
    "filter_zeros",
    "flat_divide",
    "flat_product",
    "flatten",
    "format_layout",
    "from_offsets",
    "from_xla",
    "group",
    "idx2crd",
    "inner_product",
    "is_bijective",
    "is_injective",
    "left_inverse",
    "local_partition",
    "local_tile",
    "logical_divide",
    "logical_product",
    "make_identity_layout",
    "make_layout",
    "make_layout_like",
    "make_layout_tv",
    "make_ordered_layout",
    "max_alignment",
    "max_common_layout",
    "max_common_vector",
    "nullspace",
    "offsets",
    "parse",
    "partition_tv",
    "prefix_product",
    "prepend",
    "print_layout",
    "product",
    "product_each",
    "raked_product",
    "rank",
    "recast_layout",
    "recognize",
    "right_inverse",
    "select",
    "shape_div",
    "show_layout_tv",
    "size",
    "slice_",
    "slice_and_offset",
    "suffix_product",
    "tile_to_shape",
    "tiled_divide",
    "tiled_product",
    "to_xla",
    "upcast",
    "weakly_congruent",
    "zipped_divide",
    "zipped_product",
]

_HOMES = {
    "cute.checked": (
        "compatible congruent elem_scale inner_product prefix_product product shape_div weakly_congruent"
    ),
    "cute.composed_inverses": "left_inverse right_inverse",
    "cute.construct": (
        "LayoutLeft LayoutRight make_identity_layout "
        "make_layout_like make_ordered_layout product_each suffix_product"
    ),
    "cute.coordinates": "crd2crd crd2idx idx2crd",
    "cute.digit_step": "DigitStep",
    "cute.exact.complement": "complement",
    "cute.grid": "format_layout print_layout",
    "cute.int_tuple": "IntTuple",
    "cute.inverses": "max_common_layout max_common_vector nullspace",
    "cute.layout": "Layout coshape cosize offsets size",
    "cute.modes": "append coalesce depth filter_ filter_zeros flatten group make_layout prepend rank select",
    "cute.parsing": "Tiler parse",
    "cute.products": (
        "blocked_product flat_product logical_product "
        "raked_product tile_to_shape tiled_product zipped_product"
    ),
    "cute.questions": "is_bijective is_injective",
    "cute.recast": "downcast max_alignment recast_layout upcast",
    "cute.slicing": "dice domain_offset slice_ slice_and_offset",
    "cute.swizzle": "ComposedLayout Swizzle",
    "cute.tables": "recognize",
    "cute.thread_values": "make_layout_tv",
    "cute.underscore": "Underscore _",
    "cute.witness": "NoLayoutError Witness",
    "layout.bridge.from_offsets": "from_offsets",
    "layout.bridge.from_xla": "BoundedLayout bounded from_xla",
    "layout.bridge.to_xla": "to_xla",
    "layout.cute_shape": "CuteShape",
    "tiled.tile_views": "TileView",
    "tiled.views": (
        "composition flat_divide local_partition local_tile "
        "logical_divide partition_tv tiled_divide zipped_divide"
    ),
    "view.thread_values": "LayoutTVPicture show_layout_tv",
}
"""The module of each public name, so that an import loads only the modules that are used.

No module shares its name with a public function, because importing the module would replace the function.
"""

_HOME_OF = {name: f"tilejit.{home}" for home, names in _HOMES.items() for name in names.split()}


def __getattr__(name: str) -> _Any:
    """Import a public name on first access; `filter` is CuTe's name for `filter_`."""
    home = _HOME_OF.get("filter_" if name == "filter" else name)
    if home is None:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    with _lock:
        module = _import_module(home)
    found = globals()[name] = getattr(module, "filter_" if name == "filter" else name)
    return found


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
