"""Turn arguments back into literals: the inverse of `parametrize`, for chosen sizes."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import fields, replace
from typing import Any

from codegen.ir.copies.nodes import (
    Convert,
    For,
    LaneReads,
    Load,
    LoopNest,
    Param,
    Ref,
    TileLoop,
    Transfer,
    wrap,
)


def specialize_sizes(nest: LoopNest, values: Mapping[str, int]) -> LoopNest:
    """Replace the parameters named in `values` by numbers.

    before:  for a in a_extent:  copy_run dst[a_dst*a] <- src[a_src*a], count bytes
    after:   for a in 9:         copy_run dst[512*a] <- src[1200*a], 512 bytes
    """
    if not values:
        return nest
    inner: Transfer = _specialized_fields(nest.innermost, values)
    loops = tuple(For(x.axis, _specialized(x.extent, values), inner) for x in nest.loops)
    table = nest.table_loop
    if table:
        table = replace(table, count=_specialized(table.count, values))
    return replace(nest, body=wrap(loops, table, inner))


def _specialized_fields(node: Any, values: Mapping[str, int]) -> Any:
    return replace(node, **{f.name: _specialized(getattr(node, f.name), values) for f in fields(node)})


def _specialized(value: Any, values: Mapping[str, int]) -> Any:
    match value:
        case Param(name):
            return values.get(name, value)
        case Ref(buffer, const, terms, tables):
            specialized = tuple((axis, _specialized(stride, values)) for axis, stride in terms)
            return Ref(buffer, _specialized(const, values), specialized, tables)
        case Load() | Convert() | TileLoop() | LaneReads():
            return _specialized_fields(value, values)
        case (TileLoop(), *_):
            return tuple(_specialized(loop, values) for loop in value)
        case _:
            return value
