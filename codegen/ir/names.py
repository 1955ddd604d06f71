"""The names that statements refer to: locals, arguments, buffers, tables and symbols of index expressions."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator

from codegen.ir.index import Affine, Index, Times, index_symbols
from codegen.ir.nodes import Alloc, Call, Compare, For, If, Let, Prefetch, Statement, Store, View
from codegen.ir.values import Each, Entries, IndexValue, Load, Local, Step, Value
from codegen.ir.visit import parts

LINE_LENGTH = 110
"""Maximum number of characters of a line of source, as far as names allow."""

SHAPE = re.compile(r"(.+)\.shape\[(\d+)\]")
"""The extent of a dimension of an array: A.shape[0]"""

BEGIN, END = "begin:", "end:"
"""The range of the loop that calls share. No argument has a colon."""


def names_of(body: Iterable[Statement]) -> Iterator[str]:
    """The names that statements refer to, in the order in which they run; a name may come repeatedly."""
    for node in body:
        match node:
            case Let(_, value):
                yield from _in_value(value)
            case View(_, buffer, offset, lines=lines):
                yield buffer
                yield from _in_index(offset)
                yield from (lines,) if lines else ()
            case Store():
                for value in node.values:
                    yield from _in_value(value)
                yield from _in_access(node)
            case Prefetch(load):
                yield from _in_access(load)
            case Call(_, operands):
                for operand in operands:
                    yield from (operand,) if isinstance(operand, str) else _in_index(operand)
            case If(tests, then, otherwise):
                for test in tests:
                    yield from _in_test(test)
                yield from names_of(then)
                yield from names_of(otherwise)
            case For():
                for bound in (*node.lower, *node.upper):
                    yield from _in_index(bound)
                for each in node.carried:
                    yield from _in_value(each.start)
                yield from names_of(node.body)
                for each in node.carried:
                    yield from _in_value(each.update)
            case Alloc(_, size):
                yield from (size,) if isinstance(size, str) else ()
            case _:
                raise AssertionError(f"names_of: no rule for {type(node).__name__}")


def _in_test(test: Compare | Value) -> Iterator[str]:
    if isinstance(test, Compare):
        yield from _in_index(test.left)
        yield from _in_index(test.right)
    else:
        yield from _in_value(test)


def _in_value(value: Value) -> Iterator[str]:
    for part in parts(value):
        match part:
            case Local(name):
                yield name
            case IndexValue(index):
                yield from _in_index(index)
            case Load():
                yield from _in_access(part)


def _in_access(access: Load | Store) -> Iterator[str]:
    yield access.array
    for subscript in access.subscripts:
        yield from _in_index(subscript)
    for step in access.steps:
        yield from _in_step(step)
    if access.first is not None:
        yield from _in_index(access.first)


def _in_step(step: Step) -> Iterator[str]:
    match step:
        case str():
            yield step
        case Each(each):
            yield from _in_step(each)
        case Entries(table, first):
            yield table
            yield from _in_index(first)
        case Affine():
            yield from _in_index(step)


def _in_index(index: Index) -> Iterator[str]:
    match index:
        case Times(of, by):
            yield from _in_index(of)
            yield by
        case _:
            yield from sorted(index_symbols(index))
