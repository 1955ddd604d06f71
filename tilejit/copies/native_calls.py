"""A plan's kernels as calls with nothing left to work out, which machine code or ctypes can repeat."""

from __future__ import annotations

import sys
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from codegen import KERNEL_PROTOTYPES, CopyProgram, KernelCall, Launch, cached, copy_operands
from tilejit.arrays.memory import LINE_BYTES, address


@dataclass(frozen=True, slots=True)
class NativeCall:
    """One call of a kernel, but for the addresses of the arrays.

    code        where the kernel's machine code begins; `function` calls it from Python
    offsets     bytes from the first elements of source and destination to where it begins
    sizes       its table of arguments, which is at `table`; what `held` is, they point to
    scratch     the address of scratch, for calls that hold Python's lock; 0 without
    """

    function: Any
    code: int
    src_offset: int
    dst_offset: int
    sizes: NDArray[np.int64]
    table: int
    begin: int
    end: int
    scratch: int = 0
    held: object = None

    def __call__(self, src: int, dst: int) -> None:
        """Run it on arrays whose first elements are there."""
        operands = copy_operands(src + self.src_offset, dst + self.dst_offset)
        self.function(operands, self.scratch, self.table, self.begin, self.end)

    def operands(self, src: int, dst: int) -> tuple[tuple[int, int], tuple[int, int]]:
        """Its operands as a direct call has them, where source and destination are these arguments."""
        return (src, self.src_offset), (dst, self.dst_offset)


def native_calls(program: object, *, hold_gil: bool) -> tuple[NativeCall, ...]:
    """The calls of a program, in order; empty where what a call needs is not the same each time.

    A kernel that goes through a buffer is among them only if every call holds Python's lock.
    """
    if not isinstance(program, CopyProgram) or program.first:
        return ()
    calls: list[NativeCall] = []
    for launch in program.launches:
        own = _one_call(launch, lends_buffer=hold_gil and _locks())
        if own is None or launch.fill is not None:
            return ()
        code, function = launch.step.kernel.address, KERNEL_PROTOTYPES[hold_gil]
        buffer = _shared_buffer(launch.scratch_bytes.bit_length()) if launch.scratch_bytes else None
        scratch = 0 if buffer is None else address(buffer) + -address(buffer) % LINE_BYTES
        sides, table = (launch.src_offset, launch.dst_offset), address(own.sizes)
        held = launch, own, buffer
        calls.append(
            NativeCall(function(code), code, *sides, own.sizes, table, own.begin, own.end, scratch, held)
        )
    return tuple(calls)


def _one_call(launch: Launch, *, lends_buffer: bool) -> KernelCall | None:
    """The only call of a launch, for destinations that begin anywhere in a line; None if it makes others."""
    if launch.misaligned or not (lends_buffer or (launch.is_one_call and not launch.scratch_bytes)):
        return None
    each = [call for _, call in launch.every_call(aligned=True)]
    return each[0] if len(each) == 1 else None


@cached(64)
def _shared_buffer(bits: int) -> NDArray[np.uint8]:
    """A buffer for sizes of so many bits.

    Every call with it holds Python's lock, and kernels run no Python, so no two are in it at once.
    """
    return np.empty((1 << bits) + LINE_BYTES, np.uint8)


def _locks() -> bool:
    """Whether this Python has a lock that one thread holds at a time."""
    enabled = getattr(sys, "_is_gil_enabled", None)
    return enabled is None or bool(enabled())
