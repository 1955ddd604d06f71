"""Formats with a name: from an array's dimensions and dtype to its Shape."""

from __future__ import annotations

import difflib
import math
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from inspect import Parameter, signature
from typing import Any

from codegen.errors import LayoutError
from tilejit.layout.checks import int_tuple
from tilejit.layout.dtypes import PrimitiveType, primitive_type
from tilejit.layout.shape import Shape, make_shape

LANES = 128
# The tile height that a second-minor size must be a multiple of to get it, by elements to 32 bits.
_FULL_HEIGHT = {1: 8, 2: 8, 4: 32, 8: 64}
Tiles = tuple[tuple[int, ...], ...]


@dataclass(frozen=True, slots=True)
class Format:
    """A named format: what it is in one line, and the function from dimensions and type to a Shape."""

    name: str
    description: str
    build: Callable[..., Shape]

    @property
    def parameters(self) -> tuple[str, ...]:
        """The keywords that the format takes beside dims and dtype."""
        return tuple(
            p.name for p in signature(self.build).parameters.values() if p.kind is Parameter.KEYWORD_ONLY
        )


_FORMATS: dict[str, Format] = {}


def register(name: str, description: str, build: Callable[..., Shape]) -> None:
    """Add a format; `build(dims, primitive_type, *, …)` returns its Shape, parameters by keyword only.

    Raises:
        LayoutError: the name is taken.
    """
    if name in _FORMATS:
        raise LayoutError(f"a format named {name!r} is there already\n  choose another name")
    _FORMATS[name] = Format(name, description, build)


def formats() -> tuple[str, ...]:
    """The names of the formats; `describe_format` says what each is.

    -> ("tpu", "tpu-doc", …)
    """
    return tuple(_FORMATS)


def describe_format(name: str) -> str:
    """What a format is, in one line.

    Raises:
        LayoutError: there is no such format.
    """
    return _find(name).description


def format_parameters(name: str) -> tuple[str, ...]:
    """The keywords that a format takes beside dims and dtype.

    Raises:
        LayoutError: there is no such format.
    """
    return _find(name).parameters


def named_format(name: str, dims: Iterable[int], dtype: object, **parameters: Any) -> Shape:
    """The Shape of an array of those dimensions in a named format.

    ("tpu", (33, 300), "bf16") -> bf16[33,300]{1,0:T(8,128)(2,1)}

    Raises:
        LayoutError: there is no such format (the message names the nearest), or it has no rule for the dtype.
        TypeError: a parameter that the format does not take, or an argument of a wrong type.
    """
    found = _find(name)
    unknown = [key for key in parameters if key not in found.parameters]
    if unknown:
        takes = f"it takes {', '.join(found.parameters)}" if found.parameters else "it takes none"
        raise TypeError(f"the format {name!r} has no parameter {unknown[0]!r}; {takes}")
    sizes = int_tuple(dims, "dims")
    element = primitive_type(dtype)
    if not element.is_array_element:
        raise LayoutError(f"there are no arrays of {element.name}\n  give the dtype of an array")
    return found.build(sizes, element, **parameters)


def _find(name: str) -> Format:
    if not isinstance(name, str):
        raise TypeError(f"a format's name is a str, not {type(name).__name__}")
    if name in _FORMATS:
        return _FORMATS[name]
    close = difflib.get_close_matches(name[:64].lower(), _FORMATS, n=1, cutoff=0.4)
    known = ", ".join(list(_FORMATS)[:12])
    mend = f"write {close[0]!r}" if close else f"write one of {known}, or a layout such as {{1,0:T(8,128)}}"
    raise LayoutError(f"there is no format {(name if len(name) <= 40 else name[:40] + '…')!r}\n  {mend}")


