"""Build the objects of CuTe's text: layouts, swizzles, composed layouts, tilers, IntTuples and `_`."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from tilejit.cute.digit_step import DigitStep
from tilejit.cute.int_tuple import limit_nesting
from tilejit.cute.layout import Layout
from tilejit.cute.swizzle import ComposedLayout, Swizzle
from tilejit.cute.text import Makers, read
from tilejit.cute.underscore import is_underscore


class Tiler(tuple[Any, ...]):
    """A tuple of a layout, a size, a tiler or `_` for each mode.

    >>> str(Tiler((Layout(2, 3), 4, _)))
    '<2:3,4,_>'

    A plain tuple works as well wherever a tiler is expected.

    Args:
        parts: the layouts, sizes, tilers or `_`.

    Raises:
        TypeError: a part has another type.
    """

    __slots__ = ()

    def __new__(cls, parts: Iterable[Any] = ()) -> Tiler:
        """Take the parts, one for each mode.

        Raises:
            LayoutError: they nest too deep.
            TypeError: a part is not a layout, a size, a tiler or `_`.
        """
        out = super().__new__(cls, parts)
        limit_nesting(out, "a tiler")
        _check_tilers(out)
        return out

    def __str__(self) -> str:
        """CuTe's text, <part,part,…>."""
        return f"<{','.join(str(Tiler(part)) if isinstance(part, tuple) else str(part) for part in self)}>"

    def __repr__(self) -> str:
        return f"Tiler({tuple(self)!r})"


def _check_tilers(parts: Iterable[Any]) -> None:
    """Raise TypeError unless all are layouts, sizes, tuples of them, or `_`."""
    for part in parts:
        if isinstance(part, tuple | list):
            _check_tilers(part)
        elif not (isinstance(part, Layout) or is_underscore(part) or _is_size(part)):
            raise TypeError(f"expected layouts, sizes and `_` in a tiler, got {type(part).__name__}")


def _is_size(part: object) -> bool:
    return hasattr(part, "__index__") and not isinstance(part, bool)


def parse(text: str) -> Any:
    """Read CuTe's text of a Layout, Swizzle, ComposedLayout, Tiler, IntTuple or coordinate, or a DigitStep.

    >>> parse("(2,2):(2,4)"), parse("<2:3,_>"), parse("(2,_)")
    (Layout((2, 2), (2, 4)), Tiler((Layout(2, 3), _)), (2, _))
    >>> parse("Sw<3,4,3>")
    Swizzle(bits=3, base=4, shift=3)

    Args:
        text: the text.

    Returns:
        An object of the type that the text describes.

    Raises:
        LayoutError: the text has a mistake; the message shows where and what to write instead.
        TypeError: the text is not a str.
    """
    return read(text, MAKERS).value


MAKERS = Makers(Layout, Swizzle, DigitStep, ComposedLayout, Tiler)
