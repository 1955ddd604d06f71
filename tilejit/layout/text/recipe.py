"""Layouts as readable, runnable NumPy code: pad, reshape, transpose, flatten."""

from __future__ import annotations

from math import prod
from typing import Protocol

from codegen import LayoutError
from tilejit.layout.dtypes import PrimitiveType
from tilejit.layout.fields import ShapeFields
from tilejit.layout.padding import PaddingValue
from tilejit.layout.text.xla_print import array_text
from tilejit.layout.tiling import TileStep, tile_steps

MAX_NUMPY_RANK = 64


class Recipe:
    """The lines of `pack(x)`, written one by one; lines without an effect are omitted.

    Attributes:
        dims: the dimensions of `x` after the lines so far.
        fill: further arguments of np.pad, starting with a comma.
        lines: assignments to `x`.
    """

    __slots__ = ("dims", "fill", "lines")

    def __init__(self, dims: tuple[int, ...], fill: str = "") -> None:
        _check_rank(len(dims))
        self.dims, self.fill = dims, fill
        self.lines: list[str] = []

    def pad(self, dims: tuple[int, ...]) -> None:
        """Pad the end of each dimension."""
        if dims != self.dims:
            widths = tuple((0, to - now) for now, to in zip(self.dims, dims, strict=True))
            self.lines.append(f"x = np.pad(x, {widths}{self.fill})")
            self.dims = dims

    def reshape(self, dims: tuple[int, ...]) -> None:
        """Reshape to other dimensions."""
        _check_rank(len(dims))
        if dims != self.dims:
            self.lines.append(f"x = x.reshape({_numbers(dims)})")
            self.dims = dims

    def transpose(self, axes: tuple[int, ...]) -> None:
        """Reorder the dimensions."""
        if axes != tuple(range(len(axes))):
            self.lines.append(f"x = x.transpose({_numbers(axes)})")
            self.dims = tuple(self.dims[axis] for axis in axes)

    def flip(self, axes: tuple[int, ...]) -> None:
        """Reverse some dimensions."""
        if axes:
            self.lines.append(f"x = np.flip(x, {axes})")

    def move(self, axis: int, operation: str, by: int) -> None:
        """Move index j of a dimension to j + i, j - i or j ^ i, where i is the index of another dimension."""
        back = {"+": "-", "-": "+"}.get(operation, operation)
        index = f" {back} ".join(self._arange(one) for one in (axis, by))
        if back != "^":
            index = f"({index}) % {self.dims[axis]}"
        self.lines.append(f"x = np.take_along_axis(x, {index}, {axis})")

    def place(self, axis: int, table: tuple[int, ...]) -> None:
        """Move index k of a dimension to table[k]."""
        self.lines.append(f"x = np.take(x, np.argsort({list(table)}), {axis})")

    def _arange(self, axis: int) -> str:
        """The index along a dimension, as an array that broadcasts."""
        shape = (size if k == axis else 1 for k, size in enumerate(self.dims))
        return f"np.arange({self.dims[axis]}).reshape({_numbers(tuple(shape))})"

    def flatten(self, slots: int) -> None:
        """Flatten to one dimension, padded to that many elements."""
        self.lines.append("x = x.reshape(-1)")
        rest = slots - prod(self.dims)
        if rest > 0:
            self.lines.append(f"x = np.pad(x, (0, {rest}){self.fill})")
        self.dims = (slots,)

    def source(self, heading: str) -> str:
        """The source of `pack(x)`, with the heading as its docstring."""
        *before, last = self.lines
        lines = [*before, f"return {last.removeprefix('x = ')}"]
        body = "\n".join(f"    {line}" for line in lines)
        return f'import numpy as np\n\n\ndef pack(x):\n    """{heading}"""\n{body}\n'


