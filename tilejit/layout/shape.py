"""`Shape` and its `Layout`: where each element of a logical array lives in its buffer, in XLA's terms."""

from __future__ import annotations

from dataclasses import field, replace
from typing import Any, TypeAlias

import numpy as np

from codegen import LayoutError, dataclass, shown
from tilejit.layout import tiling
from tilejit.layout.checks import (
    check_element_name,
    check_order,
    check_tile,
    checked_number,
    checked_padded,
    checked_split,
    int_tuple,
    memory_space_fault,
    set_fields,
    tile_tuples,
)
from tilejit.layout.dtypes import PRIMITIVE_TYPES, PrimitiveType, lookup
from tilejit.layout.fields import MAX_DEPTH, UNBOUNDED, Makers, SplitConfig
from tilejit.layout.padding import PaddingValue, padding_value_of
from tilejit.layout.shape_facts import ShapeFacts
from tilejit.layout.text import xla_print
from tilejit.layout.text.recipe import shape_recipe
from tilejit.layout.text.xla_text import read_layout, read_shape
from tilejit.support.notebook import notebook_html
from tilejit.support.tokens import MAX_INT64

_LEAST = {
    "element_size_in_bits": 0,
    "tail_padding_alignment_in_elements": 1,
    "memory_space": 0,
    "dynamic_shape_metadata_prefix_bytes": 0,
}
"""The least value of each number of a layout."""


@dataclass(frozen=True, slots=True)
class Layout:
    """How the dimensions of a shape lie in memory; carries everything between XLA's braces.

    str(Layout((1, 0), ((8, 128), (2, 1)))) -> "{1,0:T(8,128)(2,1)}"    `*` in a tile is -1 (MERGE).

    Attributes:
        minor_to_major: logical dimensions, the fastest varying first.
        tiles: outermost first; sizes in elements.
        element_size_in_bits: E; 0 is the type's own storage width.
        tail_padding_alignment_in_elements: L.
        memory_space: S.
        index_type: # in the text.
        pointer_type: * in the text.
        split_configs: SC; pairs of a dimension and its split indices.
        physical_shape: P.
        dynamic_shape_metadata_prefix_bytes: M.

    Raises:
        LayoutError: at construction, for anything that describes no memory.
        TypeError: at construction, for a field of a wrong type.
    """

    minor_to_major: tuple[int, ...]
    tiles: tuple[tuple[int, ...], ...] = ()
    element_size_in_bits: int = 0
    tail_padding_alignment_in_elements: int = 1
    memory_space: int = 0
    index_type: str | None = None
    pointer_type: str | None = None
    split_configs: tuple[SplitConfig, ...] = ()
    physical_shape: Shape | None = None
    dynamic_shape_metadata_prefix_bytes: int = 0

    def __post_init__(self) -> None:
        """Check every field, and turn lists and NumPy integers into tuples and ints."""
        order = int_tuple(self.minor_to_major, "minor_to_major")
        set_fields(self, minor_to_major=order, tiles=tile_tuples(self.tiles))
        check_order(order, len(order))
        for tile in self.tiles:
            check_tile(tile)
        if len(self.tiles) > tiling.MAX_TILES:
            raise LayoutError(f"the layout has {len(self.tiles)} tiles\n  use at most {tiling.MAX_TILES}")
        for name, least in _LEAST.items():
            set_fields(self, **{name: checked_number(getattr(self, name), name, least)})
        fault = memory_space_fault(self.memory_space)
        if fault:
            raise LayoutError("\n  ".join(fault))
        for name in ("index_type", "pointer_type"):
            if getattr(self, name) is not None:
                set_fields(self, **{name: check_element_name(getattr(self, name), name)})
        set_fields(self, split_configs=tuple(checked_split(s, len(order)) for s in self.split_configs))
        if len({dim for dim, _ in self.split_configs}) < len(self.split_configs):
            raise LayoutError(
                "the split config names a dimension twice\n  give each dimension's indices in one place"
            )
        if self.physical_shape is not None and not isinstance(self.physical_shape, Shape):
            raise TypeError(f"physical_shape is a Shape or None, not {type(self.physical_shape).__name__}")

    @property
    def descending(self) -> bool:
        """Whether the order is row-major: the last dimension is the fastest."""
        return self.minor_to_major == tuple(reversed(range(len(self.minor_to_major))))

    def __repr__(self) -> str:
        """Python code that makes the layout: Layout.parse('{1,0:T(2,2)}')."""
        from tilejit.layout.text.python_code import layout_code

        return layout_code(self)

    def __str__(self) -> str:
        """XLA's text, braces included, defaults left out."""
        return xla_print.print_layout(self)

    @staticmethod
    def parse(text: str, rank: int | None = None) -> Layout:
        """Read a layout alone, such as "{1,0:T(8,128)}"; given a rank, the order must be of that rank.

        Raises:
            LayoutError: the text is not a layout; the message shows where and what to write instead.
            TypeError: not a str.
        """
        layout: Layout = read_layout(text, rank, MAKERS)
        return layout


