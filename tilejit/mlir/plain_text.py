"""Operations that xdsl does not verify, and parsers for parts of their text."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from xdsl.dialects.builtin import ArrayAttr, IndexType, IntAttr, MemRefType
from xdsl.dialects.builtin import VectorType as Vector
from xdsl.ir import Attribute, Operation, OpTraits, SSAValue
from xdsl.parser import Parser, UnresolvedOperand


class Plain(Operation):
    """An operation that xdsl does not verify, because reading its function does."""

    traits = OpTraits(tuple)

    @classmethod
    def made(
        cls,
        operands: Sequence[SSAValue],
        result: Attribute | None = None,
        properties: dict[str, Attribute] | None = None,
    ) -> Plain:
        """Create the operation with these operands and at most one result."""
        results = () if result is None else (result,)
        op: Plain = cls.create(operands=operands, result_types=results, properties=properties or {})
        return op


class Accessed(NamedTuple):
    """An array and its subscripts, before the type of the array is known."""

    array: UnresolvedOperand
    indices: Sequence[SSAValue]

    def operands(self, parser: Parser, kind: Attribute) -> list[SSAValue]:
        """The array, now that its type is known, and the subscripts."""
        return [parser.resolve_operand(self.array, kind), *self.indices]


def accessed(parser: Parser) -> Accessed:
    """An array and its subscripts: %A[%i, %j]"""
    array = parser.parse_unresolved_operand()
    index = IndexType()
    indices = parser.parse_comma_separated_list(parser.Delimiter.SQUARE, lambda: typed_operand(parser, index))
    return Accessed(array, indices)


def typed_operand(parser: Parser, kind: Attribute) -> SSAValue:
    """An operand whose type is known."""
    return parser.resolve_operand(parser.parse_unresolved_operand(), kind)


def attributes(parser: Parser) -> dict[str, Attribute]:
    """The attributes of an operation, if it has any, and the colon before its types."""
    found: dict[str, Attribute] = parser.parse_optional_attr_dict()
    parser.parse_punctuation(":")
    return found


def memref_type(parser: Parser) -> MemRefType:
    """The type of an array."""
    return _type_of(parser, MemRefType, "memref")


def vector_type(parser: Parser) -> Vector:
    """The type of a vector."""
    return _type_of(parser, Vector, "vector")


def _type_of(parser: Parser, kind: type[Attribute], what: str) -> Attribute:
    begin = parser.pos
    found = parser.parse_type()
    if not isinstance(found, kind):
        parser.raise_error(f"expected the type of a {what}", begin, parser.pos)
    return found


def next_operand(parser: Parser) -> UnresolvedOperand:
    """An operand after a comma."""
    parser.parse_punctuation(",")
    return parser.parse_unresolved_operand()


def numbers(parser: Parser) -> ArrayAttr[IntAttr]:
    """A list of integers in brackets."""
    found = parser.parse_comma_separated_list(parser.Delimiter.SQUARE, parser.parse_integer)
    return ArrayAttr(map(IntAttr, found))


def numbers_of(attribute: Attribute | None) -> tuple[int, ...]:
    """The numbers of a list: [3, 5] -> 3, 5"""
    assert isinstance(attribute, ArrayAttr)
    return tuple(n.data for n in attribute.data)
