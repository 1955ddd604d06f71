"""Where whole lines begin."""

from __future__ import annotations

from codegen.ir.copies.tiles import LINE_BYTES
from codegen.simd.register.decorator import for_kernels

NEVER = 1 << 62
"""More elements than any array has."""


@for_kernels
def elements_to_line(address, size):
    """Elements of `size` bytes from an address to the next line: 0 on one, NEVER where none begins a line."""
    ahead = -address & (LINE_BYTES - 1)
    return ahead // size if ahead % size == 0 else NEVER
