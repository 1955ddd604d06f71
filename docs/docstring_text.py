"""Convert docstrings, which are written for `help()`, to Markdown: examples become code blocks."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

EXAMPLE = re.compile(r"\S -> \S|\S {2,}\S")
"""Lines such as `(4,8):(8,1) -> 32    empty -> 0`, and those with columns; prose has single spaces."""
SECTION = re.compile(r"(Args|Attributes|Raises|Returns|Yields|Warns|Note|Examples?):$")


def rewritten(text: str) -> str:
    """Convert a docstring to Markdown, with sections in Google's style."""
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
    """Escape # at the start of a line, which would make a heading."""
    return re.sub(r"^#", r"\\#", paragraph, flags=re.MULTILINE)
