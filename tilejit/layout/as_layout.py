"""`as_layout`: the one place that reads whatever a caller may give as a layout."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from codegen.errors import LayoutError
from tilejit.layout.checks import int_tuple
from tilejit.layout.dtypes import primitive_type
from tilejit.layout.formats import describe_format, named_format
from tilejit.layout.helpers import dims_text
from tilejit.layout.layout import Layout
from tilejit.layout.shape import UNBOUNDED, BufferShape, Shape, TupleShape
from tilejit.layout.tokens import tokenize
from tilejit.layout.xla_text import parse_layout


def as_layout(
    obj: object, *, dims: Iterable[int] | None = None, dtype: object = None, **parameters: Any
) -> Shape:
    """The Shape that something stands for: a Shape, a Layout, XLA's text of either, or a format's name.

    "bf16[1000,300]{1,0:T(8,128)(2,1)}"                          -> itself
    "{1,0:T(8,128)}" with dims (5, 7) and dtype float32          -> f32[5,7]{1,0:T(8,128)}
    "tpu" with dims (33, 300) and dtype bfloat16                 -> bf16[33,300]{1,0:T(8,128)(2,1)}

    Args:
        obj: what to read. A shape's text without a layout is row-major, and its dtype wins over `dtype`.
        dims: the array's dimensions; a shape that names others is refused.
        dtype: the array's dtype, for a layout alone or a format's name.
        parameters: keywords of a named format; nothing else takes any.

    Raises:
        LayoutError: a mistake in the text, other dimensions, dims or dtype missing, a tuple, buffer or token.
        TypeError: an object of another type, or parameters where none are taken.
    """
    sizes = None if dims is None else int_tuple(dims, "dims")
    if isinstance(obj, str) and _is_name(obj):
        name = obj.strip()
        describe_format(name)
        return named_format(name, *_needed(sizes, dtype, f"the format {name!r}"), **parameters)
    if parameters:
        raise TypeError(
            f"{next(iter(parameters))!r} is a parameter of named formats, not of {type(obj).__name__}"
        )
    if isinstance(obj, str):
        obj = _read(obj, sizes)
    if isinstance(obj, Layout):
        wanted, element = _needed(sizes, dtype, "a layout alone")
        return Shape(primitive_type(element).name, wanted, obj)
    if isinstance(obj, TupleShape | BufferShape):
        kind = "tuple" if isinstance(obj, TupleShape) else "buffer"
        raise LayoutError(
            f"{str(obj)[:60]} is a {kind}, not one array's shape\n  give the shape of each array on its own"
        )
    if not isinstance(obj, Shape):
        raise TypeError(
            f"a layout is a Shape, a Layout, a text such as 'f32[3,5]{{1,0:T(2,2)}}' or a format's name, "
            f"not {type(obj).__name__}"
        )
    return _checked(obj, sizes)


def _is_name(text: str) -> bool:
    """Whether a text can only be a format's name: a letter first, and no brackets anywhere."""
    stripped = text.strip()
    return stripped[:1].isalpha() and not any(sign in stripped for sign in "[](){}")


def _read(text: str, dims: tuple[int, ...] | None) -> object:
    """A Layout where the text opens with a brace, else a shape."""
    start = text.lstrip()[:1]
    if start == "{" or (start == "/" and tokenize(text)[0].text == "{"):
        return parse_layout(text, None if dims is None else len(dims))
    return Shape.parse(text)


def _needed(dims: tuple[int, ...] | None, dtype: object, what: str) -> tuple[tuple[int, ...], object]:
    """dims and dtype, which only a full shape can do without."""
    if dims is None or dtype is None:
        missing = " and ".join(name for name, value in (("dims", dims), ("dtype", dtype)) if value is None)
        raise LayoutError(
            f"{what} does not say the array's {missing}\n"
            f"  pass {missing}, or write a full shape such as f32[3,5]{{1,0}}"
        )
    return dims, dtype


def _checked(shape: Shape, dims: tuple[int, ...] | None) -> Shape:
    """The shape, if it is an array's and of those dimensions."""
    if not shape.element.is_array_element:
        raise LayoutError(
            f"{shape.primitive_type}[] is not an array's shape\n  give one such as f32[3,5]{{1,0}}"
        )
    if dims is None:
        return shape
    same = len(dims) == shape.rank and all(
        have in (want, UNBOUNDED) for have, want in zip(shape.dimensions, dims, strict=True)
    )
    if not same:
        raise LayoutError(
            f"the layout is of an array {dims_text(shape.dimensions)}, but the array is {dims_text(dims)}\n"
            "  give a layout of the array's dimensions, or one without any, such as {1,0:T(8,128)}"
        )
    return shape
