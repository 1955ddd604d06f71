"""CuTe's IntTuple functions for callers: `as_int_tuple` checks every argument first."""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from typing import Any, TypeVar

from codegen import LayoutError
from tilejit.cute import int_tuple
from tilejit.cute.int_tuple import IntTuple, as_int_tuple
from tilejit.support.tokens import named

T = TypeVar("T")


def _checked(function: Callable[..., T]) -> Callable[..., T]:
    @wraps(function)
    def call(*values: Any, **by_name: Any) -> T:
        given = {name: as_int_tuple(value) for name, value in by_name.items()}
        return function(*map(as_int_tuple, values), **given)

    return call


product = _checked(int_tuple.product)
congruent = _checked(int_tuple.congruent)
weakly_congruent = _checked(int_tuple.weakly_congruent)
compatible = _checked(int_tuple.compatible)
inner_product = _checked(int_tuple.inner_product)
elem_scale = _checked(int_tuple.elem_scale)
shape_div = _checked(int_tuple.shape_div)


def prefix_product(value: object, start: int = 1) -> IntTuple:
    """Multiply the integers before each one: the strides of a compact layout, first mode fastest.

    >>> prefix_product(((2, 3), 4))
    ((1, 2), 6)

    Args:
        value: an IntTuple.
        start: the first product.

    Returns:
        An IntTuple that nests like `value`.

    Raises:
        LayoutError: `start` is not an integer.
        TypeError: an argument is not made of integers.

    Source: CuTe's compact_col_major.
    """
    return int_tuple.prefix_product(as_int_tuple(value), integer(start))


def integer(start: object) -> int:
    """Read one integer.

    Raises:
        LayoutError: it is a tuple.
        TypeError: it is not made of integers.
    """
    number = as_int_tuple(start, "a start")
    if isinstance(number, tuple):
        raise LayoutError(f"expected one integer as a start, got {named(number)}\n  pass one integer")
    return number
