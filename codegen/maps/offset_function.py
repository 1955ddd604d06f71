"""The offset of one element as a function of its index, for callers that look up elements one by one."""

from __future__ import annotations

from collections.abc import Callable

from codegen.maps.access import AccessMap, logical_roots
from codegen.maps.digit_trees import Leaf, Split, Tree


def offset_function(access: AccessMap) -> Callable[..., int] | None:
    """`map_offset` for integers as one expression; None if an offset is not a sum of digits.

    f32[3,5]{1,0:T(2,2)} -> lambda i0, i1: i0 // 2 * 12 + i0 % 2 * 2 + i1 // 2 * 4 + i1 % 2
    """
    terms = [str(access.base)] * (access.base != 0)
    for root in logical_roots(access):
        merged = f"i{root.dims[0]}"
        for d in root.dims[1:]:
            merged = f"({merged} * {access.dims[d]} + i{d})"
        found = _terms(root.tree, merged)
        if found is None:
            return None
        terms += found
    names = ", ".join(f"i{d}" for d in range(len(access.dims)))
    function: Callable[..., int] = eval(f"lambda {names}: {' + '.join(terms) or '0'}", {})
    return function


def _terms(tree: Tree, index: str) -> list[str] | None:
    """The summands of an offset; None if it is not a sum of digits."""
    match tree:
        case Leaf(_, stride):
            return [] if stride == 0 else [index if stride == 1 else f"{index} * {stride}"]
        case Split(_, tile, high, low):
            parts = _terms(high, f"({index} // {tile})"), _terms(low, f"({index} % {tile})")
            return None if parts[0] is None or parts[1] is None else parts[0] + parts[1]
    return None
