"""Write bits that cannot overlap as sums, whose lanes are evenly spaced."""

from __future__ import annotations

from dataclasses import replace

from codegen.analysis.bits import are_disjoint
from codegen.analysis.bounds import bounded_by_elements, extremes
from codegen.ir.index import Affine, Bitwise, Index, add_indices, map_parts
from codegen.ir.nodes import For, Function, If, Statement
from codegen.ir.rewriting import map_indices


def add_disjoint_bits(function: Function) -> Function:
    """Replace | and ^ by sums where no bit is set on both sides, whatever the sizes are.

    before:  for i in 0..n: for k in 0..4: y[(4*i) | k] = x[i, k]
    after:   for i in 0..n: for k in 0..4: y[4*i + k] = x[i, k]
    """
    return replace(function, body=_body(function.body, ()))


def _body(body: tuple[Statement, ...], loops: tuple[For, ...]) -> tuple[Statement, ...]:
    return tuple(_statement(node, loops) for node in body)


def _statement(node: Statement, loops: tuple[For, ...]) -> Statement:
    match node:
        case For(body=body):
            # Where bounds depend on elements, nothing is known about the index.
            inside = _body(body, loops if bounded_by_elements([node]) else (*loops, node))
            around = _changed(replace(node, body=()), loops)
            assert isinstance(around, For)
            return replace(around, body=inside)
        case If(tests, then, otherwise):
            around = _changed(If(tests, ()), loops)
            assert isinstance(around, If)
            return replace(around, body=_body(then, loops), otherwise=_body(otherwise, loops))
    return _changed(node, loops)


def _changed(node: Statement, loops: tuple[For, ...]) -> Statement:
    return map_indices(node, lambda index: _summed(index, loops))


def _summed(index: Index, loops: tuple[For, ...]) -> Index:
    found = map_parts(index, lambda part: _summed(part, loops))
    if not isinstance(found, Bitwise):
        return found
    if not are_disjoint(found, [extremes(side, loops, {}) for side in (found.left, found.right)]):
        return found
    return Affine() if found.operator == "and" else add_indices(found.left, found.right)
