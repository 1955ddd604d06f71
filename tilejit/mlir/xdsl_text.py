"""Parse the operations of a text with xdsl, and record the position of each one."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import field
from math import prod

import numpy as np
from xdsl.context import Context
from xdsl.dialects import affine
from xdsl.dialects.arith import Arith
from xdsl.dialects.builtin import AffineSetAttr, Builtin, IndexType, VectorType
from xdsl.dialects.func import CallOp, Func
from xdsl.dialects.math import Math
from xdsl.dialects.memref import MemRef
from xdsl.dialects.scf import IfOp as ScfIf
from xdsl.dialects.scf import YieldOp as ScfYield
from xdsl.ir import Attribute, Block, Dialect, Operation, Region
from xdsl.parser import Parser
from xdsl.utils.exceptions import ParseError
from xdsl.utils.test_value import create_ssa_value

from codegen import KernelError, dataclass, numpy_dtype
from tilejit.mlir.advice import advice, instead_of
from tilejit.mlir.places import mistake
from tilejit.mlir.plain_text import Plain
from tilejit.mlir.types import FLOATS, MOST_LANES, element_of
from tilejit.mlir.vector_text import ARITH, FOREIGN, VECTOR, MemRefCast, Poison, with_operations

OLD_NAMES = {"arith.maxf": "arith.maximumf", "arith.minf": "arith.minimumf"}
"""Names of operations in MLIR 16."""
OMITTED_DIALECTS = ("builtin", "func", "memref", "arith", "math", "affine", "vector")
"""Dialects whose operations may omit the dialect's name: `func`, `return`, `alloc`, `load`."""

UNREAD = (
    # xdsl supports only %n in subscripts, and it does not matter here whether an operand is a symbol.
    re.compile(r"\b(symbol\()\s*%[\w.$-]+\s*(\))"),
    # MLIR treats memory space 0 as none, xdsl as another type.
    re.compile(r"memref<[^<>]*?(,\s*0\s*(?::\s*i64\s*)?)>"),
    # Older constants have their type twice: dense<vector<8xf32>, 1.0> : vector<8xf32>.
    re.compile(r"\bdense<\s*(vector<[^<>]*>\s*,)"),
)
"""Syntax that MLIR parses but xdsl does not; blanks replace it, so that the rest keeps its position."""

STRINGS = re.compile(r'//[^\n]*+|"(?:[^"\\\n\v\f]|\\(?:["nt\\]|[0-9A-Fa-f]{2}))*+"|(?P<open>")')
"""Comments, strings, and an unclosed quotation mark, on which xdsl takes exponential time."""


def operations(text: str) -> tuple[Sequence[Operation], Mapping[Operation, int]]:
    """The top-level operations of a text, and the position of each operation in it.

    Raises:
        KernelError: the text cannot be read; the message shows the line with a caret.
    """
    for found in STRINGS.finditer(text):
        if found["open"]:
            raise mistake(text, found.start(), "the string is not closed", 'close it with " on the same line')
    seen = _Seen()
    try:
        module = _Parser(reader_context(), _readable(text), seen).parse_module()
        for op in module.walk():
            seen.last, seen.operation = seen.places.get(op, 0), op.name
            if not isinstance(op, CallOp | Plain):  # a called function may be defined elsewhere
                _scalar(op).verify(verify_nested_ops=False)
    except _UnknownOperation as error:
        raise mistake(text, seen.last, f"{error} is not supported", instead_of(str(error))) from None
    except ParseError as error:
        raise _not_mlir(text, error, seen) from None
    except RecursionError:
        raise mistake(text, seen.last, "the text is nested too deeply", "write fewer levels") from None
    # xdsl may raise any exception for unexpected text, including its own VerifyException.
    except Exception as error:
        cause = next(iter(str(error).strip().splitlines()), "") or type(error).__name__
        raise mistake(text, seen.last, cause, advice(cause, seen.operation, "")) from error
    return tuple(module.ops), seen.places


