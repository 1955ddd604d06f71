"""How routines are defined: as Numba intrinsics, which emit LLVM IR where a kernel calls them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeAlias

from numba import types
from numba.extending import intrinsic

Emit: TypeAlias = Callable[..., Any]
"""(builder, *LLVM values of the arguments) -> the LLVM value of the result, or None for a statement."""

Rule: TypeAlias = Callable[..., tuple[Any, Emit]]
"""(Numba types of the arguments) -> the signature, and the code."""


def routine(name: str, arity: int, rule: Rule) -> Any:
    """A routine of `arity` arguments whose signature and code depend on their types."""

    def typed(*kinds: Any) -> tuple[Any, Callable[..., Any]]:
        signature, emit = rule(*kinds)

        def generate(context: Any, builder: Any, _: Any, values: Any) -> Any:
            value = emit(builder, *values)
            return context.get_dummy_value() if value is None else value

        return signature, generate

    names = ", ".join(f"a{k}" for k in range(arity))
    scope: dict[str, Any] = {"typed": typed}
    exec(f"def {name}(typing{', ' if names else ''}{names}):\n    return typed({names})\n", scope)
    return intrinsic(scope[name])


def typed_routine(name: str, signature: Any, emit: Emit) -> Any:
    """A routine with one signature."""
    return routine(name, len(signature.args), lambda *_: (signature, emit))


def statement(emit: Emit, arguments: int, name: str) -> Any:
    """A routine on `arguments` 64-bit integers that returns nothing."""
    return typed_routine(name, types.void(*[types.int64] * arguments), emit)
