"""A slow, straightforward interpreter of kernels, scalar and super-vectorized: the oracle for generated code.

`evaluation.py` computes values; statements and loops are here.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from functools import partial
from itertools import product
from typing import Any

import numpy as np
from numpy.typing import NDArray

from codegen.ir.buffers import Buffer, bits_of_element
from codegen.ir.dtypes import numpy_dtype
from codegen.ir.element_types import bits_of
from codegen.ir.elements import element_at
from codegen.ir.evaluation import Evaluation, Lanes, Number, kind_of, lane_offsets
from codegen.ir.index import evaluate_index
from codegen.ir.instructions import instruction
from codegen.ir.lines import LINE_BYTES
from codegen.ir.names import BEGIN, END
from codegen.ir.nodes import (
    Alloc,
    ArrayArg,
    Call,
    For,
    Function,
    If,
    Let,
    Prefetch,
    ScalarArg,
    Statement,
    Store,
    View,
)
from codegen.ir.operations import compute
from codegen.ir.values import Load
from codegen.support.dataclasses import dataclass
from codegen.support.errors import KernelError


def interpret(
    function: Function,
    arguments: Sequence[NDArray[Any] | int | float | bool],
    buffers: Mapping[str, Buffer] | None = None,
    span: tuple[int, int] = (0, 0),
) -> tuple[Number, ...]:
    """Run a kernel. Arrays and buffers are written in place; results are NumPy scalars.

    `span` is the range of the loop that calls share, such as the parallel loop of a copy.

    Both branches of a select are computed. A lane beyond the loop's bound is neither read nor written. It
    loads as 0, its carried values do not change, and scans take the neutral element for it. As in NumPy,
    integer division by 0 gives 0, and a shift by more than the width gives 0 or the sign.

    Raises:
        KernelError: a subscript is negative or outside its array (raised before that element is accessed),
            the arguments do not match the function, or the IR is not well formed.
    """
    begin, end = span
    run = Run({}, {}, {BEGIN: begin, END: end})
    for each in function.buffers:
        run.name_buffer(each.name, (buffers or {})[each.name])
    if len(arguments) != len(function.arguments):
        raise KernelError(f"{function.name} takes {len(function.arguments)} arguments, got {len(arguments)}")
    for argument, given in zip(function.arguments, arguments, strict=True):
        run.bind(argument, given)
    with np.errstate(all="ignore"):
        run.block(function.body)
        return tuple(run.value(result) for result in function.results)


UNDEFINED = 0xA5
"""Bytes of memory that a kernel allocates, before it writes them."""


@dataclass(slots=True)
class Run(Evaluation):
    """Runs statements."""

    def bind(self, argument: ArrayArg | ScalarArg, given: Any) -> None:
        """Set the value of an argument."""
        dtype = numpy_dtype(argument.dtype)
        if isinstance(argument, ScalarArg):
            value = self.locals[argument.name] = dtype.type(given)
            if dtype.kind in "iu":
                self.symbols[argument.name] = int(value)
            return
        if self.buffers:  # the tables of a copy are memory, not arrays
            self.arrays[argument.name] = given
            return
        if not isinstance(given, np.ndarray) or (given.dtype, given.ndim) != (dtype, argument.rank):
            shown = (
                f"{given.dtype}, rank {given.ndim}" if isinstance(given, np.ndarray) else type(given).__name__
            )
            raise KernelError(f"{argument.name} is an array of {dtype}, rank {argument.rank}, not {shown}")
        self.arrays[argument.name] = given
        self.symbols |= {f"{argument.name}.shape[{k}]": size for k, size in enumerate(given.shape)}
        if dtype.kind in "iu":
            self.symbols[argument.name] = partial(element_at, given)

    def block(self, body: Sequence[Statement]) -> None:
        """Run statements in order."""
        for statement in body:
            match statement:
                case Let(name, value):
                    self.name_value(name, self.value(value))
                case Store(array) if array in self.buffers:
                    self.store_in_buffer(statement)
                case Store():
                    self.store(statement)
                case For():
                    self.loop(statement)
                case View(name, buffer, offset, _, unit_bits, lines):
                    view = self.buffers[buffer].view(evaluate_index(offset, self.symbols))
                    view = view.counting(unit_bits or view.unit_bits)
                    self.name_buffer(name, replace(view, lines=self.arrays[lines]) if lines else view)
                case Alloc(name, size):
                    count = self.symbols[size] if isinstance(size, str) else size
                    self.name_buffer(name, Buffer(np.full(count, UNDEFINED, np.uint8)))
                case Prefetch():
                    pass
                case If(tests, then, otherwise):
                    self.block(then if all(map(self.holds, tests)) else otherwise)
                case Call(name, operands):
                    given = [
                        self.buffers[x] if isinstance(x, str) else evaluate_index(x, self.symbols)
                        for x in operands
                    ]
                    instruction(name).run(*given)
                case _:
                    raise AssertionError(f"interpret: no rule for {type(statement).__name__}")

    def store_in_buffer(self, store: Store) -> None:
        """Store an element or a super-vector in a buffer."""
        buffer, value, dtype = self.buffers[store.array], self.value(store.value), store.value.dtype
        if store.carry is not None:
            self.complete_lines(store, store.carry, buffer, value)
            return
        where = None if store.where is None else self.value(store.where)
        for lane, offset in self.offsets(store, store.value.shape):
            if where is None or where[lane]:
                buffer.write(offset, bits_of(dtype), bits_of_element(value[lane], dtype))

    def complete_lines(self, store: Store, carry: Load, buffer: Buffer, value: Any) -> None:
        """Move each row on, element by element: a line is stored when its last byte arrives."""
        before, line_bits = self.buffers[carry.array], 8 * LINE_BYTES
        rows, bits = dict(self.offsets(carry, carry.shape)), bits_of(store.value.dtype)
        for lane, offset in self.offsets(store, store.value.shape):
            row = rows[(*lane[:-1], 0)]
            bytes_ = (
                before.read(row, line_bits) | bits_of_element(value[lane], store.value.dtype) << line_bits
            )
            beyond = 8 * ((buffer.address + offset + bits // 8) % LINE_BYTES)
            if beyond < bits:
                line = bytes_ >> (bits - beyond) & (1 << line_bits) - 1
                buffer.write(offset + (bits - beyond) // 8 - LINE_BYTES, line_bits, line)
            before.write(row, line_bits, bytes_ >> bits)

    def loop(self, loop: For) -> None:
        """Run a loop; all carried locals are updated together at the end of each iteration."""
        starts, stops = ([evaluate_index(i, self.symbols) for i in ends] for ends in (loop.lower, loop.upper))
        up = loop.step > 0
        start, stop = (max(starts), min(stops)) if up else (min(starts), max(stops))
        for carried in loop.carried:
            self.name_value(carried.name, self.value(carried.start))
        if loop.size < 1 or loop.step % loop.size:
            raise KernelError(f"interpret: {loop.index} goes by {loop.step}, {loop.size} iterations at once")
        step = loop.step // loop.size
        for index in self.iterations(loop, start, stop):
            self.symbols[loop.index] = index
            if loop.size > 1:
                lanes = index + step * np.arange(loop.size)
                self.lanes.append(Lanes(loop.index, loop.size, step, lanes < stop if up else lanes > stop))
            self.block(loop.body)
            updated = {c.name: self._kept(c.name, self.value(c.update)) for c in loop.carried}
            for name, value in updated.items():
                self.name_value(name, value)
            if loop.size > 1:
                self.lanes.pop()
        self.symbols.pop(loop.index, None)

    def iterations(self, loop: For, start: int, stop: int) -> Iterator[int]:
        """The index of each iteration of a loop."""
        indices = range(start, stop, loop.step)
        count = len(range(start, stop, loop.step // loop.size))
        if not loop.fewest <= count <= loop.most:
            promised = f"{loop.fewest} to {loop.most} iterations of {loop.index}"
            raise KernelError(f"interpret: expected {promised}, got {count}")
        yield from indices

    def _kept(self, name: str, new: Number) -> Number:
        """The new value in active lanes, the old one elsewhere."""
        old = self.locals[name]
        if np.shape(old) != np.shape(new) or old.dtype != new.dtype:
            raise KernelError(f"interpret: {name} goes from {kind_of(old)} to {kind_of(new)}")
        kept: Number = np.where(self.mask(np.shape(new)), new, old) if np.shape(new) else new
        return kept

    def store(self, store: Store) -> None:
        """Store an element, or a super-vector lane by lane."""
        array = self.arrays[store.array]
        value = self.value(store.value)
        mask = self.mask(np.shape(value), store.subscripts, store.dims, store.along)
        if store.where is not None:
            mask = mask & self.value(store.where)
        if value.dtype != array.dtype:
            raise KernelError(f"interpret: {store.array} of {array.dtype} is given {value.dtype}")
        for lane in product(*map(range, np.shape(value))):
            if mask[lane]:
                at = self.stored_at(store, lane, np.shape(value))
                new = value[lane] if lane else value
                if store.accumulate:
                    new = compute(store.accumulate, [array[at], new], store.value.dtype)
                array[at] = new

    def stored_at(self, store: Store, lane: tuple[int, ...], shape: tuple[int, ...]) -> tuple[int, ...]:
        """Where a lane is stored."""
        if not store.along:
            return self.position(store.array, store.subscripts, lane_offsets(lane, store.dims, store.steps))
        values = self.in_lanes(shape, store.along)
        numbers = [np.broadcast_to(evaluate_index(s, values), shape)[lane] for s in store.subscripts]
        return self.inside(store.array, store.subscripts, [int(number) for number in numbers], ())
