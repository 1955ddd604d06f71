"""The slots of a storage that hold no element, as disjoint boxes that cover each slot once."""

from __future__ import annotations

from itertools import product
from math import prod
from typing import TypeAlias

from codegen.maps.access import AccessMap
from codegen.maps.digit_trees import Leaf, Split, Tree, evaluate_tree
from codegen.support.dataclasses import dataclass

MAX_PAD_BOXES = 64
"""With more boxes than this, one call each is too expensive: all slots are filled before the copy instead."""

PadDigit: TypeAlias = tuple[int, int]
"""(extent, destination stride)."""


@dataclass(frozen=True, slots=True)
class PaddingBox:
    """Slots of the destination that hold padding."""

    dst_base: int
    digits: tuple[PadDigit, ...]

    @property
    def volume(self) -> int:
        """Slots in the box."""
        return prod(d[0] for d in self.digits)


def lower_padding(dst: AccessMap) -> tuple[tuple[PaddingBox, ...], bool]:
    """Disjoint boxes of the slots that hold no element, or (tail only, True) if they are unknown or too many.

    pad(layout) = sum over k of valid(roots before k) x pad(root k) x slots(roots after k).
    """
    if dst.slots is None:
        return (), False
    width = dst.element_bits // dst.unit_bits
    start = dst.bounds[0]
    tail = (PaddingBox(start + (dst.slots - dst.tail) * width, ((dst.tail, width),)),) if dst.tail else ()
    if 0 in dst.dims:
        every = (PaddingBox(start, ((dst.slots, width),)),) if dst.slots else ()
        return every, False
    if dst.slots - dst.tail == dst.elements:
        return tail, False
    if dst.is_opaque or not dst.compact:
        return tail, True
    trees = [root.tree for root in sorted(dst.roots, key=lambda r: _contiguity(r.tree))]
    out: list[PaddingBox] = []
    for k, tree in enumerate(trees):
        parts = [
            *([_range_boxes(t, 0, t.extent) for t in trees[:k]]),
            _pad_boxes(tree),
            *([[_all_slots(t)] for t in trees[k + 1 :]]),
        ]
        if len(out) + prod(len(p) for p in parts) > MAX_PAD_BOXES:
            return tail, True
        for combination in product(*parts):
            base = dst.base + sum(b.dst_base for b in combination)
            out.append(PaddingBox(base, tuple(d for b in combination for d in b.digits)))
    return (*out, *tail), False


def _contiguity(tree: Tree) -> int:
    """Sort key: large strides first, so that boxes of later roots, which cover all slots, are long runs."""
    strides = [abs(stride) for _, stride in _all_slots(tree).digits]
    return -min(strides, default=0)


def _pad_boxes(tree: Tree) -> list[PaddingBox]:
    if not isinstance(tree, Split):
        return []
    extent, tile = tree.extent, tree.tile
    out = _cross(_pad_boxes(tree.high), [_all_slots(tree.low)])
    out += _cross(_range_boxes(tree.high, 0, tree.high.extent), _pad_boxes(tree.low))
    if extent % tile:
        first = int(evaluate_tree(tree.high, extent // tile))
        out += [
            PaddingBox(first + b.dst_base, b.digits)
            for b in _range_boxes(tree.low, extent % tile, tree.low.extent)
        ]
    return out


def _all_slots(tree: Tree) -> PaddingBox:
    match tree:
        case Leaf(extent, stride):
            return PaddingBox(0, ((extent, stride),))
        case Split(_, _, high, low):
            return _cross([_all_slots(high)], [_all_slots(low)])[0]
        case _:
            raise AssertionError(f"padding of {type(tree).__name__} is filled, not enumerated")


def _range_boxes(tree: Tree, start: int, stop: int) -> list[PaddingBox]:
    """The storage boxes of the indices [start, stop): prologue, middle, epilogue."""
    if start >= stop:
        return []
    match tree:
        case Leaf(_, stride):
            return [PaddingBox(start * stride, ((stop - start, stride),))]
        case Split(_, tile, high, low):
            pass
        case _:
            raise AssertionError(f"padding of {type(tree).__name__} is filled, not enumerated")
    (first, a), (last, b) = divmod(start, tile), divmod(stop, tile)
    if first == last:
        return _shifted(evaluate_tree(high, first), _range_boxes(low, a, b))
    out: list[PaddingBox] = []
    if a:
        out += _shifted(evaluate_tree(high, first), _range_boxes(low, a, tile))
        first += 1
    if last > first:
        out += _cross(_range_boxes(high, first, last), _range_boxes(low, 0, tile))
    if b:
        out += _shifted(evaluate_tree(high, last), _range_boxes(low, 0, b))
    return out


def _shifted(base: int, boxes: list[PaddingBox]) -> list[PaddingBox]:
    return [PaddingBox(base + b.dst_base, b.digits) for b in boxes]


def _cross(a: list[PaddingBox], b: list[PaddingBox]) -> list[PaddingBox]:
    return [PaddingBox(x.dst_base + y.dst_base, x.digits + y.digits) for x in a for y in b]
