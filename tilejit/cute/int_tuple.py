"""IntTuple: an integer or a tuple of IntTuples, and CuTe's operations on shapes, strides and coordinates."""

from __future__ import annotations

import operator
from collections.abc import Iterator
from typing import Any

from codegen import LayoutError, shown
from tilejit.support.tokens import MAX_INT64, named

IntTuple = int | tuple["IntTuple", ...]
MAX_DEPTH = 32
"""Deeper than any program nests, and far from Python's recursion limit."""


def as_int_tuple(value: object, what: str = "an IntTuple", depth: int = 0) -> IntTuple:
    """Read nested tuples of Python ints from ints, NumPy integers, and tuples and lists of them.

    [np.int64(2), (3, 4)] -> (2, (3, 4))

    Raises:
        TypeError: it contains something else.
        LayoutError: a number exceeds 64 bits, or the nesting is too deep.
    """
    if type(value) is int:
        number = value
    elif isinstance(value, tuple | list):
        if depth == MAX_DEPTH:
            raise LayoutError(f"{what} nests more than {MAX_DEPTH} deep\n  reduce the nesting")
        return tuple(as_int_tuple(part, what, depth + 1) for part in value)
    else:
        try:
            number = operator.index(None if isinstance(value, bool) else value)  # type: ignore[arg-type]
        except TypeError:
            raise TypeError(
                f"{what}: expected integers and tuples of integers, got {type(value).__name__}"
            ) from None
    if not -MAX_INT64 <= number <= MAX_INT64:
        raise LayoutError(f"{what} contains {shown(number)}\n  use numbers within 64 bits")
    return number


def as_integer(value: object, what: str) -> int:
    """Read one Python int of any width.

    Raises:
        TypeError: it is something else, such as a bool.
    """
    try:
        return operator.index(None if isinstance(value, bool) else value)  # type: ignore[arg-type]
    except TypeError:
        raise TypeError(f"{what}: expected an integer, got {type(value).__name__}") from None


def limit_nesting(value: object, what: str) -> None:
    """Check how deep tuples and lists nest, whatever they contain.

    Raises:
        LayoutError: they nest more than 32 deep.
    """
    level = [value]
    for _ in range(MAX_DEPTH + 1):
        level = [part for item in level if isinstance(item, tuple | list) for part in item]
        if not level:
            return
    raise LayoutError(f"{what} nests more than {MAX_DEPTH} deep\n  reduce the nesting")


def flatten(value: IntTuple) -> tuple[int, ...]:
    """The integers from left to right.

    ((2, 3), 4) -> (2, 3, 4)    5 -> (5,)
    """
    if not isinstance(value, tuple):
        return (value,)
    out: list[int] = []
    for part in value:
        if isinstance(part, tuple):
            out += flatten(part)
        else:
            out.append(part)
    return tuple(out)


def unflatten(numbers: Iterator[Any], profile: IntTuple) -> Any:
    """Nest numbers from an iterator like the profile.

    iter((2, 3, 4)), ((0, 0), 0) -> ((2, 3), 4)
    """
    if isinstance(profile, tuple):
        return tuple(unflatten(numbers, part) for part in profile)
    return next(numbers)


def product(value: IntTuple) -> int:
    """Multiply all integers; 1 for ().

    >>> product(((2, 3), 4))
    24

    Args:
        value: an IntTuple.

    Returns:
        The product.

    Raises:
        TypeError: the value is not made of integers.

    Source: CuTe's product.
    """
    if not isinstance(value, tuple):
        return value
    out = 1
    for part in value:
        out *= product(part) if isinstance(part, tuple) else part
    return out


def rank(value: IntTuple) -> int:
    """The number of modes at the top level: the length of a tuple, 1 for an integer."""
    return len(value) if isinstance(value, tuple) else 1


def depth(value: IntTuple) -> int:
    """How deep tuples nest: 0 for an integer.

    ((2, 3), 4) -> 2    () -> 1
    """
    if not isinstance(value, tuple):
        return 0
    return 1 + max((depth(part) for part in value), default=0)


def modes(value: IntTuple) -> tuple[IntTuple, ...]:
    """The modes at the top level; an integer is a single mode."""
    return value if isinstance(value, tuple) else (value,)


def congruent(a: IntTuple, b: IntTuple) -> bool:
    """Whether two IntTuples nest alike.

    >>> congruent(((2, 3), 4), ((1, 0), 7)), congruent((6, 4), ((2, 3), 4))
    (True, False)

    Args:
        a: an IntTuple.
        b: an IntTuple.

    Returns:
        True if they have the same profile.

    Raises:
        TypeError: an argument is not made of integers.

    Source: CuTe's congruent.
    """
    if isinstance(a, tuple) and isinstance(b, tuple):
        return len(a) == len(b) and all(map(congruent, a, b))
    return not isinstance(a, tuple) and not isinstance(b, tuple)


