"""Lines of source with indentation that follows `with` blocks."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager


class Writer:
    """Collects lines; `with out.block("for …:")` indents what follows."""

    def __init__(self) -> None:
        self._lines: list[str] = []
        self._depth = 0

    def line(self, text: str = "") -> None:
        """One line at the present depth."""
        self._lines.append("    " * self._depth + text if text else "")

    def lines(self, other: Writer) -> None:
        """All lines of another writer, at the present depth."""
        for line in other._lines:
            self.line(line)

    @contextmanager
    def block(self, head: str) -> Iterator[None]:
        """A head, and everything inside the `with` one step deeper."""
        self.line(head)
        self._depth += 1
        yield
        self._depth -= 1

    def text(self) -> str:
        """All lines, each ended."""
        return "\n".join(self._lines) + "\n"
