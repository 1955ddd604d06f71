"""A copy between two access maps, as boxes: what the frontend makes, and what schedules are chosen for."""

from __future__ import annotations

from codegen.maps.access import AccessMap
from codegen.maps.refine import Box, PairTree
from codegen.support.dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class BoxedCopy:
    """A copy as boxes.

    `pads` and the boxes hit every slot once, unless `fill_first`. Then the padding has no boxes of its own,
    and a caller who wants it written fills all slots before the copy.
    """

    src: AccessMap
    dst: AccessMap
    trees: tuple[PairTree, ...]
    boxes: tuple[Box, ...]
    pads: tuple[Box, ...]
    fill_first: bool
