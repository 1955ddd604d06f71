"""Distance to the next line."""

from __future__ import annotations

from codegen.ir.instructions import NEVER
from codegen.ir.lines import LINE_BYTES
from codegen.simd.register.decorator import for_kernels


@for_kernels
def elements_to_line(address, size):
    """Elements of `size` bytes from an address to the next line.

    0 if the address is on a line, NEVER if no element begins on one.
    """
    ahead = -address & (LINE_BYTES - 1)
    return ahead // size if ahead % size == 0 else NEVER
