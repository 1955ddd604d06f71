"""`CuteShape`: an array whose elements are placed by a CuTe layout."""

from __future__ import annotations

import math
import re
from collections.abc import Iterable
from dataclasses import field, replace
from typing import Any, TypeAlias

import numpy as np

from codegen import LayoutError, cached, dataclass, lazy_pattern, offset_range, shown
from tilejit.cute.digits import digits_of
from tilejit.cute.function import CHUNK, MAX_POINTS, Function, function_of, rows_of
from tilejit.cute.layout import Layout
from tilejit.cute.swizzle import ComposedLayout
from tilejit.cute.swizzled import swizzled_roots
from tilejit.layout.checks import int_tuple, set_fields
from tilejit.layout.dtypes import PRIMITIVE_TYPES, ElementLike, PrimitiveType, lookup, primitive_type
from tilejit.layout.padding import PaddingValue, padding_value_of
from tilejit.layout.shape import Shape
from tilejit.support.notebook import notebook_html
from tilejit.support.tokens import MAX_INT64, small_int

CuteLayout: TypeAlias = Layout | ComposedLayout


@dataclass(frozen=True, slots=True)
class CuteShape:
    """An array's element type and dimensions, and the CuTe layout of its buffer, one mode for each dimension.

    >>> shape = CuteShape("f32", (3, 5), Layout.parse("(4,8):(8,1)"))
    >>> print(shape, shape.physical_size, shape.size_in_bytes)
    f32[3,5] (4,8):(8,1) 32 128

    The offset of an element is its slot. Within a mode, an index counts the first sub-mode fastest. A mode
    may be larger than its dimension; slots that no element maps to are padding, as is every hole of the
    layout.

    Attributes:
        primitive_type: XLA's name of the element type in lower case, such as "bf16".
        dimensions: logical sizes in elements.
        layout: a Layout or a ComposedLayout with a mode for each dimension.
        element_size_in_bits: a number below 8 packs elements into bytes; 0 is the storage width.
        padding_value: the value of padding elements, or None to leave it open.

    Raises:
        LayoutError: at construction, if a mode is smaller than its dimension, an offset is negative (the
            message names the coordinate), or the buffer exceeds 2^63 bits.
        TypeError: at construction, if a field has the wrong type.
    """

    primitive_type: str
    dimensions: tuple[int, ...]
    layout: CuteLayout
    element_size_in_bits: int = 0
    padding_value: PaddingValue | None = field(default=None, compare=False)
    _padding_text: str = field(init=False, repr=False, default="")
    _slots: int = field(init=False, repr=False, compare=False, default=0)

    def __post_init__(self) -> None:
        """Check every field, and determine the range of offsets."""
        dims = int_tuple(self.dimensions, "dimensions")
        (width,) = int_tuple((self.element_size_in_bits,), "element_size_in_bits")
        set_fields(
            self,
            primitive_type=lookup(self.primitive_type).name,
            dimensions=dims,
            element_size_in_bits=width,
        )
        if not isinstance(self.layout, Layout | ComposedLayout):
            raise TypeError(f"layout: expected a CuTe layout, got {type(self.layout).__name__}")
        if not self.element.is_array_element:
            raise LayoutError(
                f"an array cannot have dtype {self.primitive_type}\n  pass the dtype of an array"
            )
        if width < 0 or width > 128:
            raise LayoutError(f"element_size_in_bits is {shown(width)}\n  pass 0, or the width of the dtype")
        value = padding_value_of(self.padding_value, self.element)
        set_fields(self, padding_value=value, _padding_text=repr(value))
        self._check_modes()
        lowest, highest = _reach(self.function)
        if lowest < 0:
            raise LayoutError(_negative(self.function, self.layout))
        set_fields(self, _slots=highest + 1)
        if self._slots * self.bits > MAX_INT64:
            raise LayoutError(
                f"{str(self.layout)[:80]} exceeds 2^63 bits\n  use a layout with smaller strides"
            )

    def _check_modes(self) -> None:
        sizes = self.function.sizes
        if len(sizes) != len(self.dimensions):
            raise LayoutError(
                f"{str(self.layout)[:80]} has {len(sizes)} mode(s), but the array has "
                f"{len(self.dimensions)} dimension(s)\n  pass one mode for each dimension"
            )
        for d, (size, have) in enumerate(zip(self.dimensions, sizes, strict=True)):
            if not 0 <= size <= MAX_INT64:
                raise LayoutError(f"a dimension is {shown(size)}\n  pass a size from 0 to 2^63-1")
            if size > have:
                raise LayoutError(
                    f"mode {d} of {str(self.layout)[:80]} has {shown(have)} element(s), "
                    f"but dimension {d} has {size}\n  pass a mode at least as large"
                )

    @property
    def function(self) -> Function:
        """The layout as a function of one index for each dimension."""
        return function_of(self.layout)

    @property
    def element(self) -> PrimitiveType:
        """The element type: its names, its widths in bits and its NumPy dtype."""
        return PRIMITIVE_TYPES[self.primitive_type]

    @property
    def dtype(self) -> np.dtype[Any]:
        """The NumPy or ml_dtypes dtype of the elements."""
        dtype = self.element.numpy
        if dtype is None:
            raise LayoutError(f"NumPy has no dtype for {self.primitive_type}\n  use another dtype")
        return dtype

    @property
    def rank(self) -> int:
        """The number of dimensions."""
        return len(self.dimensions)

    @property
    def bits(self) -> int:
        """The width of an element in the buffer, in bits."""
        return self.element_size_in_bits or self.element.storage_bits

    @property
    def packed(self) -> bool:
        """Whether several elements share a byte."""
        return 0 < self.element_size_in_bits < 8

    @property
    def physical_size(self) -> int:
        """Elements in the buffer: one more than the highest offset of the whole layout."""
        return self._slots

    @property
    def size_in_bytes(self) -> int:
        """Bytes of the buffer, rounded up."""
        return -(-self._slots * self.bits // 8)

    @property
    def padding_fraction(self) -> float:
        """The fraction of the buffer that is padding, from 0 to 1; elements that share a slot each count."""
        used = math.prod(self.dimensions)
        return max(0.0, (self._slots - used) / self._slots) if self._slots else 0.0

    def without_layout(self) -> Shape:
        """Drop the layout; the logical array stays the same.

        >>> print(CuteShape("f32", (3, 5), Layout.parse("(4,8):(8,1)")).without_layout())
        f32[3,5]

        Returns:
            A Shape without a layout.
        """
        return Shape(self.primitive_type, self.dimensions)

    def to_json(self) -> dict[str, Any]:
        """Describe the shape in JSON's own types; `from_json` reads it back.

        >>> shape = CuteShape("f32", (3, 5), Layout.parse("(4,8):(8,1)"))
        >>> CuteShape.from_json(shape.to_json()) == shape
        True

        Returns:
            A dict of strings, numbers and lists.
        """
        bare = replace(self.without_layout(), padding_value=self.padding_value).to_json()
        return {
            "primitive_type": self.primitive_type,
            "dimensions": list(self.dimensions),
            "cute_layout": str(self.layout),
            "element_size_in_bits": self.element_size_in_bits,
            "padding_value": bare["padding_value"],
        }

    @staticmethod
    def from_json(data: dict[str, Any]) -> CuteShape:
        """Read a shape that `to_json` has described.

        >>> data = CuteShape("f32", (3, 5), Layout.parse("(4,8):(8,1)")).to_json()
        >>> print(CuteShape.from_json(data))
        f32[3,5] (4,8):(8,1)

        Args:
            data: the dict that `to_json` returned.

        Returns:
            The shape.

        Raises:
            LayoutError: a field is missing, unknown or invalid.
            TypeError: `data` is not a dict, or a field has the wrong type.
        """
        from tilejit.cute.parsing import parse

        known = {"primitive_type", "dimensions", "cute_layout", "element_size_in_bits", "padding_value"}
        if set(data) != known:
            odd = sorted(map(str, set(data) ^ known))[0]
            raise LayoutError(
                f"the JSON form of a CuTe layout has a missing or unknown field {odd[:40]!r}\n"
                "  see CuteShape.to_json()"
            )
        bare = {key: data[key] for key in ("primitive_type", "dimensions", "padding_value")}
        shape = Shape.from_json({**bare, "layout": None})
        return CuteShape(
            shape.primitive_type,
            shape.dimensions,
            parse(data["cute_layout"]),
            data["element_size_in_bits"],
            shape.padding_value,
        )

    def _repr_html_(self) -> str | None:
        """Draw the layout for a notebook."""
        return notebook_html("layout_html", self)

    def __str__(self) -> str:
        """The array and CuTe's text, f32[3,5] (4,8):(8,1); `as_layout` reads it back."""
        dims = ",".join(map(str, self.dimensions))
        width = f" E({self.element_size_in_bits})" if self.element_size_in_bits else ""
        return f"{self.primitive_type}[{dims}] {self.layout}{width}"


Spec: TypeAlias = Shape | CuteShape
"""The description of a buffer."""


def make_cute_shape(
    dtype: ElementLike, dims: Iterable[int], layout: CuteLayout, element_size_in_bits: int = 0
) -> CuteShape:
    """Create a CuteShape with any dtype that `primitive_type` reads.

    Raises:
        LayoutError, TypeError: as CuteShape.
    """
    return CuteShape(primitive_type(dtype).name, tuple(dims), layout, element_size_in_bits)


def parse_cute_shape(text: str) -> CuteShape | None:
    """Read "f32[3,5] (4,8):(8,1)", as `str` prints it; None if the text has another form.

    Raises:
        LayoutError: the text after the brackets is not a layout of the array.
    """
    from tilejit.cute.parsing import parse
    from tilejit.cute.text import is_cute

    head = _HEAD().match(text)
    if head is None:
        return None
    rest, has_width, end = text[head.end() :].strip().partition("E(")
    width = _WIDTH().fullmatch(end)
    if not is_cute(rest) or (has_width and not (width and rest[-1].isspace())):
        return None
    dims = [small_int(part.strip()) for part in head["dims"].split(",")] if head["dims"].strip() else []
    if None in dims:
        raise LayoutError("a dimension exceeds 2^63-1\n  write a smaller one")
    layout = parse(rest.strip())
    bits = int(width[1]) if width else 0
    return CuteShape(head["dtype"].lower(), tuple(d for d in dims if d is not None), layout, bits)


# The parts are matched one by one, because one pattern for all of them backtracks over runs of blanks.
_HEAD = lazy_pattern(r"\s*(?P<dtype>[A-Za-z]\w*)\[(?P<dims>[0-9,\s]*)\]\s", re.ASCII)
_WIDTH = lazy_pattern(r"([0-9]{1,3})\)")


def spec_from_json(data: Any) -> Spec:
    """Read a shape of either kind that `to_json` has described.

    Raises:
        LayoutError: a field is missing, unknown or invalid.
        TypeError: `data` is not a dict, or a field has the wrong type.
    """
    if isinstance(data, dict) and "cute_layout" in data:
        return CuteShape.from_json(data)
    return Shape.from_json(data)


@cached(1024)
def retyped(spec: Spec, primitive_type: str) -> Spec:
    """The layout of elements of another type in slots of its storage width, without a padding value.

    s4[40]{0:E(4)}, u8 -> u8[40]{0}
    """
    if isinstance(spec, CuteShape):
        return replace(spec, primitive_type=primitive_type, element_size_in_bits=0, padding_value=None)
    layout = spec.layout and replace(spec.layout, element_size_in_bits=0)
    return replace(spec, primitive_type=primitive_type, layout=layout, padding_value=None)


def _reach(function: Function) -> tuple[int, int]:
    """The lowest and the highest offset over all complete modes; (0, -1) if there are no coordinates."""
    sizes = function.sizes
    if 0 in sizes:
        return 0, -1
    low, high = _digit_reach(function)
    if function.steps and low + function.steps[0][0] < 0:
        return low + function.steps[0][0], high  # maps do not accept negative offsets
    found = swizzled_roots(function, sizes)
    if found:
        base, roots = found
        ranges = [offset_range(root.tree) for root in roots]
        return base + sum(r[0] for r in ranges), base + sum(r[1] for r in ranges)
    count = math.prod(sizes)
    if count > MAX_POINTS:
        raise LayoutError(
            f"a layout of {shown(count)} elements is too large to find its range of offsets\n"
            "  pass a plain layout, or a swizzle over power-of-two digits"
        )
    ranges = []
    for start in range(0, count, CHUNK):
        table = np.asarray(function(rows_of(sizes, np.arange(start, min(start + CHUNK, count)))))
        ranges.append((int(table.min()), int(table.max())))
    return min(low for low, _ in ranges), max(high for _, high in ranges)


def _digit_reach(function: Function) -> tuple[int, int]:
    """The range of the sum of the digits."""
    reaches = [(digit.size - 1) * digit.stride for digit in digits_of(function.modes)]
    return sum(min(0, r) for r in reaches), sum(max(0, r) for r in reaches)


def _negative(function: Function, layout: CuteLayout) -> str:
    """The message for a negative offset, with the coordinate that has it."""
    index = [0] * len(function.modes)
    for size, stride, dim, weight in digits_of(function.modes):
        index[dim] += (size - 1) * weight if stride < 0 else 0
    steps = function.steps
    low = _digit_reach(function)[0] + (steps[0][0] if steps else 0)
    where = f"coordinate {tuple(index)} has the offset {low}" if low < 0 else "some coordinate has one"
    return (
        f"{str(layout)[:80]} has offsets below 0: {where}\n"
        "  a buffer starts at 0; use nonnegative strides, or compose with an offset"
    )
