"""Index expressions as Python: 2 * i - j + 3."""

from __future__ import annotations

from collections.abc import Sequence

from codegen.ir.index import Affine, FloorDiv, Greatest, Index, Least, Mod, Quotient, Sum, Times


def index_text(index: Index) -> str:
    """An index expression in Python."""
    match index:
        case Affine(constant, terms):
            return _sum(terms, constant)
        case FloorDiv(of, by):
            return f"{_operand(of)} // {by}"
        case Mod(of, by):
            # A mask also serves addresses, which may be negative as integers.
            return f"{_operand(of)} & {_mask(by - 1)}" if by.bit_count() == 1 else f"{_operand(of)} % {by}"
        case Quotient(of, by):
            return f"{_operand(of)} // {by}"
        case Times(of, by):
            return f"{_operand(of)} * {by}"
        case Least(several):
            return f"min({', '.join(map(index_text, several))})"
        case Greatest(several):
            return f"max({', '.join(map(index_text, several))})"
        case Sum(parts, rest):
            return _sum([*(_term(part, k) for part, k in parts), *rest.terms], rest.constant)


def _mask(ones: int) -> str:
    return str(ones) if ones < 1 << 16 else f"0x{ones:X}"


def _term(part: Index, factor: int) -> tuple[str, int]:
    """The text of a part of a sum and its factor: (x & -64), 1 for x // 64 * 64."""
    if isinstance(part, FloorDiv) and part.by == factor and factor.bit_count() == 1:
        return f"({_operand(part.of)} & {-factor})", 1
    text = index_text(part)
    plain = isinstance(part, Least | Greatest) or (isinstance(part, Times) and factor == 1)
    return (text if plain else f"({text})"), factor


def _sum(terms: Sequence[tuple[str, int]], constant: int) -> str:
    """A sum of products in natural notation, positive terms first."""
    text = ""
    for name, factor in sorted(terms, key=lambda term: term[1] < 0):
        product = name if abs(factor) == 1 else f"{abs(factor)} * {name}"
        sign = "-" if factor < 0 else "+"
        text = f"{text} {sign} {product}" if text else product if factor > 0 else f"-{product}"
    if not text:
        return str(constant)
    return f"{text} {'-' if constant < 0 else '+'} {abs(constant)}" if constant else text


def _operand(index: Index) -> str:
    text = index_text(index)
    plain = isinstance(index, Least | Greatest) or text.isidentifier() or text.isdigit()
    return text if plain else f"({text})"


def scaled_text(factor: int, index: Index) -> str:
    """A number times an index expression."""
    text = index_text(index)
    return str(factor * int(text)) if text.isdigit() else f"{factor} * {_operand(index)}"
