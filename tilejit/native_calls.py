"""A plan's kernels as calls with nothing left to work out, which machine code or ctypes can repeat."""

from __future__ import annotations

import ctypes
import sys
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

from codegen import KERNEL_PROTOTYPES, CopyProgram, KernelCall, Launch
from tilejit.memory import LINE_BYTES, address


@dataclass(frozen=True, slots=True)
class NativeCall:
    """One call of a kernel, but for the addresses of the arrays.

    code        where the kernel's machine code begins; `function` calls it from Python
    offsets     bytes from the first elements of source and destination to where it begins
    sizes       its table of arguments; what `held` is, they point to
    """

    function: Any
    code: int
    src_offset: int
    dst_offset: int
    sizes: NDArray[np.int64]
    begin: int
    end: int
    held: object = None

    def __call__(self, src: int, dst: int) -> None:
        """Run it on arrays whose first elements are there."""
        self.function(src + self.src_offset, dst + self.dst_offset, address(self.sizes), self.begin, self.end)


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
        code = ctypes.cast(launch.step.kernel.call, ctypes.c_void_p).value  # type: ignore[arg-type]
        if code is None:
            return ()
        sizes, begin, end, held = own
        function, src, dst = KERNEL_PROTOTYPES[hold_gil](code), launch.src_offset, launch.dst_offset
        calls.append(NativeCall(function, code, src, dst, sizes, begin, end, held))
    return tuple(calls)


def _one_call(launch: Launch, *, lends_buffer: bool) -> tuple[NDArray[np.int64], int, int, object] | None:
    """Arguments, begin and end of a launch, and what its arguments point to."""
    if launch.is_one_call:
        return launch.sizes, 0, launch.trips, launch
    if launch.misaligned or not lends_buffer:
        return None
    each = [call for _, call in launch.every_call(aligned=True)]
    if len(each) != 1:
        return None
    (call,) = each
    return call.sizes, call.begin, call.end, (call, _lend_buffer(call))


def _lend_buffer(call: KernelCall) -> NDArray[np.uint8] | None:
    """The buffer that a call goes through, named in its arguments: all calls of about its size share one.

    Every one of them holds Python's lock, and kernels run no Python, so no two are in it at once.
    """
    if not call.scratch_bytes:
        return None
    held = _shared_buffer(call.scratch_bytes.bit_length())
    call.sizes[call.scratch_at] = address(held) + -address(held) % LINE_BYTES
    return held


@lru_cache(maxsize=64)
def _shared_buffer(bits: int) -> NDArray[np.uint8]:
    """A buffer for sizes of so many bits."""
    return np.empty((1 << bits) + LINE_BYTES, np.uint8)


def _locks() -> bool:
    """Whether this Python has a lock that one thread holds at a time."""
    enabled = getattr(sys, "_is_gil_enabled", None)
    return enabled is None or bool(enabled())
