"""Checks of the parameters of formats."""

from __future__ import annotations

from operator import index

from codegen import LayoutError, shown

MOST = (1 << 63) - 1


def checked_int(
    name: str, value: object, least: int = 1, most: int = MOST, *, power_of_two: bool = False
) -> int:
    """Return a parameter as an int.

    Raises:
        LayoutError: it is not from `least` to `most`, or not a power of two.
        TypeError: it is a bool or not an integer.
    """
    try:
        number = index(None if isinstance(value, bool) else value)  # type: ignore[arg-type]
    except TypeError:
        raise TypeError(f"{name}: expected an integer, got {type(value).__name__}") from None
    if not least <= number <= most or (power_of_two and number & (number - 1)):
        kind = "power of two" if power_of_two else "number"
        last = "2^63-1" if most == MOST else most
        raise LayoutError(f"{name} is {shown(number)}\n  pass a {kind} from {least} to {last}")
    return number


def one_of(name: str, value: object, choices: tuple[int, ...]) -> int:
    """Return a parameter that takes few values.

    Raises:
        LayoutError: it has another value.
        TypeError: it is a bool or not an integer.
    """
    found = checked_int(name, value, -MOST)
    if found not in choices:
        raise LayoutError(f"{name} is {shown(found)}\n  pass one of {', '.join(map(str, choices))}")
    return found


def flag(name: str, value: object) -> bool:
    """Return a parameter that is true or false.

    Raises:
        TypeError: it is neither True nor False.
    """
    if not isinstance(value, bool):
        raise TypeError(f"{name}: expected True or False, got {type(value).__name__}")
    return value
