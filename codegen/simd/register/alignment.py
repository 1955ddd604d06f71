"""Distance to the next line."""

from __future__ import annotations

from codegen.ir.lines import LINE_BYTES
from codegen.simd.register.decorator import for_kernels

NEVER = 1 << 62
"""Larger than the element count of any array."""


@for_kernels
def elements_to_line(address, size):
    """Elements of `size` bytes from an address to the next line.

    0 if the address is on a line, NEVER if no element begins on one.
    """
    ahead = -address & (LINE_BYTES - 1)
    return ahead // size if ahead % size == 0 else NEVER
