"""Formats of the catalog with the same bytes, found by comparing the orders of their elements."""

from __future__ import annotations

from functools import cache
from math import lcm, prod

from codegen import LayoutError
from tilejit.catalog.families import families
from tilejit.catalog.format import Format
from tilejit.catalog.packing import Packing
from tilejit.layout.dtypes import lookup
from tilejit.layout.text.pattern_text import parse_pattern

Form = object
Forms = dict[int, Form]
"""The form of a packing by the width of its elements in bits; 0 for a packing of several planes."""
_FREE = ("u8", "f16", "f32")
"""Dtypes that formats which take any are compared with."""
_PRIMES = (101, 103, 107, 109, 113, 127)


def same_bytes(name: str) -> tuple[str, ...]:
    """The other names of the bytes of a format with its default parameters, for arrays that both take.

    "nChw16c" -> ("ort-nchwc",)
    """
    own = _forms().get(name, {})
    return tuple(other for other, forms in _forms().items() if other != name and _agree(own, forms))


def _agree(first: Forms, second: Forms) -> bool:
    """Whether two formats have a width in common, and the same form for each that both take."""
    common = {*first} & {*second}
    return bool(common) and all(first[bits] == second[bits] for bits in common)


@cache
def _forms() -> dict[str, Forms]:
    return {row.name: _forms_of(row) for family in families() for row in family.formats}


def _forms_of(found: Format) -> Forms:
    if found.example is None or "dims" in found.depends_on:
        return {}
    forms: Forms = {}
    dims, _ = found.example
    for dtype in _FREE:
        try:
            packing = found.layout(lookup(dtype), dims, {})
        except LayoutError:  # no rule for the dtype
            continue
        if not isinstance(packing, Packing):
            return {}
        bits = packing.main.bits or lookup(dtype).bits
        forms[bits if len(packing.planes) == 1 else 0] = _form(packing)
    return forms


def _form(packing: Packing) -> Form:
    """A value that is equal for packings with the same bytes, whatever their axes are called."""
    plane, (field, *others) = packing.main, packing.fields
    if len(packing.planes) > 1 or others or field.codec or field.words or packing.steps:
        return repr((packing.planes, packing.fields, packing.records))
    pattern = parse_pattern(field.pattern)
    rank = len(packing.axes) or 1
    blocks = pattern.blocking((1,) * rank, field.sizes).padded
    multiples = [packing.multiples.get(axis, 1) for axis in packing.axes] or [1]
    steps = [lcm(block, multiple) for block, multiple in zip(blocks, multiples, strict=True)]
    dims = tuple(step * prime for step, prime in zip(steps, _PRIMES[:rank], strict=True))
    blocking = pattern.blocking(dims, field.sizes)
    if blocking.permutations:
        return repr((plane, field))
    digits: list[tuple[int, int, int]] = []  # dimension, step in it, and size
    for digit in blocking.order:
        size, step = blocking.size(digit), prod(blocking.digits[digit.dim][digit.number + 1 :])
        if digits and digits[-1][:2] == (digit.dim, step * size):
            digits[-1] = (digit.dim, step, size * digits[-1][2])
        elif size > 1:
            digits.append((digit.dim, step, size))
    padding = field.padding if steps != multiples else 0
    values = field.values.text if field.values else ""
    codes = plane.signed and plane.bits < 8, plane.low, plane.levels, values
    return tuple(steps), tuple(digits), codes, padding