@dataclass(frozen=True, slots=True)
class Shape(ShapeFacts):
    """An array's element type, its dimensions and its layout; `str` prints XLA's text.

    Shape.parse("F32[3,5]{1,0:T(2,2)}") -> f32[3,5]{1,0:T(2,2)}, 24 element slots, 96 bytes

    Attributes:
        primitive_type: lower-case name, such as "bf16".
        dimensions: logical sizes in elements; -1 (UNBOUNDED) is `?`.
        layout: None where nothing is said about memory; sizes then count as row-major.
        dynamic: for each dimension, whether its size is only a bound (`<=n`, `?`).
        padded_dimensions: the size each dimension is padded to before tiling, or None.
        padding_value: what padding holds, or None where that is left open.

    Raises:
        LayoutError: at construction, for anything that describes no array, and beyond 2^63 bits.
        TypeError: at construction, for a field of a wrong type.
    """

    primitive_type: str
    dimensions: tuple[int, ...]
    layout: Layout | None = None
    dynamic: tuple[bool, ...] = ()
    padded_dimensions: tuple[int, ...] | None = None
    padding_value: PaddingValue | None = field(default=None, compare=False)
    # 0.0, -0.0 and False are equal in Python but not in memory: shapes are compared by this instead.
    _padding_text: str = field(init=False, repr=False, default="")
    _physical_size: int = field(init=False, repr=False, compare=False, default=0)

    def __post_init__(self) -> None:
        """Check every field, and turn lists and NumPy integers into tuples and ints."""
        dims = int_tuple(self.dimensions, "dimensions")
        set_fields(self, primitive_type=lookup(self.primitive_type).name, dimensions=dims)
        for size in dims:
            if not UNBOUNDED <= size <= MAX_INT64:
                raise LayoutError(f"a dimension is {shown(size)}\n  give a size from 0 to 2^63-1")
        flags = tuple(bool(flag) for flag in self.dynamic) or (False,) * len(dims)
        if len(flags) != len(dims):
            raise LayoutError(
                f"dynamic has {len(flags)} flags for {len(dims)} dimensions\n  give one for each, or none"
            )
        set_fields(
            self, dynamic=tuple(flag or size == UNBOUNDED for flag, size in zip(flags, dims, strict=True))
        )
        self._check_layout()
        self._check_padding()
        if self.element.is_array_element:
            set_fields(self, _physical_size=self._counted_slots())

    def _check_layout(self) -> None:
        if self.layout is None:
            return
        if not isinstance(self.layout, Layout):
            raise TypeError(f"layout is a Layout or None, not {type(self.layout).__name__}")
        check_order(self.layout.minor_to_major, self.rank)
        if self.layout.physical_shape is not None:
            raise LayoutError(
                "P(...) is the physical shape of a sparse array, but the shape is dense; XLA refuses it too\n"
                "  leave P(...) out"
            )

    def _check_padding(self) -> None:
        if not self.element.is_array_element and (
            self.dimensions or self.layout or self.padded_dimensions is not None
        ):
            raise LayoutError(
                f"{self.primitive_type} takes no dimensions and no layout\n  write {self.primitive_type}[]"
            )
        value = padding_value_of(self.padding_value, self.element)
        set_fields(self, padding_value=value, _padding_text=repr(value))
        if self.padded_dimensions is None:
            return
        set_fields(self, padded_dimensions=checked_padded(self.padded_dimensions, self.dimensions))

    def _counted_slots(self) -> int:
        """Element slots of the buffer, `?` counted as 1; raises beyond 2^63 bits."""
        known = tuple(max(size, 1) if size == UNBOUNDED else size for size in tiling.physical_extents(self))
        if self.layout is None:
            return tiling.physical_size(known, 1, self.bits)
        _, extents = tiling.expand(known, self.layout.tiles)
        return tiling.physical_size(extents[-1], self.layout.tail_padding_alignment_in_elements, self.bits)

    @staticmethod
    def parse(text: str) -> Shape:
        """Read XLA's text of an array's shape; dtypes may be in upper case.

        >>> tilejit.Shape.parse("BF16[1000,300]{1,0:T(8,128)(2,1)}").size_in_bytes
        768000

        Args:
            text: the text; without a layout, the shape is row-major.

        Returns:
            The shape.

        Raises:
            LayoutError: a mistake in the text; the message shows where and what to write instead. Or it is
                the text of a tuple or a buffer, which `tilejit.parse_shape` reads.
            TypeError: not a str.
        """
        shape = parse_shape(text)
        if not isinstance(shape, Shape):
            kind = "tuple" if isinstance(shape, TupleShape) else "buffer"
            raise LayoutError(
                f"expected the shape of one array, got a {kind}: {str(shape)[:60]}\n"
                "  read it with tilejit.parse_shape"
            )
        return shape

    @property
    def element(self) -> PrimitiveType:
        """The row of the table of types: name, widths, NumPy type."""
        return PRIMITIVE_TYPES[self.primitive_type]

    @property
    def dtype(self) -> np.dtype[Any]:
        """The NumPy or ml_dtypes type of the elements.

        Raises:
            LayoutError: a token or opaque.
        """
        dtype = self.element.numpy
        if dtype is None:
            raise LayoutError(f"{self.primitive_type}[] has no elements, so no dtype\n  use an array's shape")
        return dtype

    @property
    def physical_size(self) -> int:
        """Element slots in the buffer, every level's padding and L counted.

        f32[3,5]{1,0:T(2,2)} -> 24

        Raises:
            LayoutError: a `?` dimension, M, P, a token or opaque.
        """
        tiling.refuse_unsized(self)
        return self._physical_size

    def without_layout(self) -> Shape:
        """The same array with nothing said about memory: no layout, no padding."""
        return replace(self, layout=None, padded_dimensions=None, padding_value=None)

    def recipe(self) -> str:
        """The layout as NumPy code: a function `pack(x)` that pads, reshapes, transposes x to the buffer.

        Raises:
            LayoutError: the shape has no size, or NumPy's 64 dimensions do not suffice.
        """
        return shape_recipe(self)

    def to_json(self) -> dict[str, Any]:
        """Everything about the shape in JSON's own types, padding included; `from_json` reads it back."""
        from tilejit.layout.text.json_form import shape_to_json

        return shape_to_json(self)

    @staticmethod
    def from_json(data: dict[str, Any]) -> Shape:
        """The shape that `to_json` described.

        Raises:
            LayoutError: a field is missing, unknown or wrong.
            TypeError: not a dict.
        """
        from tilejit.layout.text.json_form import shape_from_json

        shape: Shape = shape_from_json(data, MAKERS)
        return shape

    def _repr_html_(self) -> str | None:
        """The picture that notebooks show."""
        return notebook_html("layout_html", self)

    def __repr__(self) -> str:
        """Python code that makes the shape: Shape.parse('f32[3,5]{1,0:T(2,2)}')."""
        from tilejit.layout.text.python_code import shape_code

        return shape_code(self)

    def __str__(self) -> str:
        """XLA's text, which has no place for padded_dimensions and padding_value: they follow in words.

        f32[2,3]{0,1}, padded to [3,5], filled with 0.0
        """
        return xla_print.print_shape(self)


