"""Scans of super-vectors as operations on registers: in log steps within each, then from one to the next."""

from __future__ import annotations

from codegen.analysis.strides import HALVES
from codegen.ir.combiners import combined, combiner_of, neutral
from codegen.ir.nodes import Let, Statement
from codegen.ir.values import Const, IndexValue, Local, Op, Value
from codegen.passes.new_names import NewNames, wanted
from codegen.passes.register_scope import Lanes, Registers, spread

IDEMPOTENT = ("min", "max", "and", "or")
"""Idempotent combiners: a value combined with itself is that value."""


def scanned(
    name: str, how: str, terms: Registers, lanes: Lanes, names: NewNames, out: list[Statement]
) -> tuple[Value, ...]:
    """Each lane combined with all lanes before it; the steps are appended to `out`.

    before:  s = scan_add(t) [16]                                        8 lanes
    after:   s_0 = below_1(t_0, 0) + t_0; s_0 = below_2(s_0, 0) + s_0; s_0 = below_4(s_0, 0) + s_0
             s_1 = below_1(t_1, 0) + t_1; … s_1 = broadcast(last(s_0)) + s_1

    A step adds the last lane of the lower half of each block to all lanes of the upper half (Sklansky's
    network). Lanes beyond the active ones take the neutral element. Sums and products of halves are computed
    as f32, and rounded once.

    name  the name of the super-vector
    how   the combiner of the lanes
    """
    combiner, registers = combiner_of(how), spread(terms, lanes)
    dtype = registers[0].dtype
    held = "f32" if dtype in HALVES and combiner in ("add", "mul") else dtype
    empty = Op("broadcast", (Const(neutral(combiner, dtype), dtype),), dtype, lanes.shape)

    def named(value: Value) -> Value:
        let = Let(names.name(wanted(name)), value)
        out.append(let)
        return Local(let.name, value.dtype, value.shape)

    def joined(earlier: Value, later: Value) -> Value:
        both = combined(how, earlier, later, held, lanes.shape)
        if isinstance(both, Op) and both.name == "select":  # it uses each of them twice
            both = combined(how, named(earlier), later, held, lanes.shape)
        return named(both)

    made: list[Value] = []
    for register in registers:
        if lanes.live is not None:
            active = Op("first", (IndexValue(lanes.live),), "i1", lanes.shape)
            register = Op("select", (active, register, empty), dtype, lanes.shape)
        found = named(_as(register, held))
        half = 1
        while half < lanes.count:
            fill = found if combiner in IDEMPOTENT else _as(empty, held)
            found = joined(Op(f"below_{half}", (found, fill), held, lanes.shape), found)
            half *= 2
        if made:
            total = Op("last", (made[-1],), held)
            found = joined(Op("broadcast", (total,), held, lanes.shape), found)
        made.append(found)
    return tuple(_as(each, dtype) for each in made)


def slid(first: Registers, registers: Registers, lanes: Lanes) -> tuple[Value, ...]:
    """The preceding lane of each lane; lane 0 gets the last lane of the previous register, or of `first`."""
    (*_, before), made = spread(first, lanes), list[Value]()
    for register in spread(registers, lanes):
        made.append(Op("slide", (before, register), register.dtype, lanes.shape))
        before = register
    return tuple(made)


def _as(value: Value, dtype: str) -> Value:
    return value if value.dtype == dtype else Op("cast", (value,), dtype, value.shape)
