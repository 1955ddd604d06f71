"""`show`: the picture of a layout, as text in a terminal and as SVG in a notebook."""

from __future__ import annotations

from collections.abc import Iterable
from shutil import get_terminal_size
from typing import Any

from codegen import dataclass
from tilejit.layout.as_layout import LayoutLike, as_layout
from tilejit.layout.cute_shape import Spec
from tilejit.layout.dtypes import ElementLike
from tilejit.tiled.tiled_array import TiledArray
from tilejit.view.coloring import Color, Coloring
from tilejit.view.notebook import layout_html
from tilejit.view.page import CuteLayout, cute_layout, subject
from tilejit.view.svg import svg
from tilejit.view.text import Style, layout_text


@dataclass(frozen=True, repr=False, slots=True)
class LayoutPicture:
    """The picture of a layout: text at a prompt, SVG in a notebook.

    >>> picture = tilejit.show("f32[3,5]{1,0:T(2,2)}")
    >>> picture.svg.startswith("<svg")
    True

    Attributes:
        layout: the shape, or the CuTe layout, that is drawn.
        color: the meaning of the SVG's colors; None for the layout's default.
    """

    layout: Spec | CuteLayout
    color: Color | None = None

    @property
    def text(self) -> str:
        """The picture in ASCII, as wide as the terminal."""
        return layout_text(self.layout, Style(get_terminal_size().columns)).plain

    @property
    def svg(self) -> str:
        """The picture as one <svg> element, for a file or a page."""
        return svg(self.layout, color=self.color)

    def __repr__(self) -> str:
        return self.text

    def _repr_html_(self) -> str | None:
        """The picture, as notebooks show it."""
        return layout_html(self.layout, color=self.color)


def show(
    layout: LayoutLike | TiledArray,
    *,
    dtype: ElementLike | None = None,
    dims: Iterable[int] | None = None,
    color: Color | None = None,
    **parameters: Any,
) -> LayoutPicture:
    """Draw where each element of an array lives in memory.

    Prompts and notebooks display the result; in a script, print it. Each cell shows the slot of an element,
    counted from the start of the buffer. Tiles are outlined. Only a part of a large array is drawn: the SVG
    shows one complete tile, without numbers if there is no room for them.

    >>> tilejit.show("f32[3,5]{1,0:T(2,2)}")
    f32[3,5]{1,0:T(2,2)}
    elements  15
    slots     24 of 32 bits
    size      96 bytes
    padding   9 slots, 37.5%
    <BLANKLINE>
      0  1| 4  5| 8
      2  3| 6  7|10
    ------+-----+--
     12 13|16 17|20
    <BLANKLINE>
    memory
     0: 0,0 0,1 1,0 1,1|0,2 0,3 1,2 1,3|0,4   . 1,4   .|2,0 2,1   .   .
    16: 2,2 2,3   .   .|2,4   .   .   .

    Args:
        layout: anything that `as_layout` reads, or a TiledArray. A CuTe layout can stand alone.
        dtype: the array's dtype, if the layout is not a complete shape.
        dims: the array's dimensions, if the layout is not a complete shape.
        color: the meaning of the SVG's colors: "tile", "order" (in memory, as a gradient), or, for
            swizzled layouts, "bank" or "row". By default "bank" for swizzles, "tile" for several
            small tiles, and "order" for all others.
        parameters: keywords of a named format, or sizes of a pattern's axes.

    Returns:
        A `LayoutPicture`, with the picture as `.text` and as `.svg`.

    Raises:
        LayoutError: the layout cannot be read, dtype or dims are missing, the buffer has no fixed size, or
            the layout cannot be colored that way.
        TypeError: an argument has the wrong type, or the layout does not accept a keyword.
    """
    found = _layout_of(layout, dtype, dims, parameters)
    layout_text(found, Style())  # raises here rather than when the picture is printed
    Coloring.of(subject(found)[0], color)
    return LayoutPicture(found, color)


def _layout_of(
    layout: Any, dtype: ElementLike | None, dims: Iterable[int] | None, parameters: dict[str, Any]
) -> Spec | CuteLayout:
    """The shape to draw, or a CuTe layout that stands alone."""
    if isinstance(layout, TiledArray):
        layout = layout.layout
    alone = cute_layout(layout) if (dtype, dims) == (None, None) and not parameters else None
    return as_layout(layout, dtype=dtype, dims=dims, **parameters) if alone is None else alone
