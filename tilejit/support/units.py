"""Human-readable sizes, numbers and lists of names."""

from __future__ import annotations

from collections.abc import Iterable


def counted(count: int, name: str) -> str:
    """Format a number of things.

    1, "slot" -> "1 slot"    24, "slot" -> "24 slots"
    """
    return f"{count} {name}{'s' if count != 1 else ''}"


def human_bytes(count: int) -> str:
    """Format a size in bytes.

    96 -> "96 bytes"    67108864 -> "64.0 MiB"
    """
    if count < 1024:
        return counted(count, "byte")
    size, unit = float(count), 0
    while size >= 1024 and unit < 5:
        size, unit = size / 1024, unit + 1
    return f"{size:.1f} {('KiB', 'MiB', 'GiB', 'TiB', 'PiB')[unit - 1]}"


def listed(names: Iterable[str]) -> str:
    """Format the first three names and the number of others: "a, b, c and 2 more"."""
    found = list(names)
    return ", ".join(found[:3]) + (f" and {len(found) - 3} more" if len(found) > 3 else "")
