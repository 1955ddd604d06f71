"""Calls of methods, and of functions that reduce arrays: errors that show the loop to write instead."""

from __future__ import annotations

import ast

import numpy as np

from codegen.frontend.scope import UNKNOWN, Scope
from codegen.ir.nodes import ArrayArg

_REDUCED = {
    "sum": ("s = 0.0", "s += {}"),
    "mean": ("s = 0.0", "s += {}  # and divide s by their number"),
    "prod": ("s = 1.0", "s *= {}"),
    "min": ("s = {}", "s = min(s, {})"),
    "max": ("s = {}", "s = max(s, {})"),
    "any": ("s = False", "s = s or {}"),
    "all": ("s = True", "s = s and {}"),
}
"""The start and the body of loops that do what a function or a method does."""


def check_call(node: ast.Call, function: object, scope: Scope) -> None:
    """Raise a KernelError for a.sum(), np.sum(a), sum(a) and the like, and for methods other than astype."""
    method = _method(node.func, scope)
    owner = method.value if method else node.args[0] if node.args else None
    name = method.attr if method else "" if isinstance(function, np.ufunc) else _name(function)
    array = scope.names.get(owner.id) if isinstance(owner, ast.Name) else None
    if isinstance(array, ArrayArg) and name in _REDUCED and array.rank:
        raise scope.error(
            node,
            f"kernels compute element by element, without {ast.unparse(node.func)}\n" + _loop(array, name),
        )
    if method:
        raise scope.error(
            node,
            f"kernels do not support the method {name}\n"
            "the only one is astype; write functions, such as np.exp(a[i]), abs(a[i]) and int(a[i])",
        )


def _method(function: ast.expr, scope: Scope) -> ast.Attribute | None:
    """The method that is called, if it is one of an array or a number, and not astype."""
    if not isinstance(function, ast.Attribute) or function.attr == "astype":
        return None
    owner = function.value
    outside = (
        owner.id not in scope.names if isinstance(owner, ast.Name) else scope.object(owner) is not UNKNOWN
    )
    return None if outside else function


def _name(function: object) -> str:
    return str(getattr(function, "__name__", ""))


def _loop(array: ArrayArg, name: str) -> str:
    """The loops that reduce an array.

    sum of a -> write a loop: / s = 0.0 / for i in range(a.shape[0]): / s += a[i]
    """
    start, body = _REDUCED[name]
    lines = [start.format(subscripted(array, "0" * array.rank))]
    for depth, index in zip(range(array.rank), "ijklmnop", strict=False):
        lines.append(f"{'    ' * depth}for {index} in range({array.name}.shape[{depth}]):")
    lines.append("    " * (len(lines) - 1) + body.format(subscripted(array)))
    written = "\n".join(f"  {line}" for line in lines)
    return (
        f"write a loop:\n{written}\nor pass np.{name}({array.name}) to the kernel, or use tilejit.elementwise"
    )


def subscripted(array: ArrayArg, indices: str = "ijklmnop") -> str:
    """An element of an array, for messages: A[i, j]."""
    if array.rank > len(indices):
        return f"{array.name}[i0, …, i{array.rank - 1}]"
    return f"{array.name}[{', '.join(indices[: array.rank]) or '()'}]"
