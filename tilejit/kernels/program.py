"""A function of loops, typed and super-vectorized, and its calls: checked, bound to shapes, and run."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any, TypeGuard

from codegen import (
    ArrayArg,
    BoundKernel,
    Cache,
    DirectCall,
    For,
    Function,
    IndexChecks,
    KernelValueError,
    ScalarArg,
    ScheduleError,
    Store,
    Tail,
    check_bounds,
    check_divisible,
    check_indices,
    check_powers,
    drop_empty,
    in_dask_worker,
    index_arrays,
    known_sizes,
    lazy,
    limits_call,
    loops_hold_gil,
    nested_accesses,
    rename_arrays,
    slowness_of,
    threads_by_size,
    verify_calls,
)
from tilejit.arrays.memory import Array, address
from tilejit.arrays.strided import overlaps_itself, share_memory
from tilejit.kernels.call_arguments import bits_of, call_key, integer_word
from tilejit.kernels.loop_kernels import LoopKernels
from tilejit.kernels.loop_options import LoopOptions
from tilejit.kernels.overlaps import Pair, check_subscripts, pairs_to_compare
from tilejit.kernels.promises import check_promises, is_promised, verifies
from tilejit.programs.direct_policy import LOOPS_AGAIN, LOOPS_FROM


class LoopProgram(LoopKernels):
    """One function of loops with its dtypes; `program(*arguments)` runs it.

    Args:
        function: the function.
        options: how to vectorize it.
        free: whether integer arguments are only operands, so that calls are not bound to their values.

    Attributes:
        indexed: the arrays whose elements are subscripts.

    Raises:
        KernelError: the function stores to an array whose elements are subscripts.
    """

    def __init__(self, function: Function, options: LoopOptions, *, free: bool = False) -> None:
        super().__init__(function, options)
        self.free = free
        self.used = {access.array for _, access in nested_accesses(self.function)}
        self.stored = {a.array for _, a in nested_accesses(self.function) if isinstance(a, Store)}
        self.indexed = index_arrays(self.function)
        self._bound: Cache[tuple[Any, ...], BoundCall] = Cache()
        self._twins: Cache[tuple[tuple[str, str], ...], LoopProgram] = Cache()

    @lazy
    def promised(self) -> Function:
        """The function with the promises about its loops, from its source and its options."""
        first, *rest = self.function.body or (None,)
        if not self.shared or not isinstance(first, For):
            return self.function
        return replace(self.function, body=(replace(first, parallel=True), *rest))

    @lazy
    def verifies(self) -> bool:
        """Whether each call checks the promises."""
        return not self.free and verifies(self.options.no_alias, self.promised, requested=self.options.verify)

    def __call__(self, *given: Any) -> Any:
        """Run the program, and return None, a number, or a tuple of numbers.

        Raises:
            IndexError: an access might be outside its array (a KernelError, like all of these).
            ValueError: an array that is written is read-only, or sizes conflict with the options.
            OverflowError: a number does not fit.
        """
        return self.bound(given).run(given)

    def bound(self, given: Sequence[Any]) -> BoundCall:
        """Precompute the calls with arguments like these.

        Raises:
            KernelError: as for a call.
        """
        key = tuple([call_key(value, free=self.free) for value in given])
        return self._bound.get(key) or self._bound.keep(key, BoundCall(self, given))

    def twin(self, same: tuple[tuple[str, str], ...]) -> LoopProgram:
        """The program for calls in which arrays are identical: pairs (name, name of the identical array).

        It runs on one thread, because promises about the loops assume disjoint arrays. A schedule that
        identical arrays forbid gives way to the order of the loops.
        """
        known = self._twins.get(same)
        if known is not None:
            return known
        alone = replace(self.options, parallel=False)
        made = LoopProgram(rename_arrays(self.function, dict(same)), alone, free=self.free)
        return self._twins.keep(same, made.as_scheduled())

    def as_scheduled(self) -> LoopProgram:
        """This program; one that runs element by element if its loops cannot have the schedule."""
        if self.options.schedule is None:
            return self
        try:
            _ = self.kernel
        except ScheduleError:
            alone = replace(self.options, schedule=None, virtual_vector_size=(1,))
            return LoopProgram(self.function, alone, free=self.free)
        return self

    def trusts(self, a: str, b: str) -> bool:
        """Whether calls rely on no_alias that two arrays share no memory; False for subscripts."""
        return is_promised(self.options.no_alias, a, b) and not self.indexed & {a, b}

    def without_empty(
        self, shapes: Mapping[str, tuple[int, ...]], integers: Mapping[str, int]
    ) -> LoopProgram:
        """The program for arrays of these shapes; masks skip those without elements."""
        if not self.indexed or self.options.index_bounds != "mask":
            return self
        function = drop_empty(self.function, known_sizes(shapes, integers))
        if function == self.function:
            return self
        return LoopProgram(function, self.options, free=self.free).as_scheduled()

    def named_by(self, a: str, b: str) -> tuple[str, str]:
        """For two names of one array, the one to drop and the one to keep, which is written if one is.

        An array that is only read may be a read-only view, such as a broadcast array.
        """
        return (a, b) if b in self.stored and a not in self.stored else (b, a)


class BoundCall:
    """The calls of a program with arrays of certain shapes and strides, and certain integers."""

    def __init__(self, program: LoopProgram, given: Sequence[Any]) -> None:
        named = list(zip(program.function.arguments, given, strict=True))
        self._arrays = [(k, a.name) for k, (a, _) in enumerate(named) if isinstance(a, ArrayArg)]
        arrays = {name: given[k] for k, name in self._arrays}
        bound = {a.name for a, _ in named if _is_integer(a)} if not program.free else set()
        self._integers = {a.name: integer_word(a.name, a.dtype, x) for a, x in named if a.name in bound}
        self._shapes = {name: x.shape for name, x in arrays.items()}
        self._strides = {name: x.strides for name, x in arrays.items()}
        self.program, self._runs = program.without_empty(self._shapes, self._integers), 0
        program = self.program
        check_indices(program.function, {a.name: int(x) for a, x in named if a.name in bound})
        indexed = check_bounds(program.function, self._shapes, self._integers)
        known = known_sizes(self._shapes, self._integers)
        self._index_checks = IndexChecks(indexed, self._shapes, known) if indexed else None
        check_powers(program.function, self._shapes, self._integers)
        if any(isinstance(x, Tail) and x.how == "assume_divisible" for x in program.directives):
            check_divisible(program.vectorized.function, self._shapes, self._integers)
        self._missing = [
            (k, "" if isinstance(a, ArrayArg) else a.dtype)
            for k, (a, _) in enumerate(named)
            if a.name not in bound
        ]
        self._only_arrays = len(self._missing) == len(self._arrays)
        self._indexed = [(k, name) for k, name in self._arrays if name in program.indexed]
        self._written = [(k, name) for k, name in self._arrays if name in program.stored]
        pairs = pairs_to_compare(
            [each for each in self._arrays if each[1] in program.used], program.stored, given
        )
        self._pairs: list[Pair] = []
        self._promised: list[tuple[int, int]] = []
        for pair in pairs:
            (i, a), (j, b), *_ = pair
            if program.trusts(a, b):
                self._promised.append((i, j))
            else:
                self._pairs.append(pair)
        alone = any(_shares_elements(given[k]) for k, _ in self._written)
        kernel = program.scalar_kernel if alone else program.sized_kernel(arrays, known)
        self._kernel = kernel.bind(self._shapes, self._strides, self._integers)
        if not indexed:
            verify_calls(kernel, self._shapes, self._strides, self._integers)
        size_bytes = sum(x.nbytes for x in arrays.values())
        shared = program.shared and not alone
        slowness, wanted = slowness_of(program.function), program.options.threads
        self._threads = threads_by_size(wanted, size_bytes, slowness) if shared else 1
        self._hold = loops_hold_gil(program.function, size_bytes, known)

    @lazy
    def _scalar(self) -> BoundKernel:
        return self.program.scalar_kernel.bind(self._shapes, self._strides, self._integers)

    @property
    def is_due(self) -> bool:
        """Whether native code should answer such calls from now on."""
        return not self.program.verifies and (self._runs == LOOPS_FROM or self._runs % LOOPS_AGAIN == 0)

    def index_calls(self, given: Sequence[Any]) -> tuple[DirectCall, ...] | None:
        """Direct calls that refuse subscripts outside of arrays, as `run` does; None if only Python can."""
        if self._index_checks is None:
            return ()
        sufficient = self._index_checks.sufficient(verify=self.program.options.verify)
        if sufficient is None:
            return None
        found = []
        for limits in sufficient:
            at = next(k for k, name in self._indexed if name == limits.array)
            dtype = self.program.function.array(limits.array).dtype
            found.append(limits_call(limits, dtype, given[at], at))
        return tuple(call for call in found if call is not None)

    def run(self, given: Sequence[Any]) -> Any:
        """Run one call."""
        self._runs += 1
        for k, name in self._written:
            if not given[k].flags.writeable:
                raise KernelValueError(f"{name} is read-only, but the kernel writes it\n  pass a copy of it")
        if self.program.verifies:
            check_promises(self.program.promised, self._promised, given)
        if self._only_arrays:
            at = [address(given[k]) for k, _ in self._missing]
        else:
            at = [bits_of(given[k], dtype) if dtype else address(given[k]) for k, dtype in self._missing]
        kernel, threads = self._kernel, self._threads
        for (i, _), (j, _), low, high, _ in self._pairs:
            if low < address(given[j]) - address(given[i]) < high:
                overlapping = self._overlapping(given)
                if overlapping:
                    check_subscripts(self.program.indexed, overlapping)
                    same = tuple(self.program.named_by(a, b) for a, b, twins in overlapping if twins)
                    if len(same) == len(overlapping):
                        return self.program.twin(same)(*given)
                    kernel, threads = self._scalar, 1
                break
        if self._index_checks is not None:
            named = {name: given[k] for k, name in self._indexed}
            self._index_checks.check(named, verify=self.program.options.verify)
        if threads > 1 and self.program.options.threads is None and in_dask_worker():
            threads = 1
        results = kernel.run(at, threads, hold_gil=self._hold and threads == 1, alive=given)
        return (results if len(results) > 1 else results[0]) if results else None

    def run_part(self, given: Sequence[Any], offsets: Sequence[int]) -> Any:
        """Run one call that only reads parts of arrays; each part starts that many bytes after the array."""
        assert not self._written, "expected a program that writes no array"
        at = [
            bits_of(given[k], dtype) if dtype else address(given[k]) + offsets[k]
            for k, dtype in self._missing
        ]
        results = self._kernel.run(at, hold_gil=self._hold, alive=given)
        return (results if len(results) > 1 else results[0]) if results else None

    def _overlapping(self, given: Sequence[Any]) -> list[tuple[str, str, bool]]:
        """Pairs of arrays that share memory, and whether they are identical."""
        out = []
        for (i, a), (j, b), low, high, alike in self._pairs:
            far = address(given[j]) - address(given[i])
            if low < far < high:
                twins = alike and not far
                if twins or share_memory(given[i], given[j]):
                    out.append((a, b, twins))
        return out


def _shares_elements(array: Array) -> bool:
    return overlaps_itself(array.shape, array.strides, array.itemsize)


def _is_integer(argument: ArrayArg | ScalarArg) -> TypeGuard[ScalarArg]:
    """Whether it is a number that calls are bound to."""
    return isinstance(argument, ScalarArg) and (argument.dtype == "i1" or argument.dtype[0] in "iu")