def _scalar(op: Operation) -> Operation:
    """The operation on numbers that corresponds to an operation on vectors, which xdsl's rules reject."""
    lanes = any(isinstance(x.type, VectorType) for x in (*op.operands, *op.results))
    if not lanes or op.regions or not op.name.startswith(("arith.", "math.")) or op.name == "arith.constant":
        return op
    operands = [create_ssa_value(element_of(x.type)) for x in op.operands]
    return type(op).create(
        operands=operands,
        result_types=[element_of(x.type) for x in op.results],
        properties=op.properties,
        attributes=op.attributes,
    )


def _not_mlir(text: str, error: ParseError, seen: _Seen) -> KernelError:
    """The error for text that is not MLIR: xdsl's cause, and a valid line."""
    at = _place(text, error)
    if not text.strip():
        return mistake(text, at, "the text has no function", instead_of(""))
    if at >= len(text.rstrip()):
        return mistake(text, at, "the text ends inside a function", "close each ( with ) and each { with }")
    cause = next(iter(error.msg.strip().splitlines()), "the text is not MLIR")
    line = text[text.rfind("\n", 0, at) + 1 :]
    return mistake(text, at, cause, advice(cause, seen.operation, line))


def _place(text: str, error: ParseError) -> int:
    """The position of an error; xdsl reports undefined names after the last line."""
    unknown = re.search(r"used but not defined: \[?(%[\w.$-]+)", error.msg)
    found = unknown and re.search(re.escape(unknown[1]) + r"(?![\w.$-])", text)
    return found.start() if found else error.span.start


def _readable(text: str) -> str:
    """The text with blanks in place of syntax that xdsl does not parse: symbol(%n) ->        %n"""
    blank = list(text)
    for pattern in UNREAD:
        for match in pattern.finditer(text):
            for begin, end in match.regs[1:]:
                blank[begin:end] = " " * (end - begin)
    return "".join(blank)


def reader_context() -> Context:
    """The dialects of the supported operations."""
    context = Context()
    for dialect in (Builtin, Func, NUMBERS, Math, MEMREF, AFFINE, SCF, UB, VECTORS, OWN):
        context.load_dialect(dialect)
    return context


@dataclass(slots=True)
class _Seen:
    """The positions of operations, and the last one started: its position and name."""

    places: dict[Operation, int] = field(default_factory=dict)
    last: int = 0
    operation: str = ""


class _UnknownOperation(Exception):
    """No supported dialect has an operation with this name."""


class _Bits(Parser._TensorLiteralElement):
    """An element of a constant written as bits, which xdsl reads as a number."""

    def to_type(self, parser: Parser, type: Attribute) -> int | float:
        """The number with these bits in a float type."""
        name = FLOATS.get(type.__class__)
        if name is None:
            number: int | float = super().to_type(parser, type)
            return number
        dtype = numpy_dtype(name)
        if self.value >> 8 * dtype.itemsize:
            parser.raise_error(f"{type} has {8 * dtype.itemsize} bits", at_position=self.span)
        return float(np.frombuffer(self.value.to_bytes(dtype.itemsize, "little"), dtype)[0])


