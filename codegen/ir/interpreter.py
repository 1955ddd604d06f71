"""A slow, straightforward interpreter of kernels, scalar and super-vectorized: the oracle for generated code.

Arithmetic is NumPy's on scalars of each dtype. bf16 and f16 operations are computed in f32 and rounded.
Functions (exp, sin, …) are NumPy's in the dtype of their operands, one lane at a time.
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import product
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from codegen.ir.buffers import Buffer, bits_of_element, element_of
from codegen.ir.dtypes import numpy_dtype, stored_dtype
from codegen.ir.element_types import bits_of
from codegen.ir.families import FAMILIES
from codegen.ir.index import Affine, Index, evaluate_index, index_symbols
from codegen.ir.instructions import instruction, is_instruction
from codegen.ir.names import BEGIN, END
from codegen.ir.nodes import (
    Alloc,
    ArrayArg,
    Call,
    Compare,
    Const,
    Each,
    Entries,
    For,
    Function,
    If,
    IndexValue,
    Let,
    Load,
    Local,
    Narrow,
    Op,
    Prefetch,
    Reduce,
    ScalarArg,
    Statement,
    Step,
    Store,
    Value,
    VectorShape,
    View,
)
from codegen.ir.operations import compute
from codegen.support.errors import KernelError

Number: TypeAlias = Any
"""A NumPy scalar, or an array of a super-vector's lanes."""


def interpret(
    function: Function,
    arguments: Sequence[NDArray[Any] | int | float | bool],
    buffers: Mapping[str, Buffer] | None = None,
    span: tuple[int, int] = (0, 0),
) -> tuple[Number, ...]:
    """Run a kernel. Arrays and buffers are written in place; results are NumPy scalars.

    `span` is the range of the loop that calls share, such as the parallel loop of a copy.

    Both branches of a select are computed. A lane beyond the loop's bound is neither read nor written. It
    loads as 0, and its carried values do not change. As in NumPy, integer division by 0 gives 0, and a shift
    by more than the width gives 0 or the sign.

    Raises:
        KernelError: a subscript is negative or outside its array (raised before that element is accessed),
            the arguments do not match the function, or the IR is not well formed.
    """
    begin, end = span
    run = _Run({}, {}, {"begin": begin, BEGIN: begin, "end": end, END: end})
    for each in function.buffers:
        run.name_buffer(each.name, (buffers or {})[each.name])
    if len(arguments) != len(function.arguments):
        raise KernelError(f"{function.name} takes {len(function.arguments)} arguments, got {len(arguments)}")
    for argument, given in zip(function.arguments, arguments, strict=True):
        run.bind(argument, given)
    with np.errstate(all="ignore"):
        run.block(function.body)
        return tuple(run.value(result) for result in function.results)


_HALVES: dict[str, Callable[[int], int]] = {"": int, "low": lambda x: x % 2**32, "high": lambda x: x >> 32}
"""The step that an entry of a table holds, by `Entries.half`."""

_REGISTERS: dict[str, Callable[[list[Number], VectorShape], Number]] = {
    "first": lambda found, shape: np.arange(shape[0]) < int(found[0]),
    "stack": lambda found, shape: np.reshape(found, shape),
    "transpose": lambda found, shape: np.swapaxes(found[0], 0, 1),
    "row": lambda found, shape: found[0][int(found[1])],
    "register": lambda found, shape: found[0][: shape[0]],
    "with_register": lambda found, shape: np.concatenate([found[1], found[0][len(found[1]) :]]),
}
"""The operations that take super-vectors apart, and put them together."""

UNDEFINED = 0xA5
"""Bytes of scratch before a kernel writes them."""


@dataclass(frozen=True, slots=True)
class _Lanes:
    """A loop that runs several iterations at once. inside: which of them are within its bounds."""

    index: str
    size: int
    step: int
    inside: NDArray[np.bool_]


