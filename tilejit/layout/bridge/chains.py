"""Chains of digits (the modes of CuTe layouts) in digit trees and within bounds."""

from __future__ import annotations

from math import prod

from codegen import Leaf, Split, Tree, coalesce_tree, evaluate_tree, truncate_tree
from tilejit.cute.digits import Chain, Mode, digits_of, joined
from tilejit.cute.witness import Witness


def cut_chain(chain: Chain, bound: int) -> Chain:
    """Return the chain with the fewest digits and the smallest box that has the same offsets on [0, bound).

    (((2, 1), (4, 10)), 5) -> ((2, 1), (3, 10))    (((3, 1), (4, 3)), 5) -> ((5, 1),)
    """
    merged = joined(Mode(digit.size, digit.stride) for digit in digits_of((chain,), (bound,)))
    if not merged:
        return ()
    below = prod(mode.size for mode in merged[:-1])
    return (*merged[:-1], Mode(-(-bound // below), merged[-1].stride))


def tree_chain(tree: Tree, extent: int) -> Chain | Witness:
    """Return the chain of a storage tree on [0, extent), or the first index that breaks it; never enumerates.

    A chain is missing only if a digit below the top is cut short (`Split(6, 4, ..)` as the low side of a
    Split): past it, the chain would need a slot that the tree keeps for padding, and slots are never shared.
    The tree consists of Leaf and Split nodes only.
    """
    digits: list[Mode] = []
    whole = rest = coalesce_tree(truncate_tree(tree, extent))
    weight = 1
    while isinstance(rest, Split):
        if not isinstance(rest.low, Leaf):
            found = _short_digit(rest)
            assert found is not None
            index = weight * found[0]
            return Witness(index, evaluate_tree(whole, index), found[1])
        digits.append(Mode(rest.tile, rest.low.stride))
        weight *= rest.tile
        rest = rest.high
    assert isinstance(rest, Leaf)
    return tuple(joined([*digits, Mode(rest.extent, rest.stride)]))


def _short_digit(tree: Tree) -> tuple[int, int] | None:
    """Return the index at which the lowest short digit first carries, and its offset without the carry.

    Split(12, 6, high, Split(6, 4, Leaf(2, 16), Leaf(4, 1))) -> (6, 18)    The tree is coalesced.
    """
    if not isinstance(tree, Split):
        return None
    if isinstance(tree.low, Split):  # a complete digit would have been coalesced into the levels above
        return _short_digit(tree.low) or (tree.tile, evaluate_tree(tree.low, tree.tile))
    above = _short_digit(tree.high)
    return above and (above[0] * tree.tile, above[1])
