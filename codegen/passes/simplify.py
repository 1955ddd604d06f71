"""Remove what literal sizes decide: tests, loops that run once or never, and arithmetic of numbers."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from codegen.ir.building import minus
from codegen.ir.index import Affine, Bitwise, FloorDiv, Greatest, Index, Least, Mod, map_parts
from codegen.ir.instructions import instruction
from codegen.ir.integer_operators import bitwise, floor_div, modulo, number_in
from codegen.ir.names import names_of
from codegen.ir.nodes import Call, Compare, For, Function, If, Statement, View
from codegen.ir.rewriting import Body, map_indices, rewrite_body, substituted

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
    body = rewrite_body(tuple(map_indices(each, evaluated) for each in function.body), _decided)
    used = set(names_of(body))
    return replace(function, body=rewrite_body(body, lambda node: _where_used(node, used)))


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


def _decided(node: Statement) -> Body:
    match node:
        case If(tests, then, otherwise):
            results = [_holds(test) if isinstance(test, Compare) else None for test in tests]
            if False in results:
                return otherwise
            open_tests = tuple(test for test, holds in zip(tests, results, strict=True) if holds is None)
            return (If(open_tests, then, otherwise),) if open_tests else then
        case For(index, (first,), (stop,), step, body, carried=(), live=""):
            length = number_in(minus(stop, first))
            trips = None if length is None else len(range(0, length, step))
            if trips == 0:
                return ()
            if trips == 1:
                return tuple(map_indices(substituted(each, index, first), evaluated) for each in body)
        case Call(name, operands) if (counts := instruction(name).active) is not None:
            count = operands[counts.operand]
            return () if isinstance(count, Affine) and number_in(count) == 0 else (node,)
    return (node,)


def _where_used(node: Statement, used: set[str]) -> Body:
    """A statement; nothing if it is a name for an address that none uses."""
    return () if isinstance(node, View) and node.name not in used else (node,)


def _holds(test: Compare) -> bool | None:
    """Whether a comparison holds; None if that depends on symbols."""
    apart = number_in(minus(test.left, test.right))
    if apart is None:
        return None
    return (apart > 0) - (apart < 0) in RELATIONS[test.relation]
