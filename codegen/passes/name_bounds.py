"""Load bounds of loops that are elements of arrays once, before the loop."""

from __future__ import annotations

from dataclasses import replace

from codegen.analysis.bodies import defined
from codegen.ir.index import Index, depends_on_elements, index_symbol
from codegen.ir.nodes import For, Function, Let, Statement
from codegen.ir.rewriting import rewrite_body
from codegen.ir.values import IndexValue
from codegen.passes.new_names import fresh_name


def name_bounds(function: Function) -> Function:
    """Assign bounds that depend on elements to locals.

    before:  for i in 0..n: for k in ptr[i]..ptr[i + 1]: y[i] += x[k]
    after:   for i in 0..n:
               k_first = ptr[i]
               k_end = ptr[i + 1]
               for k in k_first..k_end: y[i] += x[k]

    The function must not store to arrays whose elements are bounds.
    """
    taken = {argument.name for argument in function.arguments} | defined(function.body)

    def named(bounds: tuple[Index, ...], name: str, lets: list[Let]) -> tuple[Index, ...]:
        out: list[Index] = []
        for bound in bounds:
            if depends_on_elements(bound):
                lets.append(Let(fresh_name(name, taken), IndexValue(bound)))
                bound = index_symbol(lets[-1].name)
            out.append(bound)
        return tuple(out)

    def statement(node: Statement) -> tuple[Statement, ...]:
        if not isinstance(node, For) or not depends_on_elements(*node.lower, *node.upper):
            return (node,)
        lets: list[Let] = []
        lower = named(node.lower, f"{node.index}_first", lets)
        upper = named(node.upper, f"{node.index}_end", lets)
        return (*lets, replace(node, lower=lower, upper=upper))

    return replace(function, body=rewrite_body(function.body, statement))
