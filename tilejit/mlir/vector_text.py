"""Parse the vector operations that xdsl lacks, or parses in fewer forms than MLIR."""

from __future__ import annotations

from xdsl.dialects import arith
from xdsl.dialects.builtin import IndexType, StringAttr, i1
from xdsl.dialects.builtin import VectorType as Vector
from xdsl.ir import Dialect, Operation
from xdsl.parser import Parser, UnresolvedOperand

from codegen import FLOAT_FUNCTIONS
from tilejit.mlir.plain_text import Plain, attributes, next_operand, numbers, typed_operand, vector_type
from tilejit.mlir.transfer_text import TRANSFERS


class CreateMask(Plain):
    """vector.create_mask."""

    name = "vector.create_mask"

    @classmethod
    def parse(cls, parser: Parser) -> Plain:
        """%n, %m : vector<4x8xi1>"""
        index = IndexType()
        counts = parser.parse_comma_separated_list(
            parser.Delimiter.NONE, lambda: typed_operand(parser, index)
        )
        attributes(parser)
        return cls.made(counts, vector_type(parser))


class ConstantMask(Plain):
    """vector.constant_mask."""

    name = "vector.constant_mask"

    @classmethod
    def parse(cls, parser: Parser) -> Plain:
        """[3, 5] : vector<4x8xi1>"""
        counts = numbers(parser)
        attributes(parser)
        return cls.made([], vector_type(parser), {"counts": counts})


class Broadcast(Plain):
    """vector.broadcast."""

    name = "vector.broadcast"

    @classmethod
    def parse(cls, parser: Parser) -> Operation:
        """%x : f32 to vector<8xf32>"""
        return _converted(cls, parser)


class ShapeCast(Plain):
    """vector.shape_cast."""

    name = "vector.shape_cast"

    @classmethod
    def parse(cls, parser: Parser) -> Operation:
        """%v : vector<8xf32> to vector<8x1xf32>"""
        return _converted(cls, parser)


class MemRefCast(Plain):
    """memref.cast."""

    name = "memref.cast"

    @classmethod
    def parse(cls, parser: Parser) -> Operation:
        """%A : memref<8xf32> to memref<?xf32>"""
        return _converted(cls, parser)


def _converted(cls: type[Operation], parser: Parser) -> Operation:
    """An operand, its type and the type of the result."""
    operand = parser.parse_unresolved_operand()
    attributes(parser)
    source = parser.parse_type()
    parser.parse_keyword("to")
    value = parser.resolve_operand(operand, source)
    return cls.create(operands=[value], result_types=[parser.parse_type()])


class Splat(Plain):
    """vector.splat, formerly splat."""

    name = "vector.splat"

    @classmethod
    def parse(cls, parser: Parser) -> Plain:
        """%x : vector<8xf32>"""
        operand = parser.parse_unresolved_operand()
        attributes(parser)
        vector = vector_type(parser)
        return cls.made([parser.resolve_operand(operand, vector.element_type)], vector)


class Transpose(Plain):
    """vector.transpose."""

    name = "vector.transpose"

    @classmethod
    def parse(cls, parser: Parser) -> Plain:
        """%v, [1, 0] : vector<4x8xf32> to vector<8x4xf32>"""
        operand = parser.parse_unresolved_operand()
        parser.parse_punctuation(",")
        order = numbers(parser)
        attributes(parser)
        source = vector_type(parser)
        parser.parse_keyword("to")
        return cls.made([parser.resolve_operand(operand, source)], vector_type(parser), {"order": order})


class Reduction(Plain):
    """vector.reduction, whose kinds have several names."""

    name = "vector.reduction"

    @classmethod
    def parse(cls, parser: Parser) -> Plain:
        """<add>, %v, %start : vector<8xf32> into f32"""
        parser.parse_punctuation("<")
        kind = parser.parse_identifier()
        parser.parse_punctuation(">")
        given = [next_operand(parser)]
        if parser.parse_optional_punctuation(","):
            given.append(parser.parse_unresolved_operand())
        if parser.parse_optional_keyword("fastmath"):
            arith.FastMathFlagsAttr.parse_parameter(parser)
        attributes(parser)
        vector = vector_type(parser)
        parser.parse_keyword("into")
        result = parser.parse_type()
        operands = [parser.resolve_operand(x, t) for x, t in zip(given, (vector, result), strict=False)]
        return cls.made(operands, result, {"kind": StringAttr(kind)})


