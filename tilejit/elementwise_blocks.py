"""Expressions written to tiled arrays in one pass over memory, block by block through a buffer in cache."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from math import prod
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from codegen import (
    CALL_FIELDS,
    BoundKernel,
    Bounds,
    BufferOffsets,
    CallTable,
    Element,
    Launch,
    call_table,
    check_bounds,
    map_range,
    remember,
    run_parts,
    tight_map,
    window_map,
)
from tilejit.block_grid import BlockGrid, Dims, Ends, block_bytes, block_offset, block_strides, common_grid
from tilejit.elementwise_loops import fused, memory_order
from tilejit.layout.cute_shape import Spec
from tilejit.layout.indexing import access_map
from tilejit.loop_program import LoopProgram
from tilejit.memory import LINE_BYTES, Array, address, bytes_map, empty
from tilejit.programs import buffer_element, compiled_part, outgrows_caches
from tilejit.tiled_array import TiledArray, address_of

Operand: TypeAlias = Array | TiledArray
MakeProgram: TypeAlias = Callable[[Sequence[str], Sequence[Array]], LoopProgram]
"""(names, views of one block) -> the program that computes it."""

MOST_TABLES = 16
"""Tables of one plan, for results that begin elsewhere in their lines; they hold a call for each block."""


def cut_of(dims: Dims, specs: Sequence[Spec]) -> BlockGrid | None:
    """Blocks for these layouts; None where they have none of a size that stays in cache."""
    return common_grid(dims, [access_map(spec) for spec in specs], sum(x.dtype.itemsize for x in specs))


@dataclass(frozen=True, slots=True)
class _Side:
    """A tiled operand: bytes from block to block, and copies of each sort of block into cache or out.

    fills_bytes  whether blocks never meet in a byte
    """

    steps: Dims
    copies: dict[Ends, tuple[Launch, ...]]
    fills_bytes: bool


def _side(spec: Spec, cut: BlockGrid, *, reads: bool) -> _Side:
    access, programs = access_map(spec), {}
    loose = Element(spec.primitive_type, 8 * spec.dtype.itemsize)
    stored = buffer_element(spec)
    for ends in cut.ends():
        starts, extents = cut.box(ends)
        window = tight_map(window_map(access, starts, (1,) * len(extents), extents))
        between = bytes_map(extents, block_strides(extents, spec.dtype.itemsize), spec.dtype.itemsize)
        ways = (window, between, stored, loose) if reads else (between, window, loose, stored)
        low, high = map_range(access)
        whole = 2 * ((high - low) * access.unit_bits // 8)
        programs[ends] = compiled_part(*ways, streams=not reads and outgrows_caches(whole))
    steps = cut.steps(access)
    assert steps is not None
    copies = {ends: program.launches for ends, program in programs.items()}
    return _Side(steps, copies, all(program.fills_bytes for program in programs.values()))


_kept = threading.local()


def _buffer(number: int, size_bytes: int) -> Array:
    """One of this thread's buffers; it is kept, since fresh memory costs a fault for each page."""
    buffers: dict[int, Array] = _kept.__dict__.setdefault("buffers", {})
    if number not in buffers or buffers[number].nbytes < size_bytes:
        buffers[number] = empty((size_bytes,), np.uint8)
    return buffers[number]


