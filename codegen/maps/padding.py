"""The slots of a storage that hold no element, as disjoint boxes that cover each slot once."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from itertools import product
from math import prod

from codegen.maps.access import AccessMap
from codegen.maps.digit_names import digit_names
from codegen.maps.digit_trees import Leaf, Split, Tree, evaluate_tree
from codegen.maps.refine import Box

MAX_PAD_BOXES = 64
"""With more boxes than this, one call each is too expensive: all slots are filled before the copy instead."""


def lower_padding(dst: AccessMap) -> tuple[tuple[Box, ...], bool]:
    """Disjoint boxes of the slots that hold no element, or (tail only, True) if they are unknown or too many.

    pad(layout) = sum over k of valid(roots before k) x pad(root k) x slots(roots after k).
    """
    if dst.slots is None:
        return (), False
    width = dst.element_bits // dst.unit_bits
    start = dst.bounds[0]
    unused = Box(0, start + (dst.slots - dst.tail) * width, ((dst.tail, 0, width),), ("tail",))
    tail = (unused,) if dst.tail else ()
    if 0 in dst.dims:
        every = (Box(0, start, ((dst.slots, 0, width),), ("slot",)),) if dst.slots else ()
        return every, False
    if dst.slots - dst.tail == dst.elements:
        return tail, False
    if dst.is_opaque or not dst.compact:
        return tail, True
    roots = sorted(dst.roots, key=lambda r: _by_stride(r.tree))
    named = [(root.tree, digit_names(root.dims, _levels(root.tree))) for root in roots]
    out: list[Box] = []
    for k, (tree, names) in enumerate(named):
        parts = [
            *([_range_boxes(t, each, 0, t.extent) for t, each in named[:k]]),
            _pad_boxes(tree, names),
            *([[_all_slots(*each)] for each in named[k + 1 :]]),
        ]
        if len(out) + prod(len(p) for p in parts) > MAX_PAD_BOXES:
            return tail, True
        for combination in product(*parts):
            base = dst.base + sum(b.dst_base for b in combination)
            digits = tuple(d for b in combination for d in b.digits)
            out.append(Box(0, base, digits, tuple(name for b in combination for name in b.names)))
    return (*out, *tail), False


def _by_stride(tree: Tree) -> int:
    """Sort key: large strides first, so that boxes of later roots, which cover all slots, are long runs."""
    strides = [abs(stride) for _, _, stride in _all_slots(tree, digit_names((), _levels(tree))).digits]
    return -min(strides, default=0)


def _levels(tree: Tree) -> int:
    """The digits of a tree."""
    return _levels(tree.high) + _levels(tree.low) if isinstance(tree, Split) else 1


def _pad_boxes(tree: Tree, names: Sequence[str]) -> list[Box]:
    if not isinstance(tree, Split):
        return []
    extent, tile, outer = tree.extent, tree.tile, names[_levels(tree.low) :]
    out = _cross(_pad_boxes(tree.high, outer), [_all_slots(tree.low, names)])
    out += _cross(_range_boxes(tree.high, outer, 0, tree.high.extent), _pad_boxes(tree.low, names))
    if extent % tile:
        first = int(evaluate_tree(tree.high, extent // tile))
        out += _shifted(first, _range_boxes(tree.low, names, extent % tile, tree.low.extent))
    return out


def _all_slots(tree: Tree, names: Sequence[str]) -> Box:
    match tree:
        case Leaf(extent, stride):
            return Box(0, 0, ((extent, 0, stride),), (names[0],))
        case Split(_, _, high, low):
            return _cross([_all_slots(high, names[_levels(low) :])], [_all_slots(low, names)])[0]
        case _:
            raise AssertionError(f"padding of {type(tree).__name__} is filled, not enumerated")


def _range_boxes(tree: Tree, names: Sequence[str], start: int, stop: int) -> list[Box]:
    """The storage boxes of the indices [start, stop): prologue, middle, epilogue."""
    if start >= stop:
        return []
    match tree:
        case Leaf(_, stride):
            return [Box(0, start * stride, ((stop - start, 0, stride),), (names[0],))]
        case Split(_, tile, high, low):
            pass
        case _:
            raise AssertionError(f"padding of {type(tree).__name__} is filled, not enumerated")
    (first, a), (last, b), outer = divmod(start, tile), divmod(stop, tile), names[_levels(low) :]
    if first == last:
        return _shifted(evaluate_tree(high, first), _range_boxes(low, names, a, b))
    out: list[Box] = []
    if a:
        out += _shifted(evaluate_tree(high, first), _range_boxes(low, names, a, tile))
        first += 1
    if last > first:
        out += _cross(_range_boxes(high, outer, first, last), _range_boxes(low, names, 0, tile))
    if b:
        out += _shifted(evaluate_tree(high, last), _range_boxes(low, names, 0, b))
    return out


def _shifted(base: int, boxes: list[Box]) -> list[Box]:
    return [replace(b, dst_base=base + b.dst_base) for b in boxes]


def _cross(a: list[Box], b: list[Box]) -> list[Box]:
    return [Box(0, x.dst_base + y.dst_base, x.digits + y.digits, x.names + y.names) for x in a for y in b]
