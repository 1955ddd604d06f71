"""Index expressions as Python: 2 * i - j + 3."""

from __future__ import annotations

from codegen.emit.text import AND, ATOM, PRODUCT, SIGN, Text, infix
from codegen.ir.index import (
    BIT_SIGNS,
    Affine,
    Bitwise,
    FloorDiv,
    Greatest,
    Index,
    Least,
    Mod,
    Quotient,
    Sum,
    Times,
)


def index_text(index: Index) -> str:
    """An index expression in Python."""
    return index_expression(index).text


def index_expression(index: Index) -> Text:
    """An index expression as an operand."""
    match index:
        case Affine() | Sum():
            return _sum(None, index)
        case FloorDiv(of, by):
            return Text(f"{_operand(of)} // {by}", PRODUCT)
        case Mod(of, by) if by.bit_count() == 1:
            # A mask also serves addresses, which may be negative as integers.
            return Text(f"{_operand(of)} & {_mask(by - 1)}", AND)
        case Mod(of, by):
            return Text(f"{_operand(of)} % {by}", PRODUCT)
        case Bitwise(name, left, right):
            return infix(index_expression(left), BIT_SIGNS[name], index_expression(right))
        case Quotient(of, by):
            return Text(f"{_operand(of)} // {by}", PRODUCT)
        case Times(of, by):
            return Text(f"{_operand(of)} * {by}", PRODUCT)
        case Least(several):
            return Text(f"min({', '.join(map(index_text, several))})")
        case Greatest(several):
            return Text(f"max({', '.join(map(index_text, several))})")
        case _:
            raise AssertionError(f"emit: no rule for {type(index).__name__}")


def address_text(name: str, *offsets: Index) -> str:
    """An address and offsets from it, in order."""
    return sum_text(Text(name), *offsets)


def sum_text(first: Text | None, *indices: Index) -> str:
    """The sum of index expressions, after a first operand if there is one."""
    total = first
    for index in indices:
        if index != Affine():
            total = _sum(total, index)
    return total.text if total else "0"


def scaled_text(factor: int, index: Index) -> str:
    """A number times an index expression."""
    if isinstance(index, Affine) and not index.terms:
        return str(factor * index.constant)
    return f"{factor} * {_operand(index)}"


def _mask(ones: int) -> str:
    return str(ones) if ones < 1 << 16 else f"0x{ones:X}"


def _terms(index: Index) -> list[tuple[Text, int]]:
    """The terms of a sum, each with its factor; any other expression is its only term."""
    match index:
        case Affine(_, terms):
            return [(Text(name.removesuffix(":")), factor) for name, factor in terms]
        case Sum(parts, rest):
            return [*(_term(part, k) for part, k in parts), *_terms(rest)]
        case _:
            return [_term(index, 1)]


def _constant(index: Index) -> int:
    match index:
        case Affine(constant) | Sum(_, Affine(constant)):
            return constant
    return 0


def _term(part: Index, factor: int) -> tuple[Text, int]:
    """A part of a sum and its factor: x & -64, 1 for x // 64 * 64."""
    if isinstance(part, FloorDiv) and part.by == factor and factor.bit_count() == 1:
        return Text(f"{_operand(part.of)} & {-factor}", AND), 1
    return index_expression(part), factor


def _sum(first: Text | None, index: Index) -> Text:
    """A sum of products in natural notation, positive terms first, after a first operand."""
    out = first
    for term, factor in sorted(_terms(index), key=lambda each: each[1] < 0):
        product = term if abs(factor) == 1 else infix(Text(str(abs(factor))), "*", term)
        if out is not None:
            out = infix(out, "-" if factor < 0 else "+", product)
        elif factor > 0:
            out = product
        else:
            # Python divides -i // 2 after the sign: it is not -(i // 2).
            divides = abs(factor) == 1 and ("//" in product.text or "%" in product.text)
            out = Text(f"-{product.within(SIGN if divides else PRODUCT)}", min(product.binds, SIGN))
    constant = _constant(index)
    if out is None:
        return Text(str(constant), ATOM if constant >= 0 else SIGN)
    return infix(out, "-" if constant < 0 else "+", Text(str(abs(constant)))) if constant else out


def _operand(index: Index) -> str:
    return index_expression(index).within(ATOM)
