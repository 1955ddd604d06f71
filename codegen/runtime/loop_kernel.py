"""Loop kernels ready to be called: argument tables, shares for threads, and results."""

from __future__ import annotations

import ctypes
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from struct import Struct
from typing import Any

import numpy as np

from codegen.analysis.bodies import shared_loop
from codegen.ir.nodes import RESULTS, Function
from codegen.ir.visit import trips_with
from codegen.runtime.direct_entries import RESULT, DirectCall
from codegen.runtime.kernel import KERNEL_PROTOTYPES, asm_of, llvm_of, native_address
from codegen.runtime.threads import run_parts
from codegen.support.caching import lazy
from codegen.support.dataclasses import dataclass

_RESULTS = {"f32": np.float32, "f64": np.float64, "i1": np.bool_}
_RESULTS |= {f"i{n}": getattr(np, f"int{n}") for n in (8, 16, 32, 64)}
_RESULTS |= {f"u{n}": getattr(np, f"uint{n}") for n in (8, 16, 32, 64)}


@dataclass(frozen=True, slots=True)
class LoopsSource:
    """A kernel's source and the function in registers that it prints.

    results     the dtypes of its results, 8 bytes each
    streamed    the arrays whose full lines it stores past the cache
    blocks      two loops and the rows of each square block that it transposes in registers
    """

    name: str
    source: str
    function: Function
    results: tuple[str, ...]
    streamed: tuple[str, ...] = ()
    blocks: tuple[tuple[str, str, int], ...] = ()

    @property
    def entries(self) -> tuple[str, ...]:
        """Its table of arguments: `A` for an address, `A.shape[0]`, `A.stride[0]` in bytes, or a scalar."""
        return tuple(argument.name for argument in self.function.arguments)


@dataclass(frozen=True)
class LoopKernel:
    """A loop function, scalar or super-vectorized, as machine code; compiled on the first call.

    emitted   the source, and the function as it is printed
    """

    function: Function
    emitted: LoopsSource

    @lazy
    def calls(self) -> dict[bool, Any]:
        """The native function, by whether it holds the GIL."""
        return {hold: make(self.address) for hold, make in KERNEL_PROTOTYPES.items()}

    @property
    def address(self) -> int:
        """The address of the machine code."""
        return native_address(self.emitted.name, self.emitted.source)

    @property
    def source(self) -> str:
        """The Python source that Numba compiles."""
        return self.emitted.source

    @property
    def llvm(self) -> str:
        """The optimized LLVM IR."""
        return llvm_of(self.emitted.name, self.source)

    @property
    def asm(self) -> str:
        """The machine code as assembly text."""
        return asm_of(self.llvm)

    def bind(
        self,
        shapes: Mapping[str, Sequence[int]],
        strides: Mapping[str, Sequence[int]],
        integers: Mapping[str, int],
    ) -> BoundKernel:
        """The kernel for arrays of these shapes and strides (in bytes) and these integers."""
        parts = {"shape": shapes, "stride": strides}
        missing = [a.name for a in self.function.arguments if a.name not in integers]
        operands = [missing.index(name) for name in self.function.operands if name != RESULTS]
        table: list[int] = []
        slots: list[tuple[int, int]] = []
        for slot, entry in enumerate(self.emitted.entries):
            array, _, number = entry.partition(".")
            if number:
                what, _, dimension = number.rstrip("]").partition("[")
                table.append(int(parts[what][array][int(dimension)]))
            elif entry in integers:
                table.append(integers[entry])
            else:
                table.append(0)
                slots.append((slot, missing.index(entry)))
        return BoundKernel(self, operands, table, slots, self.trips(shapes, integers))

    def trips(self, shapes: Mapping[str, Sequence[int]], integers: Mapping[str, int]) -> int | None:
        """The iterations of the loop that calls can share, else None."""
        loop = shared_loop(self.function)
        sizes = {f"{name}.shape[{k}]": int(n) for name, shape in shapes.items() for k, n in enumerate(shape)}
        return None if loop is None else trips_with(loop, {**sizes, **integers})


