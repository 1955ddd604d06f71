"""Give a function names that Python accepts: the user's names unless they are taken."""

from __future__ import annotations

import builtins
import keyword
import re
from dataclasses import field, replace
from typing import TypeVar

from codegen.ir.index import Affine, Index, rename_index
from codegen.ir.names import BEGIN, END
from codegen.ir.nodes import RESULTS, Call, Carried, Compare, For, Function, If, Let, Statement, Store, View
from codegen.ir.rewriting import map_value
from codegen.ir.routines import is_routine
from codegen.ir.values import IndexValue, Load, Local, Step, Value
from codegen.passes.new_names import wanted
from codegen.support.dataclasses import dataclass

Access = TypeVar("Access", Load, Store)

TAKEN = ("operands", "scratch", "sizes", "begin", "end", "results")
"""The names of a kernel's arguments, and of the address that results are written to."""


def name_for_python(function: Function) -> Function:
    """Rename arguments and locals, each to an identifier of its own.

    before:  for j in 0..j_whole:peel2: A_row:row1[4*j] = …      arguments A, A.shape[0]
    after:   for j in 0..j_whole:       A_row[4*j] = …           arguments A, A_shape_0
    """
    names = _Names()
    known = {name: wanted(name) for name in (BEGIN, END, RESULTS)}
    known |= {b.name: names.of_argument(b.name) for b in function.buffers if b.name != RESULTS}
    known |= {a.name: names.of_argument(a.name) for a in function.arguments}
    arguments = tuple(replace(a, name=known[a.name]) for a in function.arguments)
    buffers = tuple(replace(b, name=known[b.name]) for b in function.buffers)
    body = _Rename(names, known).body(function.body)
    return replace(function, arguments=arguments, buffers=buffers, body=body)


@dataclass(frozen=True, slots=True)
class _Rename:
    """The names at one point of a function; a body gets a copy."""

    names: _Names
    known: dict[str, str] = field(default_factory=dict)

    def body(self, body: tuple[Statement, ...]) -> tuple[Statement, ...]:
        inside = _Rename(self.names, dict(self.known))
        return tuple(inside.statement(s) for s in body)

    def statement(self, node: Statement) -> Statement:
        match node:
            case Let(name, value):
                renamed = self.value(value)
                return Let(self.defined(name), renamed)
            case View(name, buffer, offset):
                moved = self.index(offset)
                return replace(node, buffer=self.known[buffer], offset=moved, name=self.defined(name))
            case Store(_, _, value, where=where, offsets=offsets):
                changed = replace(
                    node,
                    value=self.value(value),
                    where=None if where is None else self.value(where),
                    offsets=None if offsets is None else self.value(offsets),
                )
                return self.access(changed)
            case If(tests, then, otherwise):
                return If(
                    tuple(
                        Compare(self.index(t.left), t.relation, self.index(t.right))
                        if isinstance(t, Compare)
                        else self.value(t)
                        for t in tests
                    ),
                    self.body(then),
                    self.body(otherwise),
                )
            case For():
                return self.loop(node)
            case Call(_, operands):
                given = tuple(self.known[x] if isinstance(x, str) else self.index(x) for x in operands)
                return replace(node, operands=given)
        raise AssertionError(f"name_for_python: no rule for {type(node).__name__}")

    def loop(self, loop: For) -> For:
        lower, upper = tuple(map(self.index, loop.lower)), tuple(map(self.index, loop.upper))
        starts = [self.value(c.start) for c in loop.carried]
        for each in loop.carried:
            if not (isinstance(each.start, Local) and each.start.name == each.name):
                self.defined(each.name)
        inside = _Rename(self.names, dict(self.known))
        index = inside.defined(loop.index)
        body = tuple(inside.statement(s) for s in loop.body)
        carried = tuple(
            Carried(self.known[c.name], start, inside.value(c.update), c.combiner)
            for c, start in zip(loop.carried, starts, strict=True)
        )
        return replace(loop, index=index, lower=lower, upper=upper, body=body, carried=carried)

    def defined(self, name: str) -> str:
        """A new identifier for a name that a statement assigns."""
        self.known[name] = self.names.fresh(wanted(name))
        return self.known[name]

    def value(self, value: Value) -> Value:
        def part(node: Value) -> Value:
            match node:
                case Local(name):
                    new = self.known[name]
                    return node if new == name else replace(node, name=new)
                case IndexValue(index):
                    moved = self.index(index)
                    return node if moved is index else replace(node, index=moved)
                case Load():
                    return self.access(node)
            return node

        return map_value(value, part)

    def access(self, access: Access) -> Access:
        array, subscripts = self.known[access.array], tuple(map(self.index, access.subscripts))
        steps = tuple(map(self.step, access.steps))
        first = None if access.first is None else self.index(access.first)
        new = array, subscripts, steps, first
        if new == (access.array, access.subscripts, access.steps, access.first):
            return access
        return replace(access, array=array, subscripts=subscripts, steps=steps, first=first)

    def step(self, step: Step) -> Step:
        return self.index(step) if isinstance(step, Affine) else step  # type: ignore[return-value]

    def index(self, index: Index) -> Index:
        return rename_index(index, self.known)


class _Names:
    """Fresh identifiers, each used once."""

    def __init__(self) -> None:
        self._taken: set[str] = set(TAKEN)

    def of_argument(self, entry: str) -> str:
        """The name of an argument: `A`, `A.shape[0]` or `A.stride[0]`."""
        return self.fresh(re.sub(r"\.(\w+)\[(\d+)\]", r"_\1_\2", entry))

    def fresh(self, wanted: str) -> str:
        """An unused name close to the wanted one: `t.1` becomes t_1, `range` becomes range_."""
        name = re.sub(r"[^0-9A-Za-z_]", "_", wanted) or "_"
        name = name if not name[0].isdigit() else f"_{name}"
        if keyword.iskeyword(name) or hasattr(builtins, name) or is_routine(name):
            name += "_"
        free, k = name, 2
        while free in self._taken:
            free, k = f"{name}_{k}", k + 1
        self._taken.add(free)
        return free
