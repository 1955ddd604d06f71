"""A program's kernel calls with all arguments precomputed, which native code or ctypes can repeat."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from codegen import (
    COPIES_HOLD_GIL_BYTES,
    KERNEL_PROTOTYPES,
    LEND_BUFFER_BYTES,
    CopyProgram,
    KernelCall,
    Launch,
    cached,
    compiler_lock,
    copy_operands,
    dataclass,
)
from tilejit.arrays.memory import LINE_BYTES, address

if TYPE_CHECKING:
    from codegen import DirectCall

MOST_CALLS = 16
"""The most kernel calls of a copy to precompute; copies with more calls compute them each time."""

MOST_ENTRIES = 1 << 14
"""The most entries of offset tables to keep for repeated calls: 256 KiB."""


@dataclass(frozen=True, slots=True)
class NativeCall:
    """One call of a kernel, without the addresses of the arrays.

    function    calls the kernel from Python
    code        the address of the kernel's machine code
    src_offset  bytes from the first element of the source to the start of the call's part
    dst_offset  the same for the destination
    sizes       the kernel's argument table, whose address is `table`
    scratch     the address of a scratch buffer, for calls that hold the GIL; otherwise 0
    held        the objects to keep alive because `code`, `table` and `scratch` point into them
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


@dataclass(frozen=True, slots=True)
class NativeCalls:
    """The calls of a program on one thread, in order, and whether each holds the GIL."""

    program: CopyProgram
    calls: tuple[NativeCall, ...]
    holds_gil: bool

    def __call__(self, src: int, dst: int) -> None:
        """Run the calls on arrays whose first elements are at these addresses."""
        for x in self.calls:
            operands = copy_operands(src + x.src_offset, dst + x.dst_offset)
            x.function(operands, x.scratch, x.table, x.begin, x.end)

    def direct(self, src: int, dst: int) -> tuple[DirectCall, ...]:
        """The calls in native code's form.

        Args:
            src: the position of the source among the caller's arguments.
            dst: the position of the destination.
        """
        with compiler_lock:  # few processes repeat a copy often enough
            from codegen import DirectCall
        return tuple(
            DirectCall(
                x.code,
                ((src, x.src_offset), (dst, x.dst_offset)),
                x.sizes,
                x.begin,
                x.end,
                scratch=x.scratch,
            )
            for x in self.calls
        )


def native_calls(program: object, moved_bytes: int) -> NativeCalls | None:
    """The calls of a program; None if their arguments differ between runs, or if there are too many.

    Small copies hold the GIL, and so do larger copies through a shared buffer.

    Args:
        program: the program.
        moved_bytes: the bytes that it reads and writes.
    """
    if moved_bytes <= COPIES_HOLD_GIL_BYTES:
        return _calls(program, hold_gil=True)
    found = _calls(program, hold_gil=False)
    return found or (_calls(program, hold_gil=True) if moved_bytes <= LEND_BUFFER_BYTES else None)


def _calls(program: object, *, hold_gil: bool) -> NativeCalls | None:
    if not isinstance(program, CopyProgram):
        return None
    calls: list[NativeCall] = []
    for launch in (*program.first, *program.launches):
        own = _repeated(launch, lends_buffer=hold_gil and _has_gil())
        if own is None or len(calls) + len(own) > MOST_CALLS:
            return None
        code, function = launch.runs.kernel.address, KERNEL_PROTOTYPES[hold_gil]
        buffer, scratch = lent_scratch(launch.scratch_bytes)
        sides = launch.src_offset, launch.dst_offset
        for x in own:
            table, held = address(x.sizes), (launch, x, buffer)
            calls.append(
                NativeCall(function(code), code, *sides, x.sizes, table, x.begin, x.end, scratch, held)
            )
    return NativeCalls(program, tuple(calls), hold_gil)


def _repeated(launch: Launch, *, lends_buffer: bool) -> tuple[KernelCall, ...] | None:
    """The calls of a launch, for destinations with any alignment; None if they differ between runs.

    Elements in packed storage may have addresses in bits, which direct calls do not support.
    """
    if launch.misaligned or launch.units != (1, 1) or (launch.scratch_bytes and not lends_buffer):
        return None
    if launch.trips > MOST_ENTRIES and not launch.is_one_call:
        return None
    return launch.every_call(aligned=True)


def lent_scratch(size_bytes: int) -> tuple[NDArray[np.uint8] | None, int]:
    """A buffer shared by calls that hold the GIL, and the address of its first line; 0 without one."""
    if not size_bytes:
        return None, 0
    buffer = _shared_buffer(size_bytes.bit_length())
    return buffer, address(buffer) + -address(buffer) % LINE_BYTES


@cached(64)
def _shared_buffer(bits: int) -> NDArray[np.uint8]:
    """The shared buffer for sizes of that many bits.

    Every call that uses it holds the GIL, and kernels run no Python code, so uses never overlap.
    """
    return np.empty((1 << bits) + LINE_BYTES, np.uint8)


def _has_gil() -> bool:
    """Whether this Python has a GIL."""
    enabled = getattr(sys, "_is_gil_enabled", None)
    return enabled is None or bool(enabled())