class BoundKernel:
    """A kernel bound to array shapes; only addresses and some numbers are missing.

    operands  the index of the missing argument for each of its operands, except results
    table     the entries of its argument table, 0 if they are missing
    slots     (index in the table, index of the missing argument)
    trips     the iterations of the loop that threads can share, or None
    """

    def __init__(
        self,
        kernel: LoopKernel,
        operands: Sequence[int],
        table: list[int],
        slots: list[tuple[int, int]],
        trips: int | None,
    ) -> None:
        self.kernel, self.operands, self.table, self.slots, self.trips = kernel, operands, table, slots, trips
        self._pack_operands = Struct(f"={len(kernel.function.operands)}q").pack
        self._pack_table = Struct(f"={len(table)}q").pack
        self._packed = self._pack_table(*table)
        self._calls, self._results = kernel.calls, kernel.emitted.results

    def run(
        self, given: Sequence[int], threads: int = 1, *, hold_gil: bool = False, alive: object = None
    ) -> tuple[Any, ...]:
        """Call the kernel and return what its function returns.

        given  the missing arguments: addresses, and the bits of numbers
        alive  what the addresses point into; threads keep it referenced until they finish
        """
        addresses = [given[k] for k in self.operands]
        sizes, call, trips = self._sizes(given), self._calls[hold_gil], self.trips
        if trips is None:
            results = (ctypes.c_int64 * len(self._results))()
            if self._results:
                addresses.append(ctypes.addressof(results))
            call(self._pack_operands(*addresses), 0, sizes, 0, 0)
            return tuple([_number(results, k, dtype) for k, dtype in enumerate(self._results)])
        operands = self._pack_operands(*addresses)
        if threads > 1:
            run_parts(partial(self._part, call, operands, sizes, alive), threads)
        elif trips:
            call(operands, 0, sizes, 0, trips)
        return ()

    def _sizes(self, given: Sequence[int]) -> bytes:
        """The argument table: the same for all calls, unless numbers are missing."""
        if not self.slots:
            return self._packed
        values = self.table.copy()
        for slot, which in self.slots:
            values[slot] = given[which]
        return self._pack_table(*values)

    def direct_call(self, positions: Sequence[int], known: Mapping[int, int]) -> DirectCall | None:
        """`run` on one thread as a direct call; None if there are no trips to run.

        positions  where each missing argument stands in the call
        known      words of missing arguments that are known already, by index
        """
        if self.trips == 0:
            return None
        results = (RESULT,) if self._results else ()
        operands = (*((positions[which], 0) for which in self.operands), *results)
        slots = tuple((slot, positions[which]) for slot, which in self.slots if which not in known)
        table = np.array(self.table, np.int64)
        for slot, which in self.slots:
            table[slot] = known.get(which, table[slot])
        return DirectCall(self.kernel.address, operands, table, 0, self.trips or 0, slots)

    @property
    def result_dtypes(self) -> tuple[np.dtype[Any] | None, ...]:
        """The dtypes of the returned numbers; None for those that are converted first."""
        kinds = [_RESULTS.get(dtype) for dtype in self._results]
        return tuple(np.dtype(kind) if kind else None for kind in kinds)

    def _part(
        self, call: Callable[..., None], operands: bytes, sizes: bytes, _: object, k: int, parts: int
    ) -> None:
        assert self.trips is not None
        begin, end = (self.trips * each // parts for each in (k, k + 1))
        if begin < end:
            call(operands, 0, sizes, begin, end)


def _number(results: Any, k: int, dtype: str) -> Any:
    if dtype in ("bf16", "f16"):
        wide = np.frombuffer(results, np.float32)[2 * k]
        return wide.astype(_half(dtype))
    kind = _RESULTS[dtype]
    return np.frombuffer(results, kind)[k * 8 // np.dtype(kind).itemsize]


def _half(dtype: str) -> Any:
    if dtype == "f16":
        return np.float16
    from ml_dtypes import bfloat16

    return bfloat16
