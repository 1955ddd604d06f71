"""Compute scans of a loop by prefixes of their terms, which super-vectors have for all lanes at once."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from codegen.analysis.scans import Scan
from codegen.ir.combiners import combined, combiner_of, neutral, scan_op, scans_by
from codegen.ir.nodes import For, Let, Statement
from codegen.ir.rewriting import map_value, map_values
from codegen.ir.values import Const, Local, Op, Value


def prefix_name(scan: Scan) -> str:
    """The local that holds the prefixes of a scan: in each lane, all terms up to it combined."""
    return f"{scan.name}.prefix"


def with_prefixes(node: For, scans: Sequence[Scan]) -> For:
    """The loop, with scans computed from the value before the first lane and from prefixes.

    before:  for i carrying s: s.1 = s + A[i]; Y[i] = s.1
    after:   for i carrying s: s.prefix = scan_add(A[i]); s.1 = s + s.prefix; Y[i] = s.1

    before:  for i carrying s: Y[i] = s;       s = s + A[i]
    after:   for i carrying s: s.prefix = scan_add(A[i]); s.before = s + slide(0, s.prefix); Y[i] = s.before

    In one lane, a scan is its term and `slide` is 0, so that both forms mean the same.
    """
    unused = frozenset[str]().union(*(scan.unused for scan in scans))
    after = {scan.after: scan for scan in scans if scan.after}
    names = {scan.name: f"{scan.name}.before" for scan in scans if scan.before}

    def renamed(value: Value) -> Value:
        if isinstance(value, Local) and value.name in names:
            return replace(value, name=names[value.name])
        return value

    body: list[Statement] = []
    for k, statement in enumerate((*node.body, None)):
        for scan in scans:
            if scan.place == k:
                body += _prefix(scan, names)
        if statement is None or (isinstance(statement, Let) and statement.name in unused):
            continue
        if isinstance(statement, Let) and statement.name in after:
            scan = after[statement.name]
            body.append(Let(statement.name, _from_start(scan, Local(prefix_name(scan), scan.term.dtype))))
        else:
            body.append(map_values(statement, lambda value: map_value(value, renamed)))
    carried = tuple(replace(c, update=map_value(c.update, renamed)) for c in node.carried)
    return replace(node, body=tuple(body), carried=carried)


def _prefix(scan: Scan, names: dict[str, str]) -> list[Statement]:
    dtype, prefix = scan.term.dtype, prefix_name(scan)
    found: list[Statement] = [Let(prefix, Op(scan_op(scan.how), (scan.term,), dtype))]
    if scan.name in names:
        empty = Const(neutral(combiner_of(scan.how), dtype), dtype)
        earlier = Op("slide", (empty, Local(prefix, dtype)), dtype)
        found.append(Let(names[scan.name], _from_start(scan, earlier)))
    return found


def _from_start(scan: Scan, prefix: Value) -> Value:
    """The value before the first lane, combined with a prefix."""
    return combined(scan.how, Local(scan.name, scan.term.dtype), prefix, scan.term.dtype)


def masked(body: tuple[Statement, ...], mask: Value | None) -> tuple[Statement, ...]:
    """A body in lanes whose scans take the neutral element for lanes past the end of the loop."""
    if mask is None:
        return body

    def statement(node: Statement) -> Statement:
        match node:
            case Let(_, Op(name, (term,), dtype, shape)) if how := scans_by(name):
                empty = Const(neutral(combiner_of(how), dtype), dtype, shape)
                return Let(
                    node.name, Op(name, (Op("select", (mask, term, empty), dtype, shape),), dtype, shape)
                )
        return node

    return tuple(map(statement, body))
