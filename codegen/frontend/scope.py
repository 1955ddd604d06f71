"""The names of a function while it is read, and what each means at the current statement."""

from __future__ import annotations

import ast
import builtins
from collections.abc import Callable
from dataclasses import field, replace
from typing import Any, TypeAlias

from codegen.frontend.operands import Choice, Operand, convert_operand, either, literal_operand
from codegen.frontend.source_text import SourceText
from codegen.ir.dtypes import concrete
from codegen.ir.nodes import ArrayArg, Let, Statement
from codegen.ir.values import Const, IndexValue, Local, Op, Value
from codegen.support.dataclasses import dataclass
from codegen.support.errors import KernelError

LOOP_MARK = "says_of_loops"
"""The attribute that identifies functions that mark loops and arrays; others may have the same names."""


@dataclass(frozen=True, slots=True)
class Missing:
    """A name that has no value here; `why` is the error message."""

    why: str


Meaning: TypeAlias = Operand | ArrayArg | Missing


@dataclass(slots=True)
class Scope:
    """One body while it is read: its names, and its IR statements so far.

    taken    how often `fresh` has given each name in the function; shared by all its bodies
    indices  the indices of the enclosing loops, named as in the source
    where    the condition of stores under an `if`
    flags    the flags of carried locals that the kernel uses (`Changing.flag`)
    masked   whether accesses outside arrays are left out, where elements of other arrays are their subscripts
    """

    text: SourceText
    function: Callable[..., Any]
    names: dict[str, Meaning]
    taken: dict[str, int]
    indices: frozenset[str] = frozenset()
    where: Value | None = None
    masked: bool = False
    flags: frozenset[str] = frozenset()
    statements: list[Statement] = field(default_factory=list)

    def inside(self) -> Scope:
        """The scope of a nested body, which sees the names of this one."""
        return replace(self, names=dict(self.names), statements=[])

    def fresh(self, name: str) -> str:
        """An unused name: t, t.1, t.2, …"""
        number = self.taken.get(name, 0)
        self.taken[name] = number + 1
        return f"{name}.{number}" if number else name

    def error(self, node: ast.AST, message: str) -> KernelError:
        """The error that points at a node."""
        return self.text.error(node, message)

    def let(self, name: str, operand: Operand) -> Operand:
        """Bind the operand to a local; constants, index expressions and locals stay as they are."""
        if isinstance(operand.value, Const | IndexValue | Local):
            return operand
        choice = operand.choice
        if choice is not None:
            condition = self.let("tested", Operand("i1", choice.condition)).value
            choice = Choice(condition, self.let(name, choice.then), self.let(name, choice.otherwise))
            if isinstance(operand.value, Op) and operand.value.name == "select":
                made = either(condition, choice.then, choice.otherwise)
                operand = replace(operand, value=made.value)
        given = self.fresh(name)
        self.statements.append(Let(given, convert_operand(operand, concrete(operand.dtype))))
        value = Local(given, concrete(operand.dtype))
        return Operand(operand.dtype, value, operand.least, operand.largest, choice)

    def meaning(self, node: ast.Name) -> Operand | ArrayArg:
        """What a name in an expression means: a local, an argument, or a number from outside the function.

        Raises:
            KernelError: it has no value here, or not one that kernels compute with.
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
        """A number defined outside the function."""
        if found is UNKNOWN:
            raise KernelError(f"{name} is not defined")
        try:
            return literal_operand(found)
        except KernelError:
            raise KernelError(
                f"{name}: expected a number defined outside the kernel, got {type(found).__name__}\n"
                "pass arrays as arguments"
            ) from None

    def object(self, node: ast.expr) -> object:
        """The object that a name or attribute refers to outside the function; UNKNOWN if there is none."""
        match node:
            case ast.Name(name) if name not in self.names:
                return outside(self.function, name)
            case ast.Attribute(of, name):
                owner = self.object(of)
                # Only modules and classes: attributes of other objects may run code.
                return getattr(owner, name, UNKNOWN) if isinstance(owner, _NAMESPACES) else UNKNOWN
        return UNKNOWN


UNKNOWN = object()
"""Marks a name that is not defined."""

_NAMESPACES = (type(builtins), type)


def outside(function: Callable[..., Any], name: str) -> object:
    """The object that a name refers to outside a function: in its closure, its module, or the builtins."""
    cells = dict(zip(function.__code__.co_freevars, function.__closure__ or (), strict=False))
    if name in cells:
        try:
            return cells[name].cell_contents
        except ValueError:
            return UNKNOWN
    if name in function.__globals__:
        return function.__globals__[name]
    return getattr(builtins, name, UNKNOWN)
