"""The kernels of a function of loops: scalar, super-vectorized, streaming and tiled."""

from __future__ import annotations

from collections.abc import Mapping
from math import prod
from typing import Any

from codegen import (
    CALIBRATED_FROM_BYTES,
    Directive,
    For,
    Function,
    If,
    LoopKernel,
    Parallel,
    Statement,
    Stream,
    Tile,
    Vectorize,
    Vectorized,
    add_disjoint_bits,
    choose_shape,
    choose_strips,
    choose_tiles,
    choose_transposed_tiles,
    fills_blocks,
    flatten_values,
    in_tiles,
    lazy,
    loop_kernel,
    machine,
    name_loops,
    only_reduces,
    outer_loop,
    pointing,
    refuse,
    runs_in_tiles,
    schedule_function,
    shared_loop,
    streamed_from,
    strips_text,
    vectorize_function,
)
from tilejit.arrays.memory import Array
from tilejit.arrays.strided import order_of
from tilejit.kernels.loop_options import LoopOptions

WRITTEN_PART = 4
"""If less than this fraction of the streaming threshold is written, it stays in the cache."""

LEAST_RUN_BYTES = 1024
"""The shortest rows to stream; shorter rows share too many lines, which are stored in two parts."""


class LoopKernels:
    """The kernels of one function of loops, each compiled when it is first needed.

    Args:
        function: the scalar form, which defines the meaning.
        options: how to vectorize it.
    """

    def __init__(self, function: Function, options: LoopOptions) -> None:
        self.function = name_loops(add_disjoint_bits(flatten_values(function)))
        self.options = options

    @lazy
    def vectorized(self) -> Vectorized:
        """The result of the super-vectorizer, or of the schedule that the caller wrote.

        Raises:
            KernelError: a size or fastest_varying is invalid, or the loops cannot run as the schedule says.
        """
        options, function = self.options, self.function
        reductions, scans = options.reductions_in_lanes, options.vectorize_scans
        if options.schedule is not None:
            return schedule_function(function, options.schedule, reductions, scans)
        fastest, tail = options.fastest_varying, options.tail
        return vectorize_function(function, self.sizes, fastest, reductions, tail, scans)

    @lazy
    def sizes(self) -> tuple[int, ...]:
        """The shape of its super-vectors, as requested or chosen by "auto".

        If no nest has as many loops as there are sizes, the outermost sizes are omitted. One size is that of
        both loops if arrays are contiguous along different ones. If no loop but reductions could run in
        lanes, which have one dimension, the last size is theirs.
        """
        options = self.options
        sizes = options.sizes(self.function)
        if options.fastest_varying or (options.is_auto and options.vectorize_at == "after_tile"):
            return sizes
        how = options.reductions_in_lanes, options.tail, options.vectorize_scans
        if len(sizes) == 1 and options.vectorize_at != "after_tile":
            side = sizes[0] // options.auto_registers if options.is_auto else sizes[0]
            return choose_shape(self.function, sizes, side, *how)
        most = max(map(_depth, self.function.body), default=0)
        kept = [k for k, size in enumerate(sizes) if size > 1]
        sizes = sizes if len(kept) <= most or not most else sizes[kept[-most] :]
        return sizes[-1:] if only_reduces(self.function, sizes, *how) else sizes

    @lazy
    def directives(self) -> tuple[Directive, ...]:
        """How the loops run, and which of them threads share; none if they run element by element.

        Raises:
            KernelError: as for `vectorized`, or threads may not share the loop that the schedule says.
        """
        named = next((x for x in self._chosen if isinstance(x, Parallel)), None)
        if named and not self.shared:
            fix = "pass parallel=True, or write tilejit.parallel(range(n)) in the function"
            with pointing(self.options.schedule or "", self._chosen, fix):
                refuse(f"expected a loop that is declared parallel, got {named}", named)
        found = tuple(x for x in self._chosen if x is not named)
        shared = (Parallel(outer_loop(self.function, found)),) if self.shared and (found or named) else ()
        return (*found, *shared)

    @lazy
    def _chosen(self) -> tuple[Directive, ...]:
        """How the loops run, as a schedule or the options say."""
        options, made = self.options, self.vectorized
        if options.schedule is not None or not made.directives:
            return made.directives
        after = options.vectorize_at == "after_tile"
        tiles = choose_tiles(self.function, made.function, made.directives) if after else ()
        strips = () if options.is_auto else choose_strips(made.function, machine().register_bytes)
        sizes = [(x.axis, x.size) for x in tiles]
        strips = tuple(x for x in strips if (x.axis, x.size) not in sizes)
        return (*tiles, *strips, *made.directives)

    @property
    def in_super_vectors(self) -> Function:
        """The loops over super-vectors, in tiles if it has some. Strips are loops inside super-vectors."""
        tiles = [x for x in self.directives if not (isinstance(x, Tile) and x.level == "strip")]
        return in_tiles(self.vectorized.function, tiles)

    @lazy
    def scalar_kernel(self) -> LoopKernel:
        """The kernel that runs element by element, which is also correct for overlapping arrays."""
        return loop_kernel(self.function)

    @lazy
    def kernel(self) -> LoopKernel:
        """The kernel whose loops run as the directives say; the scalar one if there are none.

        Raises:
            KernelError: as for `vectorized`, or nothing can be streamed that the schedule streams.
        """
        if all(isinstance(x, Parallel) for x in self.directives):
            return self.scalar_kernel
        made, text = self._kernel(self.directives), self.options.schedule
        streams = next((x for x in self.directives if isinstance(x, Stream)), None)
        if text and streams and not made.emitted.streamed:
            with pointing(text, self.directives):
                refuse("expected full rows that are only written, and no scalar tail", streams)
        return made

    @lazy
    def streaming_kernel(self) -> LoopKernel:
        """The same for arrays larger than any cache: arrays that it only writes bypass the cache."""
        if not self.directives or self.options.schedule is not None:
            return self.kernel
        return self._kernel((*self.directives, Stream("full")))

    @lazy
    def tiled_kernel(self) -> LoopKernel:
        """The same in tiles, if blocks are transposed and the order of tiles is legal: for large arrays."""
        tiles = self.transposed_tiles
        return self._kernel((*tiles, *self.directives)) if tiles else self.kernel

    @lazy
    def transposed_tiles(self) -> tuple[Tile, ...]:
        """The tiles for large arrays."""
        options = self.options
        if not options.is_auto or options.schedule is not None or not self.kernel.emitted.blocks:
            return ()
        made = self.vectorized
        return choose_transposed_tiles(self.function, made.function, made.directives)

    def _kernel(self, directives: tuple[Directive, ...]) -> LoopKernel:
        return loop_kernel(self.vectorized.function, directives, fast=self.options.fastmath)

    def sized_kernel(self, arrays: Mapping[str, Array], sizes: Mapping[str, int]) -> LoopKernel:
        """The fastest of its kernels for such sizes, by the caches and by this machine's measured copies.

        sizes  the values of the symbols of the call
        """
        blocks = self.kernel.emitted.blocks
        if blocks and self.options.schedule is None and not fills_blocks(self.function, blocks, sizes):
            return self.scalar_kernel
        size_bytes = sum(_extent_bytes(x) for x in arrays.values())
        cached = self.tiled_kernel if runs_in_tiles(size_bytes) else self.kernel
        if size_bytes < CALIBRATED_FROM_BYTES or self.kernel is self.scalar_kernel:
            return cached
        streamed = [arrays[name] for name in self.streaming_kernel.emitted.streamed]
        if not streamed or min(_run_bytes(x) for x in streamed) < LEAST_RUN_BYTES:
            return cached
        written = WRITTEN_PART * sum(_extent_bytes(x) for x in streamed)
        least = streamed_from(size_bytes)
        return self.streaming_kernel if min(size_bytes, written) >= least else cached

    @lazy
    def failures(self) -> tuple[Any, ...]:
        """Reports of the loops of nests without a vectorized loop."""
        reports, failed = list(self.vectorized.loops), []
        for statement in self.function.body:
            own = [reports.pop(0) for _ in _loops(statement)]
            if own and not any(report.vectorized for report in own):
                failed += own
        return tuple(failed)

    @property
    def schedule(self) -> str:
        """The directives, as `tilejit.kernel` takes them, then facts that they do not decide, in one line."""
        if not self.directives:
            return "schedule  element by element"
        facts = [", ".join(map(str, self.directives)), *self._limits]
        if not self.options.is_auto:
            facts.append(strips_text(self.vectorized.function, machine().register_bytes))
        facts.append(f"registers of {machine().register_bytes} bytes")
        if self.kernel.emitted.blocks:
            facts.append("blocks transposed in registers, element by element where none is full")
        facts += ["one thread"] * (not self.shared)
        if self.streaming_kernel is not self.kernel and self.streaming_kernel.emitted.streamed:
            facts.append("streaming stores where arrays are large")
        if self.transposed_tiles:
            facts.append(f"{', '.join(map(str, self.transposed_tiles))} where arrays are large")
        return f"schedule  {' | '.join(filter(None, facts))}"

    @property
    def _limits(self) -> list[str]:
        """The requested sizes if they depend on the machine, and why super-vectors have less."""
        options = self.options
        if options.is_auto:
            return []
        limits = [options.machine_sizes] if options.machine_sizes else []
        requested = options.sizes(self.function)
        size = "x".join(map(str, requested))
        if len(requested) < len(self.sizes):
            shape = "x".join(map(str, self.sizes))
            return [*limits, f"{shape} as arrays are contiguous along different loops"]
        if len(requested) > len(self.sizes):
            most = max(map(_depth, self.function.body), default=0)
            few = "no nest has so many loops" if len(self.sizes) == most else "reductions have one dimension"
            return [*limits, f"not {size} as {few}"]
        given = tuple(size for size in self.sizes if size > 1)
        nests = [tuple(n for _, n in x.lanes) for x in self.directives if isinstance(x, Vectorize)]
        limited = any(nest != given for nest in nests if len(nest) == len(given))
        return [*limits, f"less than {size} as min_distance promises no more"] if limited else limits

    @property
    def shared(self) -> bool:
        """Whether iterations of the outermost loop may run on several threads."""
        loop, parallel = shared_loop(self.function), self.options.parallel
        if loop is None or parallel is False or not outer_loop(self.function, self._chosen):
            return False
        return loop.parallel or parallel is not None


def _extent_bytes(array: Array) -> int:
    """Bytes of an array at distinct addresses."""
    walked = [n for n, step in zip(array.shape, array.strides, strict=True) if step]
    return int(prod(walked) * array.itemsize)


def _run_bytes(array: Array) -> int:
    """The most contiguous bytes: those of a row, or of a column in Fortran order."""
    along = {"C": -1, "F": 0}.get(order_of(array))
    return 0 if along is None or not array.ndim else int(array.shape[along] * array.itemsize)


def _depth(statement: Statement) -> int:
    """The number of loops of the deepest nest in a statement."""
    match statement:
        case For(body=body):
            return 1 + max(map(_depth, body), default=0)
        case If(_, then, otherwise):
            return max(map(_depth, (*then, *otherwise)), default=0)
    return 0


def _loops(statement: Statement) -> list[For]:
    if not isinstance(statement, For):
        return []
    return [statement, *(inner for s in statement.body for inner in _loops(s))]
