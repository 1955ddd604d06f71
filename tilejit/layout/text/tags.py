"""oneDNN's blocked tags: aBcd16b, nChw16c, OIhw4i16o4i.

tag := LETTER+ (INT letter)*

The letters before the first number name the dimensions in memory order, in upper case if blocks of the
dimension follow. Each number and letter after them is a block, the outermost first.
"""

from __future__ import annotations

import re
from collections import Counter
from dataclasses import replace
from math import prod

from codegen import LayoutError, cached, dataclass, lazy_pattern
from tilejit.catalog.format import Dims, Element, Format
from tilejit.layout.dtypes import PRIMITIVE_TYPES
from tilejit.layout.formats.blocking import Blocking, DigitName
from tilejit.layout.helpers import dims_text
from tilejit.support.tokens import MAX_INT64, mistake, small_int

MAX_TAG = 256
MAX_RANK = 12
"""oneDNN's limit: dimensions a to l."""
_FAMILIES = (
    *("abcdefghijkl"[:rank] for rank in range(1, MAX_RANK + 1)),
    *(lead + space for lead in ("nc", "oi", "goi") for space in ("", "w", "hw", "dhw")),
    *("x", "tn", "tnc", "ldnc", "ldigo", "ldio", "ldgo"),
)
_LETTERS = {frozenset(family): family for family in _FAMILIES}
"""For the letters of a tag, the logical dimensions in order."""
_AS_MEANT = {
    "OhwI24o": "Ohwi24o",
    "OhwI32o": "Ohwi32o",
    "gOhwI24o": "gOhwi24o",
    "gOhwI32o": "gOhwi32o",
    "gIOhw2i8o16i2o": "gOIhw2i8o16i2o",
    "gIOdhw2i8o16i2o": "gOIdhw2i8o16i2o",
}
"""Tags of dnnl_types.h whose letters differ from the tag that they are defined as."""
_FORM = lazy_pattern(r"[A-Za-z]+(?:[0-9]+[A-Za-z])*[0-9]*")
_BLOCK = lazy_pattern(r"([0-9]+)([A-Za-z]?)")
_DIGIT = lazy_pattern("[0-9]")


