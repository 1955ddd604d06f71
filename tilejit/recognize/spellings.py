"""Spell a closed form as XLA's text, as a pattern in einops' notation, and as CuTe's text."""

from __future__ import annotations

from math import prod
from typing import NamedTuple

from codegen import LayoutError
from tilejit.cute.digits import Chain, Digit, digits_of
from tilejit.cute.tables import layout_of
from tilejit.layout.as_layout import as_layout
from tilejit.layout.bridge.from_xla import BoundedLayout, from_xla
from tilejit.layout.bridge.to_xla import to_xla
from tilejit.layout.cute_shape import Spec
from tilejit.layout.shape import Shape
from tilejit.recognize.closed_form import Buffer, ClosedForm, cute_shape, rooms_of

READABLE_TILES = 2
"""The most tiles for which XLA's text is preferred to a pattern."""
MOST_LETTERS = 26
_LETTERS = {1: "N", 2: "MN", 3: "BMN", 4: "NCHW"}


class Spellings(NamedTuple):
    """The texts of a layout.

    Attributes:
        layout: the layout: a Shape if tiles express it, or else a CuteShape.
        xla: XLA's text, or "".
        pattern: the pattern, or "".
        cute: CuTe's text of the layout alone, or "".
    """

    layout: Spec
    xla: str
    pattern: str
    cute: str

    @property
    def preferred(self) -> str:
        """XLA's text if it has few tiles, or else the pattern, XLA's text or CuTe's, whichever there is."""
        layout = self.layout.layout if isinstance(self.layout, Shape) else None
        if layout and len(layout.tiles) <= READABLE_TILES and layout.tail_padding_alignment_in_elements == 1:
            return self.xla
        return self.pattern or self.xla or self.cute


def spellings(form: ClosedForm, buffer: Buffer) -> Spellings | None:
    """The texts of a closed form, each read back and compared; None if none describes the buffer."""
    cute = cute_shape(form, buffer)
    text = str(cute.layout) if cute else ""
    shape = _xla(form, buffer) if form.is_plain else None
    pattern = _pattern(form.chains, buffer) if form.is_plain else ""
    layout = shape or cute
    if layout is None:
        return None
    return Spellings(layout, str(shape) if shape else "", pattern, text)


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


def _pattern(chains: tuple[Chain, ...], buffer: Buffer) -> str:
    """The pattern of the same buffer; "" if there are holes or padding that no pattern has."""
    digits = sorted(digits_of(chains, buffer.dims), key=lambda digit: digit.stride)
    rooms = rooms_of(digits, buffer.slots)
    if rooms is None or len(buffer.dims) > MOST_LETTERS:
        return ""
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
    return text if _same(text, chains, buffer) else ""


def _same(text: str, chains: tuple[Chain, ...], buffer: Buffer) -> bool:
    """Whether a pattern means these chains."""
    bits = {"element_size_in_bits": buffer.packed_bits} if buffer.packed_bits else {}
    try:
        shape = as_layout(text, dtype=buffer.element, dims=buffer.dims, **bits)
        if not isinstance(shape, Shape) or not buffer.fits(shape):
            return False
        return str(from_xla(shape)) == str(layout_of(chains))
    except LayoutError:
        return False


def _letters(rank: int) -> str:
    """A letter for each dimension."""
    return _LETTERS.get(rank) or "".join(map(chr, range(ord("A"), ord("A") + rank)))


def _names(letter: str, count: int) -> list[str]:
    """The names of a dimension's digits, the most major first.

    ("M", 2) -> M, m    ("M", 3) -> M, m1, m2
    """
    lower = letter.lower()
    return [letter, *([lower] if count == 2 else [f"{lower}{k}" for k in range(1, count)])][:count]