def shape_recipe(shape: ShapeFields) -> str:
    """Write the source of `pack(x)`, which converts an array of the shape's dimensions to its flat buffer.

    f32[3,5]{1,0:T(2,2)} ->
        x = np.pad(x, ((0, 1), (0, 1)))
        x = x.reshape(2, 2, 3, 2)
        x = x.transpose(0, 2, 1, 3)
        return x.reshape(-1)

    The buffer is flat and has x's dtype, or uint8 if E packs several elements into a byte.

    Raises:
        LayoutError: the size of the shape is unknown, E is not a width that can be packed, or the code needs
            more than NumPy's 64 dimensions.
    """
    steps, _ = tile_steps(shape)
    out = Recipe(shape.dimensions, fill_text(shape))
    out.pad(shape.padded_dimensions or shape.dimensions)
    out.transpose(tuple(reversed(shape.minor_to_major)))
    for step in steps:
        _add_step(out, step)
    out.flatten(shape.physical_size)
    add_packing(out, shape)
    return out.source(array_text(shape))


def _add_step(out: Recipe, step: TileStep) -> None:
    """Write one tile: merge the axes of `*`, pad to whole tiles, split, and move the tile to the end."""
    axes = (1,) * step.lead + out.dims
    kept = axes[: step.untouched]
    out.reshape((*kept, *(prod(axes[axis] for axis in group) for group in step.groups)))
    counts = tuple(-(-size // tile) for size, tile in zip(out.dims[len(kept) :], step.tile, strict=True))
    out.pad((*kept, *(count * tile for count, tile in zip(counts, step.tile, strict=True))))
    out.reshape((*kept, *(n for pair in zip(counts, step.tile, strict=True) for n in pair)))
    first, last = len(kept), len(out.dims)
    out.transpose((*range(first), *range(first, last, 2), *range(first + 1, last, 2)))


class Packed(Protocol):
    """The fields of a shape that say how its elements share bytes."""

    @property
    def primitive_type(self) -> str:
        """Lower-case name, such as "bf16"."""

    @property
    def element(self) -> PrimitiveType:
        """The element type."""

    @property
    def bits(self) -> int:
        """The width of an element in the buffer, in bits."""

    @property
    def physical_size(self) -> int:
        """Elements in the buffer."""


def add_packing(out: Recipe, shape: Packed) -> None:
    """Pack several elements into a byte, the first in the low bits.

    Raises:
        LayoutError: E is not a width that can be packed.
    """
    bits = shape.bits
    if bits == shape.element.storage_bits:
        return
    if bits != shape.element.bits or 8 % bits:
        raise LayoutError(
            f"E({bits}) is not a valid width of {shape.primitive_type} elements in a buffer\n"
            f"  omit E, or write E({shape.element.bits}) if that is 1, 2 or 4"
        )
    group = 8 // bits
    rest = -shape.physical_size % group
    out.lines += [
        *([f"x = np.pad(x, (0, {rest}){out.fill})"] if rest else []),
        f"x = (x.view(np.uint8) & {2**bits - 1}).reshape(-1, {group})",
        f"x = np.bitwise_or.reduce(x << np.arange(0, 8, {bits}, dtype=np.uint8), axis=1)",
    ]


def fill_text(shape: ShapeFields) -> str:
    """The argument of np.pad for the padding value of a shape, unless it is NumPy's own zero."""
    return fill_of(shape.padding_value, shape.primitive_type)


def fill_of(value: PaddingValue | None, primitive_type: str) -> str:
    """The argument of np.pad for a padding value, unless it is NumPy's own zero."""
    if value is None and primitive_type == "f8e8m0fnu":
        value = 2.0**-127  # zero bits, because the type has no zero
    if value is None or repr(value) in ("0", "0.0", "False"):
        return ""
    text = repr(value)
    for name in ("inf", "nan"):
        text = text.replace(name, f"np.{name}") if not isinstance(value, complex) else text
    if isinstance(value, complex):
        text = f"complex({_part(value.real)}, {_part(value.imag)})"
    return f", constant_values={text}"


def _part(value: float) -> str:
    return f'float("{value!r}")'


def _numbers(items: tuple[object, ...]) -> str:
    return ", ".join(map(str, items))


def _check_rank(rank: int) -> None:
    if rank > MAX_NUMPY_RANK:
        raise LayoutError(
            f"the recipe needs {rank} dimensions, but NumPy allows {MAX_NUMPY_RANK}\n"
            "  use fewer dimensions or tiles"
        )
