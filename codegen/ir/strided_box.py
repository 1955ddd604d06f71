"""A box of a copy: elements that move along axes with one stride on each side.

    for i in 125: for j in 128:  dst[4096*i + 4*j] = src[1200*i + 4*j]

The passes that run before the scheduler take boxes and return boxes. Offsets and strides are in the unit of
the box: bytes, or bits if one side is packed.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from math import prod
from typing import Literal, TypeAlias

from codegen.ir.lines import LINE_BYTES
from codegen.support.dataclasses import dataclass
from codegen.support.lookups import Known, expect

Side: TypeAlias = Literal["dst", "src"]

SIDES: tuple[Side, Side] = ("src", "dst")
"""The buffers that a copy reads and writes, in the order of a kernel's operands."""

Digit: TypeAlias = tuple[int, int, int]
"""(extent, source stride, destination stride)."""


@dataclass(frozen=True, slots=True)
class Element:
    """The element type of a buffer: a type name ("u16", "bf16", "s4") and the bits per element in storage."""

    name: str
    bits: int

    @property
    def unsigned(self) -> Element:
        """Elements of the same size that are only moved."""
        return Element(f"u{self.bits}", self.bits)


@dataclass(frozen=True, slots=True)
class Axis:
    """A loop of a box: its name, its extent, and the stride of each side; a fill has a source stride of 0.

    fixed  whether a layout decides the extent, so that it is a literal of kernels
    """

    name: str
    extent: int
    src: int
    dst: int
    fixed: bool = False

    def stride(self, side: Side) -> int:
        """The stride of a side."""
        return self.src if side == "src" else self.dst

    @property
    def runs_backward(self) -> bool:
        """Whether the loop runs backward on the side with the smaller stride, which vectors run along."""
        near = self.src if 0 < abs(self.src) < abs(self.dst) else self.dst
        return near < 0

    def reversed(self) -> Axis:
        """The same loop in the other direction."""
        return replace(self, src=-self.src, dst=-self.dst)


@dataclass(frozen=True, slots=True)
class StridedBox:
    """A perfect nest of loops around one store.

    axes       the loops, outermost first
    src, dst   the offsets of the first element
    source     the elements that are read; None if the padding value is written
    target     the elements that are written; a target other than the source is a conversion
    unit_bits  8 if offsets are in bytes, 1 if they are in bits
    swap       whether the bytes of each source element are reversed
    entries    entries of the tables of offsets that are added to both sides, one by one; 0 without tables
    """

    axes: tuple[Axis, ...]
    src: int
    dst: int
    source: Element | None
    target: Element
    unit_bits: int = 8
    swap: bool = False
    entries: int = 0

    @property
    def converts(self) -> bool:
        """Whether elements change on the way."""
        return self.source is not None and (self.swap or self.source.name != self.target.name)

    @property
    def conversion(self) -> tuple[str, str] | None:
        """The names of both element types of a conversion, after "swap " if bytes are reversed first."""
        if self.source is None or not self.converts:
            return None
        return f"{'swap ' * self.swap}{self.source.name}", self.target.name

    @property
    def width(self) -> int:
        """Size of a target element in units."""
        return self.target.bits // self.unit_bits

    @property
    def source_width(self) -> int:
        """Size of a source element in units; 0 for a fill."""
        return self.source.bits // self.unit_bits if self.source else 0

    @property
    def size_bytes(self) -> int:
        """The number of bytes written."""
        return prod(axis.extent for axis in self.axes) * self.target.bits // 8

    @property
    def extents(self) -> dict[str, int]:
        """The extent of each axis."""
        return Known((axis.name, axis.extent) for axis in self.axes)

    def axis(self, name: str) -> Axis:
        """The axis with that name."""
        return expect((axis for axis in self.axes if axis.name == name), f"axis {name}", self)

    def digits(self, names: Iterable[str]) -> tuple[Digit, ...]:
        """(extent, source stride, destination stride) of some axes."""
        return tuple((x.extent, x.src, x.dst) for x in map(self.axis, names))

    def contiguous(self, side: Side) -> Axis | None:
        """The axis along which the elements of a side follow each other, or None."""
        if side == "dst":
            return next((axis for axis in self.axes if axis.dst == self.width), None)
        if self.source is None:
            return None
        return next((axis for axis in self.axes if axis.src == self.source_width), None)

    @property
    def row(self) -> Axis:
        """The axis along which target elements follow each other: the rows of a transpose."""
        return expect((x for x in self.axes if x.dst == self.width), "a contiguous row", self)

    @property
    def column(self) -> Axis:
        """The axis along which source elements follow each other: the columns of a transpose."""
        return expect((x for x in self.axes if x.src == self.source_width), "a contiguous column", self)

    @property
    def per_line(self) -> int:
        """Target elements per line."""
        return LINE_BYTES // self.width

    def with_axes(self, axes: Iterable[Axis]) -> StridedBox:
        """The same box over other axes."""
        return replace(self, axes=tuple(axes))

    def moved(self, src: int, dst: int) -> StridedBox:
        """The same box, at offsets farther on."""
        return replace(self, src=self.src + src, dst=self.dst + dst)

    def __str__(self) -> str:
        unit = "bytes" if self.unit_bits == 8 else "bits"
        sides = [("src", self.source)] if self.source else []
        lines = [
            f"{name}: {e.name}, {e.bits} bits, counted in {unit}"
            for name, e in [*sides, ("dst", self.target)]
        ]
        loops = [f"entry in table of {self.entries}"] * bool(self.entries)
        loops += [f"{axis.name} in {axis.extent}" for axis in self.axes]
        lines += [f"{'    ' * depth}for {loop}:" for depth, loop in enumerate(loops)]
        return "\n".join([*lines, f"{'    ' * len(loops)}{self._offset('dst')} = {self._value()}", ""])

    def _value(self) -> str:
        """The value that is stored, as text."""
        if self.source is None:
            return "padding"
        source = self._offset("src")
        return "{1}({0} {2})".format(*self.conversion, source) if self.conversion else source

    def _offset(self, side: Side) -> str:
        """dst[4 + 8*i + dst_offsets[entry]]"""
        terms = [f"{axis.stride(side)}*{axis.name}" for axis in self.axes if axis.stride(side)]
        terms += [f"{side}_offsets[entry]"] * bool(self.entries)
        start = self.src if side == "src" else self.dst
        return f"{side}[{' + '.join([str(start)] * (start != 0 or not terms) + terms)}]"


