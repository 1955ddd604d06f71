"""`as_layout`, which reads a layout in any form that a caller may pass."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, TypeAlias

import numpy as np

from codegen import Cache, LayoutError, compiler_lock, lazy_pattern, shown
from tilejit.catalog.format import ELEMENT_SIZE, Format, nearest_keyword
from tilejit.catalog.packing import Packing
from tilejit.cute.construct import LayoutRight
from tilejit.cute.layout import Layout as CuteLayout
from tilejit.cute.parsing import parse as parse_cute
from tilejit.cute.swizzle import ComposedLayout, Swizzle
from tilejit.cute.text import is_cute, is_cute_part
from tilejit.cute.underscore import has_underscore
from tilejit.layout.checks import int_tuple
from tilejit.layout.cute_shape import CuteShape, Spec, make_cute_shape, parse_cute_shape
from tilejit.layout.dtypes import ElementLike, PrimitiveType, primitive_type
from tilejit.layout.fields import UNBOUNDED
from tilejit.layout.formats.blocking import Blocking
from tilejit.layout.formats.packings import blocking_of, packing_shape
from tilejit.layout.formats.registry import called, find_format
from tilejit.layout.formats.spelling import blocked_shape
from tilejit.layout.helpers import dims_text
from tilejit.layout.shape import BufferShape, Layout, Shape, TupleShape, parse_shape
from tilejit.layout.text.pattern_text import is_pattern, parse_pattern
from tilejit.layout.text.recipe import fill_of, fill_text
from tilejit.layout.text.swizzled_text import SwizzledText, split_swizzled
from tilejit.layout.text.xla_print import array_text
from tilejit.layout.text.xla_text import XLA
from tilejit.support.tokens import MAX_INT64, mistake, named, tokenize

_TUPLE = lazy_pattern(r"=\s*\([^()]*\)")
"""The value of a parameter that has several numbers."""
PLAIN_LAYOUTS = (str, Shape, CuteShape)
"""Types of layouts that may be part of a cache key."""

LayoutLike: TypeAlias = Shape | CuteShape | Layout | CuteLayout | ComposedLayout | str
"""The types of layouts that `as_layout` reads."""


class ArrayUnknownError(LayoutError):
    """The layout lacks the dtype or the dimensions of the array, and the call does not give them."""

    __module__ = "tilejit"


def as_layout(
    layout: LayoutLike,
    *,
    dtype: ElementLike | None = None,
    dims: Iterable[int] | None = None,
    **parameters: Any,
) -> Spec:
    """Read a layout in any form: XLA's text, a CuTe layout, a named format or a pattern.

    >>> print(tilejit.as_layout("bf16[1000,300]{1,0:T(8,128)(2,1)}"))
    bf16[1000,300]{1,0:T(8,128)(2,1)}
    >>> print(tilejit.as_layout("{1,0:T(8,128)}", dtype="f32", dims=(5, 7)))
    f32[5,7]{1,0:T(8,128)}
    >>> print(tilejit.as_layout("tpu", dtype="bf16", dims=(33, 300)))
    bf16[33,300]{1,0:T(8,128)(2,1)}
    >>> print(tilejit.as_layout("nChw16c", dtype="f32", dims=(2, 20, 5, 7)))
    f32[2,20,5,7]{3,2,1,0:T(16,1,1)}
    >>> print(tilejit.as_layout("(4,8):(8,1)", dtype="f32", dims=(3, 5)))
    f32[3,5] (4,8):(8,1)
    >>> print(tilejit.as_layout("(m mi) (n ni) -> m n mi ni", dtype="f32", dims=(5, 7), mi=8, ni=128))
    f32[5,7]{1,0:T(8,128)}
    >>> print(tilejit.as_layout("r (c p) -> r c -p", dtype="uint4", dims=(2, 8), p=2, element_size_in_bits=4))
    u4[2,8] Sw<0,0,0> o 1 o (2,(2,4)):(8,(-1,2)) E(4)
    >>> print(tilejit.as_layout("f32[64,64] Sw<3,2,3> o 0 o tenstorrent"))
    f32[64,64] Sw<3,2,3> o 0 o ((16,2,2),(16,2,2)):((16,512,2048),(1,256,1024))

    A CuTe layout, or its text, becomes a CuteShape with one mode for each dimension. Within a mode, the first
    sub-mode varies fastest. Slots that no element maps to are padding. The layout may be swizzled.

    A pattern follows einops. The left side has one name for each dimension, or several names in parentheses,
    the most major first. The right side has all names in memory order. Within a dimension, one axis may lack
    a size: it gets the smallest size that covers the dimension, and the excess is padding. `...` stands for
    any number of further dimensions; 1 and () stand for dimensions of size 1. Text may also contain sizes and
    format parameters: "(m mi) n -> m n mi, mi=8", "tenstorrent, tile=(16,32)". Axes cannot be named like a
    keyword of the calls, such as threads or out.

    On the right side, -p reverses an axis, and j^i, j+i or j-i moves index j of an axis to j XOR i, or to the
    sum or difference modulo its size. A size may be a table: index k of the axis lies at position table[k].

    A swizzle may precede any layout, "Sw<2,3,3> o 0 o {1,0:T(8,128)}", and a dtype and dimensions may precede
    the swizzle. The result is a CuteShape.

    Args:
        layout: the layout. The text of a shape without a layout is row-major, and its dtype overrides
            `dtype`.
        dtype: the dtype of the array, unless the layout is a complete shape.
        dims: the dimensions of the array in elements; those of a complete shape must match.
        parameters: the keywords of a named format, or the sizes of a pattern's axes in elements. CuTe
            layouts, patterns, oneDNN's tags and other blocked formats also take `element_size_in_bits`, which
            packs elements into bytes, low bits first: 4 packs two s4 elements into a byte, 1 packs eight pred
            elements. Without it, each element takes a byte, as without XLA's E. With the dtype u8 or s8, a
            width of 4, 2 or 1 means codes, and the layout is of u4, s4 and so on. Other layouts take no
            parameters.

    Returns:
        A Shape, or a CuteShape for a CuTe layout, a swizzle, or a pattern that moves indices.

    Raises:
        LayoutError: the text has a mistake, the dimensions differ, dtype or dims are missing, or the text is
            a tuple, a buffer or a token.
        TypeError: the layout has another type, or does not take a parameter.
    """
    key = _key(layout, dtype, dims, parameters)
    spec = _read_before.get(key) if key else None
    if spec is None:
        spec = _as_layout(layout, dtype, None if dims is None else int_tuple(dims, "dims"), parameters)
        if key:
            _read_before.keep(key, spec)
    return spec


_read_before: Cache[tuple[Any, ...], Spec] = Cache()
"""Results for texts read earlier."""


def _key(layout: object, dtype: object, dims: object, parameters: dict[str, Any]) -> tuple[Any, ...] | None:
    """The cache key: values of types in which equality means the same layout; None for other types."""
    if type(layout) is not str or not isinstance(dtype, str | np.dtype | type | PrimitiveType | None):
        return None
    sizes = dims if dims is None or type(dims) is tuple else None
    numbers = (*(sizes or ()), *parameters.values())
    if sizes is not dims or any(type(n) is not int for n in numbers):
        return None
    return layout, dtype, sizes, *parameters.items()


def _as_layout(
    layout: LayoutLike, dtype: ElementLike | None, sizes: tuple[int, ...] | None, parameters: dict[str, Any]
) -> Spec:
    """`as_layout` for dimensions that are a tuple."""
    if isinstance(layout, str) and not layout.strip():
        raise LayoutError(
            f"expected a layout, got {layout[:40]!r}\n"
            "  write a layout such as {1,0:T(8,128)}, a shape such as f32[3,5]{1,0}, or a format such as tpu"
        )
    if isinstance(layout, str) and (parts := split_swizzled(layout)):
        return _swizzled(parts, dtype, sizes, parameters)
    if isinstance(layout, str) and is_name(layout):
        own, given = called(layout, parameters)
        fault = TypeError if ELEMENT_SIZE in parameters else LayoutError
        return _in_format(own, *_needed(dtype, sizes, f"the format {own.name!r}"), given, fault)
    if isinstance(layout, str) and is_pattern(layout):
        pattern = parse_pattern(layout)
        element, wanted = _needed(dtype, sizes, "a pattern")
        width, sizes_given = _width(parameters, pattern.names)
        codes = _array_element(element).codes(width)
        return blocked_shape(pattern.blocking(_known(wanted), sizes_given), codes, width)
    if isinstance(layout, CuteLayout | ComposedLayout) or (
        isinstance(layout, str) and (is_cute(layout) or is_cute_part(layout))
    ):
        element, wanted = _needed(dtype, sizes, "a CuTe layout")
        return _cute_shape(layout, element, wanted, parameters)
    if parameters:
        what = f"the text {layout[:40]!r}" if isinstance(layout, str) else f"a {type(layout).__name__}"
        raise TypeError(
            f"{what} has no parameter {next(iter(parameters))[:40]!r}\n"
            "  omit it: only named formats and patterns have parameters"
            + nearest_keyword(next(iter(parameters)), ())
        )
    found: object = layout
    if isinstance(layout, str):
        found = parse_cute_shape(layout) or _read(layout, sizes)
    if isinstance(found, Layout):
        element, wanted = _needed(dtype, sizes, "a layout alone")
        return Shape(primitive_type(element).codes(found.element_size_in_bits).name, wanted, found)
    if isinstance(found, TupleShape | BufferShape):
        kind = "tuple" if isinstance(found, TupleShape) else "buffer"
        raise LayoutError(
            f"{str(found)[:60]} is a {kind}, not the shape of one array\n  pass each array's shape separately"
        )
    if not isinstance(found, Shape | CuteShape):
        raise TypeError(f"expected a layout, got {type(found).__name__}\n  {_fix_of(found)}")
    return _checked(found, sizes)


def _swizzled(
    parts: SwizzledText, dtype: ElementLike | None, sizes: tuple[int, ...] | None, parameters: dict[str, Any]
) -> Spec:
    """The shape of a text in which a swizzle precedes any other layout."""
    with compiler_lock:  # few layouts are swizzled
        from tilejit.layout.bridge.swizzled_shape import swizzled_shape
    if parts.dtype is not None:
        whole = parse_shape(f"{parts.dtype}[{parts.dims}]")
        assert isinstance(whole, Shape)
        dtype, sizes = whole.element, _checked(whole, sizes).dimensions
    if parts.width:
        parameters = parameters | {ELEMENT_SIZE: parts.width}
    swizzle, inner = parse_cute(parts.swizzle), _as_layout(parts.inner, dtype, sizes, parameters)
    try:
        return swizzled_shape(swizzle, parts.offset, inner)
    except LayoutError as error:
        cause, _, fix = str(error).partition("\n")
        raise mistake(
            parts.text,
            parts.at,
            f"no swizzle fits {array_text(inner) if isinstance(inner, Shape) else str(inner)[:80]}: {cause}",
            fix.strip(),
        ) from None


def of_the_layout(parameters: dict[str, Any], call: str, holder: str) -> dict[str, Any]:
    """Return the keywords for a layout, in a call whose array already has a dtype and dimensions.

    Raises:
        TypeError: dtype or dims is among them.
    """
    for name in ("dtype", "dims"):
        if name in parameters:
            convert = ", or convert the array first with astype" * ((name, holder) == ("dtype", "the array"))
            raise TypeError(f"{call} does not take {name}: {holder} has its own\n  omit {name}{convert}")
    return parameters


def named_format(name: str, /, dtype: ElementLike, dims: Iterable[int], **parameters: Any) -> Spec:
    """Create the shape of an array in a named format.

    >>> print(tilejit.named_format("tpu", "bf16", (33, 300)))
    bf16[33,300]{1,0:T(8,128)(2,1)}
    >>> print(tilejit.named_format("OIhw16i16o", "f32", (64, 32, 3, 3)))
    f32[64,32,3,3]{3,2,1,0:T(16,16,1,1)(16,1,1,1)}
    >>> print(tilejit.named_format("vnni", "s4", (64, 32), pack=8, element_size_in_bits=4))
    s4[64,32]{1,0:T(8,1)E(4)}

    Args:
        name: a name from `tilejit.formats()`, or a oneDNN blocked tag.
        dtype: the dtype of the array: XLA's name, a NumPy dtype or NumPy's code.
        dims: the dimensions of the array in elements.
        parameters: the keywords of the format; see `tilejit.describe_format`.

    Returns:
        A Shape, or a CuteShape for a format that is defined by a CuTe layout.

    Raises:
        LayoutError: the format does not exist (the message names the nearest), has no layout for the dtype or
            rank, or is a registered function that does not return a layout of the array.
        TypeError: the format does not take a parameter, or an argument has the wrong type.
    """
    return _in_format(find_format(name), dtype, dims, parameters, TypeError)


def _in_format(
    found: Format, dtype: ElementLike, dims: Iterable[int], parameters: dict[str, Any], fault: type[Exception]
) -> Spec:
    """`named_format`; `fault` is the error class for an element width that the format does not take."""
    sizes, have = _known(int_tuple(dims, "dims")), _array_element(dtype)
    width, own = _width(parameters, found.parameters)
    element = have.codes(width)
    built = found.layout(element, sizes, own)
    if isinstance(built, Packing):
        return packing_shape(built, found.name, element, sizes, width)
    if isinstance(built, Blocking):
        return blocked_shape(built, element, width)
    shape = _shape_of(found.name, built, element, sizes)
    if width and (element is have or shape.bits != width):
        raise fault(
            f"the format {found.name!r} takes no {ELEMENT_SIZE}, because its layouts set it themselves"
        )
    return shape


def recipe_of(layout: LayoutLike, dtype: ElementLike, dims: Iterable[int], **parameters: Any) -> str:
    """Write a layout as NumPy code: a function `pack(x)` that pads, reshapes and transposes x to the buffer.

    Tags, blocked formats and patterns become one pad, one reshape and one transpose, after reversed axes are
    flipped and axes with an XOR permuted. "tpu", "tpu-doc", layouts and shapes become code for each level of
    tiles, as in XLA's definition.

    Raises:
        LayoutError: the layout cannot be read, or the code needs more than NumPy's 64 dimensions.
        TypeError: as for `as_layout`.
    """
    sizes = int_tuple(dims, "dims")
    shape = as_layout(layout, dtype=dtype, dims=sizes, **parameters)
    built: object = None
    if isinstance(layout, str) and is_name(layout):
        found, given = called(layout, parameters)
        built = found.layout(shape.element, sizes, _width(given, found.parameters)[1])
        if isinstance(built, Packing):
            built = blocking_of(built, found.name, sizes)
    elif isinstance(layout, str) and is_pattern(layout):
        pattern = parse_pattern(layout)
        built = pattern.blocking(sizes, _width(parameters, pattern.names)[1])
    if isinstance(built, Blocking) and isinstance(shape, CuteShape):
        return built.recipe(str(shape), fill_of(shape.padding_value, shape.primitive_type), shape)
    if isinstance(shape, CuteShape):
        raise LayoutError(
            f"{str(shape)[:80]} cannot be written as pads, reshapes and transposes\n"
            "  use tilejit.cute.offsets(layout), its table of offsets"
        )
    if isinstance(built, Blocking) and not shape.packed:
        return built.recipe(array_text(shape), fill_text(shape))
    return shape.recipe()


def _cute_shape(
    obj: object, dtype: ElementLike, dims: tuple[int, ...], parameters: dict[str, Any]
) -> CuteShape:
    """Return the CuteShape of a CuTe layout or its text."""
    odd = next((key for key in parameters if key != ELEMENT_SIZE), None)
    if odd is not None:
        raise TypeError(
            f"CuTe layouts take {ELEMENT_SIZE}, not {odd[:40]!r}{nearest_keyword(odd, (ELEMENT_SIZE,))}"
        )
    layout = parse_cute(obj) if isinstance(obj, str) else obj
    if not isinstance(layout, CuteLayout | ComposedLayout):
        kind = {int: "size", tuple: "shape"}.get(type(layout), type(layout).__name__)
        if isinstance(layout, Swizzle):
            fix = f"compose it with a layout, e.g. {layout} o 0 o (8,8):(8,1)"
        elif isinstance(layout, int) or (type(layout) is tuple and not has_underscore(layout)):
            fix = f"write its strides as well, e.g. {named(LayoutRight(layout))}"
        else:
            fix = "write a shape and a stride, e.g. (8,8):(8,1)"
        raise LayoutError(f"{named(layout)} is a {kind}, not a layout\n  {fix}")
    (width,) = int_tuple((parameters.get(ELEMENT_SIZE, 0),), ELEMENT_SIZE)
    return make_cute_shape(primitive_type(dtype).codes(width), _known(dims), layout, width)


def _fix_of(obj: object) -> str:
    """Suggest a fix for an object that is not a layout but may be part of one."""
    if isinstance(obj, Swizzle):
        return "compose it with a layout: tilejit.cute.ComposedLayout(swizzle, 0, layout)"
    if hasattr(obj, "bound") and hasattr(obj, "layout"):
        return "pass its .layout, with its .bound as dims"
    return "pass a Shape, a Layout, a CuTe layout, text such as f32[3,5]{1,0:T(2,2)}, a format or a pattern"


def _width(parameters: dict[str, Any], taken: tuple[str, ...] | None) -> tuple[int, dict[str, Any]]:
    """Split off element_size_in_bits; 0 if it is missing, or if the layout itself has that parameter."""
    if taken is None or ELEMENT_SIZE in taken or ELEMENT_SIZE not in parameters:
        return 0, parameters
    (bits,) = int_tuple((parameters[ELEMENT_SIZE],), ELEMENT_SIZE)
    return bits, {key: value for key, value in parameters.items() if key != ELEMENT_SIZE}


def _shape_of(name: str, built: Any, element: PrimitiveType, dims: tuple[int, ...]) -> Spec:
    """Return the Shape for the result of a format's function."""
    if isinstance(built, Shape) and built.dimensions == dims and built.primitive_type == element.name:
        return built
    if isinstance(built, str) and is_name(built):
        raise LayoutError(
            f"the function of the format {name!r} returns a name, {built[:40]!r}\n"
            "  return tilejit.named_format(name, dtype, dims)"
        )
    try:
        shape = as_layout(built, dtype=element, dims=dims)
    except (LayoutError, TypeError) as error:
        raise LayoutError(
            f"the function of the format {name!r} does not return a layout of the array: {error}"
        ) from error
    if shape.primitive_type != element.name:
        raise LayoutError(
            f"the function of the format {name!r} returns a layout of {shape.primitive_type}, "
            f"but the array is of {element.name}\n  create it with the dtype that the function receives"
        )
    return shape


