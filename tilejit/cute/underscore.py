"""`_`, which keeps a mode."""

from __future__ import annotations

from typing import Any

from codegen import LayoutError
from tilejit.cute.coordinates import whole_number
from tilejit.cute.int_tuple import IntTuple, text_of
from tilejit.support.tokens import named


class Underscore:
    """The type of `_`, which keeps a whole mode.

    >>> print(slice_((_, 1), parse("(3,4):(4,1)")))
    (3):(4)
    """

    __slots__ = ()

    def __repr__(self) -> str:
        return "_"

    def __reduce__(self) -> str:
        return "_"


_ = Underscore()


def is_underscore(value: object) -> bool:
    """Whether a coordinate or a tiler keeps the mode: `_`, None, or the slice `:`."""
    return (
        value is None or isinstance(value, Underscore) or (isinstance(value, slice) and value == slice(None))
    )


def has_underscore(crd: object) -> bool:
    """Whether a coordinate contains `_`."""
    if isinstance(crd, tuple | list):
        return any(map(has_underscore, crd))
    return is_underscore(crd)


def kept_modes(crd: Any, shape: IntTuple, stride: IntTuple, whole: bool) -> list[tuple[IntTuple, IntTuple]]:
    """The modes under `_` (whole) or under integers (not whole), in order: the shape and the stride of each.

    (_, 5), (3, 4), (4, 1), whole -> [(3, 4)]

    Raises:
        LayoutError: the coordinate does not nest like the shape.
    """
    if isinstance(crd, tuple | list):
        if not isinstance(shape, tuple) or not isinstance(stride, tuple) or len(crd) != len(shape):
            raise LayoutError(
                f"the coordinate {named(crd)} does not fit {named(f'{text_of(shape)}:{text_of(stride)}')}\n"
                "  pass one integer or _ for each mode"
            )
        parts = zip(crd, shape, stride, strict=True)
        return [pair for c, s, d in parts for pair in kept_modes(c, s, d, whole)]
    free = is_underscore(crd)
    if not free:
        whole_number(crd)
    return [(shape, stride)] if free is whole else []
