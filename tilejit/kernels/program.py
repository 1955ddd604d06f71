"""A function of loops, typed and super-vectorized, and its calls: checked, bound to shapes, and run."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from math import prod
from typing import Any, TypeGuard

from codegen import (
    CALIBRATED_FROM_BYTES,
    ArrayArg,
    BoundKernel,
    Cache,
    DirectCall,
    For,
    Function,
    IndexChecks,
    KernelValueError,
    LoopKernel,
    ScalarArg,
    Statement,
    Store,
    TiledLoops,
    Vectorized,
    check_bounds,
    check_divisible,
    check_indices,
    check_powers,
    choose_shape,
    drop_empty,
    flatten_values,
    in_dask_worker,
    index_arrays,
    known_sizes,
    lazy,
    limits_call,
    loop_kernel,
    loops_hold_gil,
    machine,
    machine_thresholds,
    nested_accesses,
    rename_arrays,
    runs_in_tiles,
    slowness_of,
    strips_text,
    threads_by_size,
    tile_function,
    transposed_tile,
    vectorize_function,
)
from tilejit.arrays.memory import Array, address
from tilejit.arrays.strided import order_of, overlaps_itself, share_memory
from tilejit.kernels.call_arguments import bits_of, call_key, integer_word
from tilejit.kernels.loop_options import LoopOptions
from tilejit.kernels.overlaps import Pair, check_apart, pairs_to_compare
from tilejit.kernels.promises import check_promises, is_promised, verifies
from tilejit.programs.direct_policy import LOOPS_AGAIN, LOOPS_FROM

WRITTEN_PART = 4
"""If less than this fraction of the streaming threshold is written, it stays in the cache."""

LEAST_RUN_BYTES = 1024
"""The shortest rows to stream; shorter rows share too many lines, which are stored in two parts."""


class LoopProgram:
    """One function of loops with its dtypes; `program(*arguments)` runs it.

    function   the scalar form, which defines the meaning options    how to vectorize it free       whether
    its integer arguments are only computed with, so that calls are not bound to their values indexed    the
    arrays whose elements are subscripts

    Raises:
        KernelError: the function stores to an array whose elements are subscripts.
    """

    def __init__(self, function: Function, options: LoopOptions, *, free: bool = False) -> None:
        self.function, self.options, self.free = flatten_values(function), options, free
        self.used = {access.array for _, access in nested_accesses(self.function)}
        self.stored = {a.array for _, a in nested_accesses(self.function) if isinstance(a, Store)}
        self.indexed = index_arrays(self.function)
        self._bound: Cache[tuple[Any, ...], BoundCall] = Cache()
        self._twins: Cache[tuple[tuple[str, str], ...], LoopProgram] = Cache()

    @lazy
    def tiled(self) -> TiledLoops:
        """The loops to super-vectorize: those of the function, or their tiles and the loops inside them."""
        if self.options.vectorize_at == "before_tile":
            return TiledLoops(self.function, ())
        loops = self._super_vectorized(self.function).loops
        return tile_function(
            self.function, {k: loop.shape[-1] for k, loop in enumerate(loops) if loop.vectorized}
        )

    @lazy
    def vectorized(self) -> Vectorized:
        """The result of the super-vectorizer.

        Raises:
            KernelError: a size or fastest_varying is invalid.
        """
        return self._super_vectorized(self.tiled.function)

    @lazy
    def sizes(self) -> tuple[int, ...]:
        """The shape of its super-vectors, as requested or chosen by "auto"."""
        options = self.options
        asked = options.sizes(self.function)
        if not options.is_auto or options.fastest_varying or options.vectorize_at == "after_tile":
            return asked
        registers, reductions = options.auto_registers, options.reductions_in_lanes
        lanes, scans = asked[0] // registers, options.vectorize_scans
        return choose_shape(self.function, registers, lanes, reductions, options.tail, scans)

    def _super_vectorized(self, function: Function, sizes: tuple[int, ...] | None = None) -> Vectorized:
        options = self.options
        fastest, reductions = options.fastest_varying, options.reductions_in_lanes
        scans = options.vectorize_scans
        return vectorize_function(function, sizes or self.sizes, fastest, reductions, options.tail, scans)

    @lazy
    def scalar_kernel(self) -> LoopKernel:
        """The kernel that runs element by element, which is also correct for overlapping arrays."""
        return loop_kernel(self.function, "scalar")

    @lazy
    def kernel(self) -> LoopKernel:
        """The super-vectorized kernel if a loop vectorizes, otherwise the scalar one."""
        if not any(report.vectorized for report in self.vectorized.loops):
            return self.scalar_kernel
        return self._vector_kernel(stream=False)

    @lazy
    def streaming_kernel(self) -> LoopKernel:
        """The same for arrays larger than any cache: arrays that it only writes bypass the cache."""
        return self.kernel if self.kernel is self.scalar_kernel else self._vector_kernel(stream=True)

    @lazy
    def tiled_kernel(self) -> LoopKernel:
        """The same in tiles, if blocks are transposed and the order of tiles is legal: for large arrays."""
        tile = transposed_tile(self.sizes) if self.options.is_auto else None
        if tile is None or self.kernel is self.scalar_kernel:
            return self.kernel
        wide = self._super_vectorized(self.function, tile)
        alike = [report.vectorized for report in wide.loops] == [r.vectorized for r in self.vectorized.loops]
        if not alike or wide.checks != self.vectorized.checks:
            return self.kernel
        return loop_kernel(wide.function, self.options.tail, tiles=True, fast=self.options.fastmath)

    def _vector_kernel(self, *, stream: bool) -> LoopKernel:
        options = self.options
        return loop_kernel(
            self.vectorized.function,
            options.tail,
            strips=not options.is_auto,
            stream=stream,
            fast=options.fastmath,
        )

    def sized_kernel(self, arrays: Mapping[str, Array]) -> LoopKernel:
        """The faster of the two for such sizes, by the caches and by this machine's measured copies."""
        size_bytes = sum(_extent_bytes(x) for x in arrays.values())
        cached = self.tiled_kernel if runs_in_tiles(size_bytes) else self.kernel
        if size_bytes < CALIBRATED_FROM_BYTES or self.kernel is self.scalar_kernel:
            return cached
        streamed = [arrays[name] for name in self.streaming_kernel.emitted.streamed]
        if not streamed or min(_run_bytes(x) for x in streamed) < LEAST_RUN_BYTES:
            return cached
        written = WRITTEN_PART * sum(_extent_bytes(x) for x in streamed)
        least = machine_thresholds(size_bytes).stream_bytes
        return self.streaming_kernel if min(size_bytes, written) >= least else cached

    @lazy
    def failures(self) -> tuple[Any, ...]:
        """Reports of the loops of nests without a vectorized loop."""
        reports, failed = list(self.vectorized.loops), []
        for statement in self.tiled.function.body:
            own = [reports.pop(0) for _ in _loops(statement)]
            if own and not any(report.vectorized for report in own):
                failed += own
        return tuple(failed)

    @lazy
    def promised(self) -> Function:
        """The function with all that was promised of its loops, by its text and by options."""
        first, *rest = self.function.body or (None,)
        if not self.shared or not isinstance(first, For):
            return self.function
        return replace(self.function, body=(replace(first, parallel=True), *rest))

    @lazy
    def verifies(self) -> bool:
        """Whether each call checks the promises."""
        return not self.free and verifies(self.options.no_alias, self.promised, asked=self.options.verify)

    @property
    def schedule(self) -> str:
        """How super-vectors map to registers and threads, in one line."""
        if self.kernel is self.scalar_kernel:
            return "schedule  element by element"
        shape = "x".join(map(str, self.sizes)) + self.options.machine_sizes
        registers = f"registers of {machine().register_bytes} bytes"
        parts = [
            f"super-vectors {shape}",
            registers,
            f"tail {' and '.join(dict.fromkeys(r.tail for r in self.vectorized.loops if r.vectorized))}",
            "threads share the outermost loop" if self.shared else "one thread",
        ]
        if self.options.vectorize_at == "after_tile":
            tiles = " and ".join("x".join(map(str, sizes)) for sizes in dict.fromkeys(self.tiled.tiles))
            parts.insert(0, f"tiles {tiles or 'none'}")
        if self.streaming_kernel.emitted.streamed:
            parts.append("streaming stores where arrays are large")
        tile = transposed_tile(self.sizes)
        if tile and self.tiled_kernel is not self.kernel:
            parts.append(f"tiles {'x'.join(map(str, tile))} where arrays are large")
        if not self.options.is_auto:
            parts.insert(
                parts.index(registers), strips_text(self.vectorized.function, machine().register_bytes)
            )
        if "transposed_" in self.kernel.emitted.source:
            parts.insert(parts.index(registers) + 1, "blocks transposed in registers")
        return f"schedule  {' | '.join(parts)}"

    @property
    def shared(self) -> bool:
        """Whether iterations of the outermost loop may run on several threads."""
        body, wish = self.function.body, self.options.parallel
        if len(body) != 1 or not isinstance(body[0], For) or body[0].carried or wish is False:
            return False
        return body[0].parallel or (wish is not None and not self.function.results)

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

        It runs on one thread, because promises about the loops assume disjoint arrays.
        """
        known = self._twins.get(same)
        if known is not None:
            return known
        alone = replace(self.options, parallel=False)
        made = LoopProgram(rename_arrays(self.function, dict(same)), alone, free=self.free)
        return self._twins.keep(same, made)

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
        return self if function == self.function else LoopProgram(function, self.options, free=self.free)

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
        if program.options.tail == "assume_divisible":
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
        kernel = program.scalar_kernel if alone else program.sized_kernel(arrays)
        self._kernel = kernel.bind(self._shapes, self._strides, self._integers)
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
                    check_apart(self.program.indexed, overlapping)
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


def _extent_bytes(array: Array) -> int:
    """Bytes of an array at distinct addresses."""
    walked = [n for n, step in zip(array.shape, array.strides, strict=True) if step]
    return int(prod(walked) * array.itemsize)


def _run_bytes(array: Array) -> int:
    """The most contiguous bytes: those of a row, or of a column in Fortran order."""
    along = {"C": -1, "F": 0}.get(order_of(array))
    return 0 if along is None or not array.ndim else int(array.shape[along] * array.itemsize)


def _shares_elements(array: Array) -> bool:
    return overlaps_itself(array.shape, array.strides, array.itemsize)


def _is_integer(argument: ArrayArg | ScalarArg) -> TypeGuard[ScalarArg]:
    """Whether it is a number that calls are bound to."""
    return isinstance(argument, ScalarArg) and (argument.dtype == "i1" or argument.dtype[0] in "iu")


def _loops(statement: Statement) -> list[For]:
    if not isinstance(statement, For):
        return []
    return [statement, *(inner for s in statement.body for inner in _loops(s))]
