"""A function of loops, typed and super-vectorised, and its calls: checked, bound to shapes, sent to kernels."""

from __future__ import annotations

import struct
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from codegen.emit.loop_values import ELEMENT_BYTES
from codegen.errors import KernelError
from codegen.lazy import lazy
from codegen.loop_kernel import HOLD_GIL_BYTES, BoundKernel, LoopKernel, vector_bytes
from codegen.loops.bounds import accesses, check_bounds, extremes
from codegen.loops.index import Index, add, scale
from codegen.loops.ir import ArrayArg, For, Function, ScalarArg, Statement, Store
from codegen.loops.rename import with_arrays
from codegen.threads import in_dask_worker, thread_count
from tilejit.memory import Array, address
from tilejit.strided import overlaps_itself, share_memory, span

MOST_BOUND = 1024
"""Shapes whose calls are remembered; past it all are forgotten, and worked out anew."""

PIECES = 4
"""Registers of the super-vector that "auto" stands for."""


@dataclass(frozen=True, slots=True)
class LoopOptions:
    """What `tilejit.kernel` was asked for, checked; its docstring says what each is."""

    virtual_vector_size: tuple[int, ...] | str = "auto"
    fastest_varying: tuple[int, ...] | None = None
    vectorize_reductions: bool = False
    tail: str = "mask"
    on_fail: str = "scalar"
    vectorize_at: str = "before_tile"
    parallel: bool | int | None = None
    fastmath: bool = False

    def sizes(self, function: Function) -> tuple[int, ...]:
        """The super-vector's shape: multiples of a register are of its lanes of the widest array."""
        if isinstance(self.virtual_vector_size, tuple):
            return self.virtual_vector_size
        text = self.virtual_vector_size
        pieces = PIECES if text == "auto" else int(text.removesuffix("*hw"))
        widths = [ELEMENT_BYTES[a.dtype] for a in function.arguments if isinstance(a, ArrayArg)]
        return (pieces * (vector_bytes() // max(widths, default=8)),)


class LoopProgram:
    """One function of loops with its dtypes: `program(*arguments)` runs it.

    function   the scalar form, which is the meaning
    options    how to vectorise it
    """

    def __init__(self, function: Function, options: LoopOptions) -> None:
        self.function, self.options = function, options
        self.used = {access.array for _, access in accesses(function)}
        self.stored = {a.array for _, a in accesses(function) if isinstance(a, Store)}
        self._bound: dict[tuple[Any, ...], BoundCall] = {}
        self._twins: dict[tuple[tuple[str, str], ...], LoopProgram] = {}

    @lazy
    def vectorised(self) -> Any:
        """What the super-vectoriser made of it.

        Raises:
            KernelError: a size or fastest_varying is wrong.
        """
        from codegen.loops.super_vectorize import super_vectorize

        options = self.options
        reductions = options.vectorize_reductions or options.fastmath
        sizes = options.sizes(self.function)
        return super_vectorize(self.function, sizes, options.fastest_varying, reductions, options.tail)

    @lazy
    def scalar_kernel(self) -> LoopKernel:
        """Element by element, right for arrays that overlap too."""
        return LoopKernel(self.function, "scalar")

    @lazy
    def kernel(self) -> LoopKernel:
        """In super-vectors, where some loop can; else the scalar one."""
        vectorised = self.vectorised
        if not any(report.vectorised for report in vectorised.loops):
            return self.scalar_kernel
        return LoopKernel(vectorised.function, self.options.tail)

    @lazy
    def failures(self) -> tuple[Any, ...]:
        """Reports of the loops of nests in which nothing was vectorised."""
        reports, failed = list(self.vectorised.loops), []
        for statement in self.function.body:
            own = [reports.pop(0) for _ in _loops(statement)]
            if own and not any(report.vectorised for report in own):
                failed += own
        return tuple(failed)

    @property
    def schedule(self) -> str:
        """How super-vectors become registers and threads, in a line."""
        if self.kernel is self.scalar_kernel:
            return "schedule  element by element"
        shape = "x".join(map(str, self.options.sizes(self.function)))
        threads = "threads share the outermost loop" if self.shared else "one thread"
        return f"schedule  super-vectors {shape} | registers of {vector_bytes()} bytes | tail {self.options.tail} | {threads}"

    @property
    def shared(self) -> bool:
        """Whether iterations of the outermost loop may run on several threads."""
        body, wish = self.function.body, self.options.parallel
        if len(body) != 1 or not isinstance(body[0], For) or body[0].carried or wish is False:
            return False
        return body[0].parallel or (wish is not None and not self.function.results)

    def __call__(self, *given: Any) -> Any:
        """Run it: None, a number, or a tuple of numbers.

        Raises:
            KernelError: an access might leave its array, an array that is written is read-only, or a number
                does not fit.
        """
        key = tuple([(a.shape, a.strides) if isinstance(a, np.ndarray) else _key(a) for a in given])
        bound = self._bound.get(key)
        if bound is None:
            bound = BoundCall(self, given)
            if len(self._bound) >= MOST_BOUND:
                self._bound.clear()
            self._bound[key] = bound
        return bound.run(given)

    def twin(self, same: tuple[tuple[str, str], ...]) -> LoopProgram:
        """The program for calls where arrays are the very same ones: pairs (name, name of the one it is)."""
        if same not in self._twins:
            self._twins[same] = LoopProgram(with_arrays(self.function, dict(same)), self.options)
        return self._twins[same]


class BoundCall:
    """The calls of a program with arrays of certain shapes and strides, and certain integers."""

    def __init__(self, program: LoopProgram, given: Sequence[Any]) -> None:
        self.program = program
        function = program.function
        arrays = {a.name: x for a, x in zip(function.arguments, given, strict=True) if isinstance(a, ArrayArg)}
        self._arrays = [(k, a.name) for k, a in enumerate(function.arguments) if isinstance(a, ArrayArg)]
        self._written = [(k, name) for k, name in self._arrays if name in program.stored]
        self._floats = [
            (k, a.name, a.dtype)
            for k, a in enumerate(function.arguments)
            if isinstance(a, ScalarArg) and a.dtype[0] not in "iu"
        ]
        integers = {
            a.name: _integer(a, x)
            for a, x in zip(function.arguments, given, strict=True)
            if isinstance(a, ScalarArg) and a.dtype[0] in "iu"
        }
        self._shapes = {name: x.shape for name, x in arrays.items()}
        self._strides = {name: x.strides for name, x in arrays.items()}
        self._integers = integers
        check_bounds(function, self._shapes, integers)
        if program.options.tail == "assume_divisible":
            check_divisible(program.vectorised.function, self._shapes, integers)
        self._spans = {name: span(x.shape, x.strides, x.itemsize) for name, x in arrays.items()}
        self._pairs = _pairs([each for each in self._arrays if each[1] in program.used], program.stored, arrays)
        alone = any(overlaps_itself(arrays[n].shape, arrays[n].strides, arrays[n].itemsize) for _, n in self._written)
        kernel = program.scalar_kernel if alone else program.kernel
        self._kernel = kernel.bind(self._shapes, self._strides, integers)
        self._bytes = sum(x.nbytes for x in arrays.values())
        self._threads = self._thread_count() if not alone else 1
        self._hold = self._bytes <= HOLD_GIL_BYTES

    def _thread_count(self) -> int:
        """For the whole call; asked for once, since it hangs on the size."""
        if not self.program.shared:
            return 1
        wish = self.program.options.parallel
        wanted = None if wish is None or isinstance(wish, bool) else wish
        return thread_count(wanted, self._bytes)

    @lazy
    def _scalar(self) -> BoundKernel:
        return self.program.scalar_kernel.bind(self._shapes, self._strides, self._integers)

    def run(self, given: Sequence[Any]) -> Any:
        """One call."""
        addresses = {name: address(given[k]) for k, name in self._arrays}
        for k, name in self._written:
            if not given[k].flags.writeable:
                raise KernelError(f"{name} is read-only, and the kernel writes it\n  give a copy of it")
        kernel, threads = self._kernel, self._threads
        if self._pairs:
            overlapping = self._overlapping(given, addresses)
            if overlapping:
                same = tuple((b, a) for a, b, twins in overlapping if twins)
                if len(same) == len(overlapping):
                    return self.program.twin(same)(*given)
                kernel, threads = self._scalar, 1
        for k, name, dtype in self._floats:
            addresses[name] = _bits(given[k], dtype)
        threads = 1 if threads > 1 and self.program.options.parallel is None and in_dask_worker() else threads
        results = kernel.run(addresses, threads, hold_gil=self._hold and threads == 1)
        return (results if len(results) > 1 else results[0]) if results else None

    def _overlapping(self, given: Sequence[Any], at: dict[str, int]) -> list[tuple[str, str, bool]]:
        """Pairs of arrays that share memory, and whether both are one and the same."""
        out = []
        for (i, a), (j, b), alike in self._pairs:
            (low, stop), (other_low, other_stop) = self._spans[a], self._spans[b]
            if at[a] + low < at[b] + other_stop and at[b] + other_low < at[a] + stop:
                twins = alike and at[a] == at[b]
                if twins or share_memory(given[i], given[j]):
                    out.append((a, b, twins))
        return out


def _pairs(
    arrays: list[tuple[int, str]], stored: set[str], given: dict[str, Array]
) -> list[tuple[tuple[int, str], tuple[int, str], bool]]:
    """Pairs of arrays of which one is written, and whether they may be one: same dtype, shape and strides."""
    out = []
    for k, one in enumerate(arrays):
        for two in arrays[k + 1 :]:
            if one[1] in stored or two[1] in stored:
                a, b = given[one[1]], given[two[1]]
                alike = a.dtype == b.dtype and a.shape == b.shape and a.strides == b.strides
                out.append((one, two, alike))
    return out


def check_divisible(function: Function, shapes: dict[str, tuple[int, ...]], integers: dict[str, int]) -> None:
    """Refuse loops over super-vectors that would leave a tail.

    Raises:
        KernelError: iterations are no multiple of the size, or cannot be counted before the call.
    """
    values = {f"{name}.shape[{k}]": n for name, shape in shapes.items() for k, n in enumerate(shape)} | integers

    def check(body: tuple[Statement, ...], around: tuple[For, ...]) -> None:
        for statement in body:
            if not isinstance(statement, For):
                continue
            if statement.size > 1:
                _check_trips(statement, around, values)
            check(statement.body, (*around, replace(statement, step=statement.step // statement.size)))

    check(function.body, ())


def _check_trips(loop: For, around: tuple[For, ...], values: dict[str, int]) -> None:
    step = loop.step // loop.size
    length: Index = add(loop.upper[0], scale(loop.lower[0], -1))
    low, high = extremes(length, around, values)
    if len(loop.lower) + len(loop.upper) > 2 or low is None or low != high:
        raise KernelError(
            f"tail='assume_divisible' cannot be checked for loop {loop.index}: how often it runs hangs on outer "
            "loops\n  use tail='mask'"
        )
    trips = len(range(0, low, step))
    if trips % loop.size:
        raise KernelError(
            f"tail='assume_divisible', but loop {loop.index} runs {trips} times, no multiple of {loop.size}\n"
            "  use tail='mask', or pad the arrays"
        )


def _loops(statement: Statement) -> list[For]:
    if not isinstance(statement, For):
        return []
    return [statement, *(inner for s in statement.body for inner in _loops(s))]


def _key(value: Any) -> Any:
    """What a call's plan hangs on of a number: all of an integer, which may be a bound; of a float nothing."""
    return float if isinstance(value, float | np.floating) else (type(value), value)


def _integer(argument: ScalarArg, value: Any) -> int:
    number = int(value)
    if not -(1 << 63) <= number < 1 << 63:
        if argument.dtype == "u64" and 0 <= number < 1 << 64:
            return number - (1 << 64)
        raise KernelError(f"{argument.name}={number} does not fit {argument.dtype}")
    return number


def _bits(value: Any, dtype: str) -> int:
    """A float as the entry of a table."""
    if dtype == "f64":
        return int.from_bytes(struct.pack("<d", value), "little", signed=True)
    with np.errstate(over="ignore"):
        return int(np.float32(value).view(np.int32))


