"""Promises about arrays and loops, and the checks of verify mode."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, TypeAlias

from codegen import ArrayArg, Function, KernelValueError, check_independence, promises_independence, settings
from tilejit.arrays.strided import share_memory

NoAlias: TypeAlias = bool | tuple[str, ...]
"""The arrays that share no memory with others: all, or those with these names."""


def is_promised(no_alias: NoAlias, a: str, b: str) -> bool:
    """Whether two arrays are promised to share no memory."""
    return no_alias is True or (no_alias is not False and (a in no_alias or b in no_alias))


def check_names(no_alias: NoAlias, function: Function) -> None:
    """Check that no_alias names arrays.

    Raises:
        KernelValueError: a name is not that of an array argument.
    """
    arrays = [a.name for a in function.arguments if isinstance(a, ArrayArg)]
    for name in no_alias if isinstance(no_alias, tuple) else ():
        if name not in arrays:
            raise KernelValueError(
                f"no_alias has {name!r:.40}, which is not an array of {function.name}\n"
                f"  its arrays are {', '.join(arrays) or 'none'}"
            )


def verifies(no_alias: NoAlias, function: Function, *, requested: bool) -> bool:
    """Whether calls check promises: TILEJIT_VERIFY or `verify` requests it, and there are some."""
    return (requested or settings().verify) and (bool(no_alias) or promises_independence(function))


def check_promises(function: Function, pairs: Sequence[tuple[int, int]], given: Sequence[Any]) -> None:
    """Check the promises about the arguments of a call.

    Args:
        function: the function of loops.
        pairs: the positions of arguments that are promised to share no memory.
        given: the arguments.

    Raises:
        KernelValueError: a promise is broken; the error names the arrays, or the iterations.
    """
    for i, j in pairs:
        if share_memory(given[i], given[j]):
            a, b = (function.arguments[k].name for k in (i, j))
            raise KernelValueError(
                f"{a} and {b} share memory, but no_alias promises that they do not\n"
                "  pass copies, or remove the promise"
            )
    if promises_independence(function):
        check_independence(function, given)