class Step(Plain):
    """vector.step: the number of each lane."""

    name = "vector.step"

    @classmethod
    def parse(cls, parser: Parser) -> Plain:
        """: vector<8xindex>"""
        attributes(parser)
        return cls.made([], vector_type(parser))


class Fma(Plain):
    """vector.fma."""

    name = "vector.fma"

    @classmethod
    def parse(cls, parser: Parser) -> Plain:
        """%x, %y, %z : vector<8xf32>"""
        given = _three(parser)
        attributes(parser)
        vector = vector_type(parser)
        return cls.made([parser.resolve_operand(x, vector) for x in given], vector)


class Poison(Plain):
    """ub.poison: a value that results must not depend on."""

    name = "ub.poison"

    @classmethod
    def parse(cls, parser: Parser) -> Plain:
        """: f32"""
        attributes(parser)
        return cls.made([], parser.parse_type())


class Select(Plain):
    """arith.select, whose condition is one bit, or a bit for each lane."""

    name = "arith.select"

    @classmethod
    def parse(cls, parser: Parser) -> Plain:
        """%p, %x, %y : f32, or %mask, %x, %y : vector<8xi1>, vector<8xf32>"""
        given = _three(parser)
        attributes(parser)
        begin = parser.pos
        first = parser.parse_type()
        several = parser.parse_optional_punctuation(",") is not None
        result = parser.parse_type() if several else first
        condition = first if several else i1
        if condition != i1 and not (isinstance(condition, Vector) and condition.element_type == i1):
            parser.raise_error(
                f"expected a condition of i1 or a vector of i1, got {condition}", begin, parser.pos
            )
        types = (condition, result, result)
        return cls.made([parser.resolve_operand(x, t) for x, t in zip(given, types, strict=True)], result)


def _three(parser: Parser) -> list[UnresolvedOperand]:
    """Three operands: %x, %y, %z"""
    return [parser.parse_unresolved_operand(), next_operand(parser), next_operand(parser)]


class CompareIntegers(arith.CmpiOp):
    """arith.cmpi, which returns a bit for each lane."""

    name = "arith.cmpi"

    @classmethod
    def parse(cls, parser: Parser) -> Operation:
        """slt, %x, %y : vector<8xi32>"""
        return _compared(super().parse(parser))


class CompareFloats(arith.CmpfOp):
    """arith.cmpf, which returns a bit for each lane."""

    name = "arith.cmpf"

    @classmethod
    def parse(cls, parser: Parser) -> Operation:
        """olt, %x, %y : vector<8xf32>"""
        return _compared(super().parse(parser))


def _compared(op: Operation) -> Operation:
    """A comparison with the type of its result."""
    kind = op.operands[0].type
    if not isinstance(kind, Vector):
        return op
    made = type(op).create(
        operands=op.operands, result_types=[Vector(i1, kind.get_shape())], properties=op.properties
    )
    op.erase()
    return made


CONVERSIONS = (
    "extsi",
    "extui",
    "trunci",
    "sitofp",
    "uitofp",
    "fptosi",
    "fptoui",
    "index_cast",
)
"""Operations of arith that xdsl parses for scalars only."""

ARITH = (
    *(Select, CompareIntegers, CompareFloats),
    *(
        type(op.__name__, (op,), {"parse": classmethod(_converted)})
        for op in arith.Arith.operations
        if op.name.removeprefix("arith.") in CONVERSIONS
    ),
    # xdsl lacks this operation.
    type(
        "IndexCastUI", (arith.IndexCastOp,), {"name": "arith.index_castui", "parse": classmethod(_converted)}
    ),
)

VECTOR = (
    *TRANSFERS,
    *(CreateMask, ConstantMask, Broadcast, ShapeCast, Splat, Transpose, Reduction, Step, Fma),
)

FOREIGN = tuple(
    type(name, (Plain,), {"name": f"tilejit.{name}"})
    for name in (
        *FLOAT_FUNCTIONS,
        "mod",
        "pow",
        "floordiv",
        "transfer_read",
        "transfer_write",
        "gather",
        "scatter",
    )
)
"""Operations that MLIR lacks, printed with TileJIT's names in the generic form."""


def with_operations(dialect: Dialect, *operations: type[Operation]) -> Dialect:
    """A dialect of xdsl with these operations, which replace those of the same name."""
    names = {op.name for op in operations}
    rest = [op for op in dialect.operations if op.name not in names]
    return Dialect(dialect.name, [*rest, *operations], list(dialect.attributes))
