"""Values as the interpreter computes them, with the state that they depend on.

Arithmetic is NumPy's on scalars of each dtype. bf16 and f16 operations are computed in f32 and rounded.
Functions (exp, sin, …) are NumPy's in the dtype of their operands, one lane at a time.
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import field
from itertools import product
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from codegen.ir.buffers import Buffer, element_of
from codegen.ir.combiners import combined, combiner_of, neutral, scans_by
from codegen.ir.dtypes import numpy_dtype, stored_dtype
from codegen.ir.element_types import bits_of
from codegen.ir.families import FAMILIES
from codegen.ir.index import Affine, Index, evaluate_index, index_symbols
from codegen.ir.instructions import instruction, is_instruction
from codegen.ir.nodes import Compare, Store
from codegen.ir.operations import compute
from codegen.ir.values import (
    Const,
    Each,
    Entries,
    IndexValue,
    Load,
    Local,
    Op,
    Reduce,
    Step,
    Value,
    VectorShape,
)
from codegen.support.dataclasses import dataclass
from codegen.support.errors import KernelError, KernelIndexError
from codegen.support.lookups import expect

Number: TypeAlias = Any
"""A NumPy scalar, or an array of a super-vector's lanes."""


_HALVES: dict[str, Callable[[int], int]] = {"": int, "low": lambda x: x % 2**32, "high": lambda x: x >> 32}
"""The step that an entry of a table holds, by `Entries.half`."""

_REGISTERS: dict[str, Callable[[list[Number], VectorShape], Number]] = {
    "register": lambda found, shape: found[0][: shape[0]],
    "with_register": lambda found, shape: np.concatenate([found[1], found[0][len(found[1]) :]]),
}
"""The operations that take super-vectors apart, and put them together."""


@dataclass(frozen=True, slots=True)
class Lanes:
    """A loop that runs several iterations at once. inside: which of them are within its bounds."""

    index: str
    size: int
    step: int
    inside: NDArray[np.bool_]


@dataclass(slots=True)
class Evaluation:
    """The state of a run: arrays, locals, symbols of index expressions, enclosing vectorized loops."""

    arrays: dict[str, NDArray[Any]]
    locals: dict[str, Number]
    symbols: dict[str, Any]
    lanes: list[Lanes] = field(default_factory=list)
    buffers: dict[str, Buffer] = field(default_factory=dict)

    def holds(self, test: Compare | Value) -> bool:
        """Whether a comparison or a value holds."""
        if not isinstance(test, Compare):
            return bool(self.value(test))
        left, right = (evaluate_index(side, self.symbols) for side in (test.left, test.right))
        return bool(getattr(operator, test.relation)(left, right))

    def name_value(self, name: str, value: Number) -> None:
        """Bind a value to a name; integers are also symbols of index expressions, in each lane."""
        self.locals[name] = value
        if value.dtype.kind in "iu":
            self.symbols[name] = value if np.shape(value) else int(value)

    def name_buffer(self, name: str, buffer: Buffer) -> None:
        """Bind a buffer to a name; the name as a symbol is its address."""
        self.buffers[name] = buffer
        self.symbols[name] = buffer.address

    def offsets(self, access: Load | Store, shape: VectorShape) -> Iterator[tuple[tuple[int, ...], int]]:
        """The active lanes of a load or store, each with its offset in the buffer."""
        values = self.in_lanes(shape, access.along)
        start = sum(evaluate_index(s, values) for s in access.subscripts)
        offsets = None if access.offsets is None else self.value(access.offsets)
        if not shape:
            yield (), int(start) + (0 if offsets is None else int(offsets))
            return
        starts = np.broadcast_to(start, shape)
        moves = [self.step(step) for step in access.steps or (0,) * len(shape)]
        active = list(shape)
        if access.first is not None:
            active[0] = min(shape[0], evaluate_index(access.first, self.symbols))
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

    def load_entries(self, load: Load) -> Number:
        """Load an entry of a table, or those of the active lanes."""
        (entry,), found = load.subscripts, np.zeros(load.shape, stored_dtype(load.dtype))
        for lane in map(tuple, np.argwhere(self.mask(load.shape, load.subscripts, load.dims))):
            apart = sum(step for _, step in lane_offsets(lane, load.dims, load.steps))
            found[lane] = int(self.arrays[load.array][self.index(entry) + int(apart)])
        return found[()]

    def index(self, index: Index) -> int:
        """The value of an index expression outside of lanes."""
        return int(evaluate_index(index, self.symbols))

    def value(self, value: Value) -> Number:
        """Evaluate a value: a NumPy scalar, or an array of its shape."""
        found = self._value(value)
        if np.shape(found) != value.shape or found.dtype != stored_dtype(value.dtype):
            raise KernelError(f"interpret: {value} is {kind_of(found)}")
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
            case Load(_, (_,), "i64" | "bits64") if self.buffers:
                return self.load_entries(value)
            case Load():
                return self.load(value)
            case Op(name, operands, dtype, shape):
                found = [self.value(operand) for operand in operands]
                if is_instruction(name):
                    instruction(name).check_operands(operands, selected=False)
                    return np.reshape(instruction(name).run(*found), shape)
                if name in _REGISTERS:
                    return _REGISTERS[name](found, shape)
                if how := scans_by(name):
                    empty = self.value(Const(neutral(combiner_of(how), dtype), dtype, shape))
                    return self.scanned(how, np.where(self.mask(shape), found[0], empty), dtype)
                family = FAMILIES.get(name)
                return family.meaning(found, dtype, shape) if family else compute(name, found, dtype)
            case Reduce(combiner, vector, start, dtype):
                total = self.value(start)
                for lane in np.ravel(self.value(vector)):
                    total = compute(combiner, [total, lane], dtype)
                return total

    def scanned(self, how: str, lanes: Number, dtype: str) -> Number:
        """Each lane combined with all lanes before it."""
        both = combined(how, Local("earlier:scan", dtype), Local("later:scan", dtype), dtype)
        for k in range(1, len(lanes)):
            self.locals |= {"earlier:scan": lanes[k - 1], "later:scan": lanes[k]}
            lanes[k] = self.value(both)
        return lanes

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
                step = expect((x.step for x in self.lanes if x.index == name), f"lanes of {name}", self.lanes)
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
                offsets = lane_offsets(lane, load.dims, load.steps)
                found[lane] = array[self.inside(load.array, load.subscripts, numbers, offsets)]
        return found

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
                raise KernelIndexError(
                    f"{name}[{', '.join(map(str, subscripts))}] is {name}{numbers} here, "
                    f"but dimension {dimension} has {size} elements"
                    f"{_at(self.symbols, subscripts)}\n"
                    "kernels do not count from the end, and both sides of `x if c else y` are read"
                )
        return tuple(numbers)


def lane_offsets(
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


def kind_of(value: Number) -> str:
    """The dtype and the shape of a value, for error messages."""
    return f"{value.dtype}{list(np.shape(value))}"
