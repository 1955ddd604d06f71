"""Convert arith operations on indices to index expressions."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial

from xdsl.dialects.builtin import IndexType
from xdsl.dialects.func import FuncOp
from xdsl.ir import Block, Operation

from codegen import Affine, Index, IndexValue, Local, add_indices, bitwise, index_symbol, scale_index
from tilejit.mlir.maps import (
    INDEX_BITS,
    bounded,
    ceil_div,
    floor_div,
    product,
    remainder,
    shift_left,
    shift_right,
)
from tilejit.mlir.places import Unsupported
from tilejit.mlir.scope import Scope
from tilejit.mlir.selected_indices import selected_index
from tilejit.mlir.types import dtype_of, element_of

INDEX_ARITHMETIC: Mapping[str, Callable[[Index, Index], Index]] = {
    "arith.addi": add_indices,
    "arith.subi": lambda a, b: add_indices(a, scale_index(b, -1)),
    "arith.muli": product,
    "arith.floordivsi": floor_div,
    "arith.ceildivsi": ceil_div,
    "arith.shli": shift_left,
    "arith.shrsi": shift_right,
    "arith.andi": partial(bitwise, "and"),
    "arith.ori": partial(bitwise, "or"),
    "arith.xori": partial(bitwise, "xor"),
}
NONNEGATIVE_ARITHMETIC: Mapping[str, Callable[[Index, Index], Index]] = {
    **dict.fromkeys(("arith.divsi", "arith.divui"), floor_div),
    **dict.fromkeys(("arith.remsi", "arith.remui"), remainder),
}
"""Divisions that round toward zero or are unsigned; for nonnegative operands they round down."""


def element_arithmetic(op: Operation, scope: Scope) -> Index | None:
    """An index computed from loaded integers; None if it would not be exact.

    arith.index_cast %j of %j = memref.load %idx[%i] -> idx[i]    arith.addi %j, %c1 -> idx[i] + 1
    """
    if not any(o in scope.elements for o in op.operands):
        return None
    if op.name in ("arith.index_cast", "arith.extsi"):
        wide = isinstance(op.results[0].type, IndexType) or op.name == "arith.extsi"
        return scope.elements[op.operands[0]] if wide else None
    if not isinstance(op.results[0].type, IndexType):
        return None
    try:
        if op.name == "arith.index_castui":
            return without_sign(scope.elements[op.operands[0]], op.operands[0].type)
        if op.name == "arith.select":
            found = selected_index(op, scope.subscript)
            return None if found is None else bounded(found)
        if op.name not in INDEX_ARITHMETIC:
            return None
        return bounded(INDEX_ARITHMETIC[op.name](*map(scope.subscript, op.operands)))
    except Unsupported:
        return None


def without_sign(of: Index, type_: object) -> Index:
    """The unsigned number with an integer's bits: x[i] of i32 -> x[i] % 2**32"""
    bits = int(dtype_of(element_of(type_))[1:])
    return of if bits >= INDEX_BITS else bounded(remainder(of, Affine(1 << bits)))


def index_arithmetic(op: Operation, scope: Scope) -> Index | None:
    """An index computed from indices, or from an integer argument; None if there is none.

    arith.addi %i, %c1 -> i + 1    arith.remsi %i, %c4 of i from 0 -> i % 4    arith.muli %i, %j -> None
    """
    meanings = [scope.meaning(o) for o in op.operands]
    if op.name == "arith.index_cast" and isinstance(meanings[0], Local):
        block = op.operands[0].owner
        is_argument = isinstance(block, Block) and isinstance(block.parent_op(), FuncOp)
        return index_symbol(meanings[0].name) if is_argument else None
    if len(meanings) != 2 or not all(isinstance(m, IndexValue) for m in meanings):
        return None
    a, b = (m.index for m in meanings if isinstance(m, IndexValue))
    make = INDEX_ARITHMETIC.get(op.name)
    if make is None and scope.is_nonnegative(a):
        make = NONNEGATIVE_ARITHMETIC.get(op.name)
    try:
        return None if make is None else bounded(make(a, b))
    except Unsupported:
        return None