def weakly_congruent(a: IntTuple, b: IntTuple) -> bool:
    """Whether b nests like a, or deeper where a has an integer.

    >>> weakly_congruent((2, 3), ((1, 2), 3)), weakly_congruent(((1, 2), 3), (2, 3))
    (True, False)

    Args:
        a: an IntTuple.
        b: an IntTuple.

    Returns:
        True if the profile of b refines that of a.

    Raises:
        TypeError: an argument is not made of integers.

    Source: CuTe's weakly_congruent.
    """
    if isinstance(a, tuple):
        return isinstance(b, tuple) and len(a) == len(b) and all(map(weakly_congruent, a, b))
    return True


def compatible(a: IntTuple, b: IntTuple) -> bool:
    """Whether every coordinate of shape a is a coordinate of shape b: b refines a, integer by integer.

    >>> compatible(24, ((2, 3), 4)), compatible((6, 4), ((2, 3), 4)), compatible((4, 6), ((2, 3), 4))
    (True, True, False)

    Args:
        a: an IntTuple, a shape.
        b: an IntTuple, a shape.

    Returns:
        True if b refines a.

    Raises:
        TypeError: an argument is not made of integers.

    Source: CuTe's compatible.
    """
    if isinstance(a, tuple):
        return isinstance(b, tuple) and len(a) == len(b) and all(map(compatible, a, b))
    return a == product(b)


def prefix_product(value: IntTuple, start: int = 1) -> IntTuple:
    """Multiply the integers before each one: the strides of a compact layout, first mode fastest.

    ((2, 3), 4) -> ((1, 2), 6)
    """
    return _scan(value, start)[0]


def _scan(value: IntTuple, current: int) -> tuple[IntTuple, int]:
    if not isinstance(value, tuple):
        return current, current * value
    out: list[IntTuple] = []
    for part in value:
        done, current = _scan(part, current)
        out.append(done)
    return tuple(out), current


def inner_product(a: IntTuple, b: IntTuple) -> int:
    """Sum the products of integers at the same positions.

    >>> inner_product(((2, 3), 4), ((1, 10), 100))
    432

    Args:
        a: an IntTuple.
        b: an IntTuple that nests like a.

    Returns:
        The sum.

    Raises:
        LayoutError: a and b are not congruent.
        TypeError: an argument is not made of integers.

    Source: CuTe's inner_product.
    """
    if not congruent(a, b):
        raise LayoutError(
            f"{named(a)} and {named(b)} do not nest alike\n  pass two IntTuples with the same profile"
        )
    return sum(map(operator.mul, flatten(a), flatten(b)))


def elem_scale(a: IntTuple, b: IntTuple) -> IntTuple:
    """Multiply each integer of a by the integer, or the product of the tuple, at its position in b.

    >>> elem_scale((2, 3), ((4, 5), 6))
    (40, 18)

    Args:
        a: an IntTuple.
        b: an IntTuple that nests like a, or deeper.

    Returns:
        An IntTuple that nests like a.

    Raises:
        LayoutError: b does not nest like a.
        TypeError: an argument is not made of integers.

    Source: CuTe's elem_scale.
    """
    if not weakly_congruent(a, b):
        raise LayoutError(f"{named(b)} does not nest like {named(a)}\n  pass a tuple for each tuple")
    if isinstance(a, tuple) and isinstance(b, tuple):
        return tuple(map(elem_scale, a, b))
    return a * product(b) if isinstance(a, int) else a


def shape_div(a: IntTuple, b: IntTuple) -> IntTuple:
    """Divide shape a by b elements: the shape that remains if b elements are taken, first mode first.

    >>> shape_div(((2, 3), 4), 6), shape_div((6, 4), 3), shape_div(12, (2, 3)), shape_div((6, 4), (2, 4))
    (((1, 1), 4), (2, 4), 2, (3, 1))

    Args:
        a: an IntTuple, a shape.
        b: an IntTuple: a number of elements, or one for each mode.

    Returns:
        An IntTuple that nests like a.

    Raises:
        LayoutError: two sizes do not divide each other in either direction.
        TypeError: an argument is not made of integers.

    Source: CuTe's shape_div.
    """
    if isinstance(a, tuple):
        if isinstance(b, tuple):
            if len(a) != len(b):
                raise LayoutError(
                    f"{named(a)} and {named(b)} have different ranks\n  pass one divisor for each mode"
                )
            return tuple(map(shape_div, a, b))
        out: list[IntTuple] = []
        for part in a:
            out.append(shape_div(part, b))
            whole = product(part)
            b = _divided(b, whole)
        return tuple(out)
    return _divided(a, product(b))


def _divided(a: int, b: int) -> int:
    if a > 0 and b > 0 and (a % b == 0 or b % a == 0):
        return max(1, a // b)
    raise LayoutError(
        f"neither of {named(a)} and {named(b)} divides the other\n  pass a divisor or a multiple of the size"
    )


def text_of(value: IntTuple) -> str:
    """CuTe's text: no spaces, and no comma in a tuple of one.

    ((2, 3), 4) -> "((2,3),4)"    (4,) -> "(4)"
    """
    if isinstance(value, tuple):
        return f"({','.join(map(text_of, value))})"
    return str(value)
