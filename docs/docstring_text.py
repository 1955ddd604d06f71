"""Docstrings, which are written for `help()`, as the reference shows them: examples become blocks of code."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

EXAMPLE = re.compile(r"\S -> \S|\S {2,}\S")
"""Lines such as `(4,8):(8,1) -> 32    empty -> 0`, and those with columns; prose has single spaces."""
SECTION = re.compile(r"(Args|Attributes|Raises|Returns|Yields|Warns|Note|Examples?):$")


def rewritten(text: str) -> str:
    """A docstring for the reference, in Markdown and Google's sections."""
    return "\n\n".join(_blocks(re.split(r"\n\s*\n", text)))


def _blocks(paragraphs: Sequence[str]) -> Iterator[str]:
    for paragraph in paragraphs:
        lines = paragraph.splitlines()
        if paragraph.startswith(">>> "):
            yield f"```pycon\n{paragraph}\n```"
        elif SECTION.match(lines[0]) or paragraph.startswith(" "):
            yield re.sub(r": (?=[#*] )", r": \\", paragraph)
        elif all(EXAMPLE.search(line) for line in lines):
            yield f"```text\n{paragraph}\n```"
        else:
            yield _plain(paragraph)


def _plain(paragraph: str) -> str:
    """Prose; a line that happens to begin with # is no heading."""
    return re.sub(r"^#", r"\\#", paragraph, flags=re.MULTILINE)
