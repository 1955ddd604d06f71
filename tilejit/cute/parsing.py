"""Whatever a text of CuTe's says, built: layouts, swizzles, composed layouts, tilers, IntTuples and `_`."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from tilejit.cute.int_tuple import limit_nesting
from tilejit.cute.layout import Layout
from tilejit.cute.swizzle import ComposedLayout, Swizzle
from tilejit.cute.text import Makers, read
from tilejit.cute.underscore import is_underscore


class Tiler(tuple[Any, ...]):
    """A tuple of a layout, a size, a tiler or `_` for each mode; text <2:3,3:2>.

    str(Tiler((Layout(2, 3), 4, _))) -> "<2:3,4,_>"    A plain tuple does the same everywhere.
    """

    __slots__ = ()

    def __new__(cls, parts: Iterable[Any] = ()) -> Tiler:
        """Take the parts, one a mode.

        Raises:
            LayoutError: they nest too deep.
            TypeError: a part is nothing that tiles.
        """
        out = super().__new__(cls, parts)
        limit_nesting(out, "a tiler")
        _check_tilers(out)
        return out

    def __str__(self) -> str:
        """Its modes between angle brackets."""
        return f"<{','.join(str(Tiler(part)) if isinstance(part, tuple) else str(part) for part in self)}>"

    def __repr__(self) -> str:
        return f"Tiler({tuple(self)!r})"


def _check_tilers(parts: Iterable[Any]) -> None:
    """Raise TypeError unless all are layouts, sizes, tuples of them, or `_`."""
    for part in parts:
        if isinstance(part, tuple | list):
            _check_tilers(part)
        elif not (isinstance(part, Layout) or is_underscore(part) or _is_size(part)):
            raise TypeError(f"a tiler is made of layouts, sizes and `_`, not of {type(part).__name__}")


def _is_size(part: object) -> bool:
    return hasattr(part, "__index__") and not isinstance(part, bool)


def parse(text: str) -> Any:
    """Whatever a text of CuTe's says: a Layout, Swizzle, ComposedLayout, Tiler, an IntTuple or coordinate.

    "(2,2):(2,4)" -> Layout    "Sw<3,4,3>" -> Swizzle    "<2:3,_>" -> Tiler    "(2,_)" -> (2, _)

    Raises:
        LayoutError: a mistake in the text, with the place and the mend.
        TypeError: not a str.
    """
    return read(text, MAKERS).value


MAKERS = Makers(Layout, Swizzle, ComposedLayout, Tiler)