def strip_axis(axis: Axis, size: int, name: str) -> Axis:
    """The axis over the strips of an axis, of which the last one may be shorter."""
    return Axis(name, -(-axis.extent // size), axis.src * size, axis.dst * size)


def cut_axis(box: StridedBox, name: str, block: int, outer: str) -> tuple[StridedBox, ...]:
    """Split an axis into full blocks, and a box for the remainder if there is one.

    before:  for i in 5: for j in 20:               dst[64*j + i] = src[20*i + j]
    after:   for i in 5: for o in 2: for j in 8:    dst[512*o + 64*j + i] = src[8*o + 20*i + j]
             for i in 5: for o in 1: for j in 4:    dst[1024 + 64*j + i] = src[16 + 20*i + j]

    outer  the name of the axis over the blocks, `o` above
    """
    axis = box.axis(name)
    k = box.axes.index(axis)
    full, rest = divmod(axis.extent, block)
    before, after = box.axes[:k], box.axes[k + 1 :]
    blocks = Axis(outer, full, axis.src * block, axis.dst * block, axis.fixed)
    boxes = [box.with_axes((*before, blocks, replace(axis, extent=block), *after))] if full else []
    if rest:
        tail = box.with_axes((*before, Axis(outer, 1, 0, 0), replace(axis, extent=rest), *after))
        boxes.append(tail.moved(axis.src * block * full, axis.dst * block * full))
    return tuple(boxes)


def long_axis(name: str) -> str:
    """The name of the loop over full blocks of an axis that is split."""
    return f"long_{name}"


def in_element(box: StridedBox, name: str) -> StridedBox:
    """The box with the elements along a contiguous axis as one wider element.

    before:  for i in 9: for j in 2:  dst[u16: 40*i + 2*j] = src[u16: 4*i + 2*j]
    after:   for i in 9:              dst[u32: 40*i] = src[u32: 4*i]

    name  the axis, `j` above
    """
    bits = 8 * box.axis(name).extent * box.width
    wide = Element(f"u{bits}", bits)
    kept = box.with_axes(x for x in box.axes if x.name != name)
    return replace(kept, source=wide, target=wide)


def in_bytes(box: StridedBox) -> StridedBox:
    """The box with the bytes of its elements as a loop, most minor.

    before:  for i in 9:              dst[u32: 40*i] = src[u32: 4*i]
    after:   for i in 9: for b in 4:  dst[u8: 40*i + b] = src[u8: 4*i + b]
    """
    if box.converts or box.unit_bits != 8:
        raise AssertionError("only elements of whole bytes that are moved unchanged can be moved as bytes")
    byte = Element("u8", 8)
    axes = (*box.axes, Axis("byte", box.width, 1, 1, fixed=True))
    return replace(box, axes=axes, source=byte, target=byte)
