"""Kernels of loops written by hand: short names for nodes, and arguments collected from the body."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from codegen.ir.index import Affine, Bitwise, FloorDiv, Index, Mod, index_symbol, index_symbols
from codegen.ir.nodes import ArrayArg, Carried, For, Function, Let, ScalarArg, Statement, Store
from codegen.ir.values import Const, IndexValue, Load, Local, Op, Value
from codegen.ir.visit import loads, parts, values_of
from codegen.passes.name_loops import name_loops

i, j, k, n, m = (index_symbol(name) for name in "ijknm")


def index(value: Index | int) -> Index:
    return Affine(value) if isinstance(value, int) else value


def plus(a: Affine, b: int) -> Affine:
    return a + Affine(b)


def load(array: str, *subscripts: Index | int, dtype: str = "f32") -> Load:
    return Load(array, tuple(map(index, subscripts)), dtype)


def number(value: float, dtype: str = "f32") -> Const:
    return Const(value, dtype)


def local(name: str, dtype: str = "f32") -> Local:
    return Local(name, dtype)


def op(name: str, *operands: Value, dtype: str = "") -> Op:
    return Op(name, operands, dtype or operands[-1].dtype)


def add(*operands: Value) -> Op:
    return op("add", *operands)


def at(expression: Index, dtype: str = "f32") -> Value:
    """An index expression as a number."""
    return op("cast", IndexValue(expression), dtype=dtype)


def store(
    array: str,
    subscripts: Sequence[Index | int],
    value: Value,
    accumulate: str = "",
    where: Value | None = None,
) -> Store:
    return Store(array, tuple(map(index, subscripts)), value, accumulate=accumulate, where=where)


def loop(
    name: str,
    lower: Index | int | Sequence[Index | int],
    upper: Index | int | Sequence[Index | int],
    *body: Statement,
    step: int = 1,
    carried: Sequence[Carried] = (),
    parallel: bool = False,
) -> For:
    def bounds(given: Index | int | Sequence[Index | int]) -> tuple[Index, ...]:
        return tuple(map(index, given)) if isinstance(given, tuple | list) else (index(given),)

    return For(name, bounds(lower), bounds(upper), step, tuple(body), tuple(carried), parallel)


def over_n(name: str, *body: Statement, **keywords: object) -> For:
    """for name in range(n)"""
    return loop(name, 0, n, *body, **keywords)  # type: ignore[arg-type]


def over_m(name: str, *body: Statement, **keywords: object) -> For:
    """for name in range(m)"""
    return loop(name, 0, m, *body, **keywords)  # type: ignore[arg-type]


def function(*body: Statement, results: Sequence[Value] = (), order: str = "C") -> Function:
    """A function whose arguments are the arrays in the order of their names, then the numbers it needs.

    Loops get names of their own, as in functions that front ends read.
    """
    arrays: dict[str, ArrayArg] = {}
    for name, rank, dtype in _arrays(body, results):
        arrays[name] = ArrayArg(name, dtype, rank, order)  # type: ignore[arg-type]
    bound = _bound(body)
    free = {s for expression in _indices(body, results) for s in index_symbols(expression)} - bound
    scalars = {s: "i64" for s in free if ".shape" not in s}
    for value in (*values_of(body), *results):
        for part in parts(value):
            if isinstance(part, Local) and part.name not in bound:
                scalars[part.name] = part.dtype
    numbers = [ScalarArg(name, dtype) for name, dtype in sorted(scalars.items())]
    arguments = (*(arrays[a] for a in sorted(arrays)), *numbers)
    return name_loops(Function("kernel", arguments, tuple(body), tuple(results)))


def _arrays(body: Sequence[Statement], results: Sequence[Value]) -> Iterator[tuple[str, int, str]]:
    for value in (*values_of(tuple(body)), *results):
        for found in loads(value):
            yield found.array, len(found.subscripts), found.dtype
    for node in body:
        if isinstance(node, Store):
            yield node.array, len(node.subscripts), node.value.dtype
        elif isinstance(node, For):
            yield from _arrays(node.body, ())


def _bound(body: Sequence[Statement]) -> set[str]:
    """The names that a body defines: indices, lets, and what loops carry."""
    names: set[str] = set()
    for node in body:
        if isinstance(node, Let):
            names.add(node.name)
        elif isinstance(node, For):
            names |= {node.index, *(c.name for c in node.carried), *_bound(node.body)}
    return names


def _indices(body: Sequence[Statement], results: Sequence[Value]) -> Iterator[Index]:
    for value in (*values_of(tuple(body)), *results):
        for part in parts(value):
            if isinstance(part, Load):
                yield from part.subscripts
            elif isinstance(part, IndexValue):
                yield part.index
    yield from _stored(body)


def _stored(body: Sequence[Statement]) -> Iterator[Index]:
    for node in body:
        if isinstance(node, Store):
            yield from node.subscripts
        elif isinstance(node, For):
            yield from (*node.lower, *node.upper)
            yield from _stored(node.body)


def half(of: Index, by: int = 2) -> Index:
    return FloorDiv(of, by)


def xor(of: Index, by: Index | int) -> Index:
    return Bitwise("xor", of, Affine(by) if isinstance(by, int) else by)


def rest(of: Index, by: int) -> Index:
    return Mod(of, by)
