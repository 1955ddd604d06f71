"""Tables of calls: where operands of each call are, and that they stay in bounds."""

from __future__ import annotations

from typing import Any, cast

import numpy as np
import pytest

from codegen.runtime.call_tables import CallTable, call_table
from codegen.runtime.launch import KernelCall
from codegen.support.errors import KernelError

BOUNDS = (0, 1000), (-64, 64)
"""Of two addresses, before those of a block of 256 bytes."""


def call(*spans: tuple[int, int]) -> KernelCall:
    """A call whose operands touch [low, stop) each; there is no kernel."""
    operands = tuple((1, 0) for _ in spans)
    return KernelCall(cast("Any", None), np.zeros(1, np.int64), 0, 1, operands, spans)


def table(moved: list[tuple[int, int, int]]) -> CallTable:
    """Two calls for each block: of the first address and the block, then of all three."""
    pair, triple = call((0, 100), (0, 256)), call((0, 4), (-64, 0), (128, 256))
    group = [((pair,), ((0, 10), (2, 0))), ((triple,), ((2, 0), (1, 0), (2, 0)))]
    offsets = np.array(moved, np.int64)
    return call_table([group], np.zeros(len(moved), np.int64), offsets, (None, 0), BOUNDS, (256,))


def test_groups_are_repeated_farther_on() -> None:
    """A call with two operands repeats the second one; offsets move with their address."""
    made = table([(0, 0, 0), (500, 32, 0)])
    assert made.which.tolist() == [0, 1, 0, 1]
    assert made.starts.tolist() == [0, 2, 4]
    assert made.addresses.tolist() == 2 * [[0, 2, 2], [2, 1, 2]]
    assert made.offsets.tolist() == [[10, 0, 0], [0, 0, 0], [510, 0, 0], [0, 32, 0]]
    assert made.lines == (None, 0, 0)


@pytest.mark.parametrize("moved", [(891, 0, 0), (-11, 0, 0), (0, 65, 0), (0, -1, 0), (0, 0, 1)])
def test_blocks_out_of_bounds_are_refused(moved: tuple[int, int, int]) -> None:
    """By a byte, at either end of any operand of any call."""
    table([(890, 64, 0), (-10, 0, 0)])
    with pytest.raises(KernelError, match=r"operand \d is touched at"):
        table([(0, 0, 0), moved])


def test_numbers_are_put_into_slots() -> None:
    """Each run has numbers of its own; the call of the table stays as it is."""
    one = KernelCall(cast("Any", None), np.zeros(3, np.int64), 0, 1, (), (), slots=((2, 0), (0, 1)))
    assert one.given((7, 9)).sizes.tolist() == [9, 0, 7]
    assert one.sizes.tolist() == [0, 0, 0]
