"""Select the instructions that put the lanes of a super-vector in another order, by what they mean."""

from __future__ import annotations

from collections.abc import Iterator
from functools import lru_cache
from math import prod
from typing import NamedTuple, TypeAlias

import numpy as np

from codegen.ir.instruction import NoInstructionError
from codegen.ir.instructions import instruction, instructions
from codegen.ir.lines import LANE_BYTES
from codegen.ir.strided_box import Side
from codegen.ir.values import Step, VectorShape

Order: TypeAlias = tuple[int, ...]
"""The numbers of lanes, which count iterations in the order of the loops."""

Instructions: TypeAlias = tuple[tuple[str, VectorShape], ...]
"""Names of instructions, one after the other, and the shapes of their results."""


class Lane(NamedTuple):
    """A vector dimension: its lanes, and the distances from one to the next on both sides."""

    lanes: int
    src: Step
    dst: Step


class Placed(NamedTuple):
    """A super-vector in memory, as a load or a store has it.

    Attributes:
        shape: its dimensions, the one whose lanes are adjacent last.
        steps: the distance from lane to lane of each.
        first: the offset of its lowest element from that of the first iteration.
        order: the number of each lane.
    """

    shape: VectorShape
    steps: tuple[Step, ...]
    first: int
    order: Order


class Moved(NamedTuple):
    """How a super-vector is loaded, which instructions reorder it, and how it is stored.

    Attributes:
        load, store: both sides.
        instructions: those between them.
    """

    load: Placed
    instructions: Instructions
    store: Placed


def reordered(
    lanes: tuple[Lane, ...], source_width: int, width: int, *, apart: bool, flat: tuple[Side, ...] = ()
) -> Moved:
    """The load, the instructions and the store of a super-vector of elements that change their order.

    dst[4*column + 2*row] = src[2*column + pitch*row], column 32, row 2 -> [2, 32], interleaved, [64]
    dst[pitch*j + 4*i] = src[4*j + pitch*i], i 16, j 16                 -> [16, 16], transposed, [16, 16]

    Lanes that fill no register are followed by those of the next iteration, if both sides go forward and it
    fills the register.

    apart  whether dimensions are not joined, even if they are adjacent
    flat   the sides that have one dimension, because it is cut into lines afterwards
    """
    found = exactly_reordered(lanes, source_width, width, apart=apart, flat=flat)
    if found is not None:
        return found
    register, (first, *inner) = (LANE_BYTES // width,), lanes
    is_forward = all(isinstance(step, int) and step > 0 for step in (first.src, first.dst))
    most = prod(x.lanes for x in inner) if is_forward else 0
    for load in placed(lanes, "src", source_width, apart=apart):
        for store in placed(lanes, "dst", width, apart=apart):
            beyond = register[0] - prod(load.shape)
            if len(load.shape) == 1 and load.shape == store.shape and 0 < beyond <= most:
                names = _between(8 * width, register, load.order, register, store.order)
                if names is not None:
                    return Moved(load._replace(shape=register), names, store._replace(shape=register))
    shape = "x".join(str(x.lanes) for x in lanes)
    raise NoInstructionError(f"no instruction reorders super-vectors of {shape} elements of {width} bytes")


def exactly_reordered(
    lanes: tuple[Lane, ...],
    source_width: int,
    width: int,
    *,
    apart: bool = False,
    flat: tuple[Side, ...] = (),
) -> Moved | None:
    """The same for these lanes alone; None if no instructions reorder them."""
    for load in placed(lanes, "src", source_width, apart=apart):
        for store in placed(lanes, "dst", width, apart=apart):
            if ("src" in flat and len(load.shape) > 1) or ("dst" in flat and len(store.shape) > 1):
                continue
            names = _between(8 * width, load.shape, load.order, store.shape, store.order)
            if names is not None:
                return Moved(load, names, store)
    return None


def placed(lanes: tuple[Lane, ...], side: Side, width: int, *, apart: bool = False) -> Iterator[Placed]:
    """A super-vector on a side: with adjacent dimensions joined, then with all of its dimensions.

    Dimensions that are `apart` are not joined. Lanes that are not adjacent, such as those at entries of a
    table, are rows of one element.
    """

    def step(k: int) -> Step:
        return lanes[k].src if side == "src" else lanes[k].dst

    def farness(k: int) -> tuple[bool, int, int]:
        own = step(k)
        distance = abs(own) if isinstance(own, int) else 1 << 62
        return distance == width, -distance, lanes[k].lanes  # rows that repeat are 0 apart

    far_first = sorted(range(len(lanes)), key=farness)
    nearest = step(far_first[-1])
    is_adjacent = nearest in (width, -width)
    numbers = np.arange(prod(lane.lanes for lane in lanes)).reshape([lane.lanes for lane in lanes])
    whole = [(lanes[k].lanes, step(k)) for k in far_first]
    first = 0
    if nearest == -width:  # the lowest element is the last one
        first = -width * (lanes[far_first[-1]].lanes - 1)
        numbers = np.flip(numbers, far_first[-1])
        whole[-1] = (lanes[far_first[-1]].lanes, width)
    order = tuple(numbers.transpose(far_first).ravel().tolist())
    if not is_adjacent:
        whole.append((1, width))
    joined = list(whole)
    while len(joined) > 1 and not apart and joined[-2][1] == joined[-1][0] * width:
        joined[-2:] = [(joined[-2][0] * joined[-1][0], width)]
    for dims in dict.fromkeys((tuple(joined), tuple(whole))):
        yield Placed(tuple(n for n, _ in dims), tuple(s for _, s in dims), first, order)


@lru_cache(maxsize=256)
def _between(
    bits: int, shape: VectorShape, order: Order, to: VectorShape, wanted: Order
) -> Instructions | None:
    """The instructions from one order of lanes to another; None if there are none.

    One is better than two; of several, the one that is cheap on most CPU levels is taken.
    """
    if (shape, order) == (to, wanted):
        return ()
    numbers, flat = np.full(prod(shape), -1), instruction("rows_in_line")
    numbers[: len(order)] = order
    two: Instructions | None = None
    for each in sorted(instructions(), key=lambda x: (-len(x.levels), x.cost)):
        if not each.permutes or shape not in each.shapes.get(bits, ()):
            continue
        made = each.run(numbers.reshape(shape))
        if made.ravel()[: len(wanted)].tolist() != list(wanted):
            continue
        if made.shape == to:
            return ((each.name, to),)
        if made.shape in flat.shapes.get(bits, ()) and made.size == prod(to) and len(to) == 1:
            two = two or ((each.name, made.shape), (flat.name, to))
    return two