@dataclass(frozen=True, slots=True)
class TupleShape:
    """A tuple of shapes: "(f32[2]{0}, token[])"."""

    shapes: tuple[Shape | TupleShape | BufferShape, ...]
    depth: int = field(init=False, repr=False, compare=False, default=1)

    def __post_init__(self) -> None:
        """Check the members and how deep they nest."""
        set_fields(self, shapes=tuple(self.shapes))
        for shape in self.shapes:
            if not isinstance(shape, Shape | TupleShape | BufferShape):
                raise TypeError(f"a tuple shape holds shapes, not {type(shape).__name__}")
        depth = 1 + max((s.depth for s in self.shapes if isinstance(s, TupleShape)), default=0)
        if depth > MAX_DEPTH:
            raise LayoutError(f"tuples nest {depth} deep\n  nest at most {MAX_DEPTH} deep")
        set_fields(self, depth=depth)

    def __str__(self) -> str:
        """XLA's text, a comment with the index before every fifth member."""
        return xla_print.print_tuple([str(shape) for shape in self.shapes])


@dataclass(frozen=True, slots=True)
class BufferShape:
    """A buffer that holds an array: "b(f32[2]{0})"."""

    shape: Shape

    def __post_init__(self) -> None:
        """Check that it holds an array."""
        if not isinstance(self.shape, Shape):
            raise TypeError(f"a buffer holds an array's Shape, not {type(self.shape).__name__}")
        if not self.shape.element.is_array_element:
            raise LayoutError(
                f"a buffer holds an array, not {self.shape.primitive_type}[]\n  write b(f32[2]) or the like"
            )

    def __str__(self) -> str:
        """XLA's text."""
        return f"b({self.shape})"


AnyShape: TypeAlias = Shape | TupleShape | BufferShape
MAKERS = Makers(Layout, Shape, TupleShape, BufferShape)


def parse_shape(text: str) -> AnyShape:
    """Read XLA's text of a shape, a tuple or a buffer; dtypes may be in upper case.

    >>> tilejit.parse_shape("(f32[2]{0}, token[])").shapes[0].dimensions
    (2,)
    >>> tilejit.parse_shape("b(f32[2]{0})").shape.size_in_bytes
    8

    Args:
        text: the text; an array without a layout is row-major.

    Returns:
        A Shape for an array, a token or an opaque, a TupleShape, or a BufferShape.

    Raises:
        LayoutError: a mistake in the text; the message shows where and what to write instead.
        TypeError: not a str.
    """
    shape: AnyShape = read_shape(text, MAKERS)
    return shape
