"""Remove what literal sizes decide: tests, loops that run once or never, and arithmetic of numbers."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from itertools import chain

from codegen.ir.building import minus
from codegen.ir.index import (
    Affine,
    Bitwise,
    FloorDiv,
    Greatest,
    Index,
    Least,
    Mod,
    index_symbols,
    map_parts,
    substitute_index,
)
from codegen.ir.instructions import instruction
from codegen.ir.integer_operators import bitwise, floor_div, modulo, number_in
from codegen.ir.names import names_of
from codegen.ir.nodes import Call, Compare, For, Function, If, Let, Statement, View
from codegen.ir.rewriting import Body, map_indices, rewrite_body, substituted
from codegen.ir.values import IndexValue, Local
from codegen.ir.visit import parts

RELATIONS = {"lt": (-1,), "le": (-1, 0), "gt": (1,), "ge": (0, 1), "eq": (0,), "ne": (-1, 1)}
"""The signs of left - right for which each relation holds."""


def simplify(function: Function, _: object = None) -> Function:
    """Evaluate numbers, take branches whose tests are decided, and unroll loops of one iteration.

    Calls for no element and addresses that nothing uses are removed as well.

    before:  if dst % 64 == 0 and 512 % 64 == 0: …
             elif 512 >= 256: for x in 0..336 // 64 * 64 step 512: dst[x] = src[x] [64]
             else: …
    after:   if dst % 64 == 0: …
             else: dst[0] = src[0] [64]
    """
    body = _body(function.body, {})
    results = (part.name for value in function.results for part in parts(value) if isinstance(part, Local))
    used = {*names_of(body), *results}
    return replace(function, body=rewrite_body(body, lambda node: _where_used(node, used)))


def _body(body: Body, known: Mapping[str, int]) -> Body:
    """A body, given the numbers that names stand for."""
    made, numbers = list[Statement](), dict(known)
    for node in body:
        assigned = set(_assigned(node))
        numbers = {name: n for name, n in numbers.items() if name not in assigned}
        for each in _decided(_evaluated(node, numbers), numbers):
            made.append(each)
            match each:
                case Let(name, IndexValue(index, shape=())) if (number := number_in(index)) is not None:
                    numbers[name] = number
    return tuple(made)


def _assigned(node: Statement) -> Iterator[str]:
    """The locals that a statement assigns, and those inside it."""
    match node:
        case Let(name):
            yield name
        case For(body=body, carried=carried):
            yield from (each.name for each in carried)
            yield from chain.from_iterable(map(_assigned, body))
        case If(_, then, otherwise):
            yield from chain.from_iterable(map(_assigned, (*then, *otherwise)))


def _evaluated(node: Statement, numbers: Mapping[str, int]) -> Statement:
    """A statement in which known names and arithmetic of numbers are numbers."""

    def change(index: Index) -> Index:
        for name in index_symbols(index) & numbers.keys():
            index = substitute_index(index, name, Affine(numbers[name]))
        return evaluated(index)

    return map_indices(node, change)


def evaluated(index: Index) -> Index:
    """An expression in which arithmetic of numbers is a number."""
    index = map_parts(index, evaluated)
    match index:
        case FloorDiv(of, by) if number_in(of) is not None:
            return floor_div(of, by)
        case Mod(of, by) if number_in(of) is not None:
            return modulo(of, by)
        case Bitwise(name, left, right) if number_in(left) is not None and number_in(right) is not None:
            return bitwise(name, left, right)
        case Least(several):
            return _extreme(several, Least, min)
        case Greatest(several):
            return _extreme(several, Greatest, max)
    return index


def _extreme(
    several: tuple[Index, ...], kind: type[Least | Greatest], chosen: Callable[[int, int], int]
) -> Index:
    """The minimum or maximum of expressions, without those that another one always exceeds or undercuts."""
    found: list[Index] = []
    for each in several:
        others = [(k, minus(each, known)) for k, known in enumerate(found)]
        k, apart = next(((k, n) for k, d in others if (n := number_in(d)) is not None), (None, 0))
        if k is None:
            found.append(each)
        elif chosen(apart, 0) == apart:
            found[k] = each
    return found[0] if len(found) == 1 else kind(tuple(found))


def _decided(node: Statement, numbers: Mapping[str, int]) -> Body:
    match node:
        case If(tests, then, otherwise):
            results = [_holds(test) if isinstance(test, Compare) else None for test in tests]
            then, otherwise = _body(then, numbers), _body(otherwise, numbers)
            if False in results:
                return otherwise
            unknown = tuple(test for test, holds in zip(tests, results, strict=True) if holds is None)
            return (If(unknown, then, otherwise),) if unknown else then
        case For():
            return _iterated(node, numbers)
        case Call(name, operands) if (counts := instruction(name).active) is not None:
            count = operands[counts.operand]
            return () if isinstance(count, Affine) and number_in(count) == 0 else (node,)
    return (node,)


def _iterated(loop: For, numbers: Mapping[str, int]) -> Body:
    """A loop; its body if it runs once, and what it carries if it never runs."""
    trips = _trips(loop)
    if trips == 0:
        carried = (c for c in loop.carried if c.start != Local(c.name, c.start.dtype, c.start.shape))
        return tuple(Let(c.name, c.start) for c in carried)
    if trips == 1 and not loop.carried and not loop.live and loop.size == 1:
        (first,) = loop.lower
        return _body(tuple(substituted(each, loop.index, first) for each in loop.body), numbers)
    return (replace(loop, body=_body(loop.body, numbers)),)


def _trips(loop: For) -> int | None:
    """The iterations of a loop; None if they depend on symbols."""
    if len(loop.lower) > 1 or len(loop.upper) > 1:
        return None
    length = number_in(minus(*loop.upper, *loop.lower))
    return None if length is None else len(range(0, length, loop.step))


def _where_used(node: Statement, used: set[str]) -> Body:
    """A statement; nothing if it is a name for an address or a number that none uses."""
    match node:
        case View(name) | Let(name, IndexValue()) if name not in used:
            return ()
    return (node,)


def _holds(test: Compare) -> bool | None:
    """Whether a comparison holds; None if that depends on symbols."""
    apart = number_in(minus(test.left, test.right))
    if apart is None:
        return None
    return (apart > 0) - (apart < 0) in RELATIONS[test.relation]
