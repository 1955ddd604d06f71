"""Human-readable sizes and numbers."""

from __future__ import annotations


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