class _Parser(Parser):
    """xdsl's parser, which also records positions of operations and accepts names without a dialect."""

    def __init__(self, context: Context, text: str, seen: _Seen) -> None:
        super().__init__(context, text)
        self.seen = seen

    def parse_operation(self) -> Operation:
        begin = self.seen.last = self.pos
        op = super().parse_operation()
        self.seen.places[op] = begin
        return op

    def _get_op_by_name(self, name: str) -> type[Operation]:
        name = OLD_NAMES.get(name, name)
        if "." not in name:
            known = (f"{dialect}.{name}" for dialect in OMITTED_DIALECTS)
            name = next((full for full in known if self.ctx.get_optional_op(full) is not None), name)
        if self.ctx.get_optional_op(name) is None:
            raise _UnknownOperation(name)
        self.seen.operation = name
        found: type[Operation] = super()._get_op_by_name(name)
        return found

    def _parse_vector_attrs(self) -> Attribute:
        return self._limited(super()._parse_vector_attrs())

    def _parse_tensor_attrs(self) -> Attribute:
        return self._limited(super()._parse_tensor_attrs())

    def _limited(self, type_: Attribute) -> Attribute:
        """A type within the size limit of constants, because xdsl creates all of their elements at once."""
        shape = getattr(type_, "shape", None)
        if shape is not None and prod(n.data for n in shape) > MOST_LANES:
            self.raise_error(f"{type_} has more than {MOST_LANES} elements")
        return type_

    def _parse_tensor_literal_element(self) -> Parser._TensorLiteralElement:
        element = super()._parse_tensor_literal_element()
        is_hex = self.lexer.input.content[element.span.start : element.span.end].lower().startswith("0x")
        return _Bits(element.is_negative, element.value, element.span) if is_hex else element

    def _parse_generic_operation(self, op_type: type[Operation]) -> Operation:
        if issubclass(op_type, Plain) and op_type not in FOREIGN:
            self.raise_error(f"{op_type.name} in the generic form is not supported")
        return super()._parse_generic_operation(op_type)


class Max(affine.MinOp):
    """affine.max, which xdsl lacks; it is parsed like affine.min."""

    name = "affine.max"

    @classmethod
    def parse(cls, parser: Parser) -> affine.MinOp:
        """The map and its operands."""
        like = super().parse(parser)
        return cls(like.operands, like.map)


class If(affine.IfOp):
    """affine.if, whose custom form xdsl does not parse."""

    name = "affine.if"

    @classmethod
    def parse(cls, parser: Parser) -> If:
        """The set and its operands, types of results, one region or two."""
        begin = parser.pos
        condition = parser.parse_attribute()
        if not isinstance(condition, AffineSetAttr):
            parser.raise_error("expected an affine set", begin, parser.pos)
        unresolved = parser.parse_comma_separated_list(
            parser.Delimiter.PAREN, parser.parse_unresolved_operand
        )
        unresolved += (
            parser.parse_optional_comma_separated_list(
                parser.Delimiter.SQUARE, parser.parse_unresolved_operand
            )
            or []
        )
        count = condition.data.num_dims + condition.data.num_symbols
        if len(unresolved) != count:
            parser.raise_error(f"expected {count} operands, got {len(unresolved)}", begin, parser.pos)
        operands = [parser.resolve_operand(operand, IndexType()) for operand in unresolved]
        types = _types(parser)
        then = _side(parser)
        otherwise = _side(parser) if parser.parse_optional_keyword("else") else Region()
        made: If = cls.create(
            operands=operands,
            result_types=types,
            properties={"condition": condition},
            regions=[then, otherwise],
        )
        return made


def _types(parser: Parser) -> Sequence[Attribute]:
    """Types of results after an arrow, one or several in parentheses."""
    if parser.parse_optional_punctuation("->") is None:
        return ()
    found = parser.parse_optional_comma_separated_list(parser.Delimiter.PAREN, parser.parse_type)
    return (parser.parse_type(),) if found is None else found


def _side(parser: Parser) -> Region:
    region = parser.parse_region()
    if not region.blocks:
        region.add_block(Block())
    if not isinstance(region.block.last_op, affine.YieldOp):
        region.block.add_op(affine.YieldOp.get())
    return region


AFFINE = Dialect(
    "affine",
    [affine.ApplyOp, affine.ForOp, If, affine.LoadOp, affine.StoreOp, affine.MinOp, Max, affine.YieldOp],
    [],
)
NUMBERS = with_operations(Arith, *ARITH)
MEMREF = with_operations(MemRef, MemRefCast)
SCF = Dialect("scf", [ScfIf, ScfYield], [])
UB = Dialect("ub", [Poison], [])
VECTORS = Dialect("vector", list(VECTOR), [])
OWN = Dialect("tilejit", list(FOREIGN), [])