@dataclass(slots=True)
class _Run:
    """The state of a run: arrays, locals, symbols of index expressions, enclosing vectorized loops."""

    arrays: dict[str, NDArray[Any]]
    locals: dict[str, Number]
    symbols: dict[str, int]
    lanes: list[_Lanes] = field(default_factory=list)
    buffers: dict[str, Buffer] = field(default_factory=dict)

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
                case View(name, buffer, offset, _, in_bytes):
                    view = self.buffers[buffer].view(evaluate_index(offset, self.symbols))
                    self.name_buffer(name, view.in_bytes() if in_bytes else view)
                case Alloc(name, size):
                    self.name_buffer(name, Buffer(np.full(size, UNDEFINED, np.uint8)))
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

    def holds(self, test: Compare | Value) -> bool:
        """Whether a comparison or a value holds."""
        if not isinstance(test, Compare):
            return bool(self.value(test))
        left, right = (evaluate_index(side, self.symbols) for side in (test.left, test.right))
        return bool(getattr(operator, test.relation)(left, right))

    def name_value(self, name: str, value: Number) -> None:
        """Bind a value to a name; integers are symbols of index expressions too."""
        self.locals[name] = value
        if not np.shape(value) and value.dtype.kind in "iu":
            self.symbols[name] = int(value)

    def name_buffer(self, name: str, buffer: Buffer) -> None:
        """Bind a buffer to a name; the name as a symbol is its address."""
        self.buffers[name] = buffer
        self.symbols[name] = buffer.address

    def offsets(self, access: Load | Store, shape: VectorShape) -> Iterator[tuple[tuple[int, ...], int]]:
        """The active lanes of a load or store, each with its offset in the buffer."""
        values = self.in_lanes(shape, access.along) if isinstance(access, Load) else self.symbols
        start = sum(evaluate_index(s, values) for s in access.subscripts)
        if not shape:
            yield (), int(start)
            return
        starts = np.broadcast_to(start, shape)
        moves = [self.step(step) for step in access.steps or (0,) * len(shape)]
        active = list(shape)
        if access.first is not None:
            active[0] = min(shape[0], evaluate_index(access.first, self.symbols))
        offsets = self.value(access.offsets) if isinstance(access, Load) and access.offsets else None
        mask = self.mask(shape)
        for lane in product(*map(range, active)):
            if mask[lane]:
                more = 0 if offsets is None else int(offsets[lane])
                yield (
                    lane,
                    int(starts[lane]) + more + sum(move(k) for move, k in zip(moves, lane, strict=True)),
                )

    def step(self, step: Step) -> Callable[[int], int]:
        """The distance of a lane from the first one."""
        match step:
            case Entries(table, first, half):
                entries, begin = self.arrays[table], evaluate_index(first, self.symbols)
                return lambda k: _HALVES[half](int(entries[begin + k]))
            case Each(same):
                return self.step(same)
            case str():
                stride = self.symbols[step]
                return lambda k: k * stride
            case Affine():
                apart = evaluate_index(step, self.symbols)
                return lambda k: k * apart
            case _:
                return lambda k: k * step

    def load_from_buffer(self, load: Load) -> Number:
        """Load an element or a super-vector from a buffer; inactive lanes are 0."""
        buffer, bits = self.buffers[load.array], bits_of(load.dtype)
        found = np.zeros(load.shape, stored_dtype(load.dtype))
        for lane, offset in self.offsets(load, load.shape):
            found[lane] = element_of(buffer.read(offset, bits), load.dtype)
        return found if load.shape or load.dtype.startswith("bits") else found[()]

    def store_in_buffer(self, store: Store) -> None:
        """Store an element or a super-vector in a buffer."""
        buffer, value, dtype = self.buffers[store.array], self.value(store.value), store.value.dtype
        where = None if store.where is None else self.value(store.where)
        for lane, offset in self.offsets(store, store.value.shape):
            if where is None or where[lane]:
                buffer.write(offset, bits_of(dtype), bits_of_element(value[lane], dtype))

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
        for index, body in self.iterations(loop, start, stop):
            self.symbols[loop.index] = index
            if loop.size > 1:
                lanes = index + step * np.arange(loop.size)
                self.lanes.append(_Lanes(loop.index, loop.size, step, lanes < stop if up else lanes > stop))
            self.block(body)
            updated = {c.name: self._kept(c.name, self.value(c.update)) for c in loop.carried}
            for name, value in updated.items():
                self.name_value(name, value)
            if loop.size > 1:
                self.lanes.pop()
        self.symbols.pop(loop.index, None)

    def iterations(self, loop: For, start: int, stop: int) -> Iterator[tuple[int, tuple[Statement, ...]]]:
        """The index of each iteration of a loop, and the body that runs: the widest that fits."""
        blocks = loop.blocks
        if blocks is None or not blocks.narrower:
            latest = None if blocks is None or blocks.latest is None else self.index(blocks.latest)
            for index in range(start, stop, loop.step):
                yield index if latest is None else min(index, latest), loop.body
            return
        while start < stop:
            left, bodies = stop - start, (Narrow(loop.step, loop.body), *blocks.narrower)
            needed = loop.step + blocks.beyond, *(b.count for b in blocks.narrower)
            fits = (isinstance(count, str) or count <= left for count in needed)
            widest = next((b for b, fit in zip(bodies, fits, strict=True) if fit), None)
            if widest is None:
                raise KernelError(f"interpret: no body of {loop.index} runs {left} iterations")
            done = widest.count if isinstance(widest.count, int) else left
            if isinstance(widest.count, str):
                self.symbols[widest.count] = left
            yield start, widest.body
            start += done

    def index(self, index: Index) -> int:
        """The value of an index expression outside of lanes."""
        return int(evaluate_index(index, self.symbols))

    def _kept(self, name: str, new: Number) -> Number:
        """The new value in active lanes, the old one elsewhere."""
        old = self.locals[name]
        if np.shape(old) != np.shape(new) or old.dtype != new.dtype:
            raise KernelError(f"interpret: {name} goes from {_kind(old)} to {_kind(new)}")
        kept: Number = np.where(self.mask(np.shape(new)), new, old) if np.shape(new) else new
        return kept

    def value(self, value: Value) -> Number:
        """Evaluate a value: a NumPy scalar, or an array of its shape."""
        found = self._value(value)
        if np.shape(found) != value.shape or found.dtype != stored_dtype(value.dtype):
            raise KernelError(f"interpret: {value} is {_kind(found)}")
        return found

    def _value(self, value: Value) -> Number:
        match value:
            case Const(number, dtype, shape):
                one = np.array(number).astype(numpy_dtype(dtype))
                return np.full(shape, one) if shape else one[()]
            case Local(name):
                if name not in self.locals:
                    raise KernelError(f"interpret: {name} has no value")
                return self.locals[name]
            case IndexValue():
                return self.index_value(value)
            case Load(array) if array in self.buffers:
                return self.load_from_buffer(value)
            case Load(array, (entry,), "i64", ()) if self.buffers:
                return self.arrays[array][evaluate_index(entry, self.symbols)]
            case Load():
                return self.load(value)
            case Op(name, operands, dtype, shape):
                found = [self.value(operand) for operand in operands]
                if is_instruction(name):
                    instruction(name).check_operands(operands)
                    return np.reshape(instruction(name).run(*found), shape)
                if name == "broadcast":
                    # A super-vector of outer loops has the leading dimensions.
                    inner = (1,) * (len(shape) - np.ndim(found[0]))
                    return np.full(shape, np.reshape(found[0], np.shape(found[0]) + inner))
                if name in _REGISTERS:
                    return _REGISTERS[name](found, shape)
                family = FAMILIES.get(name)
                return family.meaning(found, dtype) if family else compute(name, found, dtype)
            case Reduce(combiner, vector, start, dtype):
                total = self.value(start)
                for lane in np.ravel(self.value(vector)):
                    total = compute(combiner, [total, lane], dtype)
                return total

    def index_value(self, value: IndexValue) -> Number:
        """Evaluate an index expression, in each lane if it is a super-vector."""
        if value.steps:
            lanes = np.full(value.shape, evaluate_index(value.index, self.symbols))
            for dimension, step in enumerate(value.steps):
                lanes = lanes + step * _ramp(value.shape, dimension)
            return lanes.astype(numpy_dtype(value.dtype))
        values = self.in_lanes(value.shape, value.along)
        found: Any = np.asarray(evaluate_index(value.index, values)).astype(numpy_dtype(value.dtype))
        return np.broadcast_to(found, value.shape).copy() if value.shape else found[()]

    def in_lanes(self, shape: VectorShape, along: tuple[str, ...]) -> Mapping[str, Any]:
        """The symbols' values; the indices named in `along` become arrays of lanes."""
        if not any(along):
            return self.symbols
        values: dict[str, Any] = dict(self.symbols)
        for dimension, name in enumerate(along):
            if name:
                step = next(lanes.step for lanes in self.lanes if lanes.index == name)
                values[name] = values[name] + step * _ramp(shape, dimension)
        return values

    def mask(
        self,
        shape: VectorShape,
        subscripts: tuple[Index, ...] = (),
        dims: tuple[int | None, ...] = (),
        along: tuple[str, ...] = (),
    ) -> NDArray[np.bool_]:
        """The lanes that are within the bounds of their loops.

        A vector dimension belongs to the loop whose index varies in its subscript or is named in `along`. A
        dimension without either belongs to the next enclosing vectorized loop of the same size.
        """
        mask = np.ones(shape, np.bool_)
        unmatched = list(self.lanes)
        for dimension, size in enumerate(shape):
            varying = dims[dimension] if dims else None
            names = (
                {lanes.index for lanes in unmatched}
                if varying is None
                else index_symbols(subscripts[varying])
            )
            names = {along[dimension]} if along and along[dimension] else names
            loop = next((lanes for lanes in unmatched if lanes.index in names and lanes.size == size), None)
            if loop is not None:
                unmatched.remove(loop)
                mask &= loop.inside.reshape([size if d == dimension else 1 for d in range(len(shape))])
        return mask

    def load(self, load: Load) -> Number:
        """Load an element, or a super-vector lane by lane."""
        array = self.arrays[load.array]
        if not load.shape:
            return array[self.position(load.array, load.subscripts, ())]
        found = np.zeros(load.shape, array.dtype)
        mask = self.mask(load.shape, load.subscripts, load.dims, load.along)
        values = self.in_lanes(load.shape, load.along)
        first = [np.broadcast_to(evaluate_index(s, values), load.shape) for s in load.subscripts]
        for lane in product(*map(range, load.shape)):
            if mask[lane]:
                numbers = [int(each[lane]) for each in first]
                offsets = _offsets(lane, load.dims, load.steps)
                found[lane] = array[self.inside(load.array, load.subscripts, numbers, offsets)]
        return found

    def store(self, store: Store) -> None:
        """Store an element, or a super-vector lane by lane."""
        array = self.arrays[store.array]
        value = self.value(store.value)
        mask = self.mask(np.shape(value), store.subscripts, store.dims)
        if store.where is not None:
            mask = mask & self.value(store.where)
        if value.dtype != array.dtype:
            raise KernelError(f"interpret: {store.array} of {array.dtype} is given {value.dtype}")
        for lane in product(*map(range, np.shape(value))):
            if mask[lane]:
                at = self.position(store.array, store.subscripts, _offsets(lane, store.dims, store.steps))
                new = value[lane] if lane else value
                if store.accumulate:
                    new = compute(store.accumulate, [array[at], new], store.value.dtype)
                array[at] = new

    def position(
        self, name: str, subscripts: tuple[Index, ...], offsets: Sequence[tuple[int, int]]
    ) -> tuple[int, ...]:
        """The subscripts of an element as numbers, checked to be inside the array."""
        numbers = [evaluate_index(subscript, self.symbols) for subscript in subscripts]
        return self.inside(name, subscripts, numbers, offsets)

    def inside(
        self,
        name: str,
        subscripts: tuple[Index, ...],
        numbers: list[int],
        offsets: Sequence[tuple[int, int]],
    ) -> tuple[int, ...]:
        """The sum of subscripts and offsets, checked to be inside the array."""
        for varying, offset in offsets:
            numbers[varying] += offset
        shape = self.arrays[name].shape
        for dimension, (number, size) in enumerate(zip(numbers, shape, strict=True)):
            if not 0 <= number < size:
                raise KernelError(
                    f"{name}[{', '.join(map(str, subscripts))}] is {name}{numbers} here, "
                    f"but dimension {dimension} has {size} elements"
                    f"{_at(self.symbols, subscripts)}\n"
                    "kernels do not count from the end, and both sides of `x if c else y` are read"
                )
        return tuple(numbers)


def _offsets(
    lane: tuple[int, ...], dims: tuple[int | None, ...], steps: tuple[Step, ...]
) -> list[tuple[int, int]]:
    """The offset of a lane in each subscript that varies: (subscript, offset)."""
    dims, steps = dims or (None,) * len(lane), steps or (1,) * len(lane)
    return [
        (varying, k * step)
        for k, varying, step in zip(lane, dims, steps, strict=True)
        if varying is not None and isinstance(step, int)
    ]


def _at(values: Mapping[str, int], subscripts: Sequence[Index]) -> str:
    names = sorted({name for subscript in subscripts for name in index_symbols(subscript)})
    return f" ({', '.join(f'{name} = {values[name]}' for name in names)})" if names else ""


def _ramp(shape: VectorShape, dimension: int) -> NDArray[np.int64]:
    return np.arange(shape[dimension]).reshape([-1 if d == dimension else 1 for d in range(len(shape))])


def _kind(value: Number) -> str:
    return f"{value.dtype}{list(np.shape(value))}"
