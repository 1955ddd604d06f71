"""A layout as a function of one index for each mode: its digits, and the functions applied to their sum."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from codegen import LayoutError, cached, compiler_lock, dataclass
from tilejit.cute.digit_step import DigitStep
from tilejit.cute.digits import Chain, Mode
from tilejit.cute.int_tuple import flatten, modes
from tilejit.cute.layout import Layout, extent
from tilejit.cute.swizzle import ComposedLayout, Outer, Swizzle
from tilejit.support.tokens import MAX_INT64, named

CHUNK = 1 << 18
"""The most offsets held at one time."""

MAX_POINTS = 1 << 27
"""The most coordinates to enumerate, if nothing else decides which offsets a layout reaches."""


Steps = tuple[tuple[int, Swizzle | DigitStep | Layout], ...]


@dataclass(frozen=True, slots=True)
class Function:
    """A sum of digits, followed by steps (offset, map) in order: value -> map(value + offset).

    Sw<3,4,3> o 16 o (8,128):(128,1) -> modes (((8, 128),), ((128, 1),)), steps ((16, Sw<3,4,3>),)
    """

    modes: tuple[Chain, ...]
    steps: Steps

    def __call__(self, index: tuple[Any, ...]) -> Any:
        """The offset of an index; integers, or int64 arrays that broadcast."""
        value: Any = 0
        for digits, at in zip(self.modes, index, strict=True):
            value = value if digits else value + at * 0  # so that the array still broadcasts
            for size, stride in digits:
                value = value + at % size * stride
                at = at // size
        for offset, apply in self.steps:
            value = apply(value + offset)
        return value

    @property
    def sizes(self) -> tuple[int, ...]:
        """The size of each mode."""
        return tuple(_size(digits) for digits in self.modes)

    @property
    def swizzle(self) -> tuple[int, Swizzle] | None:
        """The offset and the swizzle applied to the sum; (0, Sw<0,0,0>) for none, None for several."""
        match self.steps:
            case ():
                return 0, Swizzle(0, 0, 0)
            case ((offset, Swizzle() as swizzle),):
                return offset, swizzle
        return None

    @property
    def permutations(self) -> tuple[int, tuple[Swizzle | DigitStep, ...]] | None:
        """The offset, and the permutations of offsets applied to the sum in order; None for other steps."""
        offset = self.steps[0][0] if self.steps else 0
        if any(more for more, _ in self.steps[1:]):
            return None
        found: list[Swizzle | DigitStep] = []
        for _, apply in self.steps:
            if isinstance(apply, Layout):
                return None
            if isinstance(apply, DigitStep) or apply.bits:
                found.append(apply)
        return offset, tuple(found)

    def before_steps(self, slot: Any) -> Any:
        """Undo the permutations and the offset; integers or arrays of nonnegative integers."""
        found = self.permutations
        assert found is not None, "expected steps that are permutations"
        offset, steps = found
        for step in reversed(steps):  # every swizzle is its own inverse
            slot = step(slot) if isinstance(step, Swizzle) else step.inverse(slot)
        return slot - offset


@cached(1024)
def function_of(layout: Layout | ComposedLayout) -> Function:
    """The function of a layout; layouts composed with layouts become one if possible.

    Raises:
        LayoutError: offsets exceed 64 bits, or values before a step do.
    """
    steps, inner = _flat(layout)
    while steps and steps[0][0] == 0 and isinstance(steps[0][1], Layout):
        with compiler_lock:  # imported here, because few layouts are composed with layouts
            from tilejit.cute.compose import composition
        try:
            inner = composition(steps[0][1], inner)
        except LayoutError:
            break
        steps = steps[1:]
    low, high = extent(inner)
    shift = sum(abs(offset) for offset, _ in steps)
    if not -MAX_INT64 <= low - shift <= high + shift <= MAX_INT64:
        raise LayoutError(f"an offset of {named(layout)} exceeds 64 bits\n  use smaller strides")
    own = tuple(
        tuple(map(Mode, flatten(shape), flatten(stride)))
        for shape, stride in zip(modes(inner.shape), modes(inner.stride), strict=True)
    )
    return Function(own, steps)


def _flat(layout: Layout | ComposedLayout) -> tuple[Steps, Layout]:
    if isinstance(layout, Layout):
        return (), layout
    steps, inner = _flat(layout.inner)
    return steps + _applied(layout.outer, layout.offset), inner


def _applied(outer: Outer, offset: int) -> Steps:
    if isinstance(outer, ComposedLayout):
        return _applied(outer.inner, offset) + _applied(outer.outer, outer.offset)
    return ((offset, outer),)


def rows_of(dims: tuple[int, ...], rows: NDArray[np.int64]) -> tuple[NDArray[np.int64], ...]:
    """The multi-indices of row-major numbers."""
    index: list[NDArray[np.int64]] = []
    for size in reversed(dims):
        index.append(rows % size)
        rows = rows // size
    return tuple(reversed(index))


def _size(digits: Chain) -> int:
    out = 1
    for size, _ in digits:
        out *= size
    return out
