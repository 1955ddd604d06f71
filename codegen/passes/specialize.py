"""Put sizes back into the code: what `parametrize` made an argument becomes a number again."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import fields, replace
from typing import Any

from codegen.ir.copies.nodes import Convert, For, Load, LoopNest, Param, Ref, Transfer, wrap


def specialize_sizes(nest: LoopNest, values: Mapping[str, int]) -> LoopNest:
    """Write numbers in the place of the parameters that `values` names.

    before:  for a in a_extent:  copy_run dst[a_dst*a] <- src[a_src*a], count bytes
    after:   for a in 9:         copy_run dst[512*a] <- src[1200*a], 512 bytes
    """
    if not values:
        return nest
    inner: Transfer = _fixed_fields(nest.innermost, values)
    loops = tuple(For(x.axis, _fixed(x.extent, values), inner) for x in nest.loops)
    table = nest.table_loop
    if table:
        table = replace(table, count=_fixed(table.count, values))
    return replace(nest, body=wrap(loops, table, inner))


def _fixed_fields(node: Any, values: Mapping[str, int]) -> Any:
    return replace(node, **{f.name: _fixed(getattr(node, f.name), values) for f in fields(node)})


def _fixed(value: Any, values: Mapping[str, int]) -> Any:
    match value:
        case Param(name):
            return values.get(name, value)
        case Ref(buffer, const, terms, tables):
            fixed = tuple((axis, _fixed(stride, values)) for axis, stride in terms)
            return Ref(buffer, _fixed(const, values), fixed, tables)
        case Load() | Convert():
            return _fixed_fields(value, values)
        case _:
            return value
