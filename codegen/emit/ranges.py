"""Loop bounds as Python expressions; the arguments are names or numbers."""

from __future__ import annotations


def range_text(lower: str, upper: str, step: int) -> str:
    """The range of a loop: range(n), range(1, n), range(n, 0, -2)."""
    if step != 1:
        return f"range({lower}, {upper}, {step})"
    return f"range({upper})" if lower == "0" else f"range({lower}, {upper})"


def trips_text(first: str, last: str, step: int) -> str:
    """The number of iterations of a loop."""
    far = f"{last} - {first}" if step > 0 else f"{first} - {last}"
    far = last if first == "0" and step > 0 else far
    if abs(step) > 1:
        far = f"({far} + {abs(step) - 1}) // {abs(step)}"
    return f"max({far}, 0)"


def whole_text(first: str, last: str, step: int, block: int) -> str:
    """The index at which the last full block of iterations ends."""
    base = "" if first == "0" else f"{first} + "
    return f"{base}{trips_text(first, last, step)} // {block} * {block * step}".replace("* -", "* -")


def least_steps_text(far: str, step: int, most: int) -> str:
    """The number of active lanes, at most `most`, where `far` is the distance of the index to its bound."""
    return f"min({far if step == 1 else f'({far} + {step - 1}) // {step}'}, {most})"
