"""Sizes in terms of the machine: `"2*hw"`, `"l1/4"`, `"2*cores*hw"`, `"4*warp"`."""

from __future__ import annotations

import re
from math import prod

from codegen.schedule.machine import machine, usable_cores, usable_sockets
from codegen.support.caching import lazy_pattern
from codegen.support.dataclasses import dataclass
from codegen.support.errors import ScheduleError, pointed

NAMES = ("hw", "l1", "cores", "sockets", "warp")
"""Elements of a vector register, elements of an L1 data cache, cores, sockets, threads of a GPU's warp."""

WARP = 32
"""Threads of a warp on GPUs with CUDA; a CPU has none, so this is a number on all machines."""

MOST_DECIMAL_DIGITS = 9
MOST_CHARACTERS = 80

_TOKEN = lazy_pattern(r"\s*([0-9]+|[A-Za-z_]\w*|\S)", re.ASCII)


@dataclass(frozen=True, slots=True)
class MachineSize:
    """A number of elements that depends on the machine and on the bits of an element.

    "2*cores*hw" -> MachineSize(("2", "cores", "hw"))    "l1/4" -> MachineSize(("l1",), ("4",))

    factors, divisors: integers, and names of NAMES
    """

    factors: tuple[str, ...]
    divisors: tuple[str, ...] = ()

    def elements(self, bits: int) -> int:
        """The number of elements of that many bits, rounded down and at least 1."""
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
    if len(text) > MOST_CHARACTERS:
        raise _mistake(text[:MOST_CHARACTERS], 0, f"{what} has more than {MOST_CHARACTERS} characters", write)
    given: tuple[list[str], list[str]] = [], []
    side = 0
    tokens = [(match.start(1), match[1]) for match in _TOKEN().finditer(text)]
    for k, (at, token) in enumerate((*tokens, (len(text), ""))):
        if k % 2 == 0:
            mistake = _mistake_in_factor(token)
            given[side].append(token)
        else:
            mistake = "" if token in ("*", "/", "") else "expected * or / between two factors"
            side = int(token == "/")
        if mistake:
            raise _mistake(text, at, f"{what}: {mistake}", write)
    size = MachineSize(*map(tuple, given))
    return size if {*NAMES} & {*given[0], *given[1]} else _integers(size)


def _mistake_in_factor(token: str) -> str:
    """What is wrong with a factor, "" if nothing is; the token is "" at the end of the text."""
    is_number = token.isascii() and token.isdigit()
    if not is_number and token not in NAMES:
        found = f"got {token[:24]!r}" if token else "the text ends"
        return f"expected a number, {', '.join(NAMES)}; {found}"
    if len(token) > MOST_DECIMAL_DIGITS:
        return f"expected a number of at most {MOST_DECIMAL_DIGITS} digits"
    if is_number and not int(token):
        return "expected numbers of at least 1, got 0"
    return ""


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
        case "sockets":
            return usable_sockets()
        case "warp":
            return WARP
        case _:
            return int(factor)


def _mistake(text: str, at: int, cause: str, write: str) -> ScheduleError:
    """The error that shows the text, a caret under the mistake, and what to write instead."""
    return ScheduleError(
        f"{cause}\n{pointed(text, at)}\n"
        f"  {write}; hw is the elements of a vector register, l1 those of the L1 data cache"
    )
