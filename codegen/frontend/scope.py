"""Names while a function is read: what each means at a place of it."""

from __future__ import annotations

import ast
import builtins
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, TypeAlias

from codegen.frontend.operands import Operand, convert_operand, literal_operand
from codegen.frontend.source_text import SourceText
from codegen.ir.dtypes import concrete
from codegen.ir.nodes import ArrayArg, Const, IndexValue, Let, Local, Statement, Value
from codegen.support.errors import KernelError


@dataclass(frozen=True, slots=True)
class Missing:
    """A name that has a value only somewhere else; why, for the message."""

    why: str


Meaning: TypeAlias = Operand | ArrayArg | Missing


@dataclass(slots=True)
class Scope:
    """One body while it is read: its names, and the statements that it has become so far.

    taken    how often each name was given in the whole function; shared by all its bodies
    indices  the indices, as the text has them, of the loops around
    where    under an `if` the condition of what is stored
    """

    text: SourceText
    function: Callable[..., Any]
    names: dict[str, Meaning]
    taken: dict[str, int]
    indices: frozenset[str] = frozenset()
    where: Value | None = None
    statements: list[Statement] = field(default_factory=list)

    def inside(self) -> Scope:
        """The scope of a body within this one, which sees its names."""
        return Scope(self.text, self.function, dict(self.names), self.taken, self.indices, self.where)

    def fresh(self, name: str) -> str:
        """A name that nothing has: t, t.1, t.2, …"""
        number = self.taken.get(name, 0)
        self.taken[name] = number + 1
        return f"{name}.{number}" if number else name

    def error(self, node: ast.AST, message: str) -> KernelError:
        """The error that points at a node."""
        return self.text.error(node, message)

    def let(self, name: str, operand: Operand) -> Operand:
        """The operand by a name of its own; numbers, index expressions and names stay what they are."""
        if isinstance(operand.value, Const | IndexValue | Local):
            return operand
        given = self.fresh(name)
        self.statements.append(Let(given, convert_operand(operand, concrete(operand.dtype))))
        value = Local(given, concrete(operand.dtype))
        return Operand(operand.dtype, value, operand.least, operand.largest)

    def meaning(self, node: ast.Name) -> Operand | ArrayArg:
        """What a name in an expression is: a local, an argument, a number from outside of the function.

        Raises:
            KernelError: it has no value there, or it is nothing to compute with.
        """
        found = self.names.get(node.id)
        if isinstance(found, Missing):
            raise self.error(node, found.why)
        if found is not None:
            return found
        if node.id in self.function.__code__.co_varnames:
            raise self.error(node, f"{node.id} has no value here yet")
        return self.text.check(node, self.number, node.id, outside(self.function, node.id))

    def number(self, name: str, found: object) -> Operand:
        """A number that stands outside of the function."""
        if found is UNKNOWN:
            raise KernelError(f"{name} is not defined")
        try:
            return literal_operand(found)
        except KernelError:
            raise KernelError(
                f"{name} is a {type(found).__name__} from outside of the kernel\n"
                "only numbers are read from there; arrays are arguments"
            ) from None

    def object(self, node: ast.expr) -> object:
        """What names and attributes are outside of the function; UNKNOWN where nothing is there."""
        match node:
            case ast.Name(name) if name not in self.names:
                return outside(self.function, name)
            case ast.Attribute(of, name):
                owner = self.object(of)
                # Only modules and classes: attributes of other objects may run code.
                return getattr(owner, name, UNKNOWN) if isinstance(owner, _NAMESPACES) else UNKNOWN
        return UNKNOWN


UNKNOWN = object()
"""What is not defined."""

_NAMESPACES = (type(builtins), type)


def outside(function: Callable[..., Any], name: str) -> object:
    """What a name means outside of a function: in its closure, its module, among the builtins."""
    cells = dict(zip(function.__code__.co_freevars, function.__closure__ or (), strict=False))
    if name in cells:
        try:
            return cells[name].cell_contents
        except ValueError:
            return UNKNOWN
    if name in function.__globals__:
        return function.__globals__[name]
    return getattr(builtins, name, UNKNOWN)
