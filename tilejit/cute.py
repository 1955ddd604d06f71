"""CuTe's layouts and their algebra: `tilejit.cute.Layout((2, 2), (2, 4))`, `parse("(2,2):(2,4)")`, … .

Every operation is exact: what it returns holds coordinate by coordinate, and where no layout can say it, a
LayoutError names an index that shows so.
"""

from tilejit.layout.bridge import BoundedLayout, bounded, from_offsets, from_xla, to_xla
from tilejit.layout.cute.checked import (
    compatible,
    congruent,
    elem_scale,
    inner_product,
    prefix_product,
    product,
    shape_div,
    weakly_congruent,
)
from tilejit.layout.cute.complement import complement
from tilejit.layout.cute.composition import composition
from tilejit.layout.cute.construct import (
    LayoutLeft,
    LayoutRight,
    make_identity_layout,
    make_layout_like,
    make_ordered_layout,
    product_each,
    suffix_product,
)
from tilejit.layout.cute.coordinates import crd2crd, crd2idx, idx2crd
from tilejit.layout.cute.division import flat_divide, tiled_divide, zipped_divide
from tilejit.layout.cute.grid import format_layout, print_layout
from tilejit.layout.cute.int_tuple import IntTuple
from tilejit.layout.cute.inverses import max_common_layout, max_common_vector, nullspace, right_inverse
from tilejit.layout.cute.layout import Layout, coshape, cosize, offsets, size
from tilejit.layout.cute.left_inverse import left_inverse
from tilejit.layout.cute.modes import (
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
from tilejit.layout.cute.partition import local_partition
from tilejit.layout.cute.products import (
    blocked_product,
    flat_product,
    logical_product,
    raked_product,
    tile_to_shape,
    tiled_product,
    zipped_product,
)
from tilejit.layout.cute.questions import is_bijective, is_injective
from tilejit.layout.cute.recast import downcast, max_alignment, recast_layout, upcast
from tilejit.layout.cute.slicing import Underscore, _, dice, domain_offset, slice_, slice_and_offset
from tilejit.layout.cute.swizzle import ComposedLayout, Swizzle
from tilejit.layout.cute.tables import recognize
from tilejit.layout.cute.text import Tiler, parse
from tilejit.layout.cute.witness import NoLayoutError, Witness
from tilejit.layout.cute_shape import CuteShape
from tilejit.tile_views import TileView, local_tile, logical_divide

filter = filter_
"""CuTe's name of `filter_`."""

__all__ = [
    "BoundedLayout",
    "ComposedLayout",
    "CuteShape",
    "IntTuple",
    "Layout",
    "LayoutLeft",
    "LayoutRight",
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
    "make_ordered_layout",
    "max_alignment",
    "max_common_layout",
    "max_common_vector",
    "nullspace",
    "offsets",
    "parse",
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