def _array_element(dtype: ElementLike) -> PrimitiveType:
    """Return the element type of an array."""
    element = primitive_type(dtype)
    if not element.is_array_element:
        raise LayoutError(f"arrays cannot have the dtype {element.name}\n  pass the dtype of an array")
    return element


def _known(dims: tuple[int, ...]) -> tuple[int, ...]:
    """Check that all dimensions have sizes; a format or pattern cannot use `?`."""
    for size in dims:
        if not 0 <= size <= MAX_INT64:
            raise LayoutError(
                f"a dimension is {'?' if size == UNBOUNDED else shown(size)}\n  pass a size from 0 to 2^63-1"
            )
    return dims


def is_name(text: str) -> bool:
    """Whether a text can only be the name of a format: it starts with a letter and has no brackets.

    "blis-a, mr=8" -> True    "tenstorrent, tile=(16,32)" -> True    "f32[2]" -> False
    """
    stripped = text.strip()
    if "(" in stripped:
        stripped = _TUPLE().sub("", stripped)
    return stripped[:1].isalpha() and not any(sign in stripped for sign in "[](){}>")


def _read(text: str, dims: tuple[int, ...] | None) -> object:
    """Read a Layout if the text starts with a brace, otherwise a shape."""
    start = text.lstrip()[:1]
    if start == "{" or (start == "/" and tokenize(text, XLA)[0].text == "{"):
        return Layout.parse(text, None if dims is None else len(dims))
    return parse_shape(text)