def _tpu(dims: tuple[int, ...], element: PrimitiveType) -> Shape:
    """What compiled TPU programs use: derived from 3,895 observations, v4 to v7."""
    packing = _packing(element)
    width = 4 if packing == 8 else 0
    if 0 in dims:
        return make_shape(element, dims, element_size_in_bits=width)
    if len(dims) < 2:
        return make_shape(element, dims, tiles=_vector_tiles(dims, packing), element_size_in_bits=width)
    minor, second = _minor_pair(dims, packing)
    others = (d for d in reversed(range(len(dims))) if d not in (minor, second))
    tiles: Tiles = ((_tile_height(dims[second], packing), LANES),)
    if packing > 1:
        tiles += ((packing, 1),)
    return make_shape(element, dims, (minor, second, *others), tiles, element_size_in_bits=width)


def _packing(element: PrimitiveType) -> int:
    """How many elements share 32 bits; 1 for 32 bits and more, 4 for pred."""
    bits = 8 if element.name == "pred" else element.bits
    packing = max(1, 32 // bits)
    if packing not in _FULL_HEIGHT or 32 % min(bits, 32):
        raise LayoutError(
            f"the format 'tpu' has no rule for {element.name}\n"
            "  write the layout out, e.g. {1,0:T(64,128)(16,1)E(2)}, or convert to s4 or s8"
        )
    return packing


def _vector_tiles(dims: tuple[int, ...], packing: int) -> Tiles:
    """The tiles of a scalar or a vector."""
    if not dims:
        return ((LANES * packing,),)
    long = min(1024, max(LANES * packing, 1 << (dims[0] - 1).bit_length()))
    return ((long,), (LANES,), (packing, 1)) if packing > 1 else ((long,),)


def _tile_height(size: int, packing: int) -> int:
    """Rows of a tile for a second-minor dimension of that size."""
    if size % _FULL_HEIGHT[packing] == 0:
        return _FULL_HEIGHT[packing]
    height = packing
    while height < min(size, 8):
        height *= 2
    return height


def _minor_pair(dims: tuple[int, ...], packing: int) -> tuple[int, int]:
    """The dimensions to be minor and second-minor: least padding wins, then the descending order."""
    total = math.prod(dims)
    last = len(dims) - 1
    # Of dimensions of one size only the last two can win a tie; so the pairs stay few whatever the rank.
    seen: dict[int, int] = {}
    candidates: list[int] = []
    for dim in range(last, -1, -1):
        if seen.get(dims[dim], 0) < 2:
            candidates.append(dim)
            seen[dims[dim]] = seen.get(dims[dim], 0) + 1

    def cost(pair: tuple[int, int]) -> tuple[int, bool, int, int]:
        minor, second = pair
        height = _tile_height(dims[second], packing)
        padded = _round_up(dims[minor], LANES) * _round_up(dims[second], height)
        return total // (dims[minor] * dims[second]) * padded, pair != (last, last - 1), -minor, -second

    return min(((m, s) for m in candidates for s in candidates if m != s), key=cost)


def _round_up(size: int, multiple: int) -> int:
    return -(-size // multiple) * multiple


def _tpu_doc(dims: tuple[int, ...], element: PrimitiveType) -> Shape:
    """The list of XLA's page on tiled layouts, pred with one bit an element."""
    if len(dims) < 2 or element.bits >= 64:
        return make_shape(element, dims)
    if element.name == "pred":
        return make_shape(element, dims, tiles=((32, LANES), (32, 1)), element_size_in_bits=1)
    if element.bits == 32:
        height = 2 if dims[-2] <= 2 else 4 if dims[-2] <= 4 else 8
        return make_shape(element, dims, tiles=((height, LANES),))
    if element.bits not in (8, 16):
        raise LayoutError(
            f"the format 'tpu-doc' has no rule for {element.name}\n"
            "  write 'tpu' for s4 and u4, or the layout, e.g. {1,0:T(64,128)(8,1)E(4)}"
        )
    return make_shape(element, dims, tiles=((8, LANES), (32 // element.bits, 1)))


register("tpu", "what TPU programs use today: tiles and the order of dimensions by dtype and shape", _tpu)
register(
    "tpu-doc", "XLA's documented TPU tiles: descending order, (8,128) and a second tile by dtype", _tpu_doc
)
