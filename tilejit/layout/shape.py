"""`Shape` and its `Layout`: where each element of a logical array lives in its buffer, in XLA's terms."""

from __future__ import annotations

from dataclasses import field, replace
from typing import Any, TypeAlias

import numpy as np

from codegen import LayoutError, dataclass, shown
from tilejit.catalog.checks import checked_int
from tilejit.layout import tiling
from tilejit.layout.checks import (
    check_element_name,
    check_order,
    check_tile,
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
"""The smallest valid value of each number in a layout."""


@dataclass(frozen=True, slots=True)
class Layout:
    """The order, tiles and other fields of a shape's memory layout: everything between XLA's braces.

    >>> layout = tilejit.Layout((1, 0), tiles=((8, 128), (2, 1)))
    >>> print(layout)
    {1,0:T(8,128)(2,1)}
    >>> layout == tilejit.Layout.parse("{1,0:T(8,128)(2,1)}")
    True

    Attributes:
        minor_to_major: the logical dimensions, the fastest varying first.
        tiles: tile sizes in elements, the outermost tile first. -1 (MERGE) is `*` in the text.
        element_size_in_bits: E in the text; 0 is the type's own storage width.
        tail_padding_alignment_in_elements: L in the text; the buffer's size in elements is a multiple of it.
        memory_space: S in the text.
        index_type: `#` in the text.
        pointer_type: `*` in the text, outside of tiles.
        split_configs: SC in the text; pairs of a dimension and its split indices.
        physical_shape: P in the text.
        dynamic_shape_metadata_prefix_bytes: M in the text, in bytes.

    Raises:
        LayoutError: at construction, if the fields do not describe memory.
        TypeError: at construction, if a field has the wrong type.
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
            set_fields(self, **{name: checked_int(name, getattr(self, name), least)})
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
            raise TypeError(
                f"expected a Shape or None as physical_shape, got {type(self.physical_shape).__name__}"
            )

    @property
    def descending(self) -> bool:
        """Whether the order is row-major: the last dimension varies fastest."""
        return self.minor_to_major == tuple(reversed(range(len(self.minor_to_major))))

    def __repr__(self) -> str:
        """Python code that creates the layout: Layout.parse('{1,0:T(2,2)}')."""
        from tilejit.layout.text.python_code import layout_code

        return layout_code(self)

    def __str__(self) -> str:
        """XLA's text, braces included, defaults omitted."""
        return xla_print.print_layout(self)

    @staticmethod
    def parse(text: str, rank: int | None = None) -> Layout:
        """Read the text of a layout alone.

        >>> tilejit.Layout.parse("{1,0:T(8,128)}").tiles
        ((8, 128),)

        Args:
            text: XLA's text of a layout, braces included.
            rank: the number of dimensions that the layout must order; None accepts any.

        Returns:
            The layout.

        Raises:
            LayoutError: the text is not a layout; the message shows where and what to write instead.
            TypeError: the text is not a str.
        """
        layout: Layout = read_layout(text, rank, MAKERS)
        return layout


@dataclass(frozen=True, slots=True)
class Shape(ShapeFacts):
    """An array's element type, dimensions and layout; `str` prints XLA's text.

    >>> shape = tilejit.Shape.parse("F32[3,5]{1,0:T(2,2)}")
    >>> print(shape, shape.physical_size, shape.size_in_bytes)
    f32[3,5]{1,0:T(2,2)} 24 96

    Attributes:
        primitive_type: XLA's name of the element type in lower case, such as "bf16".
        dimensions: logical sizes in elements; -1 (UNBOUNDED) is `?`.
        layout: the layout in memory. None leaves it open; sizes then count as row-major.
        dynamic: for each dimension, whether its size is only a bound (`<=n`, `?`).
        padded_dimensions: the size in elements that each dimension is padded to before tiling, or None.
        padding_value: the value of padding elements, or None to leave it open.

    Raises:
        LayoutError: at construction, if the fields do not describe an array or the buffer exceeds 2^63 bits.
        TypeError: at construction, if a field has the wrong type.
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
                raise LayoutError(f"a dimension is {shown(size)}\n  pass a size from 0 to 2^63-1")
        flags = tuple(bool(flag) for flag in self.dynamic) or (False,) * len(dims)
        if len(flags) != len(dims):
            raise LayoutError(
                f"dynamic has {len(flags)} flags for {len(dims)} dimensions\n  pass one for each, or none"
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
            raise TypeError(f"layout: expected a Layout or None, got {type(self.layout).__name__}")
        check_order(self.layout.minor_to_major, self.rank)
        if self.layout.physical_shape is not None:
            raise LayoutError(
                "P(...) is the physical shape of a sparse array, but this shape is dense\n  omit P(...)"
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
        """Count the elements of the buffer, with `?` as 1; raise beyond 2^63 bits."""
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
            LayoutError: the text is not the shape of an array; the message shows where and what to write
                instead. `tilejit.parse_shape` also reads tuples and buffers.
            TypeError: the text is not a str.
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
        """The element type: its names, its widths in bits and its NumPy dtype."""
        return PRIMITIVE_TYPES[self.primitive_type]

    @property
    def dtype(self) -> np.dtype[Any]:
        """The NumPy or ml_dtypes dtype of the elements.

        Raises:
            LayoutError: the shape is a token or opaque.
        """
        dtype = self.element.numpy
        if dtype is None:
            raise LayoutError(f"{self.primitive_type}[] has no elements, so no dtype\n  use an array's shape")
        return dtype

    @property
    def physical_size(self) -> int:
        """Elements in the buffer, including the padding of every level of tiles and of L.

        f32[3,5]{1,0:T(2,2)} -> 24

        Raises:
            LayoutError: the size is unknown, because of a `?` dimension, M, P, a token or opaque.
        """
        tiling.refuse_unsized(self)
        return self._physical_size

    def without_layout(self) -> Shape:
        """Drop the layout and the padding; the logical array stays the same.

        >>> print(tilejit.Shape.parse("f32[3,5]{1,0:T(2,2)}").without_layout())
        f32[3,5]

        Returns:
            The shape without a layout.
        """
        return replace(self, layout=None, padded_dimensions=None, padding_value=None)

    def recipe(self) -> str:
        """Write the layout as NumPy code: a function `pack(x)` that pads, reshapes and transposes.

        >>> code = tilejit.Shape.parse("f32[3,5]{1,0:T(2,2)}").recipe()
        >>> names = {}
        >>> exec(code, names)
        >>> names["pack"](np.arange(15, dtype=np.float32).reshape(3, 5))[:8]
        array([0., 1., 5., 6., 2., 3., 7., 8.], dtype=float32)

        Returns:
            The source of a Python module.

        Raises:
            LayoutError: the size of the buffer is unknown, or the code needs more than NumPy's 64 dimensions.
        """
        return shape_recipe(self)

    def to_json(self) -> dict[str, Any]:
        """Describe the shape, padding included, in JSON's own types; `from_json` reads it back.

        >>> shape = tilejit.Shape.parse("f32[3,5]{1,0:T(2,2)}")
        >>> tilejit.Shape.from_json(shape.to_json()) == shape
        True

        Returns:
            A dict of strings, numbers, lists and dicts.
        """
        from tilejit.layout.text.json_form import shape_to_json

        return shape_to_json(self)

    @staticmethod
    def from_json(data: dict[str, Any]) -> Shape:
        """Read a shape that `to_json` has described.

        >>> tilejit.Shape.from_json(tilejit.Shape.parse("s4[3]{0:E(4)}").to_json())
        Shape.parse('s4[3]{0:E(4)}')

        Args:
            data: the dict that `to_json` returned.

        Returns:
            The shape.

        Raises:
            LayoutError: a field is missing, unknown or invalid.
            TypeError: `data` is not a dict.
        """
        from tilejit.layout.text.json_form import shape_from_json

        shape: Shape = shape_from_json(data, MAKERS)
        return shape

    def _repr_html_(self) -> str | None:
        """Draw the layout for a notebook."""
        return notebook_html("layout_html", self)

    def __repr__(self) -> str:
        """Python code that creates the shape: Shape.parse('f32[3,5]{1,0:T(2,2)}')."""
        from tilejit.layout.text.python_code import shape_code

        return shape_code(self)

    def __str__(self) -> str:
        """XLA's text, followed by padded_dimensions and padding_value in words, which it cannot express.

        f32[2,3]{0,1}, padded to [3,5], filled with 0.0
        """
        return xla_print.print_shape(self)


@dataclass(frozen=True, slots=True)
class TupleShape:
    """A tuple of shapes.

    >>> print(tilejit.parse_shape("(f32[2]{0}, token[])"))
    (f32[2]{0}, token[])

    Attributes:
        shapes: the members.
        depth: how deep tuples nest; 1 without a tuple among the members.

    Raises:
        LayoutError: at construction, if tuples nest too deep.
        TypeError: at construction, if a member is not a shape.
    """

    shapes: tuple[Shape | TupleShape | BufferShape, ...]
    depth: int = field(init=False, repr=False, compare=False, default=1)

    def __post_init__(self) -> None:
        """Check the members and how deep they nest."""
        set_fields(self, shapes=tuple(self.shapes))
        for shape in self.shapes:
            if not isinstance(shape, Shape | TupleShape | BufferShape):
                raise TypeError(f"expected shapes in a tuple, got {type(shape).__name__}")
        depth = 1 + max((s.depth for s in self.shapes if isinstance(s, TupleShape)), default=0)
        if depth > MAX_DEPTH:
            raise LayoutError(f"tuples nest {depth} deep\n  nest at most {MAX_DEPTH} deep")
        set_fields(self, depth=depth)

    def __str__(self) -> str:
        """XLA's text, with the index as a comment before every fifth member."""
        return xla_print.print_tuple([str(shape) for shape in self.shapes])


@dataclass(frozen=True, slots=True)
class BufferShape:
    """A buffer that holds an array.

    >>> tilejit.parse_shape("b(f32[2]{0})").shape
    Shape.parse('f32[2]{0}')

    Attributes:
        shape: the shape of the array.

    Raises:
        LayoutError: at construction, if the shape is a token or opaque.
        TypeError: at construction, if it is not a Shape.
    """

    shape: Shape

    def __post_init__(self) -> None:
        """Check that it holds an array."""
        if not isinstance(self.shape, Shape):
            raise TypeError(f"expected the Shape of an array in a buffer, got {type(self.shape).__name__}")
        if not self.shape.element.is_array_element:
            raise LayoutError(
                f"a buffer holds an array, not {self.shape.primitive_type}[]\n  write e.g. b(f32[2])"
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
        A Shape for an array, a token or an opaque; otherwise a TupleShape or a BufferShape.

    Raises:
        LayoutError: the text is not a shape; the message shows where and what to write instead.
        TypeError: the text is not a str.
    """
    shape: AnyShape = read_shape(text, MAKERS)
    return shape
