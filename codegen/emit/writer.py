"""Source lines whose indentation follows `with` blocks."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager


class Writer:
    """Collects lines; `with out.block("for …:")` indents the lines added inside it."""

    def __init__(self, depth: int = 0) -> None:
        self._lines: list[str] = []
        self._depth = depth

    @property
    def depth(self) -> int:
        """The number of blocks around the next line."""
        return self._depth

    def line(self, text: str = "") -> None:
        """Add a line at the current depth."""
        self._lines.append("    " * self._depth + text if text else "")

    def lines(self, other: Writer) -> None:
        """Add all lines of another writer at the current depth."""
        for line in other._lines:
            self.line(line)

    @contextmanager
    def block(self, head: str) -> Iterator[None]:
        """Add a header line; lines added inside the `with` are one level deeper."""
        self.line(head)
        self._depth += 1
        yield
        self._depth -= 1

    def text(self) -> str:
        """All lines, each followed by a newline."""
        return "\n".join(self._lines) + "\n"
