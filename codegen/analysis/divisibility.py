"""Check, before a call, that loops over super-vectors leave no tail: `tail="assume_divisible"`."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from codegen.analysis.bounds import extremes, known_sizes
from codegen.ir.index import Index, add_indices, scale_index
from codegen.ir.nodes import For, Function, Statement
from codegen.ir.visit import trips_between
from codegen.support.errors import KernelError, KernelValueError


def check_divisible(
    function: Function, shapes: Mapping[str, tuple[int, ...]], scalars: Mapping[str, int]
) -> None:
    """Raise for loops over super-vectors that would leave a tail.

    Raises:
        KernelValueError: the trip count is not a multiple of the size.
        KernelError: the trip count is unknown before the call.
    """
    values = known_sizes(shapes, scalars)

    def check(body: tuple[Statement, ...], around: tuple[For, ...]) -> None:
        for statement in body:
            if not isinstance(statement, For):
                continue
            if statement.size > 1:
                _check_trips(statement, around, values)
            check(statement.body, (*around, replace(statement, step=statement.step // statement.size)))

    check(function.body, ())


def _check_trips(loop: For, around: tuple[For, ...], values: Mapping[str, int]) -> None:
    step = loop.step // loop.size
    length: Index = add_indices(loop.upper[0], scale_index(loop.lower[0], -1))
    low, high = extremes(length, around, values)
    if len(loop.lower) + len(loop.upper) > 2 or low is None or low != high:
        raise KernelError(
            f"tail='assume_divisible' cannot be checked for loop {loop.index}: its trip count depends on "
            'outer loops\n  use another tail, such as "mask"'
        )
    trips = trips_between(0, low, step)
    if trips % loop.size:
        raise KernelValueError(
            f"tail='assume_divisible', but loop {loop.index} runs {trips} times, which is not a multiple of "
            f"{loop.size}\n"
            '  use another tail, such as "mask", or pad the arrays'
        )
