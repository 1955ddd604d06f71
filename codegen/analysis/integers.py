"""Reject, before a kernel runs, integers that NumPy rejects: negative powers, and values out of range."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

import numpy as np

from codegen.analysis.bounds import extremes, known_sizes, line_text
from codegen.ir.dtypes import numpy_dtype
from codegen.ir.index import Index, evaluate_index, index_symbol, index_symbols
from codegen.ir.nodes import For, Function, Let, ScalarArg, Statement, Store
from codegen.ir.values import IndexValue, Local, Op, Value
from codegen.ir.visit import accesses_of, carried_values, loops_of, parts
from codegen.support.errors import IntegerError, PowerError, shown


def check_powers(
    function: Function, shapes: Mapping[str, tuple[int, ...]], scalars: Mapping[str, int]
) -> None:
    """Raise for a call in which an integer may be raised to a negative loop index, size or argument.

    Python would return a float, and NumPy raises ValueError. Exponents that are read from an array are
    unknown before the call; if one is negative, the power is 0.

    Raises:
        PowerError: an exponent may be negative; the message names it and its smallest possible value.
    """
    values = known_sizes(shapes, scalars)
    numbers = {a.name for a in function.arguments if isinstance(a, ScalarArg) and a.name in scalars}
    results = (((), value) for value in function.results)
    for loops, value in (*_values(function.body, ()), *results):
        for part in parts(value):
            exponent = _exponent(part, numbers)
            if exponent is None:
                continue
            low, high = extremes(exponent, loops, values)
            if low is not None and (low >= 0 or (high is not None and low > high)):
                continue
            least = "anything" if low is None else str(low)
            raise PowerError(
                f"an integer to the power of {exponent}{line_text(loops)}, which may be {least}: negative "
                "powers are not integers\n  make the base a float: float(x) ** n, or np.float64(x) ** n"
            )


def check_indices(function: Function, numbers: Mapping[str, int]) -> None:
    """Raise for a call in which an unsigned 64-bit number of 2**63 or more bounds a loop or is a subscript.

    for i in range(n), n = np.uint64(2**63) -> IntegerError    a[i] = n -> nothing

    numbers: the arguments that are integers.

    Raises:
        IntegerError: an argument is too large; the message names it.
    """
    beyond = {name for name, number in numbers.items() if number >= 1 << 63}
    if not beyond:
        return
    loops = loops_of(function.body)
    nodes = [loop.node for root in loops for loop in root.all()]
    used = [index for node in nodes for index in (*node.lower, *node.upper)]
    used += [index for access in accesses_of(function.body, loops) for index in access.subscripts]
    for index in used:
        for name in sorted(beyond & index_symbols(index)):
            raise IntegerError(
                f"{name} is {numbers[name]}, but bounds and subscripts have 63 bits\n"
                "  pass at most 2**63 - 1, or the minimum of the number and a size"
            )


def check_fits(function: Function, shapes: Mapping[str, tuple[int, ...]], numbers: Mapping[str, int]) -> None:
    """Raise for a call in which a Python integer does not fit the dtype it is combined with.

    u8 + n, n = 300 -> IntegerError    u8 + n, n = 200 -> nothing

    numbers: the arguments that are Python integers. The check covers expressions of them and of sizes. Loop
    indices beyond a dtype wrap around.

    Raises:
        IntegerError: a number does not fit; the message names the expression, its value and the dtype.
    """
    values = known_sizes(shapes, numbers)
    for loops, value in _values(function.body, ()):
        for part in parts(value):
            found = _narrowed(part, values)
            if found is None:
                continue
            index, dtype = found
            number, info = evaluate_index(index, values), np.iinfo(numpy_dtype(dtype))
            if not info.min <= number <= info.max:
                raise IntegerError(
                    f"{index}{line_text(loops)} is {shown(number)} and does not fit {dtype}, which holds "
                    f"{info.min} to {info.max}\n"
                    "  give a NumPy number, such as np.int64(n), for a wider result"
                )


def _narrowed(value: Value, values: Mapping[str, int]) -> tuple[Index, str] | None:
    """An expression of known numbers that is converted to an integer dtype."""
    match value:
        case Op("cast", (IndexValue(index),), dtype):
            pass
        case Op("cast", (Local(name),), dtype):
            index = index_symbol(name)
        case _:
            return None
    return (
        (index, dtype)
        if dtype[0] in "iu" and dtype != "i1" and index_symbols(index) <= values.keys()
        else None
    )


def _exponent(value: Value, numbers: set[str]) -> Index | None:
    """The index expression or integer argument that is the exponent of an integer."""
    match value:
        case Op("pow", (_, exponent), dtype) if dtype[0] in "iu":
            while isinstance(exponent, Op) and exponent.name == "cast":
                (exponent,) = exponent.operands
            if isinstance(exponent, IndexValue):
                return exponent.index
            if isinstance(exponent, Local) and exponent.name in numbers:
                return index_symbol(exponent.name)
    return None


def _values(body: tuple[Statement, ...], loops: tuple[For, ...]) -> Iterator[tuple[tuple[For, ...], Value]]:
    for node in body:
        match node:
            case Let(_, value):
                yield loops, value
            case Store():
                yield from ((loops, value) for value in node.values)
            case For():
                inside = (*loops, node)
                yield from ((inside, value) for value in carried_values(node.carried))
                yield from _values(node.body, inside)
