"""A Python function with loops over arrays -> the kernel IR."""

from __future__ import annotations

import ast
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

from codegen.frontend.changing import FLAG
from codegen.frontend.expressions import expression
from codegen.frontend.operands import Operand, convert_operand, literal_operand
from codegen.frontend.scope import Scope
from codegen.frontend.source_text import SourceText, source_of
from codegen.frontend.statements import block
from codegen.ir import dtypes
from codegen.ir.index import Index, index_symbol
from codegen.ir.nodes import ArrayArg, Function, ScalarArg, Statement
from codegen.ir.values import Local, Value
from codegen.ir.visit import parts, values_of
from codegen.support.dataclasses import dataclass


def read_function(function: Callable[..., Any]) -> Source:
    """Read a function's source once; Source.typed builds kernels from it.

    def add(A, B, C):
        for i in range(A.shape[0]):
            C[i] = A[i] + B[i]

    read_function(add).typed([ArrayArg("A", "f32", 1), …]) -> Function("add", …)

    Raises:
        KernelError: it has no source (see source_of), is a lambda, or has * or ** arguments.
        TypeError: it is not a Python function.
    """
    text, tree = source_of(function)
    arguments = tree.args
    for extra in (arguments.vararg, arguments.kwarg, *arguments.kwonlyargs):
        if extra is not None:
            raise text.error(extra, "kernels take positional arguments only, one name each")
    names = tuple(argument.arg for argument in (*arguments.posonlyargs, *arguments.args))
    return Source(function, text, tree, names)


@dataclass(frozen=True, slots=True)
class Source:
    """The source of a kernel, and the names of its arguments."""

    function: Callable[..., Any]
    text: SourceText
    tree: ast.FunctionDef
    names: tuple[str, ...]

    def typed(self, arguments: Sequence[ArrayArg | ScalarArg], *, masked: bool = False) -> Function:
        """The kernel for arguments of these dtypes and ranks, in the order of the Python function.

        codegen.ir.dtypes.argument converts Python numbers to ScalarArg(name, "weak_int"), "weak_float" or
        "weak_bool": a weak 2.0 times f32 is f32. In the Function they are "i64", "f64" and "i1". Omitted
        arguments have their defaults, as constants. `masked` is that of `Scope`.

        Raises:
            KernelError: an unsupported construct, with file, line and caret, or a wrong number of arguments.
        """
        given = tuple(replace(a, name=name) for name, a in zip(self.names, arguments, strict=False))
        flags: frozenset[str] = frozenset()
        while True:
            statements, results = self._read(given, masked, flags)
            values = (*values_of(statements), *results)
            used = {x.name for value in values for x in parts(value) if isinstance(x, Local)}
            wanted = flags | {name for name in used if name.endswith(FLAG)}
            if wanted == flags:
                break
            flags = wanted
        arguments_of = tuple(replace(a, dtype=dtypes.concrete(a.dtype)) for a in given)
        return Function(self.tree.name, arguments_of, statements, results)

    def _read(
        self, given: tuple[ArrayArg | ScalarArg, ...], masked: bool, flags: frozenset[str]
    ) -> tuple[tuple[Statement, ...], tuple[Value, ...]]:
        """The statements, and the results, with the flags of these carried locals."""
        scope = Scope(self.text, self.function, {}, dict.fromkeys(self.names, 1), masked=masked, flags=flags)
        for argument in given:
            dtypes.numpy_dtype(dtypes.concrete(argument.dtype))
            scope.names[argument.name] = argument if isinstance(argument, ArrayArg) else _scalar(argument)
        scope.names |= self._defaults(len(given))
        body = self.tree.body
        end = body[-1] if isinstance(body[-1], ast.Return) else None
        last = end.value if end else None
        try:
            block(body[:-1] if end else body, scope, _names_in(last))
            results = _results(last, scope)
        except RecursionError:
            raise self.text.error(self.tree, "expressions are nested too deeply") from None
        return tuple(scope.statements), results

    def _defaults(self, number: int) -> dict[str, Operand]:
        """The default values of the omitted arguments."""
        values = self.function.__defaults__ or ()
        known = dict(zip(self.names[len(self.names) - len(values) :], values, strict=True))
        missing = [name for name in self.names[number:] if name not in known]
        if missing or number > len(self.names):
            raise self.text.error(
                self.tree, f"{self.tree.name} takes {len(self.names)} arguments, got {number}"
            )
        return {
            name: self.text.check(self.tree, literal_operand, known[name]) for name in self.names[number:]
        }


def _scalar(argument: ScalarArg) -> Operand:
    """A number passed to each call; integers are symbols in index expressions."""
    dtype = argument.dtype
    value = Local(argument.name, dtypes.concrete(dtype))
    if dtypes.is_float(dtype) or dtypes.is_bool(dtype):
        return Operand(dtype, value)
    ends: tuple[Index, ...] = (index_symbol(argument.name),)
    return Operand(dtype, value, ends, ends)


def _names_in(node: ast.expr | None) -> set[str]:
    return {n.id for n in ast.walk(node) if isinstance(n, ast.Name)} if node else set()


def _results(node: ast.expr | None, scope: Scope) -> tuple[Value, ...]:
    """The numbers that a kernel returns."""
    if node is None or (isinstance(node, ast.Constant) and node.value is None):
        return ()
    returned = node.elts if isinstance(node, ast.Tuple) else [node]
    for one in returned:
        if isinstance(one, ast.Name) and isinstance(scope.names.get(one.id), ArrayArg):
            raise scope.error(one, f"{one.id} is written in place\nkernels return numbers, or nothing")
    operands = [expression(one, scope) for one in returned]
    return tuple(
        scope.text.check(one, convert_operand, operand, dtypes.concrete(operand.dtype))
        for one, operand in zip(returned, operands, strict=True)
    )
