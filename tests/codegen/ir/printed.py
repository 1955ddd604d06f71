"""The names in printed functions: each is defined once, in an enclosing region and before its uses."""

from __future__ import annotations

import re

NAME = re.compile(r"%[A-Za-z0-9_.$-]+")
GIVEN = re.compile(r"(%[A-Za-z0-9_.$-]+)(?=: | = )")
"""Arguments, loop indices and carried values. A result is at the start of its line."""


def check_names(text: str) -> None:
    """Check the names in the text of a function.

    Raises:
        AssertionError: a name has no definition in an enclosing region, or two.
    """
    regions: list[set[str]] = [set()]
    defined: set[str] = set()
    for line in map(str.strip, text.splitlines()):
        if line.startswith("}"):
            regions.pop()
        result = re.match(r"(%[A-Za-z0-9_.$-]+)(:\d+)? = ", line)
        rest = line[result.end() :] if result else line
        opens = rest.endswith("{")
        given = GIVEN.findall(rest) if opens else []
        known = set().union(*regions)
        for name in NAME.findall(rest):
            assert name in given or name in known, f"{name} is not defined: {line}"
        for name in (*([result[1]] if result else []), *given):
            assert name not in defined, f"{name} is defined twice: {line}"
            defined.add(name)
        if result:
            regions[-1].add(result[1])
        if opens:
            regions.append(set(given))
    assert len(regions) == 1, "a region does not end"