class BlockPlan:
    """An expression over operands of certain shapes, strides and layouts, some of the results tiled.

    names      of all operands, inputs first, then `targets`
    operands   alike in shape and strides to those that `run` is given
    masked     whether results are read first, since a mask leaves some of their elements
    """

    def __init__(
        self,
        names: Sequence[str],
        operands: Sequence[Operand],
        targets: int,
        dims: Dims,
        cut: BlockGrid,
        make: MakeProgram,
        *,
        masked: bool,
    ) -> None:
        self.names, self.cut, self._first_target = tuple(names), cut, len(names) - targets
        self._specs = {k: x.spec for k, x in enumerate(operands) if isinstance(x, TiledArray)}
        self._strides = {
            k: np.broadcast_to(x, dims).strides
            for k, x in enumerate(operands)
            if not isinstance(x, TiledArray)
        }
        # Calls are given the addresses of the operands, and behind them those of blocks in cache.
        self._between = {k: len(names) + n for n, k in enumerate(self._specs)}
        read = [k for k in self._specs if k < self._first_target or masked]
        written = [k for k in self._specs if k >= self._first_target]
        self._reads = {k: _side(self._specs[k], cut, reads=True) for k in read}
        self._writes = {k: _side(self._specs[k], cut, reads=False) for k in written}
        self.program: LoopProgram | None = None
        self._kernels = {ends: self._bound(operands, cut.box(ends)[1], make) for ends in cut.ends()}
        self._tables: dict[Dims, CallTable] = {}
        blocks = list(cut.blocks())
        self._places = np.array([place for place, _ in blocks], np.int64).reshape(len(blocks), -1)
        sorts: dict[Ends, list[int]] = {ends: [] for ends in self._kernels}
        for n, (_, ends) in enumerate(blocks):
            sorts[ends].append(n)
        self._sorts = {ends: np.array(each, np.int64) for ends, each in sorts.items()}

    def _bound(self, operands: Sequence[Operand], extents: Dims, make: MakeProgram) -> BoundKernel:
        """The kernel of one sort of block, its operands by their shapes and strides."""
        wide = []
        for k, x in enumerate(operands):
            spec = self._specs.get(k)
            if spec is not None:
                memory = np.empty(1, spec.dtype)
                strides = block_strides(extents, spec.dtype.itemsize)
            else:
                memory, strides = np.asarray(x), self._strides[k]
            wide.append(np.lib.stride_tricks.as_strided(memory, extents, strides))
        lead = wide[self._first_target]
        views, _ = fused(wide, [memory_order(lead)])
        self.program = program = make(self.names, views)
        shapes = {name: x.shape for name, x in zip(self.names, views, strict=True)}
        strides_of = {name: x.strides for name, x in zip(self.names, views, strict=True)}
        check_bounds(program.function, shapes, {})
        return program.kernel.bind(shapes, strides_of, {})

    def run(self, operands: Sequence[Operand], numbers: Sequence[int], threads: int) -> None:
        """Compute it; `numbers` are the bits of the floats among the arguments."""
        if not all(side.fills_bytes for side in self._writes.values()):
            threads = 1
        run_parts(partial(self._part, tuple(operands), tuple(numbers)), threads)

    def _part(self, operands: tuple[Operand, ...], numbers: tuple[int, ...], part: int, parts: int) -> None:
        count = prod(self.cut.counts)
        first, last = count * part // parts, count * (part + 1) // parts
        if first == last:
            return
        sizes = [block_bytes(self.cut.extents, spec.dtype.itemsize) for spec in self._specs.values()]
        buffers = [_buffer(n, size) for n, size in enumerate(sizes)]
        at = [address_of(x) if isinstance(x, TiledArray) else address(x) for x in operands]
        at += [address(x) for x in buffers]
        table = self._table(at)
        copies, call_all, held = table.rows(tuple(at), 2 * first, 2 * last)
        kept: list[object] = [held, buffers, operands]
        computed = np.zeros((last - first, CALL_FIELDS), np.int64)
        for sort, numbered in self._sorts.items():
            which = numbered[(numbered >= first) & (numbered < last)]
            kernel, trips = self._kernels[sort], self._kernels[sort].trips
            assert trips is not None
            tables = kernel.tables(self._addresses(which, at, numbers))
            kept.append(tables)
            computed[which - first, 0] = kernel.address
            computed[which - first, 3] = tables.ctypes.data + tables.strides[0] * np.arange(len(which))
            computed[which - first, 4:] = trips.start, trips.stop
        starts = table.starts[2 * first : 2 * last] - table.starts[2 * first]
        calls = np.insert(copies, starts[1::2], computed, axis=0)  # behind what is read, before the writes
        call_all(0, 0, calls.ctypes.data, 0, len(calls))

    def _addresses(
        self, which: NDArray[np.int64], at: list[int], numbers: tuple[int, ...]
    ) -> NDArray[np.int64]:
        """For each of these blocks the address of every operand, then the numbers."""
        starts = self._places[which] * np.array(self.cut.extents, np.int64)
        out = np.empty((len(which), len(self.names) + len(numbers)), np.int64)
        for k in range(len(self.names)):
            if k in self._strides:
                out[:, k] = at[k] + starts @ np.array(self._strides[k], np.int64)
            else:
                out[:, k] = at[self._between[k]]
        out[:, len(self.names) :] = numbers
        return out

    def _table(self, at: list[int]) -> CallTable:
        """The copies of all blocks, into cache and out of it, for results that begin so in their lines."""
        within = tuple(at[k] % LINE_BYTES for k in self._writes)
        known = self._tables.get(within)
        if known is not None:
            return known
        lines = dict(zip(self._writes, within, strict=True))
        made = call_table(
            self._groups(),
            lambda place: (
                place.dst >= len(self.names) or (lines[place.dst] + place.dst_offset) % LINE_BYTES == 0
            ),
            self._bounds(),
        )
        return remember(self._tables, within, made, MOST_TABLES)

    def _bounds(self) -> list[Bounds]:
        """The bytes that copies may touch of every operand, and of the blocks in cache; of arrays none."""
        tiled = {k: access_map(spec).byte_bounds for k, spec in self._specs.items()}
        blocks = [(0, block_bytes(self.cut.extents, spec.dtype.itemsize)) for spec in self._specs.values()]
        return [*(tiled.get(k, (0, 0)) for k in range(len(self.names))), *blocks]

    def _groups(self) -> Iterator[list[tuple[tuple[Launch, ...], BufferOffsets]]]:
        """What is read of each block, and what is written of it: two groups for one."""
        between = self._between
        for place, ends in self.cut.blocks():
            yield [
                (side.copies[ends], BufferOffsets(k, block_offset(place, ends, side.steps), between[k], 0))
                for k, side in self._reads.items()
            ]
            yield [
                (side.copies[ends], BufferOffsets(between[k], 0, k, block_offset(place, ends, side.steps)))
                for k, side in self._writes.items()
            ]
