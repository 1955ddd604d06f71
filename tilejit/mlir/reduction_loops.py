"""The option `vectorize_reductions`: reductions vectorize in all loops, in none, or in those it names."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace
from typing import TypeAlias

import numpy as np

from codegen import For, Function, KernelValueError, Statement
from tilejit.mlir.program import Program

Reductions: TypeAlias = bool | str | Sequence[str]
"""Whether reductions vectorize, or the index names of the loops whose reductions do: "i", ("i", "k")."""


def read_reductions(given: object) -> bool | tuple[str, ...]:
    """Read `vectorize_reductions`: True, False, or index names, which are returned without `%`.

    Raises:
        TypeError: the option has another type.
    """
    if isinstance(given, bool | np.bool_):
        return bool(given)
    names = (given,) if isinstance(given, str) else given
    if not isinstance(names, tuple | list) or not all(isinstance(name, str) for name in names):
        kind = type(given).__name__
        raise TypeError(f"vectorize_reductions: expected True, False or names of loop indices, got {kind}")
    return tuple(name.removeprefix("%") for name in names)


def with_reductions(program: Program, names: Sequence[str]) -> Program:
    """The program, with loops of these indices marked to combine their terms in any order."""

    def marked(body: Iterable[Statement]) -> tuple[Statement, ...]:
        return tuple(
            replace(s, body=marked(s.body), reduction=_spelled(program, s) in names or s.reduction)
            if isinstance(s, For)
            else s
            for s in body
        )

    return replace(program, function=replace(program.function, body=marked(program.function.body)))


def check_reductions(programs: Iterable[Program], names: Sequence[str]) -> None:
    """Check that each name is the index of a loop.

    Raises:
        KernelValueError: a name is not.
    """
    loops = {_spelled(p, loop): None for p in programs for loop in _loops(p.function)}
    for name in names:
        if name not in loops:
            known = ", ".join(f"%{index}" for index in loops)
            fix = f"name one of {known}" if known else "omit it, because the text has no loops"
            raise KernelValueError(f"vectorize_reductions: no loop has the index %{name[:40]}\n  {fix}")


def _spelled(program: Program, loop: For) -> str:
    """The index of a loop as spelled in the text."""
    return program.spelled.get(loop.index, loop.index)


def _loops(function: Function) -> list[For]:
    found: list[For] = []
    pending = list(function.body)
    while pending:
        statement = pending.pop(0)
        if isinstance(statement, For):
            found.append(statement)
            pending = [*statement.body, *pending]
    return found
