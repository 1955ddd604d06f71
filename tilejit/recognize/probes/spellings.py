"""Spell a closed form as XLA's text, as a pattern in einops' notation, and as CuTe's text."""

from __future__ import annotations

from dataclasses import replace
from itertools import islice
from math import prod
from typing import NamedTuple

from codegen import LayoutError
from tilejit.cute.digits import Chain, Digit, digits_of
from tilejit.cute.tables import layout_of
from tilejit.layout.as_layout import as_layout
from tilejit.layout.bridge.from_xla import BoundedLayout, from_xla
from tilejit.layout.bridge.to_xla import to_xla
from tilejit.layout.cute_shape import Spec
from tilejit.layout.dtypes import PRIMITIVE_TYPES
from tilejit.layout.shape import Shape
from tilejit.recognize.probes.closed_form import Buffer, ClosedForm, Table, closed_forms, cute_shape, rooms_of

READABLE = (2, 8)
"""The most tiles, and sizes in them, for which XLA's text is preferred to a pattern."""
MOST_FORMS = 32
"""The most closed forms that are compared with the size of the buffer."""
MOST_LETTERS = 26
_LETTERS = {1: "N", 2: "MN", 3: "BMN", 4: "NCHW"}


class Spellings(NamedTuple):
    """The texts of a layout.

    Attributes:
        layout: the layout: a Shape if tiles express it, or else a CuteShape.
        text: the preferred text: XLA's if it has few tiles, or else the pattern, XLA's or CuTe's, whichever
            there is. It describes `layout`.
        xla: XLA's text, or "".
        pattern: the pattern, or "".
        cute: CuTe's text of the layout alone, or "".
    """

    layout: Spec
    text: str
    xla: str
    pattern: str
    cute: str


def best_spellings(table: Table, buffer: Buffer) -> Spellings | None:
    """The texts of the first closed form of a table that fills the buffer, or of one that ends before it."""
    first: Spellings | None = None
    for form in islice(closed_forms(table), MOST_FORMS):
        found = spellings(form, buffer)
        if found and buffer.fits(found.layout):
            return found
        first = first or found
    return first


def spellings(form: ClosedForm, buffer: Buffer) -> Spellings | None:
    """The texts of a closed form, each read back and compared; None if none describes the buffer."""
    cute = cute_shape(form, buffer)
    text = str(cute.layout) if cute else ""
    tiled = _xla(form, buffer) if form.is_plain else None
    pattern, blocked = _pattern(form.chains, buffer) if form.is_plain else ("", None)
    shape = min(filter(None, (tiled, blocked)), key=_cost, default=None)
    if blocked and shape and _cost(shape) > READABLE:
        return Spellings(blocked, pattern, str(blocked), pattern, text)
    if shape and (_cost(shape) <= READABLE or not text):
        return Spellings(shape, str(shape), str(shape), pattern, text)
    if shape:
        return Spellings(shape, min(str(shape), text, key=len), str(shape), pattern, text)
    return Spellings(cute, text, "", "", text) if cute else None


def _cost(shape: Shape) -> tuple[int, int]:
    """What makes XLA's text hard to read: a padded tail, many tiles, and long ones."""
    layout = shape.layout
    if layout is None:
        return 0, 0
    tail = layout.tail_padding_alignment_in_elements > 1
    return len(layout.tiles) + 8 * tail, sum(map(len, layout.tiles))


def _xla(form: ClosedForm, buffer: Buffer) -> Shape | None:
    """The XLA shape of the same buffer."""
    plain = layout_of(form.chains)
    try:
        shape = to_xla(
            BoundedLayout(plain, buffer.dims, buffer.slots),
            dtype=buffer.element,
            element_size_in_bits=buffer.packed_bits,
        )
        return shape if str(from_xla(shape)) == str(plain) and buffer.fits(shape) else None
    except LayoutError:
        return None


def _pattern(chains: tuple[Chain, ...], buffer: Buffer) -> tuple[str, Shape | None]:
    """The pattern of the same buffer and its shape; "" if there are holes or padding that no pattern has."""
    digits = sorted(digits_of(chains, buffer.dims), key=lambda digit: digit.stride)
    rooms = rooms_of(digits, buffer.slots)
    if rooms is None or len(buffer.dims) > MOST_LETTERS:
        return "", None
    left: list[str] = []
    sizes: list[str] = []
    names: dict[Digit, str] = {}
    for dim, letter in enumerate(_letters(len(buffer.dims))):
        own = sorted((d for d in digits if d.dim == dim), key=lambda digit: -digit.weight)
        named = dict(zip(own, _names(letter, len(own)), strict=True))
        names |= named
        left.append(f"({' '.join(named.values())})" if len(own) > 1 else named[own[0]] if own else "1")
        below = prod(rooms[d] for d in own[1:])
        kept = own if own and rooms[own[0]] != -(-buffer.dims[dim] // below) else own[1:]
        sizes += [f"{named[d]}={rooms[d]}" for d in kept]
    order = " ".join(names[d] for d in reversed(digits))
    text = ", ".join([f"{' '.join(left)} -> {order}".strip(), *sizes])
    shape = _read(text, chains, buffer)
    return (text, shape) if shape else ("", None)


def _read(text: str, chains: tuple[Chain, ...], buffer: Buffer) -> Shape | None:
    """The shape of a pattern, if it means these chains."""
    try:
        shape = as_layout(text, dtype=PRIMITIVE_TYPES["u8"], dims=buffer.dims)
        if (
            not isinstance(shape, Shape)
            or shape.layout is None
            or str(from_xla(shape)) != str(layout_of(chains))
        ):
            return None
        layout = replace(shape.layout, element_size_in_bits=buffer.packed_bits)
        shape = replace(shape, primitive_type=buffer.element.name, layout=layout)
    except LayoutError:
        return None
    return shape if buffer.fits(shape) else None


def _letters(rank: int) -> str:
    """A letter for each dimension."""
    return _LETTERS.get(rank) or "".join(map(chr, range(ord("A"), ord("A") + rank)))


def _names(letter: str, count: int) -> list[str]:
    """The names of a dimension's digits, the most major first.

    ("M", 2) -> M, m    ("M", 3) -> M, m1, m2
    """
    lower = letter.lower()
    return [letter, *([lower] if count == 2 else [f"{lower}{k}" for k in range(1, count)])][:count]
