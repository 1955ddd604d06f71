"""Parse the operations by which vectors access arrays."""

from __future__ import annotations

from xdsl.dialects.builtin import AffineMapAttr, i1
from xdsl.dialects.builtin import VectorType as Vector
from xdsl.ir import Attribute, SSAValue
from xdsl.parser import Parser

from tilejit.mlir.plain_text import Plain, accessed, attributes, memref_type, next_operand, vector_type


def mask_type(vector: Vector, access: dict[str, Attribute]) -> Vector:
    """The type of a transfer's mask: the vector's dimensions in the order of the array's dimensions.

    vector<4x8xf32> by (d0, d1) -> (d1, d0) -> vector<8x4xi1>    by (d0, d1) -> (0, d1) -> vector<8xi1>
    """
    shape = vector.get_shape()
    order = access.get("permutation_map")
    if isinstance(order, AffineMapAttr) and len(order.data.results) == len(shape):
        dims = [(str(e), n) for e, n in zip(order.data.results, shape, strict=True) if str(e)[0] == "d"]
        shape = tuple(n for _, n in sorted(dims, key=lambda pair: int(pair[0][1:])))
    return Vector(i1, shape)


class TransferRead(Plain):
    """vector.transfer_read; older texts omit the padding and the comma before the vector's type."""

    name = "vector.transfer_read"

    @classmethod
    def parse(cls, parser: Parser) -> Plain:
        """%A[%i], %padding, %mask {…} : memref<?xf32>, vector<8xf32>"""
        access = accessed(parser)
        given = [
            parser.parse_unresolved_operand() for _ in range(2) if parser.parse_optional_punctuation(",")
        ]
        how = attributes(parser)
        source = memref_type(parser)
        parser.parse_optional_punctuation(",")
        vector = vector_type(parser)
        types = (source.element_type, mask_type(vector, how))
        operands = [parser.resolve_operand(x, kind) for x, kind in zip(given, types, strict=False)]
        return cls.made([*access.operands(parser, source), *operands], vector, how)


class TransferWrite(Plain):
    """vector.transfer_write."""

    name = "vector.transfer_write"

    @classmethod
    def parse(cls, parser: Parser) -> Plain:
        """%v, %A[%i], %mask {…} : vector<8xf32>, memref<?xf32>"""
        value = parser.parse_unresolved_operand()
        parser.parse_punctuation(",")
        access = accessed(parser)
        masked = parser.parse_unresolved_operand() if parser.parse_optional_punctuation(",") else None
        how = attributes(parser)
        vector = vector_type(parser)
        parser.parse_optional_punctuation(",")
        target = memref_type(parser)
        mask = [] if masked is None else [parser.resolve_operand(masked, mask_type(vector, how))]
        stored = parser.resolve_operand(value, vector)
        return cls.made([stored, *access.operands(parser, target), *mask], None, how)


class Load(Plain):
    """vector.load."""

    name = "vector.load"

    @classmethod
    def parse(cls, parser: Parser) -> Plain:
        """%A[%i] : memref<?xf32>, vector<8xf32>"""
        access = accessed(parser)
        source, vector = _types(parser, 1)
        return cls.made(access.operands(parser, source), vector)


class Store(Plain):
    """vector.store."""

    name = "vector.store"

    @classmethod
    def parse(cls, parser: Parser) -> Plain:
        """%v, %A[%i] : memref<?xf32>, vector<8xf32>"""
        value = parser.parse_unresolved_operand()
        parser.parse_punctuation(",")
        access = accessed(parser)
        target, vector = _types(parser, 1)
        return cls.made([parser.resolve_operand(value, vector), *access.operands(parser, target)])


class MaskedLoad(Plain):
    """vector.maskedload."""

    name = "vector.maskedload"

    @classmethod
    def parse(cls, parser: Parser) -> Plain:
        """%A[%i], %mask, %other : memref<?xf32>, vector<8xi1>, vector<8xf32> into vector<8xf32>"""
        operands = _masked(parser)
        parser.parse_keyword("into")
        return cls.made(operands, vector_type(parser))


class MaskedStore(Plain):
    """vector.maskedstore."""

    name = "vector.maskedstore"

    @classmethod
    def parse(cls, parser: Parser) -> Plain:
        """%A[%i], %mask, %v : memref<?xf32>, vector<8xi1>, vector<8xf32>"""
        return cls.made(_masked(parser))


class Gather(Plain):
    """vector.gather."""

    name = "vector.gather"

    @classmethod
    def parse(cls, parser: Parser) -> Plain:
        """%A[%i] [%k], %mask, %other : memref<?xf32>, vector<8xi64>, vector<8xi1>, vector<8xf32> into …"""
        operands = _masked(parser, indexed=True)
        parser.parse_keyword("into")
        return cls.made(operands, vector_type(parser))


class Scatter(Plain):
    """vector.scatter."""

    name = "vector.scatter"

    @classmethod
    def parse(cls, parser: Parser) -> Plain:
        """%A[%i] [%k], %mask, %v : memref<?xf32>, vector<8xi64>, vector<8xi1>, vector<8xf32>"""
        return cls.made(_masked(parser, indexed=True))


def _masked(parser: Parser, *, indexed: bool = False) -> list[SSAValue]:
    """The operands of a masked access; if `indexed`, with a vector of indices.

    %A[%i] [%k], %mask, %v : memref<?xf32>, vector<8xi64>, vector<8xi1>, vector<8xf32>
    """
    access = accessed(parser)
    given = []
    if indexed:
        parser.parse_punctuation("[")
        given.append(parser.parse_unresolved_operand())
        parser.parse_punctuation("]")
    given += [next_operand(parser) for _ in range(2)]
    memref, *vectors = _types(parser, len(given))
    operands = [parser.resolve_operand(x, kind) for x, kind in zip(given, vectors, strict=True)]
    return [*access.operands(parser, memref), *operands]


def _types(parser: Parser, vectors: int) -> tuple[Attribute, ...]:
    """Attributes, a colon, the type of an array, and the types of that many vectors."""
    attributes(parser)
    found: list[Attribute] = [memref_type(parser)]
    for _ in range(vectors):
        parser.parse_punctuation(",")
        found.append(vector_type(parser))
    return tuple(found)


TRANSFERS = (TransferRead, TransferWrite, Load, Store, MaskedLoad, MaskedStore, Gather, Scatter)
