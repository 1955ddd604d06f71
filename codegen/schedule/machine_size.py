"""Sizes in terms of the machine: `"2*hw"`, `"l1/4"`, `"2*cores*hw"`."""

from __future__ import annotations

import re
from math import prod

from codegen.schedule.machine import machine, usable_cores
from codegen.support.caching import lazy_pattern
from codegen.support.dataclasses import dataclass
from codegen.support.errors import ScheduleError

HARDWARE, FIRST_CACHE, CORES = "hw", "l1", "cores"
NAMES = (HARDWARE, FIRST_CACHE, CORES)
"""Elements in a vector register, elements in a core's L1 data cache, and cores."""

MOST_DIGITS = 9
MOST_CHARACTERS = 80

_TOKEN = lazy_pattern(r"\s*(?:(?P<factor>[0-9]+|[A-Za-z_]\w*)|(?P<sign>[*/])|(?P<other>\S))", re.ASCII)


@dataclass(frozen=True, slots=True)
class MachineSize:
    """A number of elements that depends on the machine and on the bits of an element.

    "2*cores*hw" -> MachineSize(("2", "cores", "hw"))    "l1/4" -> MachineSize(("l1",), ("4",))

    factors, divisors: integers, and names of NAMES
    """

    factors: tuple[str, ...]
    divisors: tuple[str, ...] = ()

    def elements(self, bits: int) -> int:
        """The number of elements of so many bits, rounded down and at least 1."""
        above, below = (
            prod(_number(each, bits) for each in given) for given in (self.factors, self.divisors)
        )
        return max(1, above // below)

    def __str__(self) -> str:
        return "".join(("*".join(self.factors), *(f"/{each}" for each in self.divisors)))


def read_machine_size(what: str, text: str, write: str) -> int | MachineSize:
    """Read a product or quotient of integers and of NAMES; a number if it has only integers.

    "2*hw" -> MachineSize(("2", "hw"))    "4" -> 4

    what: the name of the option; write: how to write a size; both for error messages

    Raises:
        ScheduleError: it is something else, or it divides by 0.
    """
    given: tuple[list[str], list[str]] = [], []
    at, side = 0, 0
    if len(text) > MOST_CHARACTERS:
        raise _mistake(text[:MOST_CHARACTERS], 0, f"{what} has more than {MOST_CHARACTERS} characters", write)
    while True:
        at = _factor(what, text, at, given[side], write)
        match = _TOKEN().match(text, at)
        if match is None:
            break
        if match["sign"] is None:
            begin = match.end() - len(match[0].lstrip())
            raise _mistake(text, begin, f"{what}: expected * or / between two factors", write)
        side, at = int(match["sign"] == "/"), match.end()
    size = MachineSize(*map(tuple, given))
    return size if {*NAMES} & {*given[0], *given[1]} else _integers(size)


def _factor(what: str, text: str, at: int, out: list[str], write: str) -> int:
    """Read a factor; where it ends."""
    match = _TOKEN().match(text, at)
    factor = match["factor"] if match else None
    begin = len(text) if match is None else match.end() - len(match[0].lstrip())
    if factor is None or not (factor.isdigit() or factor in NAMES):
        found = "the text ends" if match is None else f"got {match[0].lstrip()[:24]!r}"
        raise _mistake(text, begin, f"{what}: expected a number, {', '.join(NAMES)}; {found}", write)
    if len(factor) > MOST_DIGITS:
        raise _mistake(text, begin, f"{what}: expected a number of at most {MOST_DIGITS} digits", write)
    if factor.isdigit() and not int(factor):
        raise _mistake(text, begin, f"{what}: expected numbers of at least 1, got 0", write)
    out.append(factor)
    assert match is not None
    return match.end()


def _integers(size: MachineSize) -> int:
    """The value of a size without names, rounded down."""
    return prod(map(int, size.factors)) // prod(map(int, size.divisors))


def _number(factor: str, bits: int) -> int:
    match factor:
        case "hw":
            return max(1, 8 * machine().register_bytes // bits)
        case "l1":
            return max(1, 8 * machine().first_cache_bytes // bits)
        case "cores":
            return usable_cores()
        case _:
            return int(factor)


def _mistake(text: str, at: int, cause: str, write: str) -> ScheduleError:
    """The error that shows the text, a caret under the mistake, and what to write instead."""
    line = re.sub(r"[^ -~]", "?", text)
    return ScheduleError(
        f"{cause}\n  {line}\n  {' ' * at}^\n"
        f"  {write}; hw is the elements of a vector register, l1 those of the L1 data cache"
    )
