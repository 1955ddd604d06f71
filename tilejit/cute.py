"""CuTe's layouts and their algebra: `tilejit.cute.Layout((2, 2), (2, 4))`, `parse("(2,2):(2,4)")`, … .

Every operation is exact: what it returns holds coordinate by coordinate, and where no layout can say it, a
LayoutError names an index that shows so.
"""

from tilejit.layout.cute.int_tuple import (
    IntTuple,
    compatible,
    congruent,
    crd2crd,
    crd2idx,
    depth,
    elem_scale,
    flatten,
    idx2crd,
    inner_product,
    prefix_product,
    product,
    rank,
    shape_div,
    weakly_congruent,
)
from tilejit.layout.cute.layout import Layout, coshape, cosize, offsets, size
from tilejit.layout.cute.slicing import (
    Underscore,
    _,
    dice,
    domain_offset,
    slice_,
    slice_and_offset,
)
from tilejit.layout.cute.swizzle import ComposedLayout, Swizzle
from tilejit.layout.cute.text import Tiler, parse

__all__ = [
    "ComposedLayout",
    "IntTuple",
    "Layout",
    "Swizzle",
    "Tiler",
    "Underscore",
    "_",
    "compatible",
    "congruent",
    "coshape",
    "cosize",
    "crd2crd",
    "crd2idx",
    "depth",
    "dice",
    "domain_offset",
    "elem_scale",
    "flatten",
    "idx2crd",
    "inner_product",
    "offsets",
    "parse",
    "prefix_product",
    "product",
    "rank",
    "shape_div",
    "size",
    "slice_",
    "slice_and_offset",
    "weakly_congruent",
]
