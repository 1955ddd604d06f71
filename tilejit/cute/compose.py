"""composition: the layout c -> A(B(c)), found whenever it exists."""

from __future__ import annotations

from typing import Any

from tilejit.cute.exact.carries import MixedRadix, compose_with_carries
from tilejit.cute.int_tuple import IntTuple, flatten, limit_nesting, unflatten
from tilejit.cute.layout import Layout, trusted
from tilejit.cute.modes import by_mode
from tilejit.cute.swizzle import ComposedLayout, Swizzle
from tilejit.cute.underscore import is_underscore
from tilejit.cute.witness import NoLayoutError


def composition(a: Any, b: Any) -> Any:
    """A after B: the layout R with R(c) = A(B(c)) for every coordinate c of B; it refines B's modes.

    (6,2):(8,2), (4,3):(3,1) -> ((2,2),3):((24,2),8)    (4,8):(1,4), <2:3,3:2> -> (2,3):(3,8)

    Coordinates of A start at 0, so a composition is undefined where B gives a negative offset: 8:1, 4:-1
    fails at index 1. Negative strides of A are defined.

    Args:
        a: a Layout, whose last mode may exceed its size; a Swizzle; or a ComposedLayout.
        b: a Layout, an integer n for n:1, or a tiler: a tuple of these or `_`, one for each of the first
            modes of A.

    Returns:
        A Layout; a ComposedLayout if A or B is not a Layout.

    Raises:
        NoLayoutError: no layout is that function; the message names an index that shows it.
        LayoutError: a tiler has more modes than A.
        TypeError: an argument has the wrong type.
    """
    if type(a) is Layout and type(b) is Layout:
        return compose_layouts(a, b)
    if not isinstance(a, Layout | ComposedLayout | Swizzle):
        raise TypeError(f"composition: expected layouts, got {type(a).__name__}")
    limit_nesting(b, "a tiler")
    if is_underscore(b):
        return a
    if isinstance(a, ComposedLayout):
        return _after_composed(a, b)
    if isinstance(b, tuple | list):
        if not isinstance(a, Layout):
            raise TypeError(f"a tiler divides the modes of a layout, not of {type(a).__name__}")
        return by_mode(a, b, composition)
    if not isinstance(b, Layout | ComposedLayout):
        b = Layout(b)
    if isinstance(a, Swizzle):
        return ComposedLayout(a, 0, b)
    return compose_layouts(a, b) if isinstance(b, Layout) else ComposedLayout(a, 0, b)


def _after_composed(a: ComposedLayout, b: Any) -> ComposedLayout:
    """Compose the inner layout with B; if no layout expresses that, return A o 0 o B."""
    try:
        return ComposedLayout(a.outer, a.offset, composition(a.inner, b))
    except NoLayoutError as error:
        seen = error.witness
        if not isinstance(b, Layout) or seen is None or seen.expected is None:
            raise
    return ComposedLayout(a, 0, b)


def compose_layouts(a: Layout, b: Layout) -> Layout:
    """`composition` of two Layouts.

    A's flat, coalesced modes are the digits of its argument, the last one unbounded. A mode n:e of B stays
    within one digit if it carries into the next immediately at its size, or never. If modes would carry
    together, or a stride is spread over digits, `compose_with_carries` decides.
    """
    if 0 in flatten(a.shape):
        return compose_with_carries(MixedRadix([], [0]), a, b)
    digits = MixedRadix.of(a)
    room = [size - 1 for size in digits.sizes]
    shapes: list[IntTuple] = []
    strides: list[IntTuple] = []
    flat = flatten(b.shape)
    for n, e in zip(flat, flatten(b.stride), strict=True):
        if n == 0:
            return trusted(b.shape, unflatten(iter([0] * len(flat)), b.shape))
        mode = (n, 0) if n == 1 or e == 0 else _cut(digits, room, n, e)
        if mode is None:
            return compose_with_carries(digits, a, b)
        shapes.append(mode[0])
        strides.append(mode[1])
    if type(b.shape) is not tuple:
        return trusted(shapes[0], strides[0])
    if b.shape == flat:
        return trusted(tuple(shapes), tuple(strides))
    return trusted(unflatten(iter(shapes), b.shape), unflatten(iter(strides), b.shape))


def _cut(digits: MixedRadix, room: list[int], n: int, e: int) -> tuple[IntTuple, IntTuple] | None:
    """Cut a mode n:e of B at A's digits, and reduce their `room`; None if the mode may carry.

    4:3, digits of size 2 and unbounded, of strides 8 and 100 -> None    4:1 -> (2, 2), (8, 100)
    """
    if e < 0:
        return None
    sizes, steps, last = digits.sizes, digits.steps, digits.last
    parts: list[int] = []
    part_steps: list[int] = []
    place = 0
    while n > 1:
        while place < last and e % sizes[place] == 0:
            e //= sizes[place]
            place += 1
        if place == last:
            parts.append(n)
            part_steps.append(e * steps[last])
            break
        if e > sizes[place]:
            return None
        run = -(-sizes[place] // e)
        take = n if n <= run else run
        room[place] -= (take - 1) * e
        if room[place] < 0 or n % take or (n > run and sizes[place] % e):
            return None
        parts.append(take)
        part_steps.append(e * steps[place])
        n //= take
        e *= take
        if n > 1:
            e //= sizes[place]
            place += 1
    return (parts[0], part_steps[0]) if len(parts) == 1 else (tuple(parts), tuple(part_steps))
