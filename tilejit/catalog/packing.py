"""`Packing`: planes of an array, and the fields of the buffers that hold them."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import field
from math import prod
from typing import Any, TypeAlias

import numpy as np

from codegen import LayoutError, dataclass, lazy_pattern

Array: TypeAlias = np.ndarray[Any, np.dtype[Any]]
Sizes: TypeAlias = Mapping[str, Any]
"""The size of each named axis; `...` has those of the leading dimensions, `numel` the product of all."""

Arrays: TypeAlias = dict[str, Array]
"""Arrays by the names of their planes."""

SAME_ORDER = "... -> ..."
"""The pattern that keeps the order of an array."""
_EXTENT = lazy_pattern(r"(\.\.\.|[A-Za-z_]\w*)(?:\*(\d+))?(?:/(\d+))?(?:\^(\d+))?|(\d+)", re.ASCII)


@dataclass(frozen=True, slots=True)
class Plane:
    """A logical array that a format stores.

    Attributes:
        name: the key of the array in a mapping of planes.
        axes: the extent of each dimension: an axis, an axis divided by a number (rounded up), or a number.
            "R C/32" is an array of a row for each R and a column for each 32 of C. `numel` is the number of
            elements of the main plane.
        bits: the width of an integer code, from 1 to 8; 0 if the plane has a dtype.
        dtype: XLA's name of the dtype; empty for codes, and for any dtype.
        signed: whether codes are stored in two's complement.
        low: the least code; a code is stored minus this number.
        levels: the number of codes, if it is less than 2**bits; 3 for ternary ones. Else 0.
    """

    name: str
    axes: str
    bits: int = 0
    dtype: str = ""
    signed: bool = False
    low: int = 0
    levels: int = 0

    def __post_init__(self) -> None:
        """Check the width, which an array of bytes must hold."""
        if not 0 <= self.bits <= 8:
            raise AssertionError(f"plane {self.name}: expected 0 to 8 bits, got {self.bits}")

    @property
    def is_free(self) -> bool:
        """Whether arrays of any dtype are accepted; all such planes of a format have the same."""
        return not self.bits and not self.dtype

    @property
    def code_range(self) -> tuple[int, int]:
        """The least and the greatest code."""
        least = -(1 << self.bits - 1) if self.signed else self.low
        return least, least + (self.levels or 1 << self.bits) - 1

    @property
    def array_dtype(self) -> type[np.integer[Any]]:
        """The dtype of arrays of codes."""
        least, greatest = self.code_range
        return np.int8 if least < 0 else np.uint8 if greatest < 256 else np.uint16

    @property
    def values_text(self) -> str:
        """What the array holds: "codes 0 to 15", a dtype, or "any dtype"."""
        if not self.bits:
            return self.dtype or "any dtype"
        low, high = self.code_range
        return f"codes {low} to {high}"


@dataclass(frozen=True, slots=True)
class ValueMap:
    """A change of each code, undone when it is read; codes are taken modulo 2**bits.

    Attributes:
        text: what it does, such as "^ 8".
        encode: encode(codes) -> the stored codes.
        decode: the inverse.
    """

    text: str
    encode: Callable[[Array], Array]
    decode: Callable[[Array], Array]


@dataclass(frozen=True, slots=True)
class Codec:
    """Whole-array steps between planes and the bytes of a field, for what no order of elements describes.

    Attributes:
        text: what the bytes hold, in words or a formula.
        extents: the extents of the bytes, those of each record contiguous, such as "R C/256 12".
        encode: encode(arrays, sizes) -> the bytes as uint8.
        decode: decode(bytes, sizes) -> an array for each plane of the field; the arrays that the field uses
            follow as further arguments.
        rounds: whether the bytes hold rounded values.
    """

    text: str
    extents: str
    encode: Callable[[tuple[Array, ...], Sizes], Array]
    decode: Callable[..., tuple[Array, ...]]
    rounds: bool = False


@dataclass(frozen=True, slots=True)
class PlaneSteps:
    """Whole-array steps on all planes before they are packed, undone after they are unpacked.

    Attributes:
        text: what they do, in words.
        encode: encode(arrays, sizes) -> the arrays that the fields hold.
        decode: the inverse; planes whose buffers were not given are missing.
    """

    text: str
    encode: Callable[[Arrays, Sizes], Arrays]
    decode: Callable[[Arrays, Sizes], Arrays]


@dataclass(frozen=True, slots=True)
class Field:
    """Bytes of a buffer that hold one plane, some bits of its codes, or several planes together.

    Attributes:
        planes: the planes. Without a codec, several have the same axes and width, and the pattern gets one
            more dimension, the last, that counts them.
        pattern: the order of the elements.
        sizes: sizes that the pattern omits.
        take: the lowest bit and the number of bits that the field holds of each code; None for all.
        values: a change of each code before it is stored.
        codec: steps that replace the pattern.
        words: for codes in a dense stream of bits, extents and pattern of its 32-bit words, if they move;
            ("K/32 N 3", "K N w -> K w N").
        buffer: the buffer that has the field.
        padding: the code of padding elements.
        uses: planes of other fields of the buffer that the codec also needs; `encode` gets them last.
    """

    planes: tuple[str, ...]
    pattern: str = SAME_ORDER
    sizes: Mapping[str, int] = field(default_factory=dict)
    take: tuple[int, int] | None = None
    values: ValueMap | None = None
    codec: Codec | None = None
    words: tuple[str, str] | None = None
    buffer: str = "buffer"
    padding: int = 0
    uses: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Packing:
    """A format with its parameters: planes, and the fields of each buffer in memory order.

    Attributes:
        planes: the planes; the first names the axes.
        fields: the fields; those of one buffer follow each other in every record.
        records: for a buffer of records, the extents of the array of records; "R C/32" is a record for each
            row and each 32 columns. Empty if each field is contiguous.
        tensors: for each buffer its dtype and extents in checkpoints, such as "s32: K N/8"; "any" is the
            dtype of the planes that take any.
        multiples: numbers by which axes must be divisible.
        optional: planes that may be omitted, with their buffers.
        steps: changes of all planes together, before they are packed.
    """

    planes: tuple[Plane, ...]
    fields: tuple[Field, ...]
    records: str = ""
    tensors: Mapping[str, str] = field(default_factory=dict)
    multiples: Mapping[str, int] = field(default_factory=dict)
    optional: tuple[str, ...] = ()
    steps: PlaneSteps | None = None

    @property
    def main(self) -> Plane:
        """The plane that names the axes."""
        return self.planes[0]

    @property
    def axes(self) -> tuple[str, ...]:
        """The names of the main plane's dimensions, without the leading ones."""
        names = self.main.axes.split()
        return tuple(names[names[0] == "..." :])

    @property
    def takes_leading(self) -> bool:
        """Whether further dimensions may precede the axes."""
        return self.main.axes.startswith("...")

    @property
    def buffers(self) -> tuple[str, ...]:
        """The names of the buffers, in order."""
        return tuple(dict.fromkeys(field.buffer for field in self.fields))

    @property
    def is_layout(self) -> bool:
        """Whether one plane of whole elements is all that it holds, so that an ordinary layout says it."""
        if len(self.fields) != 1 or len(self.planes) != 1 or self.records or self.steps:
            return False
        (field,) = self.fields
        packs_bytes = self.main.bits in (0, 1, 2, 4, 8) and not (self.main.low or self.main.levels)
        return packs_bytes and not (field.values or field.codec or field.take or field.words)

    @property
    def rounds(self) -> bool:
        """Whether it holds rounded values."""
        return any(field.codec and field.codec.rounds for field in self.fields)

    def plane(self, name: str) -> Plane:
        """The plane with that name."""
        return next(plane for plane in self.planes if plane.name == name)

    def sizes(self, dims: tuple[int, ...], what: str) -> dict[str, Any]:
        """Return the size of each axis of the main plane.

        Raises:
            LayoutError: the number of dimensions differs, or an axis is not a multiple of its number.
        """
        own = self.axes
        if len(dims) < len(own) or (len(dims) > len(own) and not self.takes_leading):
            more = " or more" if self.takes_leading else ""
            raise LayoutError(
                f"{what} takes {len(own)}{more} dimensions, the last {', '.join(own)}; got an array "
                f"{list(dims)}\n"
                "  reshape the array"
            )
        at = len(dims) - len(own)
        sizes: dict[str, Any] = {
            "...": dims[:at],
            "numel": prod(dims),
            **dict(zip(own, dims[at:], strict=True)),
        }
        for axis, number in self.multiples.items():
            if sizes[axis] % number:
                raise LayoutError(
                    f"{what} needs a multiple of {number} as {axis}, got {sizes[axis]}\n"
                    f"  pad {axis} to {rounded_up(sizes[axis], number)}"
                )
        return sizes


def extents(text: str, sizes: Sizes) -> tuple[int, ...]:
    """Evaluate extents; divisions round up, and ^ rounds up to a multiple.

    ("R C/32", {"R": 4, "C": 70}) -> (4, 3)    ("K*3/32 N^32", {"K": 64, "N": 5}) -> (6, 32)
    """
    out: list[int] = []
    for word in text.split():
        match = _EXTENT().fullmatch(word)
        if match is None:
            raise AssertionError(f"extents: {word!r} in {text!r}")
        name, factor, divisor, multiple, number = match.groups()
        if number is not None:
            out.append(int(number))
        elif name == "...":
            out += sizes["..."]
        else:
            size = -(-sizes[name] * int(factor or 1) // int(divisor or 1))
            out.append(rounded_up(size, int(multiple or 1)))
    return tuple(out)


def rounded_up(size: int, multiple: int) -> int:
    """The least multiple that is not less than a size."""
    return -(-size // multiple) * multiple


def xor(number: int) -> ValueMap:
    """Codes with some bits inverted."""
    return ValueMap(f"^ {number}", lambda codes: codes ^ number, lambda codes: codes ^ number)
