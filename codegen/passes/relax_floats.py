"""Let float operations on registers be contracted and reassociated, as `Relax` says."""

from __future__ import annotations

from dataclasses import replace

from codegen.ir.families import FAMILIES
from codegen.ir.nodes import Function
from codegen.ir.rewriting import map_value, map_values
from codegen.ir.values import Op, Value
from codegen.schedule.directives import Directed

RELAXED = {name: f"fast_{name}" for name in FAMILIES if f"fast_{name}" in FAMILIES}
"""Operations and their relaxed forms."""


def relax_floats(function: Function, _: Directed) -> Function:
    """Compute with the relaxed forms of operations.

    before:  C[4*j] = add(mul(x, y), z) [16]
    after:   C[4*j] = fast_add(fast_mul(x, y), z) [16]

    Halves and single numbers keep the exact forms.
    """
    body = tuple(map_values(s, lambda value: map_value(value, _relaxed)) for s in function.body)
    return replace(function, body=body)


def _relaxed(node: Value) -> Value:
    match node:
        case Op(name, _, "f32" | "f64", (_, *_)) if name in RELAXED:
            return replace(node, name=RELAXED[name])
    return node