def _needed(
    dtype: ElementLike | None, dims: tuple[int, ...] | None, what: str
) -> tuple[ElementLike, tuple[int, ...]]:
    """Return dtype and dims, which are required unless the layout is a complete shape."""
    if dims is None or dtype is None:
        missing = " and ".join(name for name, value in (("dtype", dtype), ("dims", dims)) if value is None)
        raise ArrayUnknownError(
            f"{what} does not specify the array's {missing}\n"
            f"  pass {missing}, or write a full shape such as f32[3,5]{{1,0}}"
        )
    return dtype, dims


def _checked(shape: Spec, dims: tuple[int, ...] | None) -> Spec:
    """Check that a shape is that of an array with these dimensions, and return it."""
    if not shape.element.is_array_element:
        raise LayoutError(
            f"{shape.primitive_type}[] is not the shape of an array\n  pass a shape such as f32[3,5]{{1,0}}"
        )
    if dims is None:
        return shape
    same = len(dims) == shape.rank and all(
        have in (want, UNBOUNDED) for have, want in zip(shape.dimensions, dims, strict=True)
    )
    if not same:
        raise LayoutError(
            f"expected an array of shape {dims_text(shape.dimensions)}, got {dims_text(dims)}\n"
            "  pass a layout with the array's dimensions, or one without dimensions, such as {1,0:T(8,128)}"
        )
    return shape
