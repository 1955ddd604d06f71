"""The right inverse of a layout, the common layouts of two layouts, and the nullspace."""

from __future__ import annotations

import numpy as np

from codegen import LayoutError
from tilejit.cute.compose import compose_layouts
from tilejit.cute.digits import Mode, joined
from tilejit.cute.exact.longest_run import longest_run
from tilejit.cute.layout import Layout, expect_layout, offsets
from tilejit.cute.modes import EMPTY_MODE, flat_modes, from_modes
from tilejit.cute.witness import NoLayoutError
from tilejit.support.tokens import named


def right_inverse_of_layout(layout: Layout) -> Layout:
    """`right_inverse` of a Layout."""
    expect_layout(layout)
    if layout.size == 0:
        raise _no_elements(layout)
    chain, reach = _chain(layout)
    found = from_modes(joined(chain))
    return found if _ends(layout, reach) else longest_run(layout, found)


def _no_elements(layout: Layout) -> LayoutError:
    return NoLayoutError(f"{named(layout)} has no elements, so no offset 0\n  use a layout with elements")


def _chain(layout: Layout) -> tuple[list[Mode], int]:
    """Modes of A in stride order, as modes of its right inverse, and the number of elements so far."""
    by_step: dict[int, Mode] = {}
    weight = 1
    for size, step in joined(flat_modes(layout)):
        if step not in by_step or size > by_step[step].size:
            by_step[step] = Mode(size, weight)
        weight *= size
    # joined() drops sizes of 1, which change no weight.
    out: list[Mode] = []
    reach = 1
    while reach in by_step:
        out.append(by_step.pop(reach))
        reach *= out[-1].size
    return out, reach


def _ends(layout: Layout, reach: int) -> bool:
    """Whether no offset can equal `reach`: no stride is negative, and the smaller ones end before it."""
    smaller = 0
    for size, step in flat_modes(layout):
        if step < 0 and size > 1:
            return False
        if 0 < step <= reach and size > 1:
            smaller += (size - 1) * step
    return smaller < reach


def max_common_layout(a: Layout, b: Layout) -> Layout:
    """Find the elements that are contiguous in both layouts.

    >>> print(max_common_layout(parse("(4,8):(1,4)"), parse("(4,8):(1,5)")))
    4:1
    >>> print(max_common_layout(parse("4:1"), parse("8:1")))
    4:1

    Args:
        a: a Layout.
        b: a Layout.

    Returns:
        The longest layout R along the right inverse of b with a(R(i)) = i = b(R(i)). R(i) is a coordinate of
        both.

    Raises:
        LayoutError: as `right_inverse`.
        TypeError: an argument is not a Layout.

    Source: CuTe's max_common_layout.
    """
    if expect_layout(a).size == 0:
        raise _no_elements(a)
    inverse = longest_within(right_inverse_of_layout(b), a.size)
    count = _identity_run(a, inverse)
    out: list[Mode] = []
    for size, step in joined(flat_modes(inverse)):
        out.append(Mode(min(size, count), step))
        count //= size
        if count <= 1:
            break
    return from_modes(joined(out))


def longest_within(inverse: Layout, size: int) -> Layout:
    """The longest prefix of R that stays below `size`."""
    out: list[Mode] = []
    top = size - 1
    for count, step in joined(flat_modes(inverse)):
        fitting = min(count, top // step + 1) if step else count
        out.append(Mode(fitting, step))
        top -= (fitting - 1) * step
        if fitting < count:
            break
    return from_modes(joined(out))


def max_common_vector(a: Layout, b: Layout) -> int:
    """Count the elements that are contiguous in both layouts at the same coordinates.

    >>> max_common_vector(parse("(4,8):(1,4)"), parse("(4,8):(1,5)"))
    4

    Args:
        a: a Layout.
        b: a Layout.

    Returns:
        The size of `max_common_layout`, in elements.

    Raises:
        LayoutError: as `right_inverse`.
        TypeError: an argument is not a Layout.

    Source: CuTe's max_common_vector.
    """
    return max_common_layout(a, b).size


def _identity_run(a: Layout, inverse: Layout) -> int:
    """The largest n with a(inverse(i)) = i below n."""
    try:
        first, *_others = joined(flat_modes(compose_layouts(a, inverse))) or [Mode(1, 1)]
        return first.size if first.stride == 1 else 1
    except LayoutError:
        table = a(offsets(inverse))
        faults = (table != np.arange(len(table))).nonzero()[0]
        return int(faults[0]) if len(faults) else len(table)


def nullspace(layout: Layout) -> Layout:
    """Find the layout of all coordinates that map to offset 0 because their strides are 0.

    >>> print(nullspace(parse("(4,2,6):(0,1,0)")), nullspace(parse("(4,8):(1,4)")))
    (4,6):(1,8) 1:0

    Args:
        layout: a Layout.

    Returns:
        The layout R with layout(R(i)) = 0; 1:0 if no stride is 0.

    Raises:
        TypeError: the argument is not a Layout.

    Source: CuTe's nullspace.
    """
    expect_layout(layout)
    out: list[Mode] = []
    weight = 1
    for size, step in flat_modes(layout):
        if step == 0:
            out.append(Mode(size, weight))
        weight *= size
    return from_modes(out) if out else EMPTY_MODE
