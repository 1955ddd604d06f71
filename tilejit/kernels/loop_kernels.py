"""The kernels of a function of loops: scalar, super-vectorized, streaming and tiled."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from math import prod
from typing import Any, TypeAlias

from codegen import (
    CALIBRATED_FROM_BYTES,
    For,
    Function,
    If,
    LoopKernel,
    Statement,
    Tail,
    TiledLoops,
    Vectorize,
    Vectorized,
    add_disjoint_bits,
    choose_shape,
    flatten_values,
    lazy,
    loop_kernel,
    machine,
    machine_thresholds,
    runs_in_tiles,
    strips_text,
    tile_function,
    transposed_tile,
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
        self.function, self.options = add_disjoint_bits(flatten_values(function)), options

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
        """The shape of its super-vectors, as requested or chosen by "auto".

        If no nest has as many loops as there are sizes, the outermost sizes are omitted.
        """
        options = self.options
        sizes = options.sizes(self.function)
        if options.fastest_varying or options.axes:
            return sizes
        if not options.is_auto:
            most = max(map(_depth, self.function.body), default=0)
            kept = [k for k, size in enumerate(sizes) if size > 1]
            return sizes if len(kept) <= most or not most else sizes[kept[-most] :]
        if options.vectorize_at == "after_tile":
            return sizes
        registers, reductions = options.auto_registers, options.reductions_in_lanes
        lanes, scans = sizes[0] // registers, options.vectorize_scans
        return choose_shape(self.function, registers, lanes, reductions, options.tail, scans)

    def _super_vectorized(self, function: Function, sizes: tuple[int, ...] | None = None) -> Vectorized:
        options = self.options
        fastest, reductions = options.fastest_varying, options.reductions_in_lanes
        scans = options.vectorize_scans
        given = sizes or self.sizes
        return vectorize_function(function, given, fastest, reductions, options.tail, scans, options.axes)

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

    @property
    def schedule(self) -> str:
        """How super-vectors map to registers and threads, in one line."""
        if self.kernel is self.scalar_kernel:
            return "schedule  element by element"
        registers = f"registers of {machine().register_bytes} bytes"
        parts = [
            self._directives,
            registers,
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
    def _directives(self) -> str:
        """The directives of each nest, and the requested size where super-vectors have less."""
        nests = [*dict.fromkeys(nest for x in self.vectorized.function.body for nest in _nests(x, ()))]
        tails: dict[str, Any] = {r.index: r.tail for r in self.vectorized.loops if r.vectorized}
        text = " and ".join(f"{Vectorize(nest)}, {Tail(nest[-1][0], tails[nest[-1][0]])}" for nest in nests)
        text += self.options.machine_sizes
        requested = self.options.sizes(self.function)
        size = "x".join(map(str, requested))
        if not self.options.is_auto and len(requested) > len(self.sizes):
            return f"{text}, not {size} as no nest has so many loops"
        given = tuple(size for size in self.sizes if size > 1)
        limited = any(tuple(lanes for _, lanes in nest) != given for nest in nests if len(nest) == len(given))
        return f"{text}, less than {size} as min_distance promises no more" if limited else text

    @property
    def shared(self) -> bool:
        """Whether iterations of the outermost loop may run on several threads."""
        body, parallel = self.function.body, self.options.parallel
        if len(body) != 1 or not isinstance(body[0], For) or body[0].carried or parallel is False:
            return False
        return body[0].parallel or (parallel is not None and not self.function.results)


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


Lanes: TypeAlias = tuple[tuple[str, int], ...]
"""The loops over super-vectors of a nest, outermost first, with their lanes."""


def _nests(statement: Statement, around: Lanes) -> Iterator[Lanes]:
    """The loops over super-vectors of each nest in a statement."""
    if isinstance(statement, If):
        for each in (*statement.body, *statement.otherwise):
            yield from _nests(each, around)
    if isinstance(statement, For):
        own = (*around, (statement.index, statement.size)) if statement.size > 1 else around
        inside = [nest for each in statement.body for nest in _nests(each, own)]
        yield from inside or ([own] if own else [])


def _loops(statement: Statement) -> list[For]:
    if not isinstance(statement, For):
        return []
    return [statement, *(inner for s in statement.body for inner in _loops(s))]