@dataclass(frozen=True, slots=True)
class Tag:
    """A parsed tag: its dimensions in logical and memory order, and the blocks, the outermost first."""

    text: str
    dims: str
    order: str
    blocks: tuple[tuple[int, str], ...]

    @property
    def formula(self) -> str:
        """The tag as a pattern, with the sizes of its blocks.

        OIhw4i16o4i -> "(O o) (I i i2) h w -> O I h w i o i2, i=4, o=16, i2=4"
        """
        groups = {letter: [letter] for letter in self.dims}
        blocks: list[tuple[str, int]] = []
        for size, letter in self.blocks:
            group = groups[letter]
            group[0] = letter.upper()
            blocks.append((letter + (str(len(group)) if len(group) > 1 else ""), size))
            group.append(blocks[-1][0])
        left = " ".join(f"({' '.join(group)})" if len(group) > 1 else group[0] for group in groups.values())
        right = " ".join([*(groups[letter][0] for letter in self.order), *(name for name, _ in blocks)])
        return ", ".join([f"{left} -> {right}", *(f"{name}={size}" for name, size in blocks)])

    def blocking(self, dims: tuple[int, ...]) -> Blocking:
        """The digits of an array with those dimensions.

        nChw16c of [2,20,5,7]: (2), (2,16), (5), (7) in the order n C h w c

        Raises:
            LayoutError: the array has another number of dimensions.
        """
        if len(dims) != len(self.dims):
            raise LayoutError(
                f"{self.text} takes {len(self.dims)} dimensions, {' '.join(self.dims)}; got an array "
                f"{dims_text(dims)}\n"
                "  pass an array of that rank, or write a tag with a letter for each"
            )
        digits: list[tuple[int, ...]] = []
        for letter, size in zip(self.dims, dims, strict=True):
            blocks = tuple(block for block, name in self.blocks if name == letter)
            digits.append((-(-size // prod(blocks)), *blocks))
        order = [DigitName(self.dims.index(letter), 0) for letter in self.order]
        seen: Counter[str] = Counter()
        for _, letter in self.blocks:
            seen[letter] += 1
            order.append(DigitName(self.dims.index(letter), seen[letter]))
        return Blocking(dims, tuple(digits), tuple(order))


def is_tag(text: str) -> bool:
    """Whether a text is meant as a tag, correct or not: it has a tag's form and dimensions that oneDNN knows.

    nChw16c, nchw, nchw16c, aBc -> True    col32, tpu, NC1HWC0, BF16 -> False
    """
    if len(text) > MAX_TAG or not _FORM().fullmatch(text) or text.lower() in PRIMITIVE_TYPES:
        return False
    letters = _order(text)
    return frozenset(letters.lower()) in _LETTERS or (
        text != letters and letters.lower() != letters and set(letters.lower()) <= set("abcdefghijklnotwx")
    )


@cached(256)
def parse_tag(text: str) -> Tag:
    """Read a blocked tag.

    OIhw4i16o4i -> dimensions o i h w, blocks 4 of i, 16 of o, 4 of i

    Raises:
        LayoutError: the tag has a mistake; the message shows where and what to write instead.
    """
    if text in _AS_MEANT:
        return replace(parse_tag(_AS_MEANT[text]), text=text)
    letters = _order(text)
    order = letters.lower()
    for at, letter in enumerate(order):
        if letter in order[:at]:
            fix = "name each dimension once, followed by the blocks, e.g. aBcd16b"
            raise mistake(text, at, f"{letter} occurs twice", fix)
    dims = _LETTERS.get(frozenset(order))
    if dims is None:
        raise mistake(
            text,
            0,
            f"{' '.join(order)} are not dimensions that oneDNN names",
            "write letters from a, e.g. aBcd16b, or those of a kind of tensor: n c d h w, g o i d h w",
        )
    matches = _BLOCK().finditer(text, len(letters))
    blocks = tuple(_block(text, order, match) for match in matches)
    _check_cases(text, letters, blocks)
    return Tag(text, dims, order, blocks)


def _block(text: str, order: str, match: re.Match[str]) -> tuple[int, str]:
    """The size and the dimension of one block."""
    number, letter = match.groups()
    size = small_int(number)
    if not letter:
        fix = f"write its dimension, e.g. 16{order[0]}"
        raise mistake(text, len(text), f"the block {number[:20]} has no letter", fix)
    if letter not in order:
        fix = f"write {letter.lower()}" if letter.lower() in order else f"write one of {' '.join(order)}"
        raise mistake(text, match.start(2), f"{letter} is not a dimension of the tag", fix)
    if size is None or size < 2:
        raise mistake(text, match.start(), f"a block has size {number[:20]}", "write a size from 2 to 2^63-1")
    return size, letter


def _check_cases(text: str, letters: str, blocks: tuple[tuple[int, str], ...]) -> None:
    """Raise unless exactly the blocked dimensions are in upper case, with blocks of a possible size."""
    for at, written in enumerate(letters):
        letter = written.lower()
        sizes = [size for size, name in blocks if name == letter]
        if sizes and written == letter:
            raise mistake(text, at, f"{letter} has blocks but is in lower case", f"write {letter.upper()}")
        if not sizes and written != letter:
            raise mistake(
                text,
                at,
                f"{written} is in upper case, but no block of {letter} follows",
                f"write {letter}, or add its block, e.g. 16{letter}",
            )
        if prod(sizes) > MAX_INT64:
            raise mistake(
                text, at, f"the blocks of {letter} multiply to more than 2^63-1", "write smaller ones"
            )


def _order(text: str) -> str:
    """The letters before the first number."""
    return _DIGIT().split(text, maxsplit=1)[0]


def tag_format(tag: str) -> Format:
    """Return the format for a oneDNN blocked tag.

    Raises:
        LayoutError: the tag has a mistake.
    """
    parsed = parse_tag(tag)

    def build(element: Element, dims: Dims) -> Blocking:
        return parsed.blocking(dims)

    blocked = {letter: prod(n for n, name in parsed.blocks if name == letter) for _, letter in parsed.blocks}
    plain = [letter for letter in parsed.dims if letter not in blocked]
    # A picture shows two dimensions with more than one index: blocked ones, otherwise the last ones.
    small = dict.fromkeys(parsed.dims, 1 if blocked else 2) | {d: 2 * n for d, n in blocked.items()}
    if len(blocked) == 1 and plain:
        small[plain[-1]] = 4
    dims = tuple(small[letter] for letter in parsed.dims)
    what = f"oneDNN's tag, dimensions {' '.join(parsed.dims)}"
    source = "oneDNN, dnnl_format_tag_t in dnnl_types.h"
    return Format(tag, what, build, (), (dims, "f32"), parsed.formula, source)
