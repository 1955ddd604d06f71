"""Write bits that cannot overlap as sums, whose lanes are evenly spaced."""

from __future__ import annotations

from dataclasses import replace

from codegen.analysis.bits import are_disjoint
from codegen.analysis.bounds import Domain, every_call
from codegen.ir.index import Affine, Bitwise, Index, add_indices, map_parts
from codegen.ir.nodes import For, Function, If, Statement
from codegen.ir.rewriting import map_indices


def add_disjoint_bits(function: Function) -> Function:
    """Replace | and ^ by sums where no bit is set on both sides, whatever the sizes are.

    before:  for i in 0..n: for k in 0..4: y[(4*i) | k] = x[i, k]
    after:   for i in 0..n: for k in 0..4: y[4*i + k] = x[i, k]
    """
    return replace(function, body=_body(function.body, every_call({})))


def _body(body: tuple[Statement, ...], domain: Domain) -> tuple[Statement, ...]:
    return tuple(_statement(node, domain) for node in body)


def _statement(node: Statement, domain: Domain) -> Statement:
    match node:
        case For(body=body):
            within = domain.inside(node)
            around = _changed(replace(node, body=()), domain)
            assert isinstance(around, For)
            return replace(around, body=body if within is None else _body(body, within))
        case If(tests, then, otherwise):
            around = _changed(If(tests, ()), domain)
            assert isinstance(around, If)
            return replace(around, body=_body(then, domain), otherwise=_body(otherwise, domain))
    return _changed(node, domain)


def _changed(node: Statement, domain: Domain) -> Statement:
    return map_indices(node, lambda index: _summed(index, domain))


def _summed(index: Index, domain: Domain) -> Index:
    found = map_parts(index, lambda part: _summed(part, domain))
    if not isinstance(found, Bitwise):
        return found
    sides = [domain.linear(side) for side in (found.left, found.right)]
    if not are_disjoint(sides, [domain.unknowns.extremes(side) for side in sides]):
        return found
    return Affine() if found.operator == "and" else add_indices(found.left, found.right)
