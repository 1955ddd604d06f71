"""The oracle gives the worked examples of XLA's pages, without code from TileJIT."""

from __future__ import annotations

from tests.tools.oracle import slots_by_definition


def test_worked_examples() -> None:
    slots = slots_by_definition((3, 5), (1, 0), [(2, 2)])
    assert slots.tolist()[:8] == [0, 1, 5, 6, 2, 3, 7, 8]
    assert slots.tolist().index(2 * 5 + 3) == 17
    assert (
        slots_by_definition((2, 3), (0, 1), padded=(3, 5)).tolist() == [0, 3, -1, 1, 4, -1, 2, 5] + [-1] * 7
    )
    assert slots_by_definition((5,), (0,), tail=4).tolist() == [0, 1, 2, 3, 4, -1, -1, -1]
